"""The table of models that the papers name: complete, strict, and the same in the documentation."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from truegap.errors import UserError
from truegap.models.named_models import NamedModel, every, of_paper, page
from truegap.models.registry import _resolve
from truegap.results.published import TABLES, rows


def test_every_model_of_the_published_tables_is_listed():
    # given the tables that print a model per row; then each has an entry under its paper
    listed = {(each.paper, each.name) for each in every()}
    printed = {
        (table.paper.key, row["model"]) for table in TABLES.values() for row in rows(table.name) if "model" in row
    }
    assert len(printed) > 30
    assert printed <= listed
    assert len(listed) == len(every())


def test_every_spec_is_one_that_load_model_takes():
    for each in every():
        if each.spec is not None:
            assert _resolve(each.spec)[0] == each.way


def test_open_clip_knows_its_specs():
    import open_clip

    known = {f"open_clip:{architecture}/{tag}" for architecture, tag in open_clip.list_pretrained()}
    assert {each.spec for each in every() if each.way == "open_clip"} <= known


def test_what_does_not_load_here_says_why():
    other = [each for each in every() if each.spec is None]
    assert {each.name for each in other} >= {"EAGLE-8B", "mPLUG-Owl3-7B", "SLIP", "DeCLIP", "FILIP"}
    assert all(each.note for each in other)
    assert all("id not verified" in each.note or each.origin or each.name == "commercial APIs" for each in other)


@pytest.mark.parametrize(
    "change",
    [
        {"extra": 1},
        {"paper": "Another 2020"},
        {"way": "plug-in"},
        {"spec": "open_clip:ViT-B-32/openai"},
        {"spec": None},
        {"note": None},
        {"origin": "org/name"},
        {"kind": "oracle"},
    ],
)
def test_an_entry_that_makes_no_sense_is_refused(change):
    entry = of_paper("visogender")[0].model_dump()
    NamedModel.model_validate(entry)
    with pytest.raises(ValidationError):
        NamedModel.model_validate(entry | change)


def test_the_documentation_is_made_from_the_table(root):
    assert (root / "docs" / "models.md").read_text(encoding="utf-8") == page(every())


def test_a_paper_is_named_by_a_word():
    assert {each.paper for each in of_paper("HIROTA")} == {"Hirota et al. 2025"}
    assert of_paper("genderbias-vl") == of_paper("xiao")
    assert of_paper(None) == every()
    with pytest.raises(UserError, match="names several of Hirota"):
        of_paper("gender")
    with pytest.raises(UserError, match="names none of Hirota"):
        of_paper("nobody")


def test_the_command_prints_them(capsys):
    from truegap.cli.app import app

    def said(*arguments: str) -> str:
        app(["models", *arguments], standalone_mode=False)
        return capsys.readouterr().out

    assert [each["name"] for each in json.loads(said("--json"))] == [each.name for each in every()]
    assert said("--markdown") == page(every())
    table = said("--paper", "hall")
    assert "openai/clip-vit-base-patch32" in table
    assert "LLaVA" not in table
    assert "baseline:prior:MODEL" in said()
    with pytest.raises(UserError, match="choose one"):
        said("--json", "--markdown")
