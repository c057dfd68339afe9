"""Counterfactual benchmarks in the manner of GenderBias-VL: occupation pairs, images, filters, questions."""

from truegap.counterfactual.bleach import bleach
from truegap.counterfactual.diffusion import Pipeline, Settings, load_pipeline
from truegap.counterfactual.filters import Filter, Filtered, keep, one_person, readable, safe, shown_gender
from truegap.counterfactual.generate import Prompts, edit, generate, plan_pictures
from truegap.counterfactual.items import make_items, write_items
from truegap.counterfactual.names import read_names
from truegap.counterfactual.occupations import Occupation, read_occupations
from truegap.counterfactual.pair_files import read_known, read_pairs, write_pairs
from truegap.counterfactual.pairs import Pair, combined, lowest, scaled, select
from truegap.counterfactual.pictures import Picture, find_pictures

__all__ = [
    "Filter",
    "Filtered",
    "Occupation",
    "Pair",
    "Picture",
    "Pipeline",
    "Prompts",
    "Settings",
    "bleach",
    "combined",
    "edit",
    "find_pictures",
    "generate",
    "keep",
    "load_pipeline",
    "lowest",
    "make_items",
    "one_person",
    "plan_pictures",
    "read_known",
    "read_names",
    "read_occupations",
    "read_pairs",
    "readable",
    "safe",
    "scaled",
    "select",
    "shown_gender",
    "write_items",
    "write_pairs",
]
