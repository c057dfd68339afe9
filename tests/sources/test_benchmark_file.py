from __future__ import annotations

import shutil

import pytest

from truegap import resources, sources
from truegap.errors import UserError
from truegap.resources import house
from truegap.sources import load_benchmark, load_card


@pytest.fixture
def own_house(tmp_path, monkeypatch, root):
    """An installed package that carries a copy of the house."""
    shutil.copytree(root / "datasets", tmp_path / "truegap/_house/datasets")
    monkeypatch.setattr(resources, "_PACKAGE", tmp_path / "truegap")
    return tmp_path / "truegap/_house"


def test_every_folder_of_datasets_has_a_valid_file_and_card(root):
    names = sorted(path.name for path in (root / "datasets").iterdir() if path.is_dir())
    assert {"coco-gender", "synthetic"} <= set(names)
    for name in names:
        spec = load_benchmark(name)
        assert spec.name == name
        assert load_card(name).startswith("## ")
        assert spec.images_license == "per image" or spec.images_license in spec.licenses


def test_every_source_has_its_file():
    for name in sources.NAMES:
        assert sources.source(name).benchmark.name == sources.source(name).name == name


def test_coco_photographs_are_published_as_their_licence_allows():
    spec = load_benchmark("coco-gender")
    assert spec.publishable("CC BY-NC-SA 2.0", perturbed=True)
    assert spec.publishable("CC BY-ND 2.0", perturbed=False)
    assert not spec.publishable("CC BY-ND 2.0", perturbed=True)
    assert not spec.publishable("CC BY-NC-ND 2.0", perturbed=True)
    assert not spec.publishable("unknown", perturbed=False)
    assert not spec.labels["annotators"].redistribution
    assert load_benchmark("synthetic").publishable("CC0 1.0", perturbed=True)


def test_the_distance_to_the_published_size_is_one_line():
    published = load_benchmark("coco-gender").published
    assert published.total == 4724
    assert published.distance(1600, 3000) == (
        "1,600 women (+32), 3,000 men (-156), 4,600 in all (-124), against 1,568 + 3,156 = 4,724 in "
        "Hirota et al. 2025, whose filters are not stated exactly"
    )
    assert load_benchmark("synthetic").published is None


def test_the_published_size_is_that_of_the_reference(shared):
    import csv

    with (shared / "reference/benchmark_sizes.csv").open() as file:
        rows = {row["benchmark"]: row for row in csv.DictReader(file)}
    published = load_benchmark("coco-gender").published
    row = rows["COCO-gender"]
    assert (published.woman, published.man, published.total) == (int(row["woman"]), int(row["man"]), int(row["total"]))


def test_an_installed_package_reads_what_it_carries(own_house):
    assert house("datasets", "synthetic", "benchmark.yaml").is_relative_to(own_house)
    assert load_benchmark("synthetic").name == "synthetic"


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("language:", "langauge:", "langauge"),
        ("version: 1.0.0", "version: 1.0", "version"),
        ("version: 1.0.0\n", "", "version"),
        ("redistribution: true", 'redistribution: "yes"', "redistribution"),
        ("filters: {}", "filters: {", "not valid YAML"),
        ("https://creativecommons.org", "javascript:alert", "licenses.CC0 1.0.url"),
    ],
)
def test_a_wrong_file_is_one_line(own_house, before, after, message):
    path = own_house / "datasets/synthetic/benchmark.yaml"
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))
    with pytest.raises(UserError, match=message) as caught:
        load_benchmark("synthetic")
    assert "benchmark.yaml" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["absent", "../..", "/etc", "../../../../../../etc"])
def test_no_path_leads_out_of_the_house(name):
    with pytest.raises(UserError, match="there is no"):
        load_benchmark(name)
    with pytest.raises(UserError, match="there is no"):
        house("..", "..")
