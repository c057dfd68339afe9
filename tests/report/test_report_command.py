import json

from typer.testing import CliRunner

from run_factory import make_run
from truegap.cli.app import app
from truegap.errors import UserError


def run(*arguments):
    return CliRunner().invoke(app, ["report", *map(str, arguments)])


def test_a_folder_of_runs_becomes_one_report(tmp_path):
    make_run(tmp_path / "runs" / "a")
    make_run(tmp_path / "runs" / "b", "person-reader")
    done = run(tmp_path / "runs", "--out", tmp_path / "out")
    assert done.exit_code == 0
    assert "background-reader: reliance on object, background" in done.stdout
    assert "report of 2 runs" in done.stdout
    assert (tmp_path / "out" / "index.html").is_file()


def test_verdicts_can_be_read_by_a_program(tmp_path):
    made = make_run(tmp_path / "run")
    done = run(tmp_path / "run", "--out", tmp_path / "out", "--json")
    said = json.loads(done.stdout)
    assert said["verdicts"][made.record.run_id]["background"] == "reliance"
    assert said["html"].endswith("index.html")


def test_a_folder_without_runs_is_the_users_mistake(tmp_path):
    done = run(tmp_path, "--out", tmp_path / "out")
    assert isinstance(done.exception, UserError)
    assert "holds no run" in str(done.exception)
