from __future__ import annotations

import json
from collections import Counter

import pytest

from truegap import sources
from truegap.errors import UserError
from truegap.schema import FilterStep
from truegap.sources import visogender
from truegap.sources.download_record import MANIFEST

OO, OP = "OO_Visogender_10052025.tsv", "OP_Visogender_11012024.tsv"


def single(number, gender="feminine", **changes):
    return {
        "IDX": f"OO_{number}",
        "Sector": "medical",
        "Specialisation": "hospital_worker",
        "Occupation": "nurse",
        "Object": "stethoscope",
        "URL type (Type NA if can't find)": f"https://example.org/{number}.jpg",
        "LICENSE OK?": "Yes",
        "Occupation_perceived_gender": gender,
        "Error codes": "",
        "Annotator": "x",
    } | changes


def couple(number, gender="masculine", other="feminine", **changes):
    row = single(number, gender)
    del row["Object"], row["LICENSE OK?"]
    more = {"IDX": f"OP_{number}", "Participant": "patient", "Licence": "Yes", "Participant_perceived_gender": other}
    return row | more | changes


def write(archive, singles=(), couples=(), photos=True):
    for name, entries in ((OO, singles), (OP, couples)):
        if entries:
            archive.table(name, list(entries), delimiter="\t")
    if photos:
        for row in (*singles, *couples):
            if "/" not in row["IDX"]:
                archive.photo(f"images/{row['IDX']}.jpg")
    return archive.top


def test_rows_become_examples_with_their_own_columns(archive, outcome):
    folder = write(archive, [single(1)], [couple(1)])
    one, two = outcome("visogender", folder)[0].examples
    assert (one.image_id, one.gender, one.size, one.persons) == ("OO_1", "woman", (40, 60), ())
    assert one.attribution == "https://example.org/1.jpg"
    assert one.license == "unknown"
    assert one.extra == {
        "kind": "OO",
        "sector": "medical",
        "specialisation": "hospital_worker",
        "occupation": "nurse",
        "occupation_gender": "woman",
        "object": "stethoscope",
        "participant": None,
        "participant_gender": None,
    }
    assert (two.image_id, two.gender) == ("OP_1", "man")
    assert (two.extra["participant"], two.extra["participant_gender"]) == ("patient", "woman")
    assert [e.image_id for e in outcome("visogender", folder, kinds="OP")[0].examples] == ["OP_1"]


def test_every_row_that_is_not_used_has_its_reason(archive, outcome):
    singles = [
        single(1),
        single(2, "unsure"),
        single(3, **{"Error codes": "E1"}),
        single(4),
        single(1),
        single(0) | {"IDX": "../x"},
    ]
    folder = write(archive, singles, [couple(1, other="")])
    (folder / "images/OO_4.jpg").unlink()
    selection, reasons, _ = outcome("visogender", folder)
    assert reasons == {
        "OO_1": f"IDX stands twice: {OO} line 6 left out",
        f"{OO} line 7": "IDX cannot be the name of a file",
        "OO_2": "gender of the occupation: unsure",
        "OO_3": "error code of the annotators: E1",
        "OO_4": "image file is absent",
        "OP_1": "gender of the participant: empty",
    }
    assert selection.steps == [
        FilterStep("archive", 2, 0, 5),
        FilterStep("label", 2, 0, 0),
        FilterStep("download", 2, 0, 0),
        FilterStep("image_file", 1, 0, 0),
        FilterStep("image_header", 1, 0, 0),
        FilterStep("checksum", 1, 0, 0),
    ]


def test_a_photograph_that_is_no_longer_what_was_downloaded_is_left_out(archive, outcome):
    folder = write(archive, [single(1), single(2)])
    line = {"id": "OO_2", "url": "https://example.org/2.jpg", "file": "OO_2.jpg", "sha256": "0" * 64}
    archive.text(f"images/{MANIFEST}", json.dumps(line) + "\n")
    assert outcome("visogender", folder)[1] == {"OO_2": "image file differs from what was downloaded"}


def test_a_photograph_that_could_not_be_had_is_left_out_with_its_reason(archive, outcome):
    # given a record of dead links, one of them hostile, one of a photograph that came by another way
    folder = write(archive, [single(number) for number in range(1, 5)])
    (folder / "images/OO_2.jpg").unlink()
    (folder / "images/OO_3.jpg").unlink()
    reasons = {"OO_2": "status 404", "OO_3": "<script>*\n" + "x" * 200, "OO_4": "status 404"}
    lines = [json.dumps({"id": image, "url": "u", "reason": why, "lasting": True}) for image, why in reasons.items()]
    archive.text(f"images/{MANIFEST}", "\n".join(lines))
    selection, dropped, steps = outcome("visogender", folder)
    assert dropped == {"OO_2": "not downloaded, status 404", "OO_3": f"not downloaded, script{'x' * 74}"}
    assert [example.image_id for example in selection.examples] == ["OO_1", "OO_4"]
    assert steps["download"] == steps["image_file"] == (2, 0, 0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("IDX\tSector\n", "lacks the column Specialisation, Occupation"),
        ("IDX,Sector,Specialisation\n", "lacks the column IDX"),
        ("", "lacks the column"),
    ],
)
def test_a_table_of_another_kind_is_one_line(archive, content, message):
    archive.text(OO, content)
    with pytest.raises(UserError, match=message) as caught:
        sources.read("visogender", archive.top)
    assert OO in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_table_two_tables_and_latin_1_are_one_line(archive):
    with pytest.raises(UserError, match=r"holds no table; expected OO or OP_Visogender_<date>\.tsv"):
        sources.read("visogender", archive.top)
    write(archive, [single(1, Occupation="caf\xe9 owner")])
    text = (archive.top / OO).read_text()
    archive.text(OO, text, "latin-1")
    with pytest.raises(UserError, match="not a table: the text is not UTF-8"):
        sources.read("visogender", archive.top)
    archive.text("OO_Visogender_2.tsv", text)
    with pytest.raises(UserError, match=r"several files of kind OO: .*; keep one"):
        sources.read("visogender", archive.top)
    with pytest.raises(UserError, match=r"kinds\.0: Input should be 'OO' or 'OP'"):
        sources.read("visogender", archive.top, kinds="XX")


def test_the_authors_tables_hold_what_the_paper_says(shared):
    entries, apart = visogender.read_tables(shared / "data/visogender")
    assert not apart
    kinds = Counter(entry.columns["kind"] for entry in entries.values())
    assert kinds == {"OO": 230, "OP": 460}
    assert Counter(entry.gender for entry in entries.values()) == {"woman": 345, "man": 345}
    assert len({entry.columns["occupation"] for entry in entries.values()}) == 23
    assert len({entry.columns["specialisation"] for entry in entries.values()}) == 13
    assert len({entry.columns["sector"] for entry in entries.values()}) == 5
    assert all(entry.url and not entry.reason for entry in entries.values())
    pairs = Counter((e.gender, e.columns["participant_gender"]) for e in entries.values() if e.columns["kind"] == "OP")
    assert set(pairs.values()) == {115}
