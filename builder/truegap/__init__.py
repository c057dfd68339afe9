"""truegap: is the measured gender gap of a vision-language model true, or is it made by the background?

Heavy parts load when they are first used, so that `import truegap` is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from truegap import scores
    from truegap.build.live import perturbed
    from truegap.errors import UserError
    from truegap.hub.load import load
    from truegap.perturbations import perturb, redo

__version__ = "0.1.0"
__all__ = ["UserError", "__version__", "load", "perturb", "perturbed", "redo", "scores"]

_HOME = {
    "UserError": "truegap.errors",
    "load": "truegap.hub.load",
    "perturb": "truegap.perturbations",
    "perturbed": "truegap.build.live",
    "redo": "truegap.perturbations",
}


def __getattr__(name: str) -> Any:
    if name == "scores":
        return importlib.import_module("truegap.scores")
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'truegap' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
