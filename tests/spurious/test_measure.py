"""Acc_b of a benchmark whose colours tell everything and whose objects tell nothing."""

from __future__ import annotations

import json
from contextlib import contextmanager
from importlib import import_module

import numpy as np
import pytest
from typer.testing import CliRunner

from answerer import build, plain_picture
from examples import example, selection
from run_factory import run_record, scores_record
from tiny import save_clip
from truegap.cli.app import app
from truegap.errors import UserError
from truegap.hub.benchmark import open_benchmark
from truegap.models import EmbeddingCache, load_dual_encoder
from truegap.models import classifier as training
from truegap.models.backbones import load_backbone
from truegap.results.runs import write_run
from truegap.schema import Region
from truegap.spurious import Conventions, Reader, measure, read_spurious

NAME, SIDE = "test_byobnet", 32
QUICK = {"epochs": 12, "patience": 12, "learning_rate": 0.02, "seeds": 2}


def things(n):
    """Which objects an image has does not depend on its number's parity, and so not on gender."""
    labels = ["cup", "kite"] if n // 2 % 3 == 0 else ["cup"]
    return tuple(Region(10 + i, label, (6.0 * i, 25.5, 5.0, 12.0)) for i, label in enumerate(labels))


def made(folder, n=44, **changes):
    """Women's pictures are dark, men's are light; no two are alike, and the first two show nobody."""
    chosen = [
        example(
            i,
            "woman" if i % 2 == 0 else "man",
            image=plain_picture((50 if i % 2 == 0 else 180) + i),
            **{"objects": things(i), **({"persons": ()} if i < 2 else {}), **changes},
        )
        for i in range(n)
    ]
    return build(folder, selection(0, *chosen), ("original",))


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory):
    return made(tmp_path_factory.mktemp("b") / "b")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TRUEGAP_CACHE", str(tmp_path / "cache"))


class Progress:
    """Remembers what was shown."""

    def __init__(self):
        self.bars = []

    @contextmanager
    def __call__(self, what, total):
        bar = [what, total, 0]
        self.bars.append(bar)

        def advance(steps):
            bar[2] += steps

        yield advance


def measured(benchmark, folder, *, finetuned=False, progress=None, accept=None, **conventions):
    with EmbeddingCache() as cache:
        backbone = load_backbone(NAME, pretrained=False, side=SIDE, device="cpu")
        reader = Reader(NAME, backbone, cache, finetuned=finetuned, hidden=8)
        chosen = Conventions(**{**QUICK, **conventions})
        found, known = measure(
            open_benchmark(benchmark), reader, chosen, folder=folder, progress=progress or Progress(), accept=accept
        )
    return read_spurious(found), known


def test_each_feature_tells_what_was_planted(benchmark, tmp_path):
    progress = Progress()
    record, known = measured(benchmark, tmp_path / "r", progress=progress)
    assert not known
    found = {each.feature: each for each in record.accuracies}
    assert list(found) == ["color", "lighting", "object", "background"]
    assert found["color"].accuracy == found["background"].accuracy == 1
    assert found["color"].ci_low > 0.5
    assert found["color"].p_adjusted < 0.05
    assert found["object"].classifier == "MLP of two layers, 8 hidden units"
    assert found["object"].ci_low < 0.5 < found["object"].ci_high
    assert found["background"].skipped == {"no region of a person": 2}
    assert (found["background"].women, found["background"].men) == (21, 21)
    seed = found["color"].seeds[1]
    assert (seed.seed, seed.train, seed.validation, seed.test) == (1, 36, 4, 4)
    accuracies = [each.accuracy for each in found["object"].seeds]
    assert found["object"].accuracy == pytest.approx(np.mean(accuracies))
    assert found["object"].sd == pytest.approx(np.std(accuracies, ddof=1))
    assert all(done == total for _, total, done in progress.bars)
    assert record.statistics["trained"] == 8
    assert any("random weights" in note for note in record.notes)
    assert record.options["training"] == "frozen"


class Killed(BaseException):
    """As a kill would: nothing catches it."""


def test_what_is_known_is_not_computed_again_and_what_was_interrupted_goes_on(benchmark, tmp_path, monkeypatch):
    real, left = training.fit, [3]

    def dies(*arguments, **options):
        if not left[0]:
            raise Killed
        left[0] -= 1
        return real(*arguments, **options)

    asked = {"features": ("color", "object"), "epochs": 3}
    monkeypatch.setattr(training, "fit", dies)
    with pytest.raises(Killed):
        measured(benchmark, tmp_path / "r", **asked)
    assert not (tmp_path / "r").exists()
    left[0] = 1
    first, _ = measured(benchmark, tmp_path / "r", **asked)
    assert (first.statistics["trained"], first.statistics["known"]) == (1, 3)
    progress = Progress()
    again, known = measured(benchmark, tmp_path / "other", progress=progress, **asked)
    assert not known
    assert progress.bars == []
    assert again.accuracies == first.accuracies
    assert measured(benchmark, tmp_path / "r", **asked)[1]
    with pytest.raises(UserError, match="holds another result"):
        measured(benchmark, tmp_path / "r", features=("color",))
    (tmp_path / "r" / "spurious.json").rename(tmp_path / "r" / "notes.json")
    with pytest.raises(UserError, match="holds no result of `truegap spurious`: choose another --out"):
        measured(benchmark, tmp_path / "r", **asked)


def test_a_result_made_of_other_views_is_not_taken_for_this_one(benchmark, tmp_path, monkeypatch):
    asked = {"features": ("object",), "epochs": 2}
    first, _ = measured(benchmark, tmp_path / "r", **asked)
    assert measured(benchmark, tmp_path / "r", **asked)[1]
    monkeypatch.setattr(import_module("truegap.spurious.measure"), "VERSION", first.options["views"] + 1)
    with pytest.raises(UserError, match="holds another result"):
        measured(benchmark, tmp_path / "r", **asked)


def test_a_result_that_is_not_accepted_is_not_computed(benchmark, tmp_path):
    def refuses(record):
        assert record.accuracies == []
        raise UserError("not this one")

    progress = Progress()
    with pytest.raises(UserError, match="not this one"):
        measured(benchmark, tmp_path / "r", progress=progress, accept=refuses)
    assert progress.bars == []
    assert not (tmp_path / "r").exists()


def test_a_backbone_is_trained_as_a_whole(benchmark, tmp_path):
    asked = {"features": ("color",), "learning_rate": 0.002, "seeds": 1}
    record, _ = measured(benchmark, tmp_path / "r", finetuned=True, **asked)
    (color,) = record.accuracies
    assert color.classifier == f"{NAME}, fine-tuned"
    assert color.accuracy == 1
    assert color.sd is None


def test_a_feature_that_a_benchmark_does_not_show_is_left_out_with_its_reason(tmp_path):
    bare = made(tmp_path / "b", 24, persons=(), objects=())
    record, _ = measured(bare, tmp_path / "r", features=("object", "background", "color"), epochs=2)
    found = {each.feature: each for each in record.accuracies}
    assert found["object"].accuracy is found["background"].accuracy is found["object"].ci_low is None
    assert found["object"].reason.startswith("no object is annotated in any image: 0 women and 0 men are left")
    assert found["background"].reason.startswith("no region of a person: 0 women and 0 men")
    assert found["background"].skipped == {"no region of a person": 24}
    assert found["color"].accuracy is not None


def test_persons_among_the_objects_tell_nothing(tmp_path):
    def persons(n):
        label = "woman" if n % 2 == 0 else "man"
        return (Region(10, label, (0.0, 25.0, 5.0, 12.0)), *things(n)[:1])

    chosen = [
        example(i, "woman" if i % 2 == 0 else "man", image=plain_picture(60 + i), objects=persons(i)) for i in range(24)
    ]
    folder = build(tmp_path / "b", selection(0, *chosen), ("original",))
    record, _ = measured(folder, tmp_path / "r", features=("object",))
    assert record.accuracies[0].accuracy == 0.5


def test_a_model_is_probed_on_its_own_features(benchmark, tmp_path):
    save_clip(tmp_path / "clip")
    with EmbeddingCache() as cache:
        encoder = load_dual_encoder(str(tmp_path / "clip"), device="cpu")
        reader = Reader("clip", encoder, cache)
        chosen = Conventions(features=("object", "whole"), **QUICK)
        folder, _ = measure(open_benchmark(benchmark), reader, chosen, folder=tmp_path / "r", progress=Progress())
    record = read_spurious(folder)
    assert record.reader.kind == "model"
    assert record.reader.content == encoder.record().content
    assert [each.classifier for each in record.accuracies] == ["linear probe of clip"] * 2
    assert record.accuracies[1].accuracy == 1


def run(*arguments):
    return CliRunner().invoke(app, ["spurious", *map(str, arguments)], catch_exceptions=True)


SMALL = ("--backbone", NAME, "--no-pretrained", "--side", SIDE, "--training", "frozen", "--device", "cpu")


def test_the_command_prints_a_table_and_json(benchmark, tmp_path):
    asked = ("--benchmark", benchmark, *SMALL, "--features", "color,lighting", "--seeds", 2, "--epochs", 12)
    asked += ("--learning-rate", 0.02, "--lighting", "value", "--limit", 40, "--out", tmp_path / "r")
    done = run(*asked)
    assert done.exit_code == 0, done.exception
    line = next(line for line in done.stdout.splitlines() if line.startswith("color"))
    assert line.split()[1:3] == ["100", "0.0"]
    again = run(*asked, "--json")
    assert "finished already" in again.stderr
    record = json.loads(again.stdout)
    assert record == json.loads((tmp_path / "r/spurious.json").read_text())
    assert (record["options"]["lighting"], record["benchmark"]["women"]) == ("value", 20)


def test_the_command_sets_acc_b_against_the_changes_of_runs(benchmark, tmp_path):
    content = open_benchmark(benchmark).manifest.content
    record = run_record("one")
    record = record.model_copy(update={"benchmark": record.benchmark.model_copy(update={"content": content})})
    write_run(tmp_path / "runs/one", record, scores_record(record.run_id))
    foreign = run_record("two")
    write_run(tmp_path / "runs/two", foreign, scores_record(foreign.run_id))
    asked = ("--benchmark", benchmark, *SMALL, "--features", "color,object", "--seeds", 2, "--epochs", 3)
    done = run(*asked, "--out", tmp_path / "r", "--runs", tmp_path / "runs/two")
    assert isinstance(done.exception, UserError)
    assert "none of 1 runs goes with" in str(done.exception)
    assert not list((tmp_path / "cache").rglob("fits.sqlite"))
    done = run(*asked, "--out", tmp_path / "r", "--runs", tmp_path / "runs")
    assert done.exit_code == 0, done.exception
    assert "1 run is left out" in done.stderr
    assert "over 6 cells" in done.stdout
    assert (tmp_path / "r/association.html").is_file()
    assert len(list((tmp_path / "r").glob("*.png"))) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--limit", 18), "too few test images to train a classifier \\(9 woman, 9 man\\)"),
        (("--features", "color,shape"), "feature 'shape' is unknown: use some of color, lighting"),
        (("--features", "color,color"), "give each feature once"),
        (("--lighting", "rgb"), "lighting 'rgb' is unknown"),
        (("--training", "some"), "--training some: use one of finetuned, frozen"),
        (("--backbone", "resnet5000"), "--backbone resnet5000: neither a name in timm"),
        (("--model", "m", "--side", 64), "--side is an option of a backbone"),
        (("--model-revision", "main"), "--model-revision is an option of --model"),
        (("--model", "no/such"), "no/such"),
        (("--runs", "nowhere"), "there is no folder nowhere"),
        (("--also", "nowhere"), "--also goes with --runs"),
        ((*SMALL[:-4], "--training", "finetuned", "--dtype", "float16", "--device", "cpu"), "float16 is too narrow"),
    ],
)
def test_a_users_mistake_is_one_line(benchmark, arguments, message):
    done = run("--benchmark", benchmark, *arguments)
    assert isinstance(done.exception, UserError)
    assert str(done.exception).count("\n") == 0
    with pytest.raises(UserError, match=message):
        raise done.exception


def test_a_folder_with_something_else_is_left_alone(benchmark, tmp_path):
    (tmp_path / "r").mkdir()
    (tmp_path / "r/mine.txt").write_text("mine")
    with pytest.raises(UserError, match="exists and holds no result"):
        measured(benchmark, tmp_path / "r")
