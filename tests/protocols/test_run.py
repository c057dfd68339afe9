"""A run on disk, with a real model: what is reused, what is refused, what changes nothing."""

from __future__ import annotations

import json

import pytest

from examples import example, selection
from protocol_runs import quiet, runner
from tiny import save_clip
from truegap.build import Plan, Workspace, build_shard, choose_configs
from truegap.errors import UserError
from truegap.hub.benchmark import open_benchmark
from truegap.models import EmbeddingCache, load_model
from truegap.protocols.prompts import Prompt, PromptSet
from truegap.protocols.retrieval import Retrieval
from truegap.protocols.run import run_protocol
from truegap.results.answers import read_answers
from truegap.results.runs import read_run
from truegap.schema import CONFIGS

PROMPTS = PromptSet(
    name="jobs", prompts=tuple(Prompt(id=job, text=f"A photo of a {job}") for job in ("nurse", "pilot"))
)
PROTOCOL = Retrieval(prompts=(PROMPTS,), k=(2,), n_resamples=20)


def build(folder, examples):
    workspace = Workspace(Plan("synthetic", "1.0.0", examples), folder)
    with workspace.opened():
        for task in workspace.tasks():
            build_shard(task)
        workspace.finish()
    return str(folder)


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory):
    """Five women and seven men."""
    extra = [example(10, "man"), example(11, "man")]
    return build(tmp_path_factory.mktemp("b") / "b", selection(10, *extra))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return load_model(str(save_clip(tmp_path_factory.mktemp("m") / "tiny-clip")), device="cpu")


@pytest.fixture
def run(benchmark, model, tmp_path):
    return runner(benchmark, tmp_path, protocol=PROTOCOL, configs=CONFIGS, default=lambda: model)


def test_run_folder_is_complete(run):
    folder, known = run()
    found = read_run(folder)
    assert not known
    assert sorted(each.name for each in folder.iterdir()) == ["answers.parquet", "pictures", "run.json", "scores.json"]
    assert (found.record.benchmark.women, found.record.benchmark.men) == (5, 7)
    assert found.record.model.kind == "dual-encoder"
    assert found.record.options["k"] == [2]
    assert found.record.environment.packages["torch"]
    assert (found.record.compute.device, found.record.compute.dtype) == ("cpu", "float32")
    assert found.record.compute.device_name
    assert [type(found.record.statistics[name]) for name in ("seconds", "images", "computed")] == [float, int, int]
    assert {each.config for each in found.scores.scores} == set(CONFIGS)
    assert {each.config for each in found.scores.changes} == set(CONFIGS) - {"original"}
    assert "each of 5 balanced draws ranks 5 women and 5 men of 5 and 7" in found.record.notes


def test_answers_are_tidy(run, model, benchmark):
    folder, _ = run()
    table = read_answers(folder)
    assert table.num_rows == 15 * 2 * 12
    original = read_answers(folder, config="original").to_pandas()
    assert len(original) == 24
    row = original[(original.image_id == "3") & (original.prompt_id == "nurse")].iloc[0]
    assert (row.gender, row.prompt_set, row.prompt) == ("man", "jobs", "A photo of a nurse")
    picture = example(3).image.read()
    from truegap.build.images import decode

    cosine = float((model.encode_images([decode(picture)]) @ model.encode_texts([row.prompt]).T).item())
    assert row.score == pytest.approx(cosine, abs=1e-5)


def test_same_question_is_not_asked_twice(run):
    folder, _ = run()
    written = (folder / "answers.parquet").stat().st_mtime_ns
    again, known = run()
    assert known
    assert (again / "answers.parquet").stat().st_mtime_ns == written


def test_a_finished_run_of_an_older_format_is_scored_anew(run):
    # given a run that an older truegap wrote; then the same command adds what it lacks, without a forward pass
    folder, _ = run()
    scores = json.loads((folder / "scores.json").read_text())
    for name in ("contrasts", "contexts"):
        scores.pop(name)
    (folder / "scores.json").write_text(json.dumps(scores | {"format_version": 1}))
    _, known = run()
    found = read_run(folder)
    assert not known
    assert found.scores.contrasts
    assert found.record.statistics["computed"] == 0


def test_controls_on_request_are_answered_too(model, tmp_path):
    configs = choose_configs(["original", "control", "object-strong", "extra"])
    chosen = selection(10, example(10, "man"), example(11, "man"))
    workspace = Workspace(Plan("synthetic", "1.0.0", chosen, configs), tmp_path / "b")
    with workspace.opened():
        for task in workspace.tasks():
            build_shard(task)
        workspace.finish()
    with EmbeddingCache(tmp_path / "cache") as cache:
        folder, _ = run_protocol(
            open_benchmark(str(tmp_path / "b")),
            model,
            PROTOCOL,
            folder=tmp_path / "run",
            configs=configs,
            progress=quiet,
            cache=cache,
        )
    found = read_run(folder)
    assert tuple(found.record.configs) == configs
    assert {(each.config, each.against) for each in found.scores.contrasts} == {
        ("object-strong", "control"),
        ("object-strong", "object-placebo-strong"),
        ("background-swap-cross", "background-swap-same"),
    }
    assert {each.scope for each in found.scores.contexts} == {"all"}


def test_another_question_does_not_replace_a_run(run):
    run()
    with pytest.raises(UserError, match="holds another run"):
        run(protocol=Retrieval(prompts=(PROMPTS,), k=(4,), n_resamples=20))


def test_interrupted_run_goes_on(run, tmp_path):
    # given a run that died before its record was written; then its embeddings are not computed again
    folder, _ = run()
    (folder / "run.json").unlink()
    _, known = run()
    assert not known
    assert read_run(folder).record.statistics["computed"] == 0


def test_a_new_config_computes_only_itself(run, model, monkeypatch):
    few, _ = run("few", configs=["original", "control"])
    # not even the prompts
    monkeypatch.setattr(model, "text_features", lambda texts: pytest.fail(f"asked again: {texts}"))
    more, _ = run("more", configs=["original", "control", "background-strong"])
    assert read_run(few).record.statistics["computed"] == 24
    assert read_run(more).record.statistics["computed"] == 12


def test_batch_size_changes_no_score(run):
    one, _ = run("one", cache="1", batch_size=1)
    many, _ = run("many", cache="2", batch_size=12)
    first, second = read_run(one).scores, read_run(many).scores
    assert [each.value for each in first.scores] == [each.value for each in second.scores]
    assert [each.delta for each in first.changes] == [each.delta for each in second.changes]


def test_order_of_the_benchmark_changes_no_score(run, model, tmp_path, monkeypatch):
    from dataclasses import replace

    straight, _ = run("straight")
    extra = [example(10, "man"), example(11, "man")]
    chosen = selection(10, *extra)
    turned = build(tmp_path / "turned", replace(chosen, examples=chosen.examples[::-1]))
    with EmbeddingCache(tmp_path / "c") as cache:
        folder, _ = run_protocol(
            open_benchmark(turned), model, PROTOCOL, folder=tmp_path / "t", configs=CONFIGS, progress=quiet, cache=cache
        )
    assert read_run(folder).scores.scores == read_run(straight).scores.scores
    assert read_run(folder).scores.changes == read_run(straight).scores.changes


def test_limit_is_balanced(run):
    folder, _ = run(limit=6)
    record = read_run(folder).record
    assert (record.benchmark.women, record.benchmark.men) == (3, 3)
    with pytest.raises(UserError, match="--limit 1"):
        run("other", limit=1)


def test_foreign_folder_is_not_touched(run, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("mine")
    with pytest.raises(UserError, match="exists and is not a run"):
        run()
    assert [each.name for each in (tmp_path / "run").iterdir()] == ["thesis.tex"]


def test_too_large_a_k_leaves_nothing(run, tmp_path):
    with pytest.raises(UserError, match="k=11: a balanced draw has 5 women and 5 men"):
        run(protocol=Retrieval(prompts=(PROMPTS,), k=(11,)))
    assert not (tmp_path / "run").exists()
