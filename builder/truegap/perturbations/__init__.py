"""The four perturbations of Hirota et al. (2025): color, lighting, object, background, in three strengths."""

from truegap.perturbations.options import Options
from truegap.perturbations.perturb import draw, draw_placebo, perturb, redo, redo_all

__all__ = ["Options", "draw", "draw_placebo", "perturb", "redo", "redo_all"]
