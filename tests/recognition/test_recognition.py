"""The human check without its page: the sample, the orders, the answers on disk, the agreement."""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import pytest
from scipy.stats import binomtest

from examples import selection
from truegap.build import Plan, Workspace, build_shard
from truegap.build.digests import Digests
from truegap.errors import UserError
from truegap.hub.benchmark import open_benchmark
from truegap.recognition import (
    STRONG,
    AnswerFolder,
    Item,
    Pictures,
    Study,
    agreement,
    annotator_name,
    draw,
    items,
    open_study,
    read_study,
)

GENDERS = {f"{number:03}": "woman" if number % 3 else "man" for number in range(90)}
CONFIGS = ["color-strong", "object-strong"]


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory):
    folder = tmp_path_factory.mktemp("built") / "b"
    workspace = Workspace(Plan("synthetic", "1.0.0", selection(8), ("original", *CONFIGS)), folder)
    with workspace.opened():
        for task in workspace.tasks():
            build_shard(task)
        workspace.finish()
    return open_benchmark(str(folder))


def study(images=20, configs=STRONG):
    sample = draw(GENDERS, images, benchmark="b", seed=0)
    return Study(benchmark="b", version="1", content="0", seed=0, configs=list(configs), images=sample)


def answered(folder, study, choices, who="Ann"):
    """The annotator's first pictures, answered as the choices say: True is the label, False the other gender."""
    other = {"woman": "man", "man": "woman"}
    for item, choice in zip(items(study, who), choices, strict=False):
        label = study.images[item.image_id]
        AnswerFolder(folder).add(who, item, {True: label, False: other[label]}.get(choice, choice))


def test_a_sample_is_balanced_and_depends_on_nothing_but_its_key():
    sample = draw(GENDERS, 20, benchmark="b", seed=0)
    assert Counter(sample.values()) == {"woman": 10, "man": 10}
    assert draw(dict(reversed(GENDERS.items())), 20, benchmark="b", seed=0) == sample
    assert draw(GENDERS, 40, benchmark="b", seed=0).items() > sample.items()
    assert draw(GENDERS, 20, benchmark="b", seed=1) != sample
    assert Counter(draw(GENDERS, 200, benchmark="b", seed=0).values()) == {"woman": 30, "man": 30}
    with pytest.raises(UserError, match="at least one woman and one man"):
        draw({"1": "woman"}, 200, benchmark="b", seed=0)


def test_each_annotator_sees_every_picture_once_in_an_order_of_their_own():
    drawn = study()
    order = items(drawn, "Ann")
    assert len(set(order)) == len(order) == drawn.n_items == 80
    assert items(drawn, "Ann") == order
    assert items(drawn, "Bob") != order
    for number in range(4):
        seen = order[20 * number : 20 * (number + 1)]
        assert {each.image_id for each in seen} == set(drawn.images)
        shares = Counter((each.config, drawn.images[each.image_id]) for each in seen)
        assert set(shares.values()) == {2, 3}
        assert len(shares) == 8


def test_a_study_is_kept_and_no_other_is_mixed_with_it(benchmark, tmp_path):
    folder = tmp_path / "answers"
    first = open_study(benchmark, folder, images=4, seed=3, configs=CONFIGS)
    assert Counter(first.images.values()) == {"woman": 2, "man": 2}
    assert read_study(folder) == open_study(benchmark, folder) == first
    assert open_study(benchmark, folder, seed=3) == first
    with pytest.raises(UserError, match="answers to another sample"):
        open_study(benchmark, folder, seed=4)
    (folder / "study.json").write_text(first.model_copy(update={"content": "0"}).model_dump_json())
    with pytest.raises(UserError, match="about another build"):
        open_study(benchmark, folder)
    (folder / "study.json").write_text('{"seed": "x"}')
    with pytest.raises(UserError, match=r"study\.json: .*use another folder"):
        read_study(folder)
    with pytest.raises(UserError, match="has no config lighting-strong: it has original, color-strong"):
        open_study(benchmark, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_pictures_are_those_of_the_config_and_name_nothing(benchmark, tmp_path):
    drawn = open_study(benchmark, tmp_path, configs=CONFIGS)
    pictures = Pictures(benchmark, drawn)
    found = {item: pictures.address(item) for item in items(drawn, "Ann")}
    assert len(set(found.values())) == len(found) == 16
    assert all(each.startswith("data:image/jpeg;base64,") for each in found.values())
    assert found[Item("color-strong", "3")] != found[Item("object-strong", "3")]
    other = drawn.model_copy(update={"configs": ["original"]})
    hashes = benchmark.manifest.rows.image_sha256
    hashes["original"] = Digests([*hashes["original"][:2], "0" * 64, *hashes["original"][3:]])
    with pytest.raises(UserError, match="image 2 of original is damaged"):
        Pictures(benchmark, other)


def test_answers_outlive_half_a_line_and_the_last_one_counts(tmp_path):
    drawn = study()
    one, two, three = islice(items(drawn, "Ann"), 3)
    kept = AnswerFolder(tmp_path)
    kept.add("Ann", one, "woman")
    (path,) = tmp_path.glob("*.jsonl")
    with path.open("ab") as file:
        file.write(b'{"annotator": "Ann", "conf')
    kept.add("Ann", two, "man")
    kept.add("ANN", one, "cannot tell")
    with path.open("ab") as file:
        file.write(b'[1]\n{"answer": NaN}\n' + b"[" * 3000 + b"\n")
    assert AnswerFolder(tmp_path).of("ann") == {one: "cannot tell", two: "man"}
    found = kept.read()
    assert [each.choice for each in found.all] == ["woman", "man", "cannot tell"]
    assert [each.at for each in found.all] == sorted(each.at for each in found.all)
    assert found.skipped.total() == 4
    with pytest.raises(UserError, match="answer perhaps: use woman, man, cannot tell"):
        kept.add("Ann", three, "perhaps")


def test_many_annotators_at_once_lose_nothing(tmp_path):
    drawn = study(8)
    kept = AnswerFolder(tmp_path)
    names = ["Ann", "Bob", "../../etc/passwd", "<img src=x>"]
    work = [(name, item) for name in names for item in items(drawn, name)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda each: kept.add(*each, "man"), work))
    assert {(each.annotator, each.item) for each in kept.read().all} == set(work)
    assert len(list(tmp_path.glob("*.jsonl"))) == 4
    assert all(kept.of(name).keys() == set(items(drawn, name)) for name in names)


@pytest.mark.parametrize("typed", ["", "  \n", "\u202e\u200b", "\x00"])
def test_a_name_is_one_line_and_not_empty(typed):
    assert annotator_name(f"{typed}Ann\n Lee") == "Ann Lee"
    assert len(annotator_name("x" * 10_000)) == 80
    with pytest.raises(UserError, match="type your name"):
        annotator_name(typed)


def test_agreement_of_one_annotator_is_that_of_scipy(tmp_path):
    drawn = study(configs=["object-strong"])
    answered(tmp_path, drawn, [True] * 17 + [False] + ["cannot tell"] * 2)
    record = agreement(drawn, AnswerFolder(tmp_path).read())
    over = record.agreements[0]
    expected = binomtest(17, 20).proportion_ci(method="wilson")
    assert (over.agree, over.opposite, over.cannot_tell, over.answers, over.images) == (17, 1, 2, 20, 20)
    assert (over.agreement, over.effective_images) == (0.85, 20)
    assert (over.ci_low, over.ci_high) == pytest.approx((expected.low, expected.high))
    women, men = (each for each in record.agreements if each.config is None and each.gender)
    assert women.agree + men.agree == 17
    assert (women.answers, men.answers, record.women, record.men) == (10, 10, 10, 10)


def test_several_answers_on_one_image_are_one_image(tmp_path):
    drawn = study(configs=["object-strong"])
    for who in ("Ann", "Bob", "Cem"):
        for item in items(drawn, "Ann"):
            AnswerFolder(tmp_path).add(who, item, "woman")
    over, women, *_ = agreement(drawn, AnswerFolder(tmp_path).read()).agreements
    expected = binomtest(10, 20).proportion_ci(method="wilson")
    assert (over.answers, over.agree, over.effective_images, women.agreement) == (60, 30, 20, 1.0)
    assert (over.ci_low, over.ci_high) == pytest.approx((expected.low, expected.high))


def test_configs_revisions_and_foreign_lines_are_told_apart(tmp_path):
    drawn = study(configs=CONFIGS)
    answered(tmp_path, drawn, [False])
    answered(tmp_path, drawn, [True] * 40)
    AnswerFolder(tmp_path).add("Ann", Item("original", "001"), "man")
    record = agreement(drawn, AnswerFolder(tmp_path).read())
    assert record.skipped == {"picture is not in the sample": 1}
    (ann,) = record.annotators
    assert (ann.name, ann.answers, ann.of, ann.agree, ann.revised) == ("Ann", 40, 40, 40, 1)
    assert {(each.config, each.answers) for each in record.agreements if each.gender is None} == {
        (None, 40),
        ("color-strong", 20),
        ("object-strong", 20),
    }
    assert record.agreements[0].effective_images == 20
    nothing = agreement(drawn, AnswerFolder(tmp_path / "empty").read()).agreements[0]
    assert (nothing.answers, nothing.agreement, nothing.ci_low) == (0, None, None)


def test_the_command_prints_and_refuses(benchmark, tmp_path, monkeypatch, capsys):
    from truegap.cli import main

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["truegap", "recognition", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, capsys.readouterr()

    drawn = open_study(benchmark, tmp_path, images=4, configs=CONFIGS)
    answered(tmp_path, drawn, [True, True, "cannot tell"], who="<b>Ann\x1b[31m")
    status, said = run("score", tmp_path)
    assert status == 0
    assert "66.7" in said.out
    assert "3 of 8 answered, 2 agree, 1 cannot tell" in said.out
    assert "\x1b" not in said.out
    status, said = run("score", tmp_path, "--json")
    assert json.loads(said.out)["agreements"][0]["agree"] == 2
    for arguments, message in (
        (("score", tmp_path / "none"), "holds no human check"),
        (("serve", "nowhere", "--answers", tmp_path), "nowhere is neither a folder nor"),
        (("serve", benchmark.folder, "--answers", tmp_path / "x"), "has no config lighting-strong"),
        (("serve", benchmark.folder, "--answers", tmp_path, "--images", 2), "answers to another sample"),
    ):
        status, said = run(*arguments)
        assert status == 2
        assert message in said.err
        assert said.err.count("\n") == 1
