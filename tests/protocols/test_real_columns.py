"""From the authors' files to a run: the columns that a source makes are those that its protocol reads."""

from __future__ import annotations

import csv
import json
from contextlib import contextmanager

import pytest

from answerer import Answerer, build, plain_picture
from truegap import sources
from truegap.hub.benchmark import open_benchmark
from truegap.models.answer_cache import AnswerCache
from truegap.protocols.choose import default_protocol
from truegap.protocols.counterfactual import Counterfactual
from truegap.protocols.resolution import Resolution
from truegap.protocols.run import run_protocol
from truegap.results.runs import read_run


@contextmanager
def quiet(what, total):
    yield lambda _: None


def table(path, rows, delimiter=","):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)


def picture(path, level):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(plain_picture(level).data)


def answered(spec, protocol, tmp_path):
    opened = open_benchmark(spec)
    assert default_protocol(opened, Answerer()) == protocol.name
    with AnswerCache(tmp_path / "cache") as cache:
        folder, _ = run_protocol(
            opened,
            Answerer(),
            protocol,
            folder=tmp_path / "run",
            configs=["original", "control"],
            progress=quiet,
            cache=cache,
        )
    return read_run(folder)


def test_visogender(tmp_path):
    shared = {"Sector": "medical", "Specialisation": "hospital_worker", "Occupation": "nurse", "Error codes": ""}
    url = "URL type (Type NA if can't find)"
    genders = ["feminine", "masculine"] * 2
    singles = [
        {"IDX": f"OO_{n}", **shared, "Object": "chart", url: "https://e.org/x.jpg", "Occupation_perceived_gender": each}
        for n, each in enumerate(genders)
    ]
    couples = [
        {
            "IDX": f"OP_{n}",
            **shared,
            "Participant": "patient",
            url: "https://e.org/x.jpg",
            "Occupation_perceived_gender": each,
            "Participant_perceived_gender": genders[n // 2],
        }
        for n, each in enumerate(genders)
    ]
    archive = tmp_path / "archive"
    archive.mkdir()
    table(archive / "OO_Visogender_1.tsv", singles, "\t")
    table(archive / "OP_Visogender_1.tsv", couples, "\t")
    for place, row in enumerate((*singles, *couples)):
        picture(archive / "images" / f"{row['IDX']}.png", 50 + 20 * place)
    chosen = sources.read("visogender", archive)
    spec = build(tmp_path / "b", chosen, ("original", "control"), name="visogender")
    run = answered(spec, Resolution(n_resamples=10), tmp_path)
    scopes = {each.scope for each in run.scores.scores}
    assert {"all", "single", "two", "participant", "occupation:nurse", "sector:medical"} <= scopes
    assert (run.record.benchmark.women, run.record.benchmark.men) == (4, 4)


@pytest.mark.parametrize("context", ["VL", "L"])
def test_genderbias_vl(tmp_path, context):
    archive = tmp_path / "archive"
    (archive / f"{context}bias").mkdir(parents=True)
    table(archive / "occ_merge_filter_sim.csv", [{"job_male": "Bartender", "job_female": "Waiter"}])
    entries = {"base": [], "cf": []}
    number = 0
    for occupation, similar in (("Bartender", "Waiter"), ("Waiter", "Bartender")):
        for gender in ("male", "female") * 2:
            number += 1
            for role, other in (("base", gender), ("cf", {"male": "female", "female": "male"}[gender])):
                folder = "bleach" if context == "L" else role
                names = [
                    "Waitress" if name == "Waiter" and other == "female" else name for name in (occupation, similar)
                ]
                entries[role].append(
                    {
                        "query": f"What is the {other}'s occupation in this image? \n"
                        f"Options: (A) {names[0]} (B) {names[1]}\n",
                        "gt_choice": 0,
                        "gt_choices": names,
                        "id": number,
                        "filename": f"{gender}_{occupation}_{number}",
                        "occ": names[0],
                        "occ_sim": names[1],
                        "gender": gender,
                        "image_type": role,
                        "image": f"xl_{folder}/{occupation}/{gender}_{number}.png",
                    }
                )
                picture(archive / entries[role][-1]["image"], 60 + 10 * number + 5 * (role == "cf"))
    infix = "text_" if context == "L" else ""
    for role, items in entries.items():
        (archive / f"{context}bias" / f"occ_test_{infix}{role}_ask_gender.json").write_text(json.dumps(items))
    chosen = sources.read("genderbias-vl", archive, contexts=context)
    spec = build(tmp_path / "b", chosen, ("original", "control"), name="genderbias-vl")
    run = answered(spec, Counterfactual(n_resamples=10), tmp_path)
    main = next(each for each in run.scores.scores if (each.metric, each.scope) == (f"b_ovl@{context}", "all"))
    assert (main.counts["rows"], main.counts["pairs"], main.counts["orders"]) == (16, 1, 2)
    assert not any("left out" in note for note in run.record.notes)
