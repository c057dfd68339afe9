import json

from typer.testing import CliRunner

from truegap.cli.app import app
from truegap.errors import UserError


def run(*arguments):
    return CliRunner().invoke(app, ["score", *map(str, arguments)], env={"COLUMNS": "160"})


def answers(path, extra=""):
    rows = [f"{n},{'man' if n % 2 else 'woman'},{0.5 + 0.1 * (n % 2) + 0.01 * (n % 3)},q" for n in range(30)]
    path.write_text("\n".join(["image_id,gender,score,question", *rows]) + "\n" + extra)
    return path


def test_scores_are_printed_with_their_interval(tmp_path):
    done = run(answers(tmp_path / "a.csv"), "--protocol", "vqa")
    assert done.exit_code == 0
    line = next(line for line in done.stdout.splitlines() if "ygap" in line)
    assert line.split() == ["original", "all", "ygap", "0.100", "[0.094,", "0.106]"]
    assert "note: original: p = 0.001" in done.stdout
    assert "1 scores of single prompts" in done.stdout


def test_json_holds_everything_and_the_options(tmp_path):
    said = json.loads(run(answers(tmp_path / "a.csv"), "--protocol", "vqa", "--seed", 4, "--json").stdout)
    assert said["options"] == {"threshold": 0.005, "n_resamples": 1000, "confidence": 0.95, "seed": 4}
    assert [each["metric"] for each in said["scores"]] == ["ygap", "mean_abs_ygap", "ygap"]
    assert said["scores"][0]["ci_low"] < 0.1 < said["scores"][0]["ci_high"]


def test_changes_have_a_table_of_their_own(tmp_path):
    lines = answers(tmp_path / "a.csv").read_text().splitlines()
    both = [lines[0] + ",config", *(f"{line},{config}" for config in ("original", "control") for line in lines[1:])]
    (tmp_path / "b.csv").write_text("\n".join(both))
    done = run(tmp_path / "b.csv", "--protocol", "vqa")
    assert "control" in done.stdout
    assert "delta %" in done.stdout


def test_markup_in_foreign_text_stays_text(tmp_path):
    lines = answers(tmp_path / "a.csv").read_text().splitlines()
    (tmp_path / "b.csv").write_text(
        "\n".join([lines[0] + ",config", *(f"{line},[bold]x[/bold]" for line in lines[1:])])
    )
    assert "[bold]x[/bold]" in run(tmp_path / "b.csv", "--protocol", "vqa").stdout


def test_mistakes_are_one_line(tmp_path):
    for arguments, message in (
        (
            (answers(tmp_path / "bad.csv", "30,man,high,q\n"), "--protocol", "vqa"),
            "bad.csv row 31 (line 32), image 30: score",
        ),
        ((answers(tmp_path / "a.csv"), "--protocol", "quiz"), "unknown protocol 'quiz'"),
        ((answers(tmp_path / "a.csv"), "--protocol", "retrieval", "--k", "five"), "--k five: give whole numbers"),
        ((answers(tmp_path / "a.csv"), "--protocol", "retrieval", "--target", "x"), "target='x' is unknown"),
        ((tmp_path / "nowhere.csv", "--protocol", "vqa"), "nowhere.csv: cannot be read"),
    ):
        done = run(*arguments)
        assert isinstance(done.exception, UserError), arguments
        assert message in str(done.exception)
        assert "\n" not in str(done.exception)


def test_a_protocol_must_be_named(tmp_path):
    assert run(answers(tmp_path / "a.csv")).exit_code == 2


def test_help_says_what_a_table_holds():
    for verb, said in (
        ("score", "occ_m|occ_f"),
        ("score", "optional: their, other_gender, image_id"),
        ("score", "truegap score answers.csv --protocol vqa"),
        ("audit", "truegap audit --genderbias-vl"),
        ("compare", "truegap compare runs/clip runs/siglip"),
    ):
        done = CliRunner().invoke(app, [verb, "--help"], env={"COLUMNS": "160"})
        assert done.exit_code == 0
        assert said in " ".join(done.stdout.split())
