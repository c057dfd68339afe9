import json

from typer.testing import CliRunner

from truegap.cli.app import app
from truegap.errors import UserError


def run(*arguments):
    return CliRunner().invoke(app, ["audit", *map(str, arguments)], env={"COLUMNS": "160"})


def test_every_figure_is_printed_with_its_verdict():
    done = run()
    assert done.exit_code == 0
    text = " ".join(done.stdout.split())
    for said in (
        "216 of 228 follow; 12 do not follow",
        "11 of 240 follow; 229 do not follow",
        "0.545 over 240 cells",
        "0.157 over 228 cells",
        "11 of 60 exceed it",
        "FACET, Qwen2-VL-7B, object, middle: printed 2.49, comes out as 84.62 (82.44 to 86.82)",
        "and 217 more (--cells shows them)",
        "printed 0.93, in words the largest |B_pair|",
        "DOES NOT FOLLOW sensitivity of YGap, generative models",
        "source ygap, delta_ygap",
        "Bias in Gender Bias Benchmarks: How Spurious Features Distort Evaluation, https://arxiv.org/abs/2509.07596",
        "39 figures: 22 follow, 10 do not, 7 cannot be checked",
    ):
        assert said in text


def test_all_cells_on_request():
    assert "more (--cells" not in run("--cells").stdout


def test_json_holds_every_cell():
    findings = json.loads(run("--json").stdout)
    delta = next(each for each in findings if each["key"] == "max-skew-delta")
    assert (len(delta["cells"]), delta["verdict"]) == (240, "does not follow")
    assert delta["paper"]["url"].startswith("https://")
    assert {each["verdict"] for each in findings} == {"follows", "does not follow", "cannot be checked"}


def test_a_wrong_repository_is_the_users_mistake(tmp_path):
    done = run("--genderbias-vl", tmp_path)
    assert isinstance(done.exception, UserError)
    assert "holds none of the authors' result files" in str(done.exception)


def test_lines_fit_a_narrow_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = CliRunner().invoke(app, ["audit"], env={"COLUMNS": "80"}).stdout.splitlines()
    assert max(len(line) for line in lines if not line.startswith(("Hirota", "Hall", "Xiao", "CLIP"))) <= 80
