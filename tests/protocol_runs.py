"""Runs of a protocol on a small benchmark, under a display that must end at what it promised."""

from __future__ import annotations

from contextlib import contextmanager

from answerer import Answerer
from truegap.hub.benchmark import open_benchmark
from truegap.models import EmbeddingCache
from truegap.models.answer_cache import AnswerCache
from truegap.protocols.run import run_protocol
from truegap.results.runs import read_run


@contextmanager
def quiet(what, total):
    done = []
    yield done.append
    assert sum(done) == total, what


def runner(benchmark, tmp_path, *, protocol, configs, default):
    """What runs a protocol, by default these, and gives the folder and whether the run was there already.

    Args:
        benchmark: The folder of a built benchmark.
        tmp_path: Where runs and caches go.
        protocol: The protocol.
        configs: Of the benchmark.
        default: Makes the model.
    """

    def call(name="run", protocol=protocol, model=None, *, cache="cache", configs=configs, spec=benchmark, **more):
        asked = default() if model is None else model
        opened = AnswerCache if isinstance(asked, Answerer) else EmbeddingCache
        with opened(tmp_path / cache) as kept:
            return run_protocol(
                open_benchmark(spec),
                asked,
                protocol,
                folder=tmp_path / name,
                configs=configs,
                progress=quiet,
                cache=kept,
                **more,
            )

    return call


def found(folder, config="original"):
    """The scores of one config, by metric and scope."""
    return {(each.metric, each.scope): each for each in read_run(folder).scores.scores if each.config == config}
