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
SAMPLES = ("lite-1",)
"""Frozen samples of a benchmark, by their profile's version: a number on one is a task of its own."""


def task_id(protocol: str, number: str, profile: str = "full") -> str:
    """The Hub's name for one number, such as `retrieval_mean_delta`; of a frozen sample it ends with that.

    >>> task_id("retrieval-occupations", "bias"), task_id("vqa", "bias", "lite-1")
    ('retrieval_occupations_bias', 'vqa_bias_lite_1')
    """
    sample = "" if profile == "full" else f"_{profile}"
    return f"{protocol}_{number}{sample}".replace("-", "_")


def task_ids(benchmark: str) -> list[str]:
    """The tasks of a benchmark, by its name.

    >>> task_ids("genderbias-vl")[1:3]
    ['counterfactual_mean_delta', 'counterfactual_bias_lite_1']
    """
    return [
        task_id(protocol, number, profile)
        for protocol in _PROTOCOLS.get(benchmark, _USUAL)
        for profile in ("full", *SAMPLES)
        for number in NUMBERS
    ]


def eval_yaml(spec: BenchmarkSpec) -> bytes:
    """`eval.yaml` of a benchmark: its tasks, all on the original images of the test split.

    Args:
        spec: Of the benchmark.
    """
    import yaml

    numbers = "; ".join(
        [f"*_{name}: {meaning}" for name, meaning in NUMBERS.items()]
        + [f"*_{each.replace('-', '_')}: the same on a frozen sample of the images" for each in SAMPLES]
    )
    content = {
        "name": spec.title,
        "description": f"{spec.description} Numbers: {numbers}.",
        "evaluation_framework": "truegap",
        "tasks": [{"id": each, "config": "original", "split": "test"} for each in task_ids(spec.name)],
    }
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True).encode()
