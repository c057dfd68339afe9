"""What goes with a row: resamples that say what its answers say, and pictures where the licence allows it."""

import numpy as np
import pytest

from loopback_hub import TOKEN
from run_factory import run_record, scores_record
from truegap.build.manifest import read_manifest
from truegap.cli.app import app
from truegap.leaderboard import open_store
from truegap.leaderboard.details import Details, compare, details_of, keep_details, read_details
from truegap.leaderboard.retrieved import retrieved
from truegap.results.answers import AnswersWriter, read_answers
from truegap.results.compare_runs import compare_runs
from truegap.results.runs import Run, write_run

OPTIONS = {"k": [10], "draws": 2, "seed": 0, "target": "uniform", "empty": "clip", "aggregate": "mean_of_ratios"}
PROMPTS = [("occupations-r1", f"p{n}", f"A photo of a worker, {n}", "") for n in range(4)]
CONFIG = "background-strong"


def answered(folder, name, ids, genders, benchmark=None, *, seed=0, lean=0.0):
    """A retrieval run with answers that lean towards men."""
    draw = np.random.default_rng(seed)
    record = run_record(name, options=OPTIONS, configs=["original", CONFIG])
    record = record.model_copy(update={"benchmark": record.benchmark.model_copy(update=benchmark or {})})
    scores = scores_record(record.run_id)
    folder.mkdir()
    summary = scores.summary.model_copy(update={"metric": "max_skew@10"})
    changes = [each.model_copy(update={"metric": "max_skew@10"}) for each in scores.changes if each.config == CONFIG]
    scores = scores.model_copy(update={"summary": summary, "changes": changes})
    write_run(folder, record, scores)
    with AnswersWriter(folder) as writer:
        for config in ("original", CONFIG):
            men = np.array([gender == "man" for gender in genders])
            similar = draw.normal(0, 1, (len(PROMPTS), len(ids))) + lean * men
            writer.write(config, PROMPTS, ids, genders, similar.astype(np.float32))
    return Run(record, scores, folder)


def test_resamples_say_what_the_answers_say(tmp_path):
    ids, genders = [f"{n:03d}" for n in range(60)], ["woman", "man"] * 30
    runs = [answered(tmp_path / name, name, ids, genders, seed=n, lean=n) for n, name in enumerate(("one", "other"))]
    expected = compare_runs(*runs, n_resamples=1000)
    kept = [details_of(run) for run in runs]
    found, _ = compare(*kept, (expected.first_value, expected.second_value))
    assert (found.ci_low, found.ci_high) == pytest.approx((expected.ci_low, expected.ci_high), abs=1e-6)
    assert (found.p_value, found.clear) == (expected.p_value, expected.clear)
    fewer = answered(tmp_path / "fewer", "fewer", ids[:-2], genders[:-2])
    assert details_of(fewer).answered != kept[0].answered == kept[1].answered


def test_each_prompt_has_its_score(tmp_path):
    # given answers to four prompts
    ids, genders = [f"{n:03d}" for n in range(60)], ["woman", "man"] * 30
    run = answered(tmp_path / "one", "one", ids, genders, lean=1)

    # when details are made of them
    kept = details_of(run).prompts

    # then each has the skew of its own top ten
    rows = read_answers(run.folder, config="original").to_pandas().score.to_numpy().reshape(4, 60)
    men = [(np.argsort(-row)[:10] % 2).mean() for row in rows]
    expected = [np.log(max(share, 1 - share) / 0.5) for share in men]
    assert [each.prompt for each in kept] == [text for _, _, text, _ in PROMPTS]
    assert [each.value for each in kept] == pytest.approx(expected)
    assert all(each.low <= each.value <= each.high and each.low < each.high for each in kept)


def test_pictures_are_kept_where_their_licence_allows_it(tmp_path):
    folder = tmp_path / "bench"
    arguments = ["build", "synthetic", "--out", str(folder), "--limit", "4", "--workers", "1"]
    app([*arguments, "--configs", f"original,{CONFIG}"], standalone_mode=False)
    manifest = read_manifest(folder)
    ids = list(manifest.rows.image_id)
    known = {"spec": str(folder), "name": "synthetic", "content": manifest.content}

    def found(run_name, **changes):
        return retrieved(answered(tmp_path / run_name, run_name, ids, ["woman", "man"] * 2, known | changes))

    shown = found("shown")
    assert {each.config for each in shown.prompts} == {"original", CONFIG}
    assert all(name in shown.pictures for each in shown.prompts for name in each.images)
    assert shown.no_pictures == ""
    # The same pictures under the terms of FACET, which lets nobody show them, whatever a run calls its benchmark.
    assert found("renamed", name="facet").pictures == shown.pictures
    manifest_file = folder / "manifest.json"
    manifest_file.write_text(manifest_file.read_text().replace('"benchmark": "synthetic"', '"benchmark": "facet"'))
    refused = found("refused", name="synthetic")
    assert refused.pictures == {}
    assert {name for each in refused.prompts for name in each.images} == {None}
    assert "licence" in refused.no_pictures
    assert "not the one that was asked" in found("other", content="0" * 64).no_pictures
    assert "not at hand" in found("absent", spec=str(tmp_path / "nowhere")).no_pictures


def test_details_go_with_a_row_on_the_hub_too(loopback_hub, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    details = Details(answered="same", no_pictures="only retrieval finds images")
    keep_details(open_store("hf://org"), "a" * 64, details)
    assert read_details(open_store("hf://org"), "a" * 64) == details
    assert read_details(open_store("hf://org"), "b" * 64) is None
