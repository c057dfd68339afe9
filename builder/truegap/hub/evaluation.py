"""The benchmark as the Hub's own pages know it: `eval.yaml`, and the numbers that models may have on it."""

from __future__ import annotations

from truegap.sources.benchmark import BenchmarkSpec

FILE = "eval.yaml"

_PROTOCOLS = {
    "visogender": ("resolution", "retrieval-occupations"),
    "genderbias-vl": ("counterfactual",),
}
"""What the benchmarks with units of their own are asked by; all others by the two that suit any picture of a person."""
_USUAL = ("vqa", "retrieval")

NUMBERS = {
    "bias": "the bias on original images; 0 is none",
    "mean_delta": "how far the perturbations move it, in percent; 0 is not at all",
}
"""What each protocol says of a model, by the end of the task's id: the Hub keeps one number per task."""


def task_id(protocol: str, number: str) -> str:
    """The Hub's name for one number, such as `retrieval_mean_delta`.

    >>> task_id("retrieval-occupations", "bias")
    'retrieval_occupations_bias'
    """
    return f"{protocol.replace('-', '_')}_{number}"


def task_ids(benchmark: str) -> list[str]:
    """The tasks of a benchmark, by its name.

    >>> task_ids("visogender")[:2]
    ['resolution_bias', 'resolution_mean_delta']
    """
    return [task_id(protocol, number) for protocol in _PROTOCOLS.get(benchmark, _USUAL) for number in NUMBERS]


def eval_yaml(spec: BenchmarkSpec) -> bytes:
    """`eval.yaml` of a benchmark: its tasks, all on the original images of the test split.

    Args:
        spec: Of the benchmark.
    """
    import yaml

    numbers = "; ".join(f"*_{name}: {meaning}" for name, meaning in NUMBERS.items())
    content = {
        "name": spec.title,
        "description": f"{spec.description} Numbers: {numbers}.",
        "evaluation_framework": "truegap",
        "tasks": [{"id": each, "config": "original", "split": "test"} for each in task_ids(spec.name)],
    }
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True).encode()
