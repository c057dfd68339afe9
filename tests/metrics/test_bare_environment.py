"""The published form of the modules where nothing but `evaluate` and NumPy was installed."""

import json
import os
import subprocess
import venv
from importlib.metadata import distribution
from pathlib import Path

import evaluate
import pytest
from packaging.requirements import Requirement

from truegap.scores.portable import portable_files

ITEMS = {
    "base": [0.9, 0.7, 0.85, 0.6] * 2,
    "counterfactual": [0.6, 0.8, 0.65, 0.75, 0.5, 0.8, 0.2, 0.1],
    "occupations": ["pilot", "pilot", "nurse", "nurse"] * 2,
    "pairs": ["pilot|nurse"] * 8,
    "genders": ["man", "woman", "woman", "man"] * 2,
    "orders": [0] * 4 + [1] * 4,
    "images": list("abcdefgh"),
}
CALLS = {
    "ygap": {
        "predictions": [0.9, 0.4, 0.7, 0.2, 0.8, 0.6, 0.3, 0.5],
        "genders": ["man", "woman"] * 4,
        "images": list("abcdabcd"),
        "questions": ["x"] * 4 + ["y"] * 4,
        "method": "bca",
    },
    "retrieval_bias": {
        "predictions": [[4.0, 3, 2, 1, 5], [1.0, 3, 4, 2, 0]],
        "genders": ["man", "woman", "man", "woman", "man"],
        "k": [2],
        "draws": 2,
    },
    "feature_sensitivity": {"references": [0.5], "predictions": [0.25]},
    "resolution_bias": {
        "predictions": [[0.5, 0.3, 0.2], [0.4, 0.5, 0.6]] * 2,
        "references": ["masculine", "feminine"] * 2,
        "images": list("abcd"),
    },
    "counterfactual_bias": ITEMS,
}
BARE = """
import importlib.util, json, sys
for name in ("truegap", "scipy", "torch", "cv2", "pydantic"):
    assert importlib.util.find_spec(name) is None, name + " is installed"
import evaluate
for name, call in json.loads(sys.argv[1]).items():
    print(json.dumps({name: evaluate.load("./" + name).compute(**call)}))
"""


def brought_along(*wanted: str) -> set[str]:
    """Every distribution that `pip install` of these would install, themselves included."""
    asked: set[tuple[str, frozenset[str]]] = set()
    waiting = [Requirement(each) for each in wanted]
    while waiting:
        one = waiting.pop()
        if (one.name, frozenset(one.extras)) in asked:
            continue
        asked.add((one.name, frozenset(one.extras)))
        needs = [Requirement(each) for each in distribution(one.name).requires or ()]
        waiting += [
            each
            for each in needs
            if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in ("", *one.extras))
        ]
    return {name for name, _ in asked}


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """The Python of an environment that holds `evaluate`, NumPy and what these bring along, as they are here."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(subprocess.check_output([python, "-I", "-c", code], text=True).strip())
    for name in brought_along("evaluate", "numpy"):
        installed = distribution(name)
        for top in {file.parts[0] for file in installed.files or ()} - {"..", "__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(installed.locate_file(top))
    return python


@pytest.mark.slow
def test_the_published_modules_load_and_compute_where_only_evaluate_and_numpy_are(bare, root, tmp_path):
    # Given each published folder alone, when it is loaded from disk, then it gives what the house's own gives
    for name in CALLS:
        (tmp_path / name).mkdir()
        for file, content in portable_files(root / "metrics" / name).items():
            (tmp_path / name / file).write_bytes(content)
    keep = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        [bare, "-c", BARE, json.dumps(CALLS)],
        env={**keep, "HF_HOME": str(tmp_path / "home"), "HF_MODULES_CACHE": str(tmp_path / "modules")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    results = {}
    for line in done.stdout.splitlines():
        results |= json.loads(line)
    assert set(results) == set(CALLS)
    for name, call in CALLS.items():
        own = evaluate.load(str(root / "metrics" / name), cache_dir=str(tmp_path / "own")).compute(**call)
        assert results[name] == json.loads(json.dumps(own, allow_nan=False)), name
    assert results["ygap"]["ci_low"] is not None
    assert results["counterfactual_bias"]["ci_low"] is not None
