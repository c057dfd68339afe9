"""What is in one picture: the planted truth, before anything is drawn.

Each of five features (`object`, `background`, `color`, `lighting`, and the figure's own `presentation`) has two values,
one typical of women and one of men, arbitrarily. A picture has the value typical of its own label with probability
(1 + rho) / 2, independently for each feature given the label: rho 0 is independence, rho 1 gives the label away. The
presentation is what the label says, so its rho is 1 unless one is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from truegap.errors import UserError
from truegap.schema import Feature, Gender
from truegap.synthetic.draws import Draws
from truegap.synthetic.sprites import BODIES, HAIRS
from truegap.synthetic.textures import TILTS, ZOOMS

PATTERN = {"woman": "zigzag", "man": "dots"}
"""What the figure wears: the only thing about it that depends on the label."""
PRESENTATION = "presentation"

BACKGROUND = {"woman": "masonry", "man": "foliage"}
TELLING = {"woman": ("boat", "clock"), "man": ("kite", "bell")}
"""One object of each picture is telling, so a blackout of a share s of the objects hides it with probability s."""
NEUTRAL = ("cup", "ball", "book", "plant")

HUE = {"woman": 150.0, "man": 126.0}
"""Colour cast on the 0-255 scale, plus or minus `HUE_SPREAD`."""
HUE_SPREAD = 4.0
VALUE = {"woman": 172.0, "man": 148.0}
"""Brightness of the background on the 0-255 scale, plus or minus `VALUE_SPREAD`."""
VALUE_SPREAD = 4.0

SLOTS = 8
"""Places for objects: four rows on each side of the figure."""


@dataclass(frozen=True, slots=True)
class Figure:
    """The figure; `x` and `height` in shares of the picture's side, colours on 0-255 scales."""

    x: float
    height: float
    body: int
    hair: int
    skin_value: float
    hair_value: float
    hair_hue: float
    garment_hue: float
    phase: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Thing:
    """An object: its kind, its place (`slot`, and where in it), its side as a share of the picture, its hue."""

    label: str
    slot: int
    dx: float
    dy: float
    side: float
    hue: float
    flipped: bool


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything that a picture shows.

    Attributes:
        gender: The label; the figure wears it, unless `presentation` is less than fully correlated with it.
        typical: For each feature, the gender of which the picture's value is typical.
        figure: The figure.
        things: The objects, the telling one anywhere among them.
        hue: Colour cast of the whole picture, 0-255.
        value: Brightness of the background, 0-255; figure and objects follow it.
        zoom: Scale of the background's texture.
        tilt: Degrees by which the texture is turned.
        contrast: Standard deviation of the texture in levels.
        fade: How much more contrast there is at the right edge than in the middle, as a share.
        offset: Which part of the texture is seen, as shares of what there is.
    """

    gender: Gender
    typical: Mapping[str, Gender]
    figure: Figure
    things: tuple[Thing, ...]
    hue: float
    value: float
    zoom: float
    tilt: float
    contrast: float
    fade: float
    offset: tuple[float, float]

    @property
    def telling(self) -> Thing:
        """The one object whose kind is typical of a gender."""
        return next(thing for thing in self.things if thing.label not in NEUTRAL)

    @property
    def background(self) -> str:
        """The family of the background's texture."""
        return BACKGROUND[self.typical["background"]]

    @property
    def pattern(self) -> str:
        """What the figure wears."""
        return PATTERN[self.typical[PRESENTATION]]


def strengths(rho: float | Mapping[str, float]) -> dict[str, float]:
    """The correlation of each feature with the label.

    Args:
        rho: One strength for `object`, `background`, `color` and `lighting`, or one for each feature that is named
            (the others 0, `presentation` 1); 0 to 1.

    Returns:
        Strength by feature; `presentation` is among them only where it is below 1.

    Raises:
        UserError: A strength is outside [0, 1] or a feature is unknown.
    """
    features = [str(f) for f in Feature]
    given = dict(rho) if isinstance(rho, Mapping) else dict.fromkeys(features, rho)
    if unknown := sorted(set(given) - {*features, PRESENTATION}):
        known = ", ".join([*features, PRESENTATION])
        raise UserError(f"rho names an unknown feature {unknown[0]!r}: use one of {known}")
    for name, strength in given.items():
        if not 0 <= strength <= 1:
            raise UserError(f"rho of {name} is {strength}: give a number from 0 (independent) to 1 (label given away)")
    worn = float(given.get(PRESENTATION, 1.0))
    return {f: float(given.get(f, 0.0)) for f in features} | ({} if worn == 1 else {PRESENTATION: worn})


def label(seed: int, index: int) -> Gender:
    """The label of an image: in each pair of images (2i, 2i + 1) one woman and one man, in random order."""
    first = Draws(seed, index // 2).integer("label", 2)
    return "woman" if (first + index) % 2 == 0 else "man"


def _other(gender: Gender) -> Gender:
    return "man" if gender == "woman" else "woman"


def _figure(draw: Draws) -> Figure:
    return Figure(
        x=draw.uniform("figure/x", 0.43, 0.57),
        height=draw.uniform("figure/height", 0.68, 0.82),
        body=draw.integer("figure/body", BODIES),
        hair=draw.integer("figure/hair", HAIRS),
        skin_value=draw.uniform("figure/skin", 115, 215),
        hair_value=draw.uniform("figure/hair-value", 45, 150),
        hair_hue=draw.uniform("figure/hair-hue", 100, 160),
        garment_hue=draw.choice("figure/garment", (88.0, 118.0, 140.0, 0.0, 215.0)),
        phase=(draw.uniform("figure/phase-y"), draw.uniform("figure/phase-x")),
    )


def _things(draw: Draws, telling: Gender) -> tuple[Thing, ...]:
    count = 3 + draw.integer("objects/count", 4)
    special = draw.integer("objects/telling", count)
    slots = draw.sample("objects/slots", range(SLOTS), count)
    kinds = [draw.choice(f"object{i}/kind", TELLING[telling] if i == special else NEUTRAL) for i in range(count)]
    return tuple(
        Thing(
            label=kind,
            slot=slots[i],
            dx=draw.uniform(f"object{i}/dx"),
            dy=draw.uniform(f"object{i}/dy"),
            side=draw.uniform(f"object{i}/side", 0.17, 0.215),
            hue=draw.choice(f"object{i}/hue", (0.0, 75.0, 105.0, 128.0, 150.0)),
            flipped=draw.integer(f"object{i}/flipped", 2) == 1,
        )
        for i, kind in enumerate(kinds)
    )


def draw_scene(seed: int, index: int, rho: Mapping[str, float], gender: Gender | None = None) -> Scene:
    """Decide what image `index` shows.

    Args:
        seed: The benchmark's seed.
        index: The image's number.
        rho: Strength per feature, see `strengths`; without `presentation` the figure wears the label. The draws do not
            depend on it: at a higher strength, more of the same pictures turn typical.
        gender: The label, if it is not to be that of `label`.
    """
    draw = Draws(seed, index)
    gender = gender or label(seed, index)
    typical = {PRESENTATION: gender} | {
        name: gender if draw.uniform(f"typical/{name}") < (1 + strength) / 2 else _other(gender)
        for name, strength in rho.items()
    }
    return Scene(
        gender=gender,
        typical=typical,
        figure=_figure(draw),
        things=_things(draw, typical["object"]),
        hue=HUE[typical["color"]] + draw.uniform("hue", -HUE_SPREAD, HUE_SPREAD),
        value=VALUE[typical["lighting"]] + draw.uniform("value", -VALUE_SPREAD, VALUE_SPREAD),
        zoom=draw.choice("background/zoom", ZOOMS),
        tilt=draw.choice("background/tilt", TILTS),
        contrast=draw.uniform("background/contrast", 13, 23),
        fade=draw.uniform("background/fade", -0.45, 0.45),
        offset=(draw.uniform("background/y"), draw.uniform("background/x")),
    )
