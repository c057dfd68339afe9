import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from truegap import scores
from truegap.errors import UserError
from truegap.results.readers import Scoring, score_files
from truegap.results.readers_table import read_table

RNG = np.random.default_rng(0)


def table(path, columns):
    if path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
    else:
        lines = [list(columns), *zip(*columns.values(), strict=True)]
        separator = "\t" if path.suffix == ".tsv" else ","
        path.write_text("\n".join(separator.join(map(str, line)) for line in lines) + "\n")
    return path


def values(scored, config="original", scope="all"):
    return {each.metric: each for each in scored.scores if (each.config, each.scope) == (config, scope)}


def vqa(images=20, shift=0.2):
    rows = [(i, q) for i in range(images) for q in ("brave", "kind")]
    return {
        "image_id": [f"{i:03d}" for i, _ in rows],
        "gender": ["man" if i % 2 else "woman" for i, _ in rows],
        "question": [q for _, q in rows],
        "score": [round(0.4 + shift * (i % 2) + 0.01 * (i % 7), 4) for i, _ in rows],
    }


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_vqa_of_any_kind_of_table_is_ygap(tmp_path, suffix):
    columns = vqa()
    scored = score_files([table(tmp_path / f"answers{suffix}", columns)], "vqa", Scoring(seed=3))
    core = scores.ygap(
        columns["score"], columns["gender"], images=columns["image_id"], questions=columns["question"], seed=3
    )
    found = values(scored)["ygap"]
    assert (found.value, found.ci_low, found.ci_high) == (core.ygap, core.ci_low, core.ci_high)
    assert values(scored, scope="prompt:kind")["ygap"].value == core.per_question[1].ygap
    assert scored.changes == []
    assert f"p = {core.p_value:.2g}" in scored.notes[0]


def test_vqa_configs_give_the_paired_change(tmp_path):
    before, after = vqa(), vqa(shift=0.1)
    both = {name: before[name] + after[name] for name in before}
    both["config"] = ["original"] * 40 + ["background-strong"] * 40
    scored = score_files([table(tmp_path / "a.csv", both)], "vqa")
    (change,) = scored.changes
    assert change.config == "background-strong"
    assert change.signed_change == pytest.approx(-0.1)
    assert (change.signed_low, change.signed_high) == pytest.approx((-0.1, -0.1))
    assert change.delta == pytest.approx(100 * 0.1 / values(scored)["ygap"].value)


def test_a_question_asked_on_few_images_does_not_stop_the_change(tmp_path):
    rows = [(image, "q1") for image in "abcd"] + [(image, "q2") for image in "bc"]
    once = {
        "image_id": [image for image, _ in rows],
        "gender": ["man" if image in "ab" else "woman" for image, _ in rows],
        "question": [question for _, question in rows],
        "score": [0.9, 0.7, 0.4, 0.2, 0.7, 0.4],
    }
    both = {name: column * 2 for name, column in once.items()} | {"config": ["original"] * 6 + ["blur"] * 6}
    (change,) = score_files([table(tmp_path / "a.csv", both)], "vqa").changes
    assert (change.delta, change.signed_low, change.signed_high) == (0, 0, 0)


def test_pronouns_of_every_config_are_scored_apart(tmp_path):
    columns = {
        "his": [0.6, 0.5, 0.5, 0.5],
        "her": [0.3, 0.6, 0.6, 0.5],
        "gender": ["man", "woman"] * 2,
        "config": ["original"] * 2 + ["blur"] * 2,
    }
    scored = score_files([table(tmp_path / "a.csv", columns)], "resolution")
    found = {config: values(scored, config)["gap"].value for config in ("original", "blur")}
    assert found == {"original": 0, "blur": 0}
    assert values(scored)["ra_avg"].value == 1
    assert values(scored, "blur")["ra_avg"].value == 0
    assert scored.notes == ["blur: 1 rows have no single highest score; they count as wrong"]


def test_counterfactuals_of_every_config_and_context_are_scored_apart(tmp_path):
    columns = {
        "base": [0.9] * 4 + [0.1] * 4,
        "counterfactual": [0.9] * 8,
        "occupation": ["pilot", "pilot", "nurse", "nurse"] * 2,
        "pair": ["pilot|nurse"] * 8,
        "gender": ["man", "woman"] * 4,
        "config": ["original"] * 4 + ["blur"] * 4,
    }
    scored = score_files([table(tmp_path / "a.csv", columns)], "counterfactual")
    assert values(scored)["acc"].value == 1
    assert values(scored, "blur")["acc"].value == 0
    assert scored.notes[0] == (
        "original: no intervals (they need ids of images, several per occupation and gender); "
        "noise alone keeps b_ovl and b_max above 0"
    )
    both = score_files([table(tmp_path / "b.csv", columns | {"context": ["VL"] * 8})], "counterfactual")
    assert [each.config for each in both.scores if each.metric == "b_max"] == ["VL", "VL blur"]


def test_a_change_on_other_images_is_not_given(tmp_path):
    before, after = vqa(), vqa()
    after["image_id"] = [f"x{each}" for each in after["image_id"]]
    both = {name: before[name] + after[name] for name in before} | {"config": ["original"] * 40 + ["control"] * 40}
    scored = score_files([table(tmp_path / "a.csv", both)], "vqa")
    assert scored.changes == []
    assert scored.notes[-1].startswith("control: no change is given")


def test_only_rows_of_the_option_yes_count(tmp_path):
    columns = vqa()
    doubled = {name: each + each for name, each in columns.items()}
    doubled["option"] = ["yes"] * 40 + ["no"] * 40
    doubled["score"] = columns["score"] + [0.0] * 40
    path = table(tmp_path / "a.parquet", doubled)
    assert values(score_files([path], "vqa"))["ygap"].value == pytest.approx(
        values(score_files([table(tmp_path / "b.csv", columns)], "vqa"))["ygap"].value
    )
    doubled["option"] = ["no"] * 80
    with pytest.raises(UserError, match="no row has option yes"):
        score_files([table(tmp_path / "c.csv", doubled)], "vqa")


def test_vqa_needs_no_images(tmp_path):
    columns = {"score": [1, 0, 1, 0], "gender": ["male", "female", "masculine", "feminine"]}
    found = values(score_files([table(tmp_path / "a.csv", columns)], "vqa"))["ygap"]
    assert (found.value, found.ci_low) == (1.0, None)


def similarities(queries=3, images=24, seed=0):
    rng = np.random.default_rng(seed)
    return rng.random((queries, images)).astype(np.float32), ["man" if i % 3 else "woman" for i in range(images)]


def long(matrix, genders, order=None):
    rows = [(q, i) for q in range(len(matrix)) for i in range(matrix.shape[1])]
    rows = [rows[place] for place in order] if order is not None else rows
    return {
        "query": [f"q{q}" for q, _ in rows],
        "image_id": [f"{i:02d}" for _, i in rows],
        "gender": [genders[i] for _, i in rows],
        "score": [float(matrix[q, i]) for q, i in rows],
    }


def test_retrieval_is_what_a_run_has(tmp_path):
    matrix, genders = similarities()
    scored = score_files([table(tmp_path / "a.parquet", long(matrix, genders))], "retrieval", Scoring(k=(3,)))
    drawn = scores.balanced_draws(genders, draws=5, ids=[f"{i:02d}" for i in range(24)])
    core = {s.metric: s for s in scores.retrieval_scores(matrix, genders, k=3, draws=drawn, n_resamples=1000).summary()}
    for metric, found in values(scored).items():
        assert found.value == pytest.approx(core[metric].value)
        assert (found.ci_low, found.null) == pytest.approx((core[metric].ci_low, core[metric].null))
    assert scored.options["k"] == [3]
    assert score_files([tmp_path / "a.parquet"], "retrieval").options["k"] == [scores.default_k(16)]


def test_retrieval_depends_on_no_order_of_rows(tmp_path):
    matrix, genders = similarities()
    order = np.random.default_rng(1).permutation(matrix.size)
    one = score_files([table(tmp_path / "a.csv", long(matrix, genders))], "retrieval")
    other = score_files([table(tmp_path / "b.csv", long(matrix, genders, order))], "retrieval")
    for metric, found in values(one).items():
        assert values(other)[metric].value == pytest.approx(found.value)
        assert values(other)[metric].ci_high == pytest.approx(found.ci_high)


def test_retrieval_configs_give_changes(tmp_path):
    matrix, genders = similarities()
    before, after = long(matrix, genders), long(similarities(seed=5)[0], genders)
    both = {name: before[name] + after[name] for name in before}
    both["config"] = ["original"] * matrix.size + ["control"] * matrix.size
    scored = score_files([table(tmp_path / "a.csv", both)], "retrieval", Scoring(k=(4,)))
    change = next(each for each in scored.changes if each.metric == "bias@4")
    assert change.signed_change == pytest.approx(
        values(scored, "control")["bias@4"].value - values(scored)["bias@4"].value
    )
    assert change.signed_low < change.signed_change < change.signed_high


def test_resolution_table_and_its_two_way_scores(tmp_path):
    rows = RNG.random((40, 3)).round(4)
    genders = ["man", "woman"] * 20
    others = (["man"] * 2 + ["woman"] * 2) * 10
    columns = dict(zip(("his", "her", "their"), rows.T.tolist(), strict=True))
    columns |= {"gender": genders, "other_gender": others, "image_id": list(range(40)), "occupation": ["cook"] * 40}
    scored = score_files([table(tmp_path / "a.csv", columns)], "resolution")
    core = scores.resolution_bias(rows, genders, images=range(40))
    found = values(scored)
    assert (found["ra_avg"].value, found["gap"].ci_low) == (core.overall.ra_avg, core.ci_low)
    assert found["gap_two_way"].value == scores.resolution_bias(rows[:, :2], genders).overall.gap
    splits = scores.resolution_splits(rows, genders, others).splits
    assert values(scored, scope="different")["gap"].value == splits["different"].gap
    assert values(scored, scope="MF")["ra"].value == splits["MF"].ra_m
    assert values(scored, scope="FM")["ra"].value == splits["FM"].ra_f
    assert values(scored, scope="occupation:cook")["ra_m"].value == core.overall.ra_m


def items(n=40):
    return {
        "base": RNG.random(n).round(3).tolist(),
        "counterfactual": RNG.random(n).round(3).tolist(),
        "occupation": ["pilot", "nurse", "cook", "maid"] * (n // 4),
        "pair": (["pilot|nurse"] * 2 + ["cook|maid"] * 2) * (n // 4),
        "gender": ["man"] * (n // 2) + ["woman"] * (n // 2),
        "order": ([0] * 4 + [1] * 4) * (n // 8),
    }


def test_counterfactual_table(tmp_path):
    columns = items()
    options = {"ipss": "merged", "b_max": "signed"}
    scored = score_files([table(tmp_path / "a.csv", columns)], "counterfactual", Scoring(**options))
    core = scores.counterfactual_bias(
        columns["base"],
        columns["counterfactual"],
        occupations=columns["occupation"],
        pairs=columns["pair"],
        genders=columns["gender"],
        orders=columns["order"],
        **options,
    )
    found = values(scored)
    for name in ("acc", "b_ovl", "b_max", "ipss", "delta_acc"):
        assert found[name].value == getattr(core, name)
    assert found["b_ovl"].ci_low is None
    assert values(scored, scope="pair:cook|maid")["b_pair"].value == core.per_pair[1].bias
    assert values(scored, scope="occupation:nurse")["b_micro"].value == core.b_micro["nurse"]


def test_counterfactual_contexts_are_scored_apart(tmp_path):
    one, other = items(), items()
    both = {name: one[name] + other[name] for name in one} | {"context": ["VL"] * 40 + ["V"] * 40}
    scored = score_files([table(tmp_path / "a.csv", both)], "counterfactual")
    alone = score_files([table(tmp_path / "b.csv", other)], "counterfactual")
    assert values(scored, "V")["acc"].value == values(alone)["acc"].value


def change(columns, name, row, value):
    return columns | {name: [value if n == row else each for n, each in enumerate(columns[name])]}


@pytest.mark.parametrize(
    ("protocol", "columns", "message"),
    [
        (
            "vqa",
            change(vqa(), "score", 2, "nan"),
            r"row 3 \(line 4\), image 001: score is nan, not a number from 0 to 1",
        ),
        (
            "vqa",
            change(vqa(), "score", 2, "1.5"),
            r"row 3 \(line 4\), image 001: score is 1\.5, not a number from 0 to 1",
        ),
        ("vqa", change(vqa(), "score", 0, "high"), r"row 1 \(line 2\), image 000: score is high"),
        ("vqa", change(vqa(), "score", 0, ""), r"score is empty, not a number"),
        ("vqa", change(vqa(), "gender", 3, "unsure"), r"row 4 .*gender is 'unsure'; use woman or man"),
        ("vqa", change(vqa(), "image_id", 3, ""), r"row 4 .*image_id is empty"),
        ("vqa", {"score": [0.5]}, r"lacks the column gender \(found: score\); a vqa table has score, gender"),
        ("vqa", vqa() | {"gender": ["man"] * 40}, r"a\.csv: config original: question 'brave' was asked on no woman"),
        (
            "vqa",
            change(vqa(), "gender", 0, "man"),
            r"row 1 \(line 2\), image 000: another row gives this image another gender",
        ),
        ("retrieval", long(*similarities()) | {"query": ["q0"] * 72}, r"the query 'q0' has this image twice"),
        (
            "retrieval",
            {name: each[:-1] for name, each in long(*similarities()).items()},
            r"the query 'q2' lacks image 23; rank all by each query",
        ),
        ("retrieval", change(long(*similarities()), "gender", 0, "man"), r"row 1 .*another row gives this image"),
        ("retrieval", change(long(*similarities()), "score", 5, "inf"), r"row 6 .*score is inf, not a number"),
        ("retrieval", {"score": [1], "gender": ["man"], "image_id": [1]}, r"lacks the column query"),
        ("resolution", {"his": [1.0], "her": [0.0]}, r"lacks the column gender"),
        (
            "counterfactual",
            change(items(), "pair", 1, "pilot"),
            r"row 2 \(line 3\): occupation 'nurse' is not in the pair 'pilot'",
        ),
        ("counterfactual", change(items(), "occupation", 1, "cook"), r"'cook' is not in the pair 'pilot\|nurse'"),
        ("counterfactual", change(items(), "order", 1, "3"), r"row 2 \(line 3\): order is 3, not a number from 0 to 1"),
        ("counterfactual", change(items(), "order", 1, "0.5"), r"row 2 \(line 3\): order is 0\.5; use 0, or 1"),
        ("counterfactual", change(items(), "base", 1, "-0.1"), r"row 2 \(line 3\): base is -0\.1"),
        ("quiz", vqa(), r"unknown protocol 'quiz': use one of vqa, retrieval, resolution, counterfactual"),
    ],
)
def test_bad_rows_are_one_line_that_names_them(tmp_path, protocol, columns, message):
    path = table(tmp_path / "a.csv", columns)
    with pytest.raises(UserError, match=message) as caught:
        score_files([path], protocol)
    assert "\n" not in str(caught.value)


def test_k_above_the_images_is_the_users_mistake(tmp_path):
    path = table(tmp_path / "a.csv", long(*similarities()))
    with pytest.raises(UserError, match=r"a\.csv: k=50"):
        score_files([path], "retrieval", Scoring(k=(50,)))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "cannot be read as csv"),
        ("a.csv", b"score,gender\n", "holds no rows"),
        ("a.csv", b"score,score\n1,2\n", "the column score stands twice"),
        ("a.csv", b"score,gender\n1,2,3\n", "cannot be read as csv"),
        ("a.csv", b"score,gender\n\xff,man\n", "cannot be read as csv|UTF8|UTF-8"),
        ("a.parquet", b"score,gender\n1,man\n", "cannot be read as parquet"),
        ("a.xlsx", b"PK", r"a file ending in \.xlsx is not known"),
        ("a.pkl", b"\x80\x04", r"a file ending in \.pkl is not known"),
        ("a", b"", "a file ending in nothing is not known"),
    ],
)
def test_what_is_no_table_is_one_line(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message) as caught:
        score_files([tmp_path / name], "vqa")
    assert "\n" not in str(caught.value)
    assert str(tmp_path / name) in str(caught.value)


def test_an_absent_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"nowhere\.csv: cannot be read"):
        score_files([tmp_path / "nowhere.csv"], "vqa")
    with pytest.raises(UserError, match="2 files; give one table"):
        score_files([tmp_path / "a.csv", tmp_path / "b.csv"], "vqa")


def test_parquet_types_that_people_have(tmp_path):
    columns = {
        "score": pa.array([1, 0, 1, 0], pa.int8()),
        "gender": pa.array(["man", "woman"] * 2).dictionary_encode(),
        "image_id": pa.array([1, 2, 3, 4], pa.int64()),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    assert values(score_files([tmp_path / "a.parquet"], "vqa"))["ygap"].value == 1
    columns["score"] = pa.array([0.5, None, 0.5, 0.5])
    pq.write_table(pa.table(columns), tmp_path / "b.parquet")
    with pytest.raises(UserError, match=r"row 2, image 2: score is (None|empty)"):
        score_files([tmp_path / "b.parquet"], "vqa")
    columns["image_id"] = pa.array([[1], [2], [3], [4]])
    columns["score"] = pa.array([0.5] * 4)
    pq.write_table(pa.table(columns), tmp_path / "c.parquet")
    with pytest.raises(UserError, match="the column image_id holds list"):
        score_files([tmp_path / "c.parquet"], "vqa")


def test_ids_keep_their_zeros(tmp_path):
    (tmp_path / "a.csv").write_text("image_id,score\n007,1\n7,2\n")
    assert read_table(tmp_path / "a.csv").text("image_id") == ["007", "7"]


def test_foreign_text_in_messages_is_plain(tmp_path):
    columns = change(vqa(), "gender", 0, "\x1b[31mred\u202e")
    with pytest.raises(UserError) as caught:
        score_files([table(tmp_path / "a.csv", columns)], "vqa")
    assert "\x1b" not in str(caught.value)
    assert "\u202e" not in str(caught.value)


def test_json_nan_is_refused(tmp_path):
    entry = {
        "occ": "cook",
        "occ_gender": "man",
        "obj": "pan",
        "logits_list_obj": {"his": math.nan, "her": 0.1, "their": 0},
    }
    (tmp_path / "a.json").write_text(json.dumps({"OO_1": entry}))
    with pytest.raises(UserError, match=r"a\.json: OO_1: logits_list_obj: his is nan, not a finite number"):
        score_files([tmp_path / "a.json"], "resolution")


def test_topics_and_polarities_have_scores_of_their_own(tmp_path):
    columns = vqa()
    columns["topic"] = ["trait"] * 40
    columns["polarity"] = ["positive" if question == "brave" else "neutral" for question in columns["question"]]
    columns["score"] = [
        score if question == "brave" else 0.5
        for score, question in zip(columns["score"], columns["question"], strict=True)
    ]
    scored = score_files([table(tmp_path / "a.csv", columns)], "vqa", Scoring(n_resamples=0))
    whole = values(scored)["ygap"].value
    assert values(scored, scope="topic:trait")["ygap"].value == pytest.approx(whole)
    assert values(scored, scope="polarity:positive")["mean_abs_ygap"].value == pytest.approx(2 * whole)
    assert values(scored, scope="polarity:neutral")["ygap"].value == pytest.approx(0)
    columns["topic"][3] = "skill"
    with pytest.raises(UserError, match=r"row 4 .*another row gives the question 'kind' another topic"):
        score_files([table(tmp_path / "b.csv", columns)], "vqa")


def test_answers_given_twice_are_averaged_and_said(tmp_path):
    columns = {name: each + each[:6] for name, each in vqa().items()}
    scored = score_files([table(tmp_path / "a.csv", columns)], "vqa", Scoring(n_resamples=0))
    assert "original: 6 rows answer a question on an image once more; they are averaged" in scored.notes
    assert not any("once more" in note for note in score_files([table(tmp_path / "b.csv", vqa())], "vqa").notes)


def test_the_threshold_of_delta_is_an_option(tmp_path):
    before, after = vqa(shift=0.01), vqa(shift=0.02)
    both = {name: before[name] + after[name] for name in before} | {"config": ["original"] * 40 + ["control"] * 40}
    path = table(tmp_path / "a.csv", both)
    (excluded,) = score_files([path], "vqa", Scoring(threshold=0.5)).changes
    assert (excluded.delta, excluded.reason.endswith("below the threshold 0.5")) == (None, True)
    scored = score_files([path], "vqa", Scoring(threshold=0.0))
    assert scored.changes[0].delta is not None
    assert scored.options["threshold"] == 0.0


def test_every_query_has_its_scores(tmp_path):
    matrix, genders = similarities()
    path = table(tmp_path / "a.parquet", long(matrix, genders))
    scored = score_files([path], "retrieval", Scoring(k=(3,), draws=0, n_resamples=0))
    core = scores.retrieval_scores(matrix, genders, k=3)
    for metric in core.metrics:
        for query in range(3):
            found = values(scored, scope=f"query:q{query}")[metric].value
            assert found == pytest.approx(core.values(metric)[0, query]), metric


def test_retrieval_deltas_follow_the_aggregate(tmp_path):
    matrix, genders = similarities()
    before, after = long(matrix, genders), long(similarities(seed=5)[0], genders)
    both = {name: before[name] + after[name] for name in before}
    both["config"] = ["original"] * matrix.size + ["control"] * matrix.size
    path = table(tmp_path / "a.csv", both)
    deltas = {}
    for rule in ("mean_of_ratios", "ratio_of_means"):
        scored = score_files([path], "retrieval", Scoring(k=(4,), aggregate=rule, n_resamples=0))
        assert scored.options["aggregate"] == rule
        deltas[rule] = next(each.delta for each in scored.changes if each.metric == "ndkl")
    assert deltas["mean_of_ratios"] != deltas["ratio_of_means"]


def test_minus_infinity_is_null_with_its_reason(tmp_path):
    columns = long(np.array([[4.0, 3, 2, 1], [4.0, 1, 3, 2]]), ["man", "man", "woman", "woman"])
    path = table(tmp_path / "a.csv", columns)
    scored = score_files([path], "retrieval", Scoring(k=(2,), draws=0, empty="neg_inf"))
    read = json.loads(json.dumps([each.model_dump() for each in scored.scores], allow_nan=False))
    found = {(each["metric"], each["scope"]): each for each in read}
    for scope in ("all", "query:q0"):
        assert found["skew_woman@2", scope]["value"] is None
        assert found["skew_woman@2", scope]["reason"].startswith("minus infinity")
    assert found["skew_woman@2", "query:q1"]["value"] == 0


def test_known_images_make_the_intervals_of_counterfactual_answers(tmp_path):
    columns = items()
    columns["image_id"] = [f"{n // 8}-{columns['occupation'][n]}-{columns['gender'][n]}" for n in range(40)]
    named = score_files([table(tmp_path / "a.csv", columns)], "counterfactual", Scoring(seed=2))
    core = scores.counterfactual_bias(
        columns["base"],
        columns["counterfactual"],
        occupations=columns["occupation"],
        pairs=columns["pair"],
        genders=columns["gender"],
        orders=columns["order"],
        images=columns["image_id"],
        seed=2,
    )
    for name in ("acc", "b_ovl", "ipss", "delta_acc"):
        assert (values(named)[name].ci_low, values(named)[name].ci_high) == core.intervals[name]
    assert named.notes == ["original: intervals resample base images; noise alone keeps b_ovl and b_max above 0"]
    del columns["image_id"]
    unnamed = score_files([table(tmp_path / "b.csv", columns)], "counterfactual")
    assert "no intervals (they need ids of images" in unnamed.notes[0]
    assert {values(unnamed)[name].ci_low for name in ("acc", "b_ovl", "ipss", "delta_acc")} == {None}
    by_occupation = score_files([tmp_path / "b.csv"], "counterfactual", Scoring(delta_acc="occupation"))
    assert values(by_occupation)["delta_acc"].value > values(unnamed)["delta_acc"].value
    assert by_occupation.options["delta_acc"] == "occupation"


def test_labels_in_capitals_and_a_byte_order_mark_are_understood(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbfscore,gender\n1,Male\n0, FEMALE \n")
    assert values(score_files([tmp_path / "a.csv"], "vqa"))["ygap"].value == 1


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "score,gender\n1,café\n".encode("latin-1"), "the text is not UTF-8; save it again as UTF-8"),
        ("a.csv", b"score,gender\n1\n", "Expected 2 columns, got 1.*; give a whole file of that kind"),
        ("a.parquet", b"", "file size is 0 bytes; give a whole file"),
        ("a.parquet", b"PAR1torn", "; give a whole file of that kind"),
        ("a.json", '{"é": 1}'.encode("latin-1"), "not UTF-8 JSON; give the file as it was written"),
        ("a.json", b"[" * 100_000, "nested too deep"),
        ("a.json", b'{"a": 1, "b": 2, "a": 3}', "the key 'a' stands twice in one object; keep one of them"),
        ("a.json", b"null", "no entries"),
    ],
)
def test_torn_and_foreign_files_are_one_line_with_a_remedy(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message) as caught:
        score_files([tmp_path / name], "resolution" if name.endswith("json") else "vqa")
    assert str(caught.value).startswith(str(tmp_path / name))
    assert "\n" not in str(caught.value)


def test_a_folder_and_a_file_given_twice_are_refused(tmp_path):
    with pytest.raises(UserError, match="is a folder; give the file in it"):
        score_files([tmp_path], "vqa")
    path = table(tmp_path / "a.csv", vqa())
    with pytest.raises(UserError, match="given twice; give each file once"):
        score_files([path, path], "vqa")
