"""Which pictures are shown, and to whom in which order: all of it follows from keys, nothing from who came first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from truegap.build.manifest import write_json
from truegap.errors import UserError
from truegap.hub.benchmark import Benchmark
from truegap.perturbations.keys import Key
from truegap.recognition.records import Study
from truegap.schema import CONFIGS, EXTRA_CONFIGS, GENDERS, Feature, Gender, Strength

FILE = "study.json"
IMAGES = 200
"""Per benchmark, as in the paper."""
STRONG = tuple(f"{feature}-{Strength.STRONG}" for feature in Feature)
"""The configs that the paper asked people about."""
_FEATURE = "recognition"


class Item(NamedTuple):
    """One picture."""

    config: str
    image_id: str


def draw(genders: Mapping[str, Gender], images: int, *, benchmark: str, seed: int) -> dict[str, Gender]:
    """A sample with as many women as men, keyed by image id: the same in any order of the images.

    A larger sample holds the smaller one of the same seed.

    Args:
        genders: The label of every image.
        images: How many at most; half of it of each gender, less where one gender has fewer.
        benchmark: The benchmark's name, part of the key.
        seed: Part of the key.

    Raises:
        UserError: There is no image of one gender, or fewer than two are asked for.
    """
    each = min(images // 2, *(sum(label == gender for label in genders.values()) for gender in GENDERS))
    if each < 1:
        raise UserError(f"a balanced sample of {images} images needs at least one woman and one man in {benchmark}")

    def place(image_id: str) -> tuple[float, str]:
        return Key(benchmark, image_id, _FEATURE, seed).uniform("sample"), image_id

    chosen: list[str] = []
    for gender in GENDERS:
        chosen += sorted((image for image, label in genders.items() if label == gender), key=place)[:each]
    return {image_id: genders[image_id] for image_id in sorted(chosen)}


def items(study: Study, annotator: str) -> list[Item]:
    """Every picture of a study in one annotator's order.

    Each image comes once in every config. The configs of an image are as far apart as can be: as many rounds as there
    are configs, and in each round every image once, the configs and genders in equal shares. So whoever stops after
    the first round has seen nobody twice.

    Args:
        study: The pictures.
        annotator: The annotator's name, part of the key.
    """
    keys = {image_id: Key(study.benchmark, image_id, _FEATURE, study.seed) for image_id in study.images}
    turns: dict[str, int] = {}
    for gender in GENDERS:
        alike = [image_id for image_id, label in study.images.items() if label == gender]
        alike.sort(key=lambda each: (keys[each].uniform("config", annotator), each))
        turns.update((image_id, turn) for turn, image_id in enumerate(alike))
    ordered: list[Item] = []
    for number in range(len(study.configs)):
        shown = sorted(keys, key=lambda each: (keys[each].uniform("order", annotator, number), each))
        ordered += [Item(study.configs[(turns[each] + number) % len(study.configs)], each) for each in shown]
    return ordered


def open_study(
    benchmark: Benchmark,
    folder: Path,
    *,
    images: int | None = None,
    seed: int | None = None,
    configs: Sequence[str] | None = None,
) -> Study:
    """The study in a folder of answers; drawn and written there where there is none yet.

    Args:
        benchmark: A built benchmark.
        folder: Where answers are kept; made if absent.
        images: How many; by default those of the study that is there, else 200.
        seed: Of the sample and of the orders; likewise, else 0.
        configs: Which are shown; likewise, else the four strong ones.

    Raises:
        UserError: The folder's study is another one, or none can be drawn.
    """
    if (folder / FILE).exists():
        study = read_study(folder)
        _check_same(study, benchmark, folder)
        images, seed, configs = (
            len(study.images) if images is None else images,
            study.seed if seed is None else seed,
            configs or study.configs,
        )
        if _drawn(benchmark, images, seed, configs) != study:
            raise UserError(f"{folder} holds answers to another sample: leave its options out, or use another folder")
        return study
    study = _drawn(benchmark, IMAGES if images is None else images, seed or 0, configs or STRONG)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / FILE, study)
    return study


def read_study(folder: Path) -> Study:
    """The study of a folder of answers.

    Raises:
        UserError: The folder has none, or it cannot be read.
    """
    try:
        return Study.model_validate_json((folder / FILE).read_bytes())
    except OSError:
        raise UserError(f"{folder} holds no human check: `truegap recognition serve` begins one") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise UserError(f"{folder / FILE}: {where}: {first['msg']}; use another folder") from None


def _drawn(benchmark: Benchmark, images: int, seed: int, configs: Sequence[str]) -> Study:
    manifest = benchmark.manifest
    for config in configs:
        if config not in manifest.configs or config not in (*CONFIGS, *EXTRA_CONFIGS):
            raise UserError(f"{benchmark.spec} has no config {config}: it has {', '.join(manifest.configs)}")
    if len(set(configs)) < len(configs):
        raise UserError(f"configs {', '.join(configs)}: name each once")
    labels = (GENDERS[label] for label in benchmark.column(configs[0], "gender"))
    genders: dict[str, Gender] = dict(zip(benchmark.image_ids(), labels, strict=True))  # type: ignore[arg-type]
    return Study(
        benchmark=manifest.benchmark,
        version=manifest.version,
        content=manifest.content,
        seed=seed,
        configs=list(configs),
        images=draw(genders, images, benchmark=manifest.benchmark, seed=seed),
    )


def _check_same(study: Study, benchmark: Benchmark, folder: Path) -> None:
    there = benchmark.manifest
    if (study.benchmark, study.version, study.content) != (there.benchmark, there.version, there.content):
        raise UserError(
            f"{folder} holds answers about another build ({study.benchmark} {study.version}): use another folder"
        )
