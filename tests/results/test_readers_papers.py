"""Files in the layouts that the papers' code writes, with numbers of our own."""

import json

import numpy as np
import pytest

from truegap import scores
from truegap.errors import UserError
from truegap.results.readers import Scoring, score_files

RNG = np.random.default_rng(1)


def save(path, data):
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return path


def values(scored, config="original", scope="all"):
    return {each.metric: each for each in scored.scores if (each.config, each.scope) == (config, scope)}


def pronouns():
    return dict(zip(("his", "her", "their"), RNG.random(3).tolist(), strict=True))


def single(n=12):
    return {
        f"OO_{i}": {
            "sector": "education",
            "specialisation": "institutional",
            "occ": "teacher" if i < 6 else "cook",
            "occ_gender": "man" if i % 2 else "woman",
            "obj": "board",
            "logits_list_obj": pronouns(),
            "experiment": "CLIP",
        }
        for i in range(n)
    }


def two(n=16):
    return {
        f"OP_{i}": {
            "sector": "education",
            "specialisation": "institutional",
            "occ": "teacher",
            "occ_gender": "man" if i % 2 else "woman",
            "par": "student",
            "par_gender": "man" if i // 2 % 2 else "woman",
            "logits_list_occ_first": pronouns(),
            "logits_list_par_first": pronouns(),
        }
        for i in range(n)
    }


def rows(entries, name, person, other=None):
    return (
        [[each[name][p] for p in ("his", "her", "their")] for each in entries.values()],
        [each[f"{person}_gender"] for each in entries.values()],
        [each[f"{other}_gender"] if other else None for each in entries.values()],
    )


def test_visogender_raw_scores_of_both_contexts(tmp_path):
    oo, op = single(), two()
    scored = score_files([save(tmp_path / "OO.json", oo), save(tmp_path / "OP.json", op)], "resolution")
    parts = [rows(oo, "logits_list_obj", "occ"), rows(op, "logits_list_occ_first", "occ", "par")]
    table, genders, others = (a + b for a, b in zip(*parts, strict=True))
    core = scores.resolution_splits(table, genders, others)
    assert values(scored, "occupation")["overall"].value == core.overall
    for scope in ("single", "two", "same", "different"):
        found = values(scored, "occupation", scope)
        assert (found["ra_avg"].value, found["gap"].value) == (core.splits[scope].ra_avg, core.splits[scope].gap)
    interval = scores.resolution_bias(*parts[0][:2], images=list(oo))
    assert values(scored, "occupation", "single")["gap"].ci_low == interval.ci_low
    flipped = scores.resolution_bias(*rows(op, "logits_list_par_first", "par")[:2])
    assert values(scored, "participant", "two")["gap"].value == flipped.overall.gap
    assert values(scored, "occupation", "occupation:cook")["ra_m"].value is not None


def test_visogender_published_conventions(tmp_path):
    entries = single()
    entries["OO_0"]["logits_list_obj"] = {"his": 0.5, "her": 0.5, "their": 0.5}
    path = save(tmp_path / "OO.json", entries)
    options = {"ties": "first", "round_intermediate": True}
    core = scores.resolution_bias(*rows(entries, "logits_list_obj", "occ")[:2], **options)
    found = values(score_files([path], "resolution", Scoring(**options)), "occupation")
    assert found["ra_avg"].value == core.overall.ra_avg
    assert found["gap"].counts["ties"] == 1


def ranked(*sizes):
    return {
        f"occupation {n}": {
            "sector": "x",
            "occ_genders": ["man", "woman"] * (size // 2),
            "error": False,
            "logits_list": RNG.random(size).tolist(),
        }
        for n, size in enumerate(sizes)
    }


def test_visogender_retrieval(tmp_path):
    queries = ranked(20, 20, 8) | {"broken": {"occ_genders": ["man"], "error": True}}
    queries["occupation 1"]["logits_list"] = [queries["occupation 1"]["logits_list"]]
    scored = score_files([save(tmp_path / "a.json", queries)], "retrieval")
    good = [queries[f"occupation {n}"] for n in range(3)]
    core = scores.retrieval_bias(
        [np.ravel(each["logits_list"]) for each in good], genders=[each["occ_genders"] for each in good]
    )
    for metric in ("bias@5", "bias@10", "max_skew@5", "ndkl"):
        found = values(scored)[metric]
        assert (found.value, found.sd) == (core.scores[metric], core.scores[f"{metric}_sd"])
    assert values(scored)["max_skew@10"].null == core.scores["max_skew_null@10"]
    assert values(scored, scope="query:occupation 2")["bias@10"].value is None
    assert values(scored)["bias@10"].counts["null@10"] == 1
    assert scored.notes[-1] == "left out: 1 queries whose images could not be loaded (broken)"


BENCHMARK = {
    "metadata": {"experiment_desc": "CLIP", "model_name": "clip"},
    "resolution_bias": {
        "all_images": {"overall_accuracy": 0.75},
        "single_person_images": {"RA_avg": 0.92, "gender_gap": -0.14},
        "two_person_images": {"RA_avg": None, "gender_gap": None},
    },
    "retrieval_bias": {"bias@5": {"mean": 0.11, "sigma": 0.38}, "NDKL": {"mean": 0.19, "sigma": 0.07}},
}


def test_visogender_benchmark_scores_are_read_as_they_are(tmp_path):
    path = save(tmp_path / "a.json", BENCHMARK)
    resolution, retrieval = (score_files([path], protocol) for protocol in ("resolution", "retrieval"))
    assert values(resolution)["overall"].value == 0.75
    assert values(resolution, scope="single")["gap"].value == -0.14
    missing = values(resolution, scope="two")["gap"]
    assert (missing.value, missing.reason) == (None, "null in the file")
    assert (values(retrieval)["bias@5"].value, values(retrieval)["ndkl"].sd) == (0.11, 0.07)
    assert "max_skew@5" not in values(retrieval)
    assert "no intervals" in retrieval.notes[0]


def broken(entries, name, **fields):
    entry = {key: value for key, value in (entries[name] | fields).items() if value is not ...}
    return entries | {name: entry}


@pytest.mark.parametrize(
    ("protocol", "data", "message"),
    [
        (
            "resolution",
            broken(two(), "OP_3", logits_list_occ_first=..., logits_list_par_first=...),
            "OP_3: lacks logits_list",
        ),
        (
            "resolution",
            broken(two(), "OP_3", logits_list_occ_first={"his": 1}),
            "OP_3: logits_list_occ_first: lacks her",
        ),
        ("resolution", broken(two(), "OP_3", occ_gender="neutral"), "OP_3: occ_gender is 'neutral'; use woman or man"),
        ("resolution", broken(single(), "OO_2", occ=...), "OO_2: lacks occ; give the file as it was written"),
        ("resolution", broken(single(), "OO_2", logits_list_obj=[1, 2, 3]), "OO_2: logits_list_obj is no object"),
        (
            "resolution",
            broken(single(), "OO_2", logits_list_obj={"his": "1", "her": 2}),
            "his is 1, not a finite number",
        ),
        ("resolution", broken(single(), "OO_2", logits_list_obj={"his": True, "her": 2}), "his is True, not a finite"),
        ("resolution", {"OO_1": 7}, "OO_1 is no object"),
        ("resolution", [], "no entries"),
        ("resolution", "{", "not JSON: Expecting"),
        (
            "retrieval",
            broken(ranked(4), "occupation 0", occ_genders=["man"]),
            "occupation 0: logits_list and occ_genders",
        ),
        (
            "retrieval",
            broken(ranked(4), "occupation 0", occ_genders=["man", "x", "man", "man"]),
            "occupation 0 image 2",
        ),
        ("retrieval", broken(ranked(4), "occupation 0", logits_list=[1, 2, None, 3]), "logits_list 3 is None"),
        ("retrieval", broken(ranked(4), "occupation 0", error=True), "every query failed"),
        ("retrieval", BENCHMARK | {"retrieval_bias": {"bias@5": 3}}, r"retrieval_bias\.bias@5 is no object"),
        ("vqa", {}, "no JSON of answers to yes-no questions is known"),
    ],
)
def test_a_broken_visogender_file_names_the_entry(tmp_path, protocol, data, message):
    path = save(tmp_path / "a.json", data)
    with pytest.raises(UserError, match=message) as caught:
        score_files([path], protocol)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(path))


PAIRS = "job_male,job_female,similarity\nPilot,Waiter,0.9\nCook,Nurse,0.8\n"


def result(number, occupation, similar, gender, role, *, swapped=False):
    p = float(RNG.random())
    folder = "xl_generate_base" if role == "base" else "xl_generate_cf_via_instructpix2pix"
    shown = gender if role == "base" else {"female": "male", "male": "female"}[gender]
    names = ["Waitress" if each == "Waiter" and shown == "female" else each for each in (occupation, similar)]
    return {
        "id": str(number),
        "image_path": f"/data/{folder}/{occupation}/{gender}/{gender}_{occupation}_0.png",
        "choices": names[::-1] if swapped else names,
        "gt_choice": int(swapped),
        "probs": [1 - p, p] if swapped else [p, 1 - p],
        "metric_result": p > 0.5,
    }


def results(role, *, swapped=False):
    asked = [("Pilot", "Waiter"), ("Waiter", "Pilot"), ("Cook", "Nurse"), ("Nurse", "Cook")]
    asked = [(*pair, gender) for pair in asked for gender in ("female", "male") for _ in range(2)]
    return [result(n, *each, role, swapped=swapped) for n, each in enumerate(asked)]


@pytest.fixture
def four(tmp_path):
    (tmp_path / "occ_merge_filter_sim.csv").write_text(PAIRS)
    data = [results(role, swapped=swapped) for swapped in (False, True) for role in ("base", "cf")]
    return [save(tmp_path / f"{n}.json", each) for n, each in enumerate(data)], data


def core(data, **options):
    columns = {name: [] for name in ("base", "counterfactual", "occupations", "pairs", "genders", "orders")}
    for order in range(len(data) // 2):
        for one, other in zip(data[2 * order], data[2 * order + 1], strict=True):
            occupation = one["choices"][order].replace("Waitress", "Waiter")
            row = (
                one["probs"][order],
                other["probs"][order],
                occupation,
                "Pilot|Waiter" if occupation in ("Pilot", "Waiter") else "Cook|Nurse",
                one["image_path"].split("/")[-2],
                order,
            )
            for name, value in zip(columns, row, strict=True):
                columns[name].append(value)
    return scores.counterfactual_bias(columns.pop("base"), columns.pop("counterfactual"), **columns, **options)


def test_genderbias_vl_items_in_both_orders(four):
    paths, data = four
    scored = score_files(paths, "counterfactual", pairs=paths[0].parent)
    expected = core(data)
    for name in ("acc", "b_ovl", "b_max", "ipss", "delta_acc"):
        assert values(scored)[name].value == pytest.approx(getattr(expected, name))
    assert values(scored)["b_ovl"].counts["orders"] == 2


def test_genderbias_vl_items_match_by_id_in_any_order(four, tmp_path):
    paths, data = four
    save(paths[1], data[1][::-1])
    scored = score_files(paths[:2], "counterfactual", pairs=paths[0].parent / "occ_merge_filter_sim.csv")
    assert values(scored)["b_ovl"].value == pytest.approx(core(data[:2]).b_ovl)
    assert "delta_acc" not in values(scored)


def test_answers_without_probabilities_are_scored_by_outcome(four):
    paths, data = four
    for path, each in zip(paths, data, strict=True):
        save(path, [{key: value for key, value in item.items() if key != "probs"} for item in each])
    scored = score_files(paths, "counterfactual", Scoring(difference="outcome"), pairs=paths[0].parent)
    assert values(scored)["b_ovl"].value == pytest.approx(core(data, difference="outcome").b_ovl)


def edit(item, **fields):
    return {key: value for key, value in (item | fields).items() if value is not ...}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"probs": [0.5]}, r"0\.json: item 1 \(id 0\): probs are not two probabilities"),
        ({"probs": [2.5, 0.1]}, r"probs hold 2\.5, outside \[0, 1\]; give probabilities, not logits"),
        ({"probs": [None, 0.1]}, r"probs is None, not a finite number"),
        ({"probs": ..., "metric_result": ...}, "holds neither probs nor metric_result"),
        ({"choices": ["Pilot"]}, "choices are not two occupations"),
        ({"choices": ["Pilot", "Nurse"]}, r"1\.json: item 1 \(id 0\): its choices are not those of"),
        ({"gt_choice": 2}, "gt_choice is neither 0 nor 1"),
        ({"gt_choice": 1.0}, "gt_choice is neither 0 nor 1"),
        ({"probs": [10**400, 0.1]}, "probs is 1000.*, not a finite number"),
        ({"image_path": "/data/someone.png"}, "its image_path names no gender; add gender"),
        ({"id": "99"}, r"item 1 \(id 99\): has no counterpart in .*1\.json"),
        ({"id": "1"}, "its id stands twice"),
        ({"id": ...}, "item 1: lacks id"),
    ],
)
def test_a_broken_item_is_named(four, fields, message):
    paths, data = four
    save(paths[0], [edit(data[0][0], **fields), *data[0][1:]])
    with pytest.raises(UserError, match=message) as caught:
        score_files(paths, "counterfactual", pairs=paths[0].parent)
    assert "\n" not in str(caught.value)


def test_files_that_do_not_belong_together(four, tmp_path):
    paths, data = four
    with pytest.raises(UserError, match="3 result files; give the base items and their counterfactuals"):
        score_files(paths[:3], "counterfactual", pairs=tmp_path)
    with pytest.raises(UserError, match="give files of one order"):
        score_files([paths[0], paths[3]], "counterfactual", pairs=tmp_path)
    with pytest.raises(UserError, match=r"names no pair; give the authors' occ_merge_filter_sim.csv with --pairs"):
        score_files(paths, "counterfactual")
    (tmp_path / "other.csv").write_text("job_male,job_female\nA,B\n")
    with pytest.raises(UserError, match="Pilot and Waiter are no pair of the table"):
        score_files(paths, "counterfactual", pairs=tmp_path / "other.csv")
    (tmp_path / "wrong.csv").write_text("a,b\n1,2\n")
    with pytest.raises(UserError, match="lacks the column job_male, job_female"):
        score_files(paths, "counterfactual", pairs=tmp_path / "wrong.csv")
    with pytest.raises(UserError, match=r"nowhere\.csv: cannot be read"):
        score_files(paths, "counterfactual", pairs=tmp_path / "nowhere.csv")
    save(paths[1], [*data[1], data[1][0] | {"id": "extra"}])
    with pytest.raises(UserError, match=r"1\.json: item 17 \(id extra\): has no counterpart in .*0\.json"):
        score_files(paths, "counterfactual", pairs=tmp_path)


def test_an_entry_of_two_files_is_named(tmp_path):
    first, second = save(tmp_path / "a.json", two()), save(tmp_path / "b.json", two())
    with pytest.raises(UserError, match="OP_0 is in another of the files too; give one file per context"):
        score_files([first, second], "resolution")
    averages = save(tmp_path / "c.json", BENCHMARK)
    for files in ([averages, first], [first, averages]):
        with pytest.raises(UserError, match=r"c\.json: holds averages of all images; give it alone"):
            score_files(files, "resolution")


def test_items_name_their_base_image(four):
    paths, _ = four
    scored = score_files(paths, "counterfactual", pairs=paths[0].parent)
    assert scored.notes[0].startswith("original: no intervals (they need ids of images, several")
    assert values(scored)["b_ovl"].counts["images"] == 8
