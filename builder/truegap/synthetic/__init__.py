"""Planted truth: benchmarks whose gap and its causes are known, and models whose behaviour is known."""

from __future__ import annotations

from truegap.synthetic._text import leaning
from truegap.synthetic.drawing import region_masks, render
from truegap.synthetic.models import READERS, fit_demo_models
from truegap.synthetic.scene import Scene, draw_scene, strengths
from truegap.synthetic.selection import SyntheticImage, example, selection

__all__ = [
    "READERS",
    "Scene",
    "SyntheticImage",
    "draw_scene",
    "example",
    "fit_demo_models",
    "leaning",
    "region_masks",
    "render",
    "selection",
    "strengths",
]
