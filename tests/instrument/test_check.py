"""The whole check, small: reference models through the same benchmarks and protocols as any model."""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager

import pytest
from typer.testing import CliRunner

from truegap.cli.app import app
from truegap.errors import UserError
from truegap.instrument import RESULT, Check, check, check_instrument
from truegap.instrument.plan import CONTEXT, PROFILES, READERS, SINGLE, STRONG, profile
from truegap.report.instrument import instrument_page

pytestmark = pytest.mark.slow

KEYS = [
    "bias",
    "change",
    "person",
    "prediction",
    "diagonal",
    "left",
    "retrieval",
    "context",
    "swap",
    "alarms",
    "max_skew",
    "coverage",
    "power",
    "accuracy",
]


@contextmanager
def silent(_what, _total):
    yield lambda _steps: None


@pytest.fixture(scope="module")
def lines(finished):
    return {line.key: line for line in finished[1].lines}


def test_every_line_is_there_with_its_figures(lines):
    assert list(lines) == KEYS
    assert [key for key, line in lines.items() if line.holds is None] == ["accuracy"]
    assert lines["accuracy"].found == "Not measured: fewer than 50 images of a gender."
    for line in lines.values():
        assert line.rows
        assert len({tuple(row) for row in line.rows}) == 1


def test_what_is_measured_is_what_was_planted(lines):
    for key in ("bias", "person", "prediction", "context", "swap"):
        assert lines[key].holds, lines[key].found
    assert {row["reader"] for row in lines["prediction"].rows} == set(SINGLE)
    assert {row["config"] for row in lines["prediction"].rows} == set(STRONG)
    assert {row["reader"] for row in lines["context"].rows} == set(READERS)


def test_shares_are_those_of_the_mixtures(lines):
    shares = {row["reader"]: row["share"] for row in lines["context"].rows}
    assert shares["person"] == 0
    assert all(shares[name] == pytest.approx(1, abs=0.05) for name in CONTEXT)
    assert shares["half person, half background"] == pytest.approx(0.5, abs=0.1)


def test_what_a_perturbation_does_not_remove_is_said(lines):
    left = {(row["config"], row["reader"]): row["left"] for row in lines["left"].rows}
    assert abs(left["background-strong", "background"]) < 0.1
    assert left["background-strong", "color"] > 0.8
    assert left["object-strong", "object"] > 0.3
    assert not lines["left"].holds
    assert "object perturbation leaves" in lines["left"].found
    assert not lines["diagonal"].holds
    assert "Background-strong moves the reader of the object" in lines["diagonal"].found


def test_the_result_is_on_disk_as_it_was_given(finished):
    folder, found, _ = finished
    assert Check.model_validate_json((folder / RESULT).read_bytes()) == found


def test_a_finished_check_is_not_done_again(finished):
    folder, found, small = finished
    runs = sorted(folder.glob("runs/*/run.json"))
    before = [file.stat().st_mtime_ns for file in (*runs, *folder.glob("worlds/*"), *folder.glob("benchmarks/*.json"))]
    again = check_instrument(folder, small, workers=1, progress=silent)
    after = [file.stat().st_mtime_ns for file in (*runs, *folder.glob("worlds/*"), *folder.glob("benchmarks/*.json"))]
    assert runs
    assert before == after
    assert again.lines == found.lines


def test_another_check_or_a_stranger_is_not_overwritten(finished, tmp_path):
    folder, *_ = finished
    with pytest.raises(UserError, match="another profile, seed or version"):
        check_instrument(folder, PROFILES["lite"], seed=1, workers=1, progress=silent)
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UserError, match="holds something else"):
        check_instrument(tmp_path, PROFILES["lite"], workers=1, progress=silent)
    with pytest.raises(UserError, match="is a file"):
        check_instrument(tmp_path / "mine.txt", PROFILES["lite"], workers=1, progress=silent)


@pytest.mark.parametrize("changed", [{"commit": "0" * 40}, {"truegap": "0.0.9"}])
def test_results_of_other_code_are_not_gone_on_with(tmp_path, monkeypatch, changed):
    here = check.environment()
    out = tmp_path / "check"
    check._claim(out, PROFILES["lite"], 0)
    check._claim(out, PROFILES["lite"], 0)
    monkeypatch.setattr(check, "environment", lambda: here.model_copy(update=changed))
    with pytest.raises(UserError, match="other code began") as told:
        check._claim(out, PROFILES["lite"], 0)
    assert "\n" not in str(told.value)
    monkeypatch.undo()
    plan = json.loads((out / "plan.json").read_text())
    (out / "plan.json").write_text(json.dumps({name: value for name, value in plan.items() if name != "code"}))
    with pytest.raises(UserError, match="other code began"):
        check._claim(out, PROFILES["lite"], 0)
    (out / "plan.json").write_text("[")
    with pytest.raises(UserError, match="another profile, seed or version"):
        check._claim(out, PROFILES["lite"], 0)


def test_the_page_shows_every_line_and_three_figures(finished):
    page = instrument_page(finished[1])
    assert page.count("<svg") == 3
    for line in finished[1].lines:
        assert line.tolerance.replace("'", "&#39;") in page
    assert page.count("does not hold</span>") == len(finished[1].failing)
    assert page.count("not measured</span>") == 1
    assert f"{len(finished[1].holding)} of {len(KEYS)} lines hold" in page
    assert len(finished[1].holding) + len(finished[1].failing) == len(KEYS) - 1


def test_the_page_lets_no_markup_through(finished):
    found = finished[1]
    hostile = [line.model_copy(update={"found": "<script>x</script>"}) for line in found.lines]
    page = instrument_page(found.model_copy(update={"lines": hostile}))
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_the_command_prints_verdicts_and_exits_0(finished, tmp_path, monkeypatch):
    folder = tmp_path / "check"
    shutil.copytree(finished[0], folder)
    monkeypatch.setitem(PROFILES, "lite", finished[2])
    told = CliRunner().invoke(
        app, ["check-instrument", "--profile", "lite", "--out", str(folder), "--workers", "1"], catch_exceptions=False
    )
    assert told.exit_code == 0
    assert told.stdout.count("does not hold") == len(finished[1].failing) > 0
    assert f"{len(finished[1].holding)} of {len(KEYS)} lines hold; not:" in told.stdout
    assert told.stdout.count("not measured") == 1
    assert (folder / "index.html").is_file()
    as_json = CliRunner().invoke(
        app, ["check-instrument", "--profile", "lite", "--out", str(folder), "--workers", "1", "--json"]
    )
    assert [line["key"] for line in json.loads(as_json.stdout)["lines"]] == KEYS


def test_an_unknown_profile_is_one_clear_line():
    with pytest.raises(UserError, match="--profile huge: use full or lite"):
        profile("huge")
