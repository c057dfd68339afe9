from __future__ import annotations

import pickle
from collections import Counter

import pytest

from truegap import sources
from truegap.errors import UserError
from truegap.regions import masks
from truegap.schema import FilterStep
from truegap.sources.coco_gender import SOURCE, CocoGenderOptions


def reasons(selection):
    return {drop.image_id: drop.reason for drop in selection.dropped}


def counts(selection):
    return {step.name: (step.woman, step.man, step.other) for step in selection.steps}


@pytest.mark.parametrize("split", ["val2014", "train2014", "val2017", "train2017"])
def test_an_image_becomes_an_example_whatever_the_year(coco_of, split):
    # given one photograph in COCO's layout of that year
    coco = coco_of(split).photo(139, "A woman with a bottle.")
    folder = coco.write()
    # when it is read
    [example] = sources.read("coco-gender", folder).examples
    # then everything that the files say is there
    name = "COCO_" + split + "_000000000139.jpg" if split.endswith("2014") else "000000000139.jpg"
    assert (example.image_id, example.gender, example.size) == ("139", "woman", (6, 8))
    assert example.source == f"{split}/{name}"
    assert example.image.read() == (folder / split / name).read_bytes()
    assert example.license == "CC BY 2.0"
    assert example.attribution == "http://farm1.staticflickr.com/139_z.jpg"
    [person], [bottle] = example.persons, example.objects
    assert (person.label, person.box, bottle.label, bottle.box) == ("person", (1, 1, 3, 4), "bottle", (5, 1, 1, 2))
    inside = masks.decode(person.mask, (6, 8))
    assert inside[1:5, 1:4].all()
    assert inside.sum() == 12
    assert masks.area(bottle.mask, (6, 8)) == 2


def test_examples_can_be_sent_to_workers(coco):
    [example] = sources.read("coco-gender", coco.photo(1, "A man.").write()).examples
    assert pickle.loads(pickle.dumps(example)) == example  # noqa: S301


def test_examples_are_in_the_order_of_their_numbers(coco):
    for number in (1000, 9, 33):
        coco.photo(number, "A man.")
    selection = sources.read("coco-gender", coco.write())
    assert [example.image_id for example in selection.examples] == ["9", "33", "1000"]


def test_every_step_is_counted_and_every_image_accounted_for(coco):
    coco.photo(1, "A woman.").photo(2, "A man.").photo(3, "A dog.").photo(4, "A man and a woman.").photo(5)
    coco.photo(6, "A man.", persons=2).photo(7, "A woman.", persons=0).photo(8, "A man.", file=False)
    coco.photo(9, "A man.").crowd(9, 1)
    selection = sources.read("coco-gender", coco.write())
    assert selection.steps == [
        FilterStep("archive", 2, 4, 3),
        FilterStep("image_entry", 2, 4, 3),
        FilterStep("label", 2, 4, 0),
        FilterStep("coco_person", 1, 2, 0),
        FilterStep("image_file", 1, 1, 0),
        FilterStep("person_mask", 1, 1, 0),
    ]
    assert reasons(selection) == {
        "3": "captions name neither a woman nor a man",
        "4": "captions name a woman and a man",
        "5": "no caption",
        "6": "several persons in COCO: 2",
        "7": "no person in COCO",
        "8": "image file is absent: val2017/000000000008.jpg",
        "9": "a crowd of persons in COCO",
    }
    assert selection.repairs == {}


def test_all_persons_are_kept_apart_from_objects_and_the_largest_is_first(coco):
    # given three persons of 1, 12 and 6 pixels, a crowd of 6, and objects in no order
    coco.photo(1, "Two women.", persons=0, objects=0)
    small = coco.annotate(1, 1, [0, 0, 1, 1])
    coco.annotate(1, 44, [6, 0, 1, 1], id=77)
    crowd = coco.crowd(1, 1)
    large = coco.annotate(1, 1, [1, 1, 3, 4])
    middle = coco.annotate(1, 1, [4, 1, 3, 2])
    coco.annotate(1, 44, [6, 3, 1, 1], id=76)
    [example] = sources.read("coco-gender", coco.write(), single_person="uniform_presentation").examples
    assert [person.id for person in example.persons] == [entry["id"] for entry in (large, middle, small, crowd)]
    assert [thing.id for thing in example.objects] == [76, 77]


def test_a_crowd_of_objects_is_one_region_with_a_huge_id(coco):
    coco.photo(1, "A man.", objects=0).crowd(1, 44)
    [example] = sources.read("coco-gender", coco.write()).examples
    [crowd] = example.objects
    assert crowd.id == 900_100_000_001
    assert masks.decode(crowd.mask, (6, 8))[:, 5].all()


TABLE = """id,skin,ratio,bb_skin,bb_gender,split
101,['Light'],[0.2],Light,Female,train
102,"['Light', nan]","[0.04, 0.04]",Light,Female,train
103,['Dark'],[0.1],Dark,Male,val
104,[nan],[0.02],,Unsure,train
105,"['Dark', 'Light']",[0.31],Dark,Both,train
106,?,[0.31],Dark,Male,train
199,['Dark'],[0.31],Dark,Male,train
"""


@pytest.fixture
def annotated(coco_of):
    coco = coco_of("val2014")
    for number in (101, 102, 104, 105, 106, 107):
        coco.photo(number)
    coco.photo(103, persons=2)
    (coco.write() / "labels.csv").write_text(TABLE)
    return coco.top


def test_annotators_labels_and_both_filters_in_order(annotated):
    selection = sources.read("coco-gender", annotated, labels="annotators", labels_file=annotated / "labels.csv")
    assert counts(selection) == {
        "archive": (2, 3, 3),
        "image_entry": (2, 2, 3),
        "label": (2, 2, 0),
        "annotated": (1, 1, 0),
        "coco_person": (1, 0, 0),
        "image_file": (1, 0, 0),
        "person_mask": (1, 0, 0),
    }
    assert reasons(selection) == {
        "199": "no image entry in the instances file",
        "104": "annotators: Unsure",
        "105": "annotators: Both",
        "107": "not in the annotators' table",
        "102": "annotators looked at several persons: 2",
        "106": "annotators' list of persons cannot be read",
        "103": "several persons in COCO: 2",
    }
    # the options hold no path of this machine
    assert selection.options["labels_file"] == "labels.csv"
    assert str(annotated) not in str(selection.options)
    assert selection.options["single_person"] == ["annotated", "coco_person"]


def test_filters_are_applied_in_the_order_given(annotated):
    selection = sources.read(
        "coco-gender", annotated, labels="annotators", labels_file=annotated, single_person="coco_person, annotated"
    )
    assert [step.name for step in selection.steps][3:5] == ["coco_person", "annotated"]
    assert counts(selection)["coco_person"] == (2, 1, 0)


def test_the_uniform_filter_keeps_all_that_have_a_label(annotated):
    selection = sources.read(
        "coco-gender", annotated, labels="annotators", labels_file=annotated, single_person="uniform_presentation"
    )
    assert [example.image_id for example in selection.examples] == ["101", "102", "103", "106"]


def test_the_annotated_filter_says_which_column_it_needs(annotated):
    (annotated / "labels.csv").write_text("id,bb_gender\n101,Female\n")
    with pytest.raises(UserError, match=r"column skin or ratio in labels\.csv"):
        sources.read("coco-gender", annotated, labels="annotators", labels_file=annotated)


def test_words_are_an_option_and_written_down(coco):
    folder = coco.photo(1, "A surfer.").photo(2, "A chef.").write()
    selection = sources.read("coco-gender", folder, woman_words="surfer", man_words="chef,cook")
    assert [example.gender for example in selection.examples] == ["woman", "man"]
    assert selection.options == {
        "labels": "captions",
        "split": ["val2017"],
        "single_person": ["coco_person"],
        "woman_words": ["surfer"],
        "man_words": ["chef", "cook"],
    }


def test_all_splits_are_used_and_an_image_of_two_years_once(coco_of):
    coco_of("val2014").photo(1, "A man.").photo(2, "A man.").write()
    folder = coco_of("val2017").photo(2, "A man.").photo(3, "A woman.").write()
    selection = sources.read("coco-gender", folder)
    assert [example.source for example in selection.examples] == [
        "val2014/COCO_val2014_000000000001.jpg",
        "val2014/COCO_val2014_000000000002.jpg",
        "val2017/000000000003.jpg",
    ]
    assert reasons(selection) == {"2": "in val2017 and in val2014: the latter is used"}
    assert len(selection.examples[1].persons) == 1
    only = sources.read("coco-gender", folder, split="val2017")
    assert [example.image_id for example in only.examples] == ["2", "3"]


def test_photographs_may_lie_under_images(coco):
    folder = coco.photo(1, "A man.").write()
    (folder / "images").mkdir()
    (folder / "val2017").rename(folder / "images/val2017")
    [example] = sources.read("coco-gender", folder).examples
    assert example.image.read()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"single_person": "alone"}, "no filter alone; there are: annotated, coco_person, uniform_presentation"),
        ({"single_person": "annotated"}, 'needs labels="annotators"'),
        ({"labels": "annotators"}, "needs labels_file"),
        ({"labels_file": "x.csv"}, 'needs labels="annotators"'),
        ({"labels": "me"}, "labels: "),
        ({"split": "val2013"}, "no split val2013"),
        ({"split": "val2014"}, "val2014 is absent"),
        ({"man_words": "man,woman"}, "words for woman and for man: woman"),
        ({"man_words": ""}, "man_words"),
        ({"colour": 1}, "'colour' is not known"),
    ],
)
def test_a_wrong_option_is_one_line(coco, options, message):
    folder = coco.photo(1, "A man.").write()
    with pytest.raises(UserError, match=message) as caught:
        sources.read("coco-gender", folder, **options)
    assert "\n" not in str(caught.value)


def test_an_unknown_source_or_folder_is_one_line(tmp_path):
    with pytest.raises(UserError, match="no source 'coco'; there are: coco-gender"):
        sources.read("coco", tmp_path)
    with pytest.raises(UserError, match="is not a folder"):
        sources.read("coco-gender", tmp_path / "absent")
    with pytest.raises(UserError, match="holds no split of COCO"):
        sources.read("coco-gender", tmp_path)


def test_the_benchmark_file_tells_the_same_filters_and_defaults():
    spec = SOURCE.benchmark
    defaults = CocoGenderOptions()
    assert spec.defaults == {
        "labels": defaults.labels,
        "split": list(defaults.split),
        "single_person": list(defaults.filters),
    }
    for name in spec.filters:
        assert CocoGenderOptions(labels="annotators", labels_file="x", single_person=name).filters == (name,)
    assert set(spec.labels) == {"captions", "annotators", "balanced"}


def test_tiny_coco_gives_what_a_count_by_hand_gives(shared):
    # given 100 real photographs; the 30 labelled ones and their persons were counted from captions and boxes by hand
    folder = shared / "data/tiny_coco"
    selection = sources.read("coco-gender", folder)
    assert counts(selection) == {
        "archive": (12, 18, 70),
        "image_entry": (12, 18, 70),
        "label": (12, 18, 0),
        "coco_person": (7, 2, 0),
        "image_file": (7, 2, 0),
        "person_mask": (7, 2, 0),
    }
    women = {"386912", "85329", "522418", "574769", "328757", "368402", "562150"}
    assert {example.image_id for example in selection.examples if example.gender == "woman"} == women
    assert {example.image_id for example in selection.examples if example.gender == "man"} == {"483108", "384553"}
    assert len(selection.dropped) == 91
    assert Counter(drop.reason for drop in selection.dropped)["a crowd of persons in COCO"] == 4
    licenses = Counter(example.license for example in selection.examples)
    assert licenses == {"CC BY-NC-ND 2.0": 6, "CC BY-NC 2.0": 1, "CC BY-NC-SA 2.0": 1, "CC BY 2.0": 1}
    several = sources.read("coco-gender", folder, single_person="uniform_presentation")
    assert counts(several)["person_mask"] == (10, 18, 0)
    # "mother" and "female" in captions of animals: no person is there
    assert {image for image, why in reasons(several).items() if why == "no person annotation"} == {"153299", "41888"}
    first = sources.read("coco-gender", folder, split="val2017")
    assert counts(first)["person_mask"] == (2, 0, 0)


def test_the_invented_fixture_gives_what_a_count_by_hand_gives(shared, tmp_path):
    # given 2014 files with six rows of labels and two images, one of them with a crowd
    (tmp_path / "annotations").mkdir()
    (tmp_path / "val2014").mkdir()
    fixture = shared / "formats/fixtures/coco"
    (tmp_path / "annotations/instances_val2014.json").write_bytes((fixture / "instances_val2014.json").read_bytes())
    for number in (101, 105):
        (tmp_path / f"val2014/COCO_val2014_000000000{number}.jpg").touch()
    chosen = {"labels": "annotators", "labels_file": fixture}
    selection = sources.read("coco-gender", tmp_path, **chosen)
    assert counts(selection) == {
        "archive": (1, 2, 3),
        "image_entry": (1, 1, 0),
        "label": (1, 1, 0),
        "annotated": (1, 1, 0),
        "coco_person": (1, 0, 0),
        "image_file": (1, 0, 0),
        "person_mask": (1, 0, 0),
    }
    both = sources.read("coco-gender", tmp_path, **chosen, single_person="annotated")
    assert [len(example.persons) for example in both.examples] == [1, 2]
    assert both.examples[1].persons[1].id == 900_100_000_105
