"""Acc_b against the change of scores: the published tables, and runs on disk."""

from __future__ import annotations

import json

import pytest
from PIL import Image
from scipy import stats

from run_factory import BACKGROUND_READER, HOSTILE, QUIET, content, make_run, run_record
from truegap.errors import UserError
from truegap.report.spurious import name_of, scatter_png, scatter_svg, sentence, write_association
from truegap.results.audit_spurious import scores
from truegap.results.published import rows
from truegap.results.records import ChangeRecord
from truegap.results.runs import read_run
from truegap.spurious import AccuracyRecord, ReaderRecord, SpuriousRecord, read_spurious
from truegap.spurious.associate import OWN, associate

ACCURACY = {"color": 0.56, "lighting": 0.51, "object": 0.76, "background": 0.61}


def result(accuracies=ACCURACY, *, benchmark="synthetic", reader="convnext_base", kind="backbone", **changes):
    record = run_record(benchmark=benchmark)
    return SpuriousRecord(
        spurious_id=content(f"{benchmark} {reader}")[:16],
        created=record.created,
        options={"training": "finetuned"},
        benchmark=record.benchmark,
        reader=ReaderRecord(
            kind=kind, name=reader, spec=reader, content=content(reader), parameters=1, pretrained=True
        ),
        environment=record.environment,
        accuracies=[
            AccuracyRecord(feature=feature, classifier=reader, accuracy=accuracy)
            for feature, accuracy in accuracies.items()
        ],
    ).model_copy(update=changes)


def test_pearsons_r_of_the_published_tables(tmp_path):
    table = [row for row in rows("spurious_accuracy") if row["backbone"] == "convnext_base"]
    deltas = scores("delta_maxskew")
    results, runs = [], []
    for benchmark in dict.fromkeys(row["benchmark"] for row in table):
        own = [row for row in table if row["benchmark"] == benchmark]
        results.append(
            result({row["feature"]: float(row["accuracy_percent"]) / 100 for row in own}, benchmark=benchmark)
        )
        for model in dict.fromkeys(key[1] for key in deltas if key[0] == benchmark):
            folder = tmp_path / f"{benchmark}-{model}".replace("/", "-")
            run = make_run(folder, model, benchmark=benchmark)
            changes = [
                ChangeRecord(
                    metric=run.scores.summary.metric,
                    config=f"{key[2]}-{key[3]}",
                    original=None,
                    perturbed=None,
                    delta=float(text),
                )
                for key, text in deltas.items()
                if key[:2] == (benchmark, model)
            ]
            changed = run.scores.model_copy(update={"changes": changes})
            runs.append(type(run)(run.record, changed, run.folder))
    (found,) = associate(results, runs).associations
    assert found.over_cells.n == 240
    assert found.over_cells.r == pytest.approx(0.545, abs=5e-4)
    assert found.over_features.n == 80
    x, y = zip(*((cell.accuracy, cell.delta) for cell in found.cells), strict=True)
    assert found.over_cells.p_value == pytest.approx(stats.pearsonr(x, y).pvalue)


def test_a_models_own_features_go_with_its_runs_alone_and_gaps_are_counted(tmp_path):
    one = make_run(tmp_path / "one", "one", deltas=BACKGROUND_READER)
    two = make_run(tmp_path / "two", "two", deltas=QUIET)
    probe = result({**ACCURACY, "object": None, "background": 0.9}, reader="one", kind="model")
    found = {each.reader: each for each in associate([result(), probe], [one, two]).associations}
    assert set(found) == {"convnext_base, finetuned", OWN}
    assert {cell.model for cell in found[OWN].cells} == {"one"}
    assert found[OWN].over_cells.n == 9
    assert found[OWN].left_out == {"no Acc_b of the feature": 3}
    assert found["convnext_base, finetuned"].over_cells.n == 24
    assert found["convnext_base, finetuned"].over_features.n == 8
    assert max(cell.accuracy for cell in found[OWN].cells) == 0.9


def test_what_does_not_go_together_is_refused(tmp_path):
    run = make_run(tmp_path / "one", "one")
    with pytest.raises(UserError, match=r"none of 1 runs goes with a result .* the same build of coco-gender"):
        associate([result(benchmark="coco-gender")], [run])
    with pytest.raises(UserError, match="are both of convnext_base, finetuned on synthetic"):
        associate([result(), result(spurious_id="other")], [run])


def test_a_run_that_does_not_fit_is_left_out_and_counted(tmp_path):
    runs = [make_run(tmp_path / name, name, benchmark=name) for name in ("synthetic", "facet", "phase")]
    found = associate([result()], runs)
    assert found.run_ids == [runs[0].record.run_id]
    assert found.foreign_run_ids == [each.record.run_id for each in runs[1:]]
    assert found.associations == associate([result()], runs[:1]).associations
    page = write_association(found, tmp_path / "out")
    assert "2 runs are left out: no result is of the benchmark" in page.read_text()
    assert json.loads((tmp_path / "out/association.json").read_text())["foreign_run_ids"] == found.foreign_run_ids
    assert "left out" not in write_association(associate([result()], runs[:1]), tmp_path / "all").read_text()


def test_the_page_and_the_picture_hold_every_cell_and_nothing_hostile(tmp_path):
    run = make_run(tmp_path / "one", HOSTILE)
    found = associate([result(reader=HOSTILE)], [run])
    page = write_association(found, tmp_path / "out")
    text = page.read_text()
    assert "<script>" not in text
    assert "<img" not in text
    assert text.count("<circle") == 12 + 4
    association = found.associations[0]
    with Image.open(tmp_path / "out" / f"{name_of(association)}.png") as picture:
        assert picture.size == (1280, 840)
    assert json.loads((tmp_path / "out/association.json").read_text())["associations"][0]["over_cells"]["n"] == 12
    assert "over 12 cells, p = " in sentence(association)


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_few_cells_are_drawn(tmp_path, kept):
    association = associate([result()], [make_run(tmp_path / "one")]).associations[0]
    few = association.model_copy(update={"cells": association.cells[:kept]})
    assert scatter_svg(few).count("<circle") == kept + 4
    assert scatter_png(few).startswith(b"\x89PNG")


def test_the_dots_stand_where_their_numbers_are(tmp_path):
    association = associate([result()], [make_run(tmp_path / "one")]).associations[0]
    drawn = scatter_svg(association)
    places = [part.split('"')[1:4:2] for part in drawn.split("<circle ")[5:]]
    across = [float(x) for x, _ in places]
    upwards = [-float(y) for _, y in places]
    assert stats.spearmanr(across, [cell.accuracy for cell in association.cells]).statistic == pytest.approx(1)
    assert stats.pearsonr(upwards, [cell.delta for cell in association.cells]).statistic == pytest.approx(1, abs=1e-4)


def test_runs_and_results_are_read_from_disk(tmp_path):
    make_run(tmp_path / "one", "one")
    (tmp_path / "r").mkdir()
    (tmp_path / "r/spurious.json").write_text(result().model_dump_json())
    found = associate([read_spurious(tmp_path / "r")], [read_run(tmp_path / "one")])
    assert found.associations[0].over_cells.n == 12
    (tmp_path / "r/spurious.json").write_text('{"format_version": 9}')
    with pytest.raises(UserError, match="format_version is 9"):
        read_spurious(tmp_path / "r")
