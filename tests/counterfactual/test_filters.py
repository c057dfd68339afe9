from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from tiny import SIDE, SQUARE, TEXT
from truegap.counterfactual import Picture, keep, one_person, readable, safe, shown_gender
from truegap.counterfactual.marks import read_mark, write_image
from truegap.counterfactual.persons import as_selection, person_mask, persons_of
from truegap.counterfactual.safety import load_classifier
from truegap.errors import UserError
from truegap.models import load_model
from truegap.schema import Region

PICTURES = [Picture("Chef", gender, number) for gender in ("woman", "man") for number in range(2)]
FIRST, SECOND, THIRD, FOURTH = PICTURES


@pytest.fixture
def folder(tmp_path, put):
    for seed, picture in enumerate(PICTURES):
        put(tmp_path / picture.path("base"), seed)
        put(tmp_path / picture.path("counterfactual"), seed + 100)
    return tmp_path


def reasons(result):
    return {each.image_id: each.reason for each in result.dropped}


def counts(result):
    return [(step.name, step.woman, step.man) for step in result.steps]


def test_a_picture_stays_if_both_of_its_images_pass_all_filters(folder):
    found = {each.path(kind): [person()] for each in PICTURES for kind in ("base", "counterfactual")}
    found[FIRST.path("base")] = []
    found[THIRD.path("counterfactual")] = [person(), person(2)]
    (folder / SECOND.path("base")).write_bytes(b"no image")
    result = keep(folder, PICTURES, [safe(), readable(), one_person(lambda _shots: found)])
    assert result.kept == (FOURTH,)
    assert counts(result) == [("images", 2, 2), ("safety", 2, 2), ("readable", 1, 2), ("one_person", 0, 1)]
    assert reasons(result) == {
        "female_Chef_1": "readable: base: not a JPEG, PNG or WebP image",
        "female_Chef_0": "one_person: base: nobody was detected",
        "male_Chef_0": "one_person: counterfactual: several persons were detected",
    }


def person(number=1):
    return Region(number, "person", (1, 1, 5, 5))


def test_a_filter_does_not_see_what_an_earlier_one_dropped(folder):
    (folder / FIRST.path("base")).unlink()
    seen = []

    def persons(shots):
        seen.extend(shot.id for shot in shots)
        return {}

    result = keep(folder, PICTURES, [readable(), one_person(persons)])
    assert reasons(result)["female_Chef_0"] == "readable: base: no such image"
    assert seen == [each.path(kind) for each in PICTURES[1:] for kind in ("base", "counterfactual")]
    assert not result.kept


def test_one_colour_is_no_picture(folder):
    Image.new("RGB", (32, 24)).save(folder / FOURTH.path("counterfactual"))
    result = keep(folder, PICTURES, [readable()])
    assert reasons(result) == {"male_Chef_1": "readable: counterfactual: one colour only"}


def test_what_a_pipeline_flagged_is_unsafe(folder):
    for picture, unsafe in ((FIRST, True), (SECOND, False), (THIRD, None)):
        image = Image.open(folder / picture.path("base"))
        write_image(folder / picture.path("base"), image, {"unsafe": unsafe})
    result = keep(folder, PICTURES, [safe(), readable()])
    assert reasons(result) == {"female_Chef_0": "safety: base: flagged by the pipeline's safety checker"}


def test_any_function_may_judge_safety(folder):
    bright = np.asarray(Image.open(folder / SECOND.path("counterfactual"))).mean()

    def classify(image):
        return "too bright" if np.asarray(image).mean() == bright else None

    assert reasons(keep(folder, PICTURES, [safe(classify)])) == {"female_Chef_1": "safety: counterfactual: too bright"}


# The dual encoder


@pytest.fixture(scope="module")
def encoder(clip_folder):
    return load_model(str(clip_folder), device="cpu")


@pytest.mark.parametrize("batch_size", [1, 3, 32])
def test_who_is_shown_is_the_nearer_text(folder, encoder, batch_size):
    words = encoder.encode_texts(["a photo of a woman", "a photo of a man"])

    def lead(picture, kind):
        image = encoder.encode_images([Image.open(folder / picture.path(kind))])[0]
        woman, man = words @ image
        return woman - man if picture.shown(kind) == "woman" else man - woman

    leads = {each: min(lead(each, kind) for kind in ("base", "counterfactual")) for each in PICTURES}
    result = keep(folder, PICTURES, [shown_gender(encoder, batch_size=batch_size)])
    assert set(result.kept) == {each for each, least in leads.items() if least > 0}


def test_an_image_passes_as_one_gender_at_most(folder, encoder):
    """The counterfactual is the very same image: it cannot show the other gender."""
    for picture in PICTURES:
        (folder / picture.path("counterfactual")).write_bytes((folder / picture.path("base")).read_bytes())
    result = keep(folder, PICTURES, [shown_gender(encoder)])
    assert not result.kept
    assert set(reasons(result).values()) <= {
        "shown_gender: base: looks like the other gender",
        "shown_gender: counterfactual: looks like the other gender",
    }
    same = {"woman": "a person", "man": "a person"}
    assert not keep(folder, PICTURES, [shown_gender(encoder, texts=same)]).kept


def test_a_margin_asks_for_more(folder, encoder):
    passed = keep(folder, PICTURES, [shown_gender(encoder)]).kept
    strict = keep(folder, PICTURES, [shown_gender(encoder, margin=2.0)])
    assert not strict.kept
    unclear = [each.image_id for each in strict.dropped if each.reason.endswith("gender is not clear")]
    assert {each.name for each in passed} <= set(unclear)


# Safety classifiers


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    """A classifier that says `nsfw` with the given probability, whatever it sees."""
    import torch
    import transformers as t

    def save(probability: float):
        config = t.ViTConfig(
            **TEXT, image_size=SIDE, patch_size=8, id2label={0: "normal", 1: "NSFW"}, label2id={"normal": 0}
        )
        model = t.ViTForImageClassification(config)
        with torch.no_grad():
            model.classifier.weight.zero_()
            model.classifier.bias.copy_(torch.tensor([1 - probability, probability]).log())
        folder = tmp_path_factory.mktemp("models") / "classifier"
        model.save_pretrained(folder)
        t.ViTImageProcessor(size=SQUARE).save_pretrained(folder)
        return folder

    return save


@pytest.mark.parametrize(
    ("probability", "threshold", "unsafe"), [(0.6, 0.5, True), (0.6, 0.7, False), (0.1, 0.5, False)]
)
def test_a_classifier_of_transformers_says_what_is_unsafe(classifier, folder, probability, threshold, unsafe):
    classify = load_classifier(str(classifier(probability)), threshold=threshold, device="cpu")
    result = keep(folder, PICTURES, [safe(classify)])
    assert len(result.dropped) == (4 if unsafe else 0)
    assert set(reasons(result).values()) <= {"safety: base: called unsafe by the classifier"}


def test_a_classifier_without_such_a_label_is_refused(classifier):
    with pytest.raises(UserError, match=r"none of the unsafe labels.*normal, NSFW"):
        load_classifier(str(classifier(0.5)), unsafe=["gore"], device="cpu")


def test_a_pickled_classifier_is_refused(classifier):
    folder = classifier(0.5)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(UserError, match="pickle can run code"):
        load_classifier(str(folder), device="cpu")


# Persons


def test_images_become_examples_with_their_path_as_id(folder):
    (folder / FIRST.path("counterfactual")).write_bytes(b"no image")
    selection = as_selection(folder, PICTURES[:1], ("base", "counterfactual"))
    [example] = selection.examples
    assert (example.image_id, example.gender, example.size) == ("base/Chef/female/female_Chef_0.png", "woman", (24, 32))
    assert persons_of(selection) == {example.image_id: ()}
    [example] = as_selection(folder, [THIRD], ("counterfactual",)).examples
    assert example.gender == "woman"


def test_a_mask_needs_everybody():
    assert person_mask([], (24, 32)) is None
    assert person_mask([person()], (24, 32)) is None


# Marks


def test_a_foreign_or_damaged_file_says_nothing(tmp_path, put):
    assert read_mark(tmp_path / "absent.png") == {}
    assert read_mark(put(tmp_path / "plain.png")) == {}
    (tmp_path / "damaged.png").write_bytes(b"\x89PNG\r\n\x1a\n rest")
    assert read_mark(tmp_path / "damaged.png") == {}
    write_image(tmp_path / "ours.png", Image.new("RGB", (2, 2)), {"prompt": "größer \u201cA\u201d"})
    assert read_mark(tmp_path / "ours.png") == {"prompt": "größer \u201cA\u201d"}
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["damaged.png", "ours.png", "plain.png"]
