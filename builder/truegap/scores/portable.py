"""The files of a published `evaluate` module: its folder, and the NumPy core that it needs beside it.

`evaluate` fetches the files that a module imports as `from .name import ...`, one level deep and from the same folder.
So the core's modules are laid flat beside the module under the prefix `truegap_`, and the module names each of them.
"""

from __future__ import annotations

import re
from pathlib import Path

from ._check import ScoreError

CORE = Path(__file__).parent
_FROM_PACKAGE = re.compile(r"^from truegap\.scores\.(\w+) import ", re.MULTILINE)
_FROM_SIBLING = re.compile(r"^from \.(\w+) import ", re.MULTILINE)


def portable_files(folder: Path) -> dict[str, bytes]:
    """Contents of the published form of a metric's folder, by file name.

    Args:
        folder: `metrics/<name>`, holding `<name>.py`.

    Returns:
        Every file of the folder, `<name>.py` importing from beside itself, and the core's files it needs.

    Raises:
        ScoreError: The folder has no module of its own name.

    >>> portable_files(Path("nowhere"))
    Traceback (most recent call last):
    truegap.scores._check.ScoreError: nowhere: no nowhere.py in it; give a folder of metrics/
    """
    script = folder / f"{folder.name}.py"
    if not script.is_file():
        raise ScoreError(f"{folder}: no {script.name} in it; give a folder of metrics/")
    files = {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}
    text = script.read_text(encoding="utf-8")
    direct = set(_FROM_PACKAGE.findall(text))
    core: dict[str, str] = {}
    waiting = sorted(direct)
    while waiting:
        name = waiting.pop()
        if name not in core:
            core[name] = (CORE / f"{name}.py").read_text(encoding="utf-8")
            waiting += _FROM_SIBLING.findall(core[name])
    # Imports that only make evaluate fetch what the core's own files import.
    indirect = [f"from .truegap_{name} import __name__ as _{name}\n" for name in sorted(set(core) - direct)]
    text = _FROM_PACKAGE.sub("from .truegap_\\1 import ", text)
    first = text.index("from .truegap_")
    files[script.name] = (text[:first] + "".join(indirect) + text[first:]).encode()
    for name, source in core.items():
        files[f"truegap_{name}.py"] = _FROM_SIBLING.sub("from .truegap_\\1 import ", source).encode()
    return files
