import json

import pytest

from run_factory import make_run, run_record, scores_record
from truegap.errors import UserError
from truegap.results.compare import question, size_interval
from truegap.results.runs import RUN, SCORES, find_runs, read_run, write_record
from truegap.results.show import interval, number, percent, plain, short, signed


def change(path, edit):
    data = json.loads(path.read_text())
    edit(data)
    path.write_text(json.dumps(data))


def test_a_written_run_is_read_back(tmp_path):
    made = make_run(tmp_path / "run")
    read = read_run(tmp_path / "run")
    assert read.record == made.record
    assert read.scores == made.scores
    assert read.answers.name == "answers.parquet"


@pytest.mark.parametrize(
    ("file", "edit", "said"),
    [
        (RUN, lambda data: data["model"].pop("content"), r"run\.json: model\.content: Field required"),
        (RUN, lambda data: data.update(surprise=1), r"run\.json: surprise: Extra inputs"),
        (
            RUN,
            lambda data: data.update(format_version=3, surprise=1),
            r"format_version is 3, this truegap reads up to 2",
        ),
        (SCORES, lambda data: data["scores"][3].update(value="many"), r"scores\.json: scores\.3\.value"),
        (SCORES, lambda data: data.update(run_id="other"), r"scores\.json is of run other"),
    ],
)
def test_a_broken_record_names_file_and_key(tmp_path, file, edit, said):
    make_run(tmp_path)
    change(tmp_path / file, edit)
    with pytest.raises(UserError, match=said) as caught:
        read_run(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "\x00\xff"])
def test_what_is_not_a_record_is_one_clear_line(tmp_path, text):
    make_run(tmp_path)
    (tmp_path / RUN).write_text(text)
    with pytest.raises(UserError, match=r"run\.json: ") as caught:
        read_run(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_folder_without_run_json_is_not_finished(tmp_path):
    make_run(tmp_path)
    (tmp_path / RUN).unlink()
    with pytest.raises(UserError, match=r"has no run\.json"):
        read_run(tmp_path)
    with pytest.raises(UserError, match="there is no run"):
        read_run(tmp_path / "nowhere")


def test_scores_that_are_absent_are_named(tmp_path):
    make_run(tmp_path)
    (tmp_path / SCORES).unlink()
    with pytest.raises(UserError, match=r"scores\.json cannot be read"):
        read_run(tmp_path)


def test_runs_are_found_once_each(tmp_path):
    for name in ("b", "a"):
        make_run(tmp_path / "runs" / name, name)
    found = find_runs([tmp_path / "runs" / "b", tmp_path / "runs"])
    assert [each.name for each in found] == ["b", "a"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="holds no run"):
        find_runs([tmp_path / "empty"])
    with pytest.raises(UserError, match="there is no folder"):
        find_runs([tmp_path / "nowhere"])


def test_a_run_of_version_1_is_still_read(tmp_path):
    # given a run as version 1 wrote it; then what it lacks is empty, and whole numbers are whole again
    made = make_run(tmp_path)

    def older(data):
        data.update(format_version=1)
        for name in ("compute", "contrasts", "contexts"):
            data.pop(name, None)

    change(tmp_path / RUN, older)
    change(tmp_path / SCORES, older)
    read = read_run(tmp_path)
    assert (read.record.compute, read.scores.contrasts, read.scores.contexts) == (None, [], [])
    assert read.scores.changes == made.scores.changes


def test_statistics_keep_their_types(tmp_path):
    statistics = read_run(make_run(tmp_path).folder).record.statistics
    assert {name: type(value) for name, value in statistics.items()} == {
        "seconds": float,
        "images": int,
        "cached": int,
        "computed": int,
    }
    assert '"images": 1080,' in (tmp_path / RUN).read_text()


def test_a_question_is_the_same_whatever_the_order_of_options_and_configs():
    record = run_record()
    asked = question("content", "retrieval", record.options, record.configs)
    turned = dict(reversed(record.options.items()))
    assert question("content", "retrieval", turned, record.configs[::-1]) == asked
    assert question("content", "retrieval", {**record.options, "seed": 1}, record.configs) != asked
    assert question("content", "retrieval", record.options, record.configs[1:]) != asked


def test_numbers_are_shown_consistently():
    assert (number(0.31049), number(None), number(float("nan")), number(1e300)) == ("0.310", "none", "none", "∞")
    assert (signed(0.1), signed(-0.1), signed(-0.0001)) == ("+0.100", "-0.100", "0.000")
    assert (percent(5.25), percent(1234.5), percent(1.7e308), percent(None)) == ("5.2", "1,234", "∞", "none")
    assert interval(0.1, 0.2) == "[0.100, 0.200]"
    assert interval(None, 0.2) == ""
    assert (short(151_277_313), short(1_400_000_000), short(999), short(12_345)) == ("151M", "1.4B", "999", "12.3k")


def test_the_interval_of_a_size_holds_zero_where_the_signed_one_does():
    assert size_interval(-0.2, 0.1) == (0.0, 0.2)
    assert size_interval(-0.3, -0.1) == (0.1, 0.3)
    assert size_interval(None, None) == (None, None)


def test_foreign_text_is_one_short_line():
    assert plain("a\nb\tc\x1b[31m\u202e\u200bd") == "a b c[31md"
    assert len(plain("x" * 500)) == 200


@pytest.mark.parametrize(
    "text", ["a \u200b b", "\u200b a\u202e ", "a \x00\x1b b", "a\x1c\x85\u2028b", "\ud800", "x " * 300]
)
def test_plain_text_is_plain_already(text):
    assert plain(plain(text)) == plain(text) == plain(text).strip()


def test_scores_keep_their_reason_through_json(tmp_path):
    scores = scores_record("1")
    without = scores.changes[0].model_copy(update={"delta": None, "reason": "too near 0"})
    write_record(tmp_path / "scores.json", scores.model_copy(update={"changes": [without]}))
    assert json.loads((tmp_path / "scores.json").read_text())["changes"][0]["reason"] == "too near 0"
