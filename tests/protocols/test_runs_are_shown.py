"""Runs of every protocol are reported and ranked as those of retrieval are."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from answerer import Answerer, biased_selection, build
from truegap.figures.findings import bias_sentence
from truegap.hub.benchmark import open_benchmark
from truegap.leaderboard import LocalStore, row_of
from truegap.models.answer_cache import AnswerCache
from truegap.protocols.base import Images, balanced_sample
from truegap.protocols.profiles import LITE
from truegap.protocols.resolution import Resolution
from truegap.protocols.retrieval import Retrieval, RetrievalAsking
from truegap.protocols.run import run_protocol
from truegap.protocols.vqa import Vqa
from truegap.report import bias_is_clear, write_report
from truegap.results.runs import read_run
from truegap.schema import CONFIGS

FROZEN = ["0002", "0006", "0008", "0012", "0015", "0021"]
VISO = {
    "kind": "OO",
    "sector": "medical",
    "specialisation": "hospital_worker",
    "occupation": "doctor",
    "object": "clipboard",
    "participant": None,
    "participant_gender": None,
}


@contextmanager
def quiet(what, total):
    yield lambda _: None


def run(tmp_path, protocol, **extra):
    spec = build(tmp_path / "b", biased_selection(6, 6, **extra), CONFIGS)
    with AnswerCache(tmp_path / "c") as cache:
        folder, _ = run_protocol(
            open_benchmark(spec),
            Answerer(lean=1.0),
            protocol,
            folder=tmp_path / "run",
            configs=CONFIGS,
            progress=quiet,
            cache=cache,
        )
    return read_run(folder)


@pytest.mark.parametrize(
    ("protocol", "extra", "label"),
    [
        (Vqa(n_resamples=20, n_permutations=20), {}, "YGap"),
        (Resolution(n_resamples=20), {"extra": VISO}, "RA gap"),
    ],
    ids=["vqa", "resolution"],
)
def test_a_run_becomes_a_report_and_a_row(tmp_path, protocol, extra, label):
    made = run(tmp_path, protocol, **extra)
    html, markdown = write_report([made], tmp_path / "out")
    text = markdown.read_text()
    assert f"{label} is " in text
    assert "| background | " in text
    # single questions, occupations and pairs are too many for a page
    assert "prompt:" not in text
    assert "occupation:doctor" not in text
    assert label in html.read_text()
    store = LocalStore(tmp_path / "store")
    assert store.submit(row_of(made)).added
    row = store.table().to_pylist()[0]
    assert (row["protocol"], row["metric"]) == (protocol.name, made.scores.summary.metric)
    assert row["bias"] == made.scores.summary.bias


def test_no_bias_is_claimed_where_noise_alone_makes_one(tmp_path):
    made = run(tmp_path, Resolution(n_resamples=20), extra=VISO)
    # given an interval that lies above 0, of a metric that always does
    summary = made.scores.summary.model_copy(
        update={"metric": "b_ovl@VL", "bias": 0.1, "bias_low": 0.05, "bias_high": 0.2, "null": None}
    )
    assert bias_is_clear(summary) is None
    assert bias_sentence(summary).startswith("B_ovl@VL is 0.100 [0.050, 0.200]; noise alone keeps it above 0")
    shown = made.scores.model_copy(update={"summary": summary})
    html, _ = write_report([type(made)(made.record, shown, made.folder)], tmp_path / "out")
    assert "noise alone keeps it above 0" in html.read_text()


def test_the_frozen_sample_stays_what_it_is():
    # a sample that was released under a version must never change
    ids = [f"{n:04}" for n in range(1000)]
    images = Images(ids, ["woman" if n % 3 == 0 else "man" for n in range(1000)], list(range(1000)))
    chosen = balanced_sample(images, "coco-gender", LITE.images, LITE.version, 0)
    assert (LITE.version, LITE.images, LITE.configs) == ("lite-1", 200, CONFIGS)
    assert (chosen.count("woman"), chosen.count("man")) == (100, 100)
    assert chosen.ids[:6] == FROZEN
    shorter = Retrieval(k=(10,))
    assert LITE.note(images, RetrievalAsking(shorter, chosen)) == (
        "lite-1: 200 of 1,000 images; intervals are about 2.1 times as wide as those of all images"
    )
    assert LITE.note(images, RetrievalAsking(Retrieval(), chosen)) == (
        "lite-1: 200 of 1,000 images; k is 20 here and 66 with all images: two scores, not to be compared"
    )
    assert LITE.note(images, RetrievalAsking(shorter, images)) is None
