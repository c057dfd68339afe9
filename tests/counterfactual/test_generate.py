from __future__ import annotations

import pytest
from PIL import Image

from truegap.counterfactual import Picture, Prompts, Settings, edit, generate, load_pipeline, plan_pictures, read_names
from truegap.counterfactual.generate import read_prompts
from truegap.counterfactual.marks import read_mark
from truegap.errors import UserError

NAMES = read_names()
PROMPTS = Prompts()
PICTURES = plan_pictures(["Waiter"], 2)


class Stopped(Exception):  # noqa: N818
    pass


@pytest.fixture
def maker(pipelines):
    return load_pipeline(str(pipelines("sd")), "text-to-image", Settings(steps=1), device="cpu")


@pytest.fixture
def editor(pipelines):
    return load_pipeline(str(pipelines("pix2pix")), "edit", Settings(steps=1), device="cpu")


def contents(folder, kind):
    return {path.name: path.read_bytes() for path in sorted((folder / kind).rglob("*")) if path.is_file()}


# Prompts


def test_prompts_take_turns_and_use_gendered_names():
    prompts = Prompts(
        ("one {gender} {occupation}", "{occupation}, {gender}"),
        ("make it {other}", "a {gender} {occupation}? {other}!"),
    )
    woman, man = Picture("Waiter", "woman", 0), Picture("Waiter", "man", 1)
    assert (prompts.of_base(woman, NAMES), prompts.of_base(man, NAMES)) == ("one female Waitress", "Waiter, male")
    assert (prompts.of_edit(woman, NAMES), prompts.of_edit(man, NAMES)) == ("make it male", "a male Waitress? female!")


def test_a_prompt_cannot_reach_into_objects():
    prompts = Prompts(("{gender} {occupation} {occupation.__class__} {0}",))
    assert prompts.of_base(Picture("Chef", "man", 0), NAMES) == "male Chef {occupation.__class__} {0}"


@pytest.mark.parametrize(
    ("base", "edits", "missing"),
    [
        (("a {gender}",), ("{other}",), "{occupation}"),
        (("{gender} {occupation}",), ("x",), "{other}"),
        ((), ("{other}",), "no prompt"),
    ],
)
def test_a_prompt_needs_its_placeholders(base, edits, missing):
    with pytest.raises(UserError, match=missing):
        Prompts(base, edits)


def test_seeds_differ_by_image_step_and_seed():
    seeds = {
        prompts.seed_of(picture, step)
        for prompts in (Prompts(seed=0), Prompts(seed=1))
        for picture in plan_pictures(["Chef", "Baker"], 3)
        for step in ("base", "counterfactual")
    }
    assert len(seeds) == 2 * 12 * 2
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_prompts_come_from_a_file(table):
    path = table("p.txt", "# ours", "a {gender} {occupation}", "", "  {occupation}, {gender} ")
    assert read_prompts(path) == ("a {gender} {occupation}", "{occupation}, {gender}")


# Making and editing, with real pipelines


def test_images_are_made_once(tmp_path, maker):
    assert generate(tmp_path, PICTURES, PROMPTS, maker, NAMES) == 4
    first = contents(tmp_path, "base")
    assert sorted(first) == ["female_Waiter_0.png", "female_Waiter_1.png", "male_Waiter_0.png", "male_Waiter_1.png"]
    done = []
    assert generate(tmp_path, PICTURES, PROMPTS, maker, NAMES, done.append) == 0
    assert sum(done) == 4
    assert contents(tmp_path, "base") == first
    mark = read_mark(tmp_path / PICTURES[0].path("base"))
    assert mark["prompt"] == "a photo of one female Waitress at work"
    assert mark["seed"] == PROMPTS.seed_of(PICTURES[0], "base")
    assert mark["maker"] == maker.record()
    assert mark["unsafe"] is None


def test_an_interrupted_run_goes_on_and_ends_the_same(tmp_path, maker):
    done = []

    def stop(images):
        done.append(images)
        if len(done) == 2:
            raise Stopped

    with pytest.raises(Stopped):
        generate(tmp_path / "a", PICTURES, PROMPTS, maker, NAMES, stop)
    assert generate(tmp_path / "a", PICTURES, PROMPTS, maker, NAMES) == 2
    generate(tmp_path / "b", PICTURES[::-1], PROMPTS, maker, NAMES)
    assert contents(tmp_path / "a", "base") == contents(tmp_path / "b", "base")


def test_another_prompt_seed_or_model_makes_the_image_again(tmp_path, maker, pipelines):
    generate(tmp_path, PICTURES, PROMPTS, maker, NAMES)
    assert generate(tmp_path, PICTURES, Prompts(("{occupation} {gender}",)), maker, NAMES) == 4
    assert generate(tmp_path, PICTURES, PROMPTS, maker, NAMES) == 4
    assert generate(tmp_path, PICTURES, Prompts(seed=1), maker, NAMES) == 4
    other = load_pipeline(str(pipelines("sd")), "text-to-image", Settings(steps=2), device="cpu")
    assert generate(tmp_path, PICTURES, Prompts(seed=1), other, NAMES) == 4
    # one that was damaged, whatever it says, is of another making
    (tmp_path / PICTURES[0].path("base")).unlink()
    assert generate(tmp_path, PICTURES, Prompts(seed=1), other, NAMES) == 1


def test_an_image_from_elsewhere_stays(tmp_path, maker, put):
    own = put(tmp_path / PICTURES[1].path("base"))
    before = own.read_bytes()
    assert generate(tmp_path, PICTURES, PROMPTS, maker, NAMES) == 3
    assert own.read_bytes() == before


def test_counterfactuals_follow_their_base(tmp_path, maker, editor, put):
    generate(tmp_path, PICTURES, PROMPTS, maker, NAMES)
    assert edit(tmp_path, PICTURES, PROMPTS, editor, NAMES) == 4
    assert edit(tmp_path, PICTURES, PROMPTS, editor, NAMES) == 0
    mark = read_mark(tmp_path / PICTURES[0].path("counterfactual"))
    assert mark["prompt"] == "turn the female into a male"
    put(tmp_path / PICTURES[0].path("bleached"))
    put(tmp_path / PICTURES[0].path("base"), size=(32, 32))
    assert edit(tmp_path, PICTURES, PROMPTS, editor, NAMES) == 1
    # what was made from a base image goes when the base is made again
    generate(tmp_path, PICTURES, Prompts(seed=3), maker, NAMES)
    assert (tmp_path / PICTURES[0].path("bleached")).exists()
    assert (tmp_path / PICTURES[0].path("counterfactual")).exists()
    assert not (tmp_path / PICTURES[1].path("counterfactual")).exists()


def test_what_the_checker_flagged_is_written_down(tmp_path, pipelines):
    alarmed = load_pipeline(str(pipelines("alarmed")), "text-to-image", Settings(steps=1), device="cpu")
    generate(tmp_path, PICTURES[:1], PROMPTS, alarmed, NAMES)
    assert read_mark(tmp_path / PICTURES[0].path("base"))["unsafe"] is True
    assert generate(tmp_path, PICTURES[:1], PROMPTS, alarmed, NAMES) == 0


def test_a_base_image_that_cannot_be_read_is_named(tmp_path, editor, put):
    put(tmp_path / PICTURES[0].path("base"))
    (tmp_path / PICTURES[0].path("base")).write_bytes(b"no image")
    with pytest.raises(UserError, match=r"female_Waiter_0\.png: cannot be edited"):
        edit(tmp_path, PICTURES[:1], PROMPTS, editor, NAMES)


def test_images_are_plain_png(tmp_path, maker):
    generate(tmp_path, PICTURES[:1], PROMPTS, maker, NAMES)
    with Image.open(tmp_path / PICTURES[0].path("base")) as image:
        assert (image.format, image.mode) == ("PNG", "RGB")
