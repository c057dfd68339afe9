"""What each config does to an image: the usual fifteen, and the controls on request."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from truegap.build.rows import Regions
from truegap.perturbations import Options, draw, draw_placebo
from truegap.perturbations.keys import Key
from truegap.schema import CONTROLS, EXTRA_CONFIGS, GENDERS, PLACEBO, SWAP, Example, Perturbation

CANDIDATES = 3
"""Images that a background may be taken from, the next one where the first cannot be read."""

Donors = Mapping[str, Sequence[Example]]
"""By config and image id (`donor_key`), the images whose background may be taken, in order."""


def draw_config(
    config: str,
    example: Example,
    regions: Regions,
    *,
    benchmark: str,
    seed: int,
    options: Options,
    donor: str | None = None,
) -> Perturbation:
    """What a config does to an example; `donor` is the image whose background is taken."""
    if config in CONTROLS or config in EXTRA_CONFIGS:
        whole = Perturbation("none" if config == "original" else config, seed=seed, benchmark=benchmark)
        if config in CONTROLS:
            return whole
        feature, _, part = config.rpartition("-")
        if feature == SWAP:
            return Perturbation(SWAP, part, seed, benchmark=benchmark, donor=donor)
        if feature != PLACEBO:
            return Perturbation(config, seed=seed, benchmark=benchmark, options=options.changed())
        return draw_placebo(
            part,
            regions.person_mask,
            benchmark=benchmark,
            image_id=example.image_id,
            seed=seed,
            objects=example.objects,
            options=options,
        )
    feature, strength = config.split("-")
    return draw(
        feature,
        strength,
        benchmark=benchmark,
        image_id=example.image_id,
        seed=seed,
        objects=example.objects,
        options=options,
    )


def effect(drawn: Perturbation) -> tuple[object, ...]:
    """What decides the pixels of a perturbation: equal effects give equal images."""
    if drawn.feature == "object":
        return ("object", frozenset(drawn.object_ids)) if drawn.object_ids else ("control", None)
    if drawn.feature == PLACEBO:
        return (PLACEBO, frozenset(drawn.boxes)) if drawn.boxes else ("control", None)
    if drawn.feature in ("color", "lighting"):
        return (drawn.feature, drawn.shift) if drawn.shift else ("control-hsv", None)
    return (drawn.feature, drawn.radius or drawn.donor)


def donor_key(config: str, image_id: str) -> str:
    """The key of `Donors`."""
    return f"{config} {image_id}"


def choose_donors(
    examples: Sequence[Example], configs: Sequence[str], *, benchmark: str, seed: int, among: Sequence[Example]
) -> Donors:
    """For every background swap, keyed random images of the same or the other gender, never the image itself.

    A background stays in its split: a person of the test set is not seen in training by way of the background.

    Args:
        examples: The images that get another background.
        configs: Those of a build; others than swaps are passed over.
        benchmark: Part of the random key.
        seed: Part of the random key.
        among: All images of the benchmark; their order does not matter.
    """
    arms = [config for config in configs if config.startswith(SWAP)]
    if not arms:
        return {}
    pools: dict[tuple[str, str], list[Example]] = defaultdict(list)
    for each in sorted(among, key=lambda each: each.image_id):
        pools[each.split, each.gender].append(each)
    donors: dict[str, Sequence[Example]] = {}
    for config in arms:
        for example in examples:
            same = config.endswith("same")
            pool = pools[example.split, next(gender for gender in GENDERS if (gender == example.gender) is same)]
            # One more than needed, since the image itself may be among them.
            start = Key(benchmark, example.image_id, SWAP, seed).uniform("donor") * len(pool)
            ring = [pool[(int(start) + step) % len(pool)] for step in range(min(CANDIDATES + 1, len(pool)))]
            others = [each for each in ring if each.image_id != example.image_id]
            donors[donor_key(config, example.image_id)] = others[:CANDIDATES]
    return donors
