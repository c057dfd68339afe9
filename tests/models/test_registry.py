"""From specs to models."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from truegap.errors import UserError
from truegap.models import DualEncoder, load_model, plugins

PLUGIN = '''
import hashlib
import numpy as np
from truegap.models import DualEncoder
from truegap.results.records import ModelRecord

class MeanColour(DualEncoder):
    """Reads the mean colour; a text is the colour that its hash gives."""

    def __init__(self, name):
        self.name = name

    def record(self):
        return ModelRecord(spec=f"colour:{self.name}", name=self.name, adapter="colour", kind="dual-encoder",
                           content=self.name, parameters=0)

    def preprocess(self, image):
        return np.asarray(image, np.float32).mean(axis=(0, 1)) + 1

    def image_features(self, inputs):
        return np.stack(inputs)

    def text_features(self, texts):
        return np.stack([np.frombuffer(hashlib.sha256(t.encode()).digest()[:3], np.uint8) + 1.0 for t in texts])

def load(name, *, revision, device, dtype, unsafe_weights):
    if name == "broken":
        raise KeyError("weights")
    return MeanColour(name) if name != "wrong" else object()
'''


@pytest.fixture
def plugin(tmp_path, monkeypatch) -> None:
    """An installed package with an entry point, as pip lays it out."""
    (tmp_path / "colour_models.py").write_text(PLUGIN)
    info = tmp_path / "colour_models-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: colour-models\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[truegap.models]\ncolour = colour_models:load\n")
    monkeypatch.syspath_prepend(str(tmp_path))


def test_a_plugin_is_a_model(plugin, pictures):
    encoder = load_model("colour:mean")

    assert "colour" in plugins()
    assert isinstance(encoder, DualEncoder)
    features = encoder.encode_images(pictures, batch_size=2)
    mean = np.stack([np.asarray(p).mean(axis=(0, 1)) + 1 for p in pictures])
    np.testing.assert_allclose(features, mean / np.linalg.norm(mean, axis=1, keepdims=True), atol=1e-6)
    assert encoder.encode_texts(["a", "b"]).dtype == np.float32


def test_a_plugin_that_fails_is_named(plugin):
    with pytest.raises(UserError, match=r"plug-in colour \(colour_models:load\) failed: 'weights'"):
        load_model("colour:broken")
    with pytest.raises(UserError, match="gave object, not a DualEncoder"):
        load_model("colour:wrong")


@pytest.mark.parametrize("spec", ["clip", "/no/such/folder", "nothing:x", "", "a/b/c"])
def test_an_unknown_spec_lists_the_accepted_forms(spec, plugin):
    with pytest.raises(UserError, match="accepted: open_clip:ARCHITECTURE/TAG") as error:
        load_model(spec)
    assert "colour:… (plug-in)" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("spec", "options", "message"),
    [
        ("org/absent", {}, "org/absent: not in the local cache.*hf download org/absent"),
        ("org/absent@v1", {}, "org/absent@v1: not in the local cache"),
        ("org/absent@v1", {"revision": "v2"}, "revision v2 is asked for too"),
        ("transformers:a/b/c", {}, "not a Hub id"),
        ("org/absent", {"device": "abacus"}, "device abacus: not usable here"),
        ("org/absent", {"dtype": "int3"}, "dtype int3: unknown; one of float32"),
    ],
)
def test_mistakes_give_one_line(spec, options, message):
    with pytest.raises(UserError, match=message) as error:
        load_model(spec, **options)
    assert "\n" not in str(error.value)


def test_a_folder_has_no_revision(tiny):
    with pytest.raises(UserError, match="a folder has no revision v1"):
        load_model(str(tiny("clip")), revision="v1")


@pytest.mark.parametrize("spec", ["org/tiny", "org/tiny@v1.0", "transformers:org/tiny"])
def test_a_cached_hub_model_loads_offline_with_its_commit(tiny, tmp_path, monkeypatch, spec):
    # Given the Hub cache's own layout, as a download leaves it
    import huggingface_hub.constants

    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "models--org--tiny"
    shutil.copytree(tiny("clip"), repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    for name in ("main", "v1.0"):
        (repository / "refs" / name).write_text(commit)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))

    record = load_model(spec, device="cpu").record()

    assert (record.spec, record.name, record.revision) == (spec, "tiny", commit)
    assert record.content == load_model(str(tiny("clip")), device="cpu").record().content


def test_importing_models_leaves_torch_alone():
    code = "import sys, truegap.models; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=Path(__file__).parent).returncode == 0
