"""Dual encoders of open_clip: the library's own calls are the reference."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import open_clip
import pytest
import torch

from truegap.errors import UserError
from truegap.models import BATCH_TOLERANCE, load_model


@pytest.fixture
def folder(open_clip_folder, tmp_path) -> Path:
    """A copy of the tiny model that a test may damage."""
    return Path(shutil.copytree(open_clip_folder, tmp_path / "copy"))


@pytest.fixture(params=["checkpoint", "local-dir", "folder"])
def spec(request, architecture, checkpoint, open_clip_folder) -> str:
    """The three ways to name the same local model."""
    return {
        "checkpoint": f"open_clip:{architecture}/{checkpoint}",
        "local-dir": f"local-dir:{open_clip_folder}",
        "folder": str(open_clip_folder),
    }[request.param]


def test_features_are_those_of_plain_library_calls(spec, checkpoint, architecture, pictures, prompts):
    # Given the model, transform and tokenizer as open_clip's manual makes them
    model, _, transform = open_clip.create_model_and_transforms(architecture, pretrained=str(checkpoint))
    model.eval()
    with torch.no_grad():
        images = model.encode_image(torch.stack([transform(p) for p in pictures]), normalize=True)
        texts = model.encode_text(open_clip.get_tokenizer(architecture)(prompts), normalize=True)

    encoder = load_model(spec, device="cpu")

    for size in (1, 7):
        found = encoder.encode_images(pictures, batch_size=size)
        np.testing.assert_allclose(found, images.numpy(), atol=BATCH_TOLERANCE)
        np.testing.assert_allclose(encoder.encode_texts(prompts, batch_size=size), texts.numpy(), atol=BATCH_TOLERANCE)
    assert images.std(dim=0).max() > 0.01
    assert texts.std(dim=0).max() > 0.01
    assert encoder.record().adapter == "open_clip"
    assert encoder.record().spec == spec
    assert encoder.record().parameters == sum(p.numel() for p in model.parameters())


def test_lower_precision_stays_near(checkpoint, architecture, pictures, prompts):
    spec = f"open_clip:{architecture}/{checkpoint}"
    exact, rough = (load_model(spec, device="cpu", dtype=dtype) for dtype in ("float32", "bfloat16"))

    assert 0 < np.abs(exact.encode_images(pictures) - rough.encode_images(pictures)).max() < 3e-2
    assert 0 < np.abs(exact.encode_texts(prompts) - rough.encode_texts(prompts)).max() < 3e-2


def test_content_follows_preprocessing(open_clip_folder, folder):
    config = json.loads((folder / "open_clip_config.json").read_text())
    config["preprocess_cfg"]["mean"] = [0.5, 0.5, 0.5]
    (folder / "open_clip_config.json").write_text(json.dumps(config))

    changed, same, again = (load_model(str(p), device="cpu").record() for p in (folder, *[open_clip_folder] * 2))

    assert changed.content != same.content
    assert again == same


def test_pickled_weights_are_refused(architecture, open_clip_model, folder, tmp_path):
    # Given a checkpoint and a folder with pickled weights
    torch.save(open_clip_model.state_dict(), tmp_path / "weights.pt")
    (folder / "open_clip_model.safetensors").rename(folder / "other.safetensors")
    torch.save(open_clip_model.state_dict(), folder / "open_clip_pytorch_model.bin")
    spec = f"open_clip:{architecture}/{tmp_path}/weights.pt"

    # Then the checkpoint needs the user's word, and in the folder the safetensors are taken, whatever their name
    with pytest.raises(UserError, match=r"weights\.pt is pickled"):
        load_model(spec, device="cpu")
    assert load_model(spec, device="cpu", unsafe_weights=True).record().content
    load_model(str(folder), device="cpu")
    (folder / "other.safetensors").unlink()
    with pytest.raises(UserError, match="is pickled"):
        load_model(str(folder), device="cpu")


@pytest.mark.parametrize("kwargs", [{"tokenizer_kwargs": {"trust_remote_code": True}, "hf_tokenizer_name": "x"}, {}])
def test_a_config_cannot_switch_remote_code_on(folder, kwargs, tmp_path):
    # Given a folder that asks open_clip to trust its tokenizer's, or its text model's, Python file
    mark = tmp_path / "ran"
    (folder / "evil.py").write_text(f"open({str(mark)!r}, 'w')\nclass Evil: pass\n")
    references = {"AutoConfig": "evil.Evil", "AutoTokenizer": ["evil.Evil", "evil.Evil"]}
    (folder / "tokenizer_config.json").write_text(json.dumps({"auto_map": references}))
    (folder / "text").mkdir()
    (folder / "text" / "config.json").write_text(json.dumps({"auto_map": references, "model_type": "evil"}))
    config = json.loads((folder / "open_clip_config.json").read_text())
    config["model_cfg"]["text_cfg"] |= kwargs or {"hf_model_name": str(folder / "text")}
    (folder / "open_clip_config.json").write_text(json.dumps(config))

    with pytest.raises(UserError, match="never run"):
        load_model(f"local-dir:{folder}", device="cpu")

    assert not mark.exists()


@pytest.mark.parametrize(
    ("tail", "message"),
    [
        ("nothing", "'nothing' is neither a pretrained tag"),
        ("", "neither a pretrained tag"),
        ("/no/such.safetensors", "neither a pretrained tag"),
    ],
)
def test_an_unknown_tag_or_file_is_named(architecture, tail, message):
    with pytest.raises(UserError, match=message):
        load_model(f"open_clip:{architecture}/{tail}", device="cpu")


def test_other_mistakes_give_one_line(architecture, folder, tmp_path):
    # Given weights of another architecture, no architecture, a damaged file, a folder of nothing, a tag offline
    from safetensors.torch import save_file

    save_file({"a": torch.zeros(1)}, tmp_path / "other.safetensors")
    (folder / "open_clip_model.safetensors").write_bytes(b"junk")
    (tmp_path / "empty").mkdir()
    mistakes = {
        f"open_clip:{architecture}/{tmp_path}/other.safetensors": "they do not belong together",
        "open_clip:ViT-Z-99/laion2b": "no architecture 'ViT-Z-99'",
        str(folder): "its weights are 4 bytes",
        f"local-dir:{tmp_path / 'empty'}": "no open_clip_config.json",
        f"local-dir:{tmp_path / 'absent'}": "no such folder",
        "open_clip:ViT-B-32/laion2b_s34b_b79k": "hf download laion/CLIP-ViT-B-32-laion2B-s34B-b79K",
        "hf-hub:laion/nothing": "not in the local cache",
    }

    for spec, message in mistakes.items():
        with pytest.raises(UserError, match=message) as error:
            load_model(spec, device="cpu")
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("tower", "lie", "message"),
    [
        ("vision_cfg", {"layers": 10**6}, r"asks for 1e\+06 layers \(layers\)"),
        ("vision_cfg", {"image_size": 60000}, r"images of 6e\+04 pixels a side \(image_size\)"),
        ("text_cfg", {"vocab_size": 10**8}, "they do not belong together"),
        ("text_cfg", {"context_length": 10**6}, "they do not belong together"),
        ("text_cfg", {"width": 18}, "cannot be loaded"),
    ],
)
def test_a_folder_that_lies_gives_one_line_and_takes_no_memory(folder, tower, lie, message):
    config = json.loads((folder / "open_clip_config.json").read_text())
    config["model_cfg"][tower] |= lie
    (folder / "open_clip_config.json").write_text(json.dumps(config))

    with pytest.raises(UserError, match=message) as error:
        load_model(str(folder), device="cpu")

    assert "\n" not in str(error.value)
