"""Dual encoders of transformers: the library's own calls are the reference."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from truegap.errors import UserError
from truegap.models import BATCH_TOLERANCE, load_model

FAMILIES = ["clip", "siglip", "siglip2", "align", "altclip", "flava", "groupvit", "metaclip2"]


@pytest.fixture
def folder(tiny, tmp_path) -> Path:
    """A copy of the tiny CLIP that a test may damage."""
    return Path(shutil.copytree(tiny("clip"), tmp_path / "copy"))


def edit(path: Path, **changes) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize("family", FAMILIES)
def test_features_are_those_of_plain_library_calls(tiny, family, pictures, prompts):
    # Given the library's own documented calls, one input at a time, padded as the models' authors say
    model = transformers.AutoModel.from_pretrained(tiny(family)).eval()
    processor = transformers.AutoProcessor.from_pretrained(tiny(family))
    with torch.no_grad():
        images = [model.get_image_features(**processor(images=[p], return_tensors="pt")) for p in pictures]
        padding = {"padding": "max_length"} | ({"max_length": 77} if family in {"flava", "align"} else {})
        texts = [model.get_text_features(**processor(text=[p], return_tensors="pt", **padding)) for p in prompts]
    select = (lambda o: o.pooler_output[:, 0]) if family == "flava" else (lambda o: o.pooler_output)
    expected = [torch.cat([select(o) for o in outputs]).numpy() for outputs in (images, texts)]

    # When the same comes through the adapter
    encoder = load_model(str(tiny(family)), device="cpu")
    found = encoder.encode_images(pictures), encoder.encode_texts(prompts)

    # Then they agree, but for the length
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(mine, axis=1), 1, atol=1e-6)
        np.testing.assert_allclose(mine, theirs / np.linalg.norm(theirs, axis=1, keepdims=True), atol=BATCH_TOLERANCE)
        assert mine.std(axis=0).max() > 20 * BATCH_TOLERANCE  # or the agreement would mean nothing


def own_cosines(folder: Path, pictures, prompts) -> np.ndarray:
    """What the model's own forward compares: its logits, without the scale and bias that training adds."""
    processor = transformers.AutoProcessor.from_pretrained(folder)
    images = processor(images=pictures, return_tensors="pt")
    limit = {} if "siglip" in folder.name else {"max_length": 16}  # these were trained without attention mask
    texts = [processor(text=[p], padding="max_length", return_tensors="pt", **limit) for p in prompts]
    model = transformers.AutoModel.from_pretrained(folder).eval()
    with torch.no_grad():
        if model.config.model_type == "flava":
            model.config.init_codebook = False  # of training alone
            whole = transformers.FlavaForPreTraining(model.config).eval()
            whole.flava.load_state_dict(model.state_dict())
            scale = whole.flava.logit_scale.exp()
            texts = [{name: value.repeat(len(pictures), 1) for name, value in each.items()} for each in texts]
            found = [whole(**images, **each, input_ids_masked=each["input_ids"], return_loss=False) for each in texts]
            return np.stack([(o.contrastive_logits_per_image[:, 0] / scale).numpy() for o in found], 1)
        scale = 1 / model.temperature if hasattr(model, "temperature") else model.logit_scale.exp()
        bias = getattr(model, "logit_bias", 0)
        found = [(model(**images, **each).logits_per_image - bias) / scale for each in texts]
    return torch.cat(found, 1).numpy()


@pytest.mark.parametrize("family", FAMILIES)
def test_similarities_are_those_of_the_models_own_forward(tiny, family, pictures, prompts):
    expected = own_cosines(tiny(family), pictures, prompts)

    encoder = load_model(str(tiny(family)), device="cpu")
    cosines = encoder.encode_images(pictures) @ encoder.encode_texts(prompts).T

    np.testing.assert_allclose(cosines, expected, atol=BATCH_TOLERANCE)
    assert min(expected.std(axis=0).max(), expected.std(axis=1).max()) > 20 * BATCH_TOLERANCE


@pytest.mark.parametrize("family", FAMILIES)
def test_batch_size_changes_nothing(tiny, family, pictures, prompts):
    encoder = load_model(str(tiny(family)), device="cpu")

    for size in (1, 3):
        images = encoder.encode_images(pictures, batch_size=size) - encoder.encode_images(pictures, batch_size=7)
        texts = encoder.encode_texts(prompts, batch_size=size) - encoder.encode_texts(prompts, batch_size=5)
        assert np.abs(images).max() <= BATCH_TOLERANCE
        assert np.abs(texts).max() <= BATCH_TOLERANCE


def test_bfloat16_stays_near_float32(tiny, pictures):
    exact = load_model(str(tiny("clip")), device="cpu")
    rough = load_model(str(tiny("clip")), device="cpu", dtype="bfloat16")

    difference = np.abs(exact.encode_images(pictures) - rough.encode_images(pictures)).max()

    assert 0 < difference < 2e-2
    assert exact.record().content != rough.record().content


def test_arrays_and_pictures_are_the_same(tiny, pictures):
    encoder = load_model(str(tiny("clip")), device="cpu")

    arrays = encoder.encode_images([np.asarray(p) for p in pictures])

    np.testing.assert_array_equal(arrays, encoder.encode_images(pictures))
    with pytest.raises(ValueError, match="array of float64"):
        encoder.encode_images([np.zeros((4, 4, 3))])


def test_record_says_which_model_and_follows_the_content(tiny, folder):
    encoder = load_model(str(tiny("clip")), device="cpu")
    copy = load_model(str(folder), device="cpu")
    record = encoder.record()

    assert (record.adapter, record.kind, record.revision) == ("transformers", "dual-encoder", None)
    assert (record.spec, record.name) == (str(tiny("clip")), "tiny-clip")
    assert record.parameters == sum(p.numel() for p in transformers.AutoModel.from_pretrained(folder).parameters())
    assert len(record.content) == 64
    assert copy.record().content == record.content
    assert copy.cache_key == encoder.cache_key


@pytest.mark.parametrize("what", ["weights", "preprocessing", "tokenizer"])
def test_content_changes_with_every_part(tiny, folder, what):
    # Given a change of one part
    if what == "weights":
        model = transformers.CLIPModel.from_pretrained(folder)
        model.visual_projection.weight.data[0, 0] += 1e-3
        model.save_pretrained(folder)
    elif what == "preprocessing":
        processor = json.loads((folder / "processor_config.json").read_text())
        processor["image_processor"]["image_mean"] = [0.5, 0.5, 0.5]
        (folder / "processor_config.json").write_text(json.dumps(processor))
    else:
        tokenizer = json.loads((folder / "tokenizer.json").read_text())
        vocabulary = tokenizer["model"]["vocab"]
        vocabulary["a"], vocabulary["b"] = vocabulary["b"], vocabulary["a"]
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer))

    contents = [load_model(str(path), device="cpu").record().content for path in (folder, tiny("clip"))]

    assert contents[0] != contents[1]


def test_code_in_a_folder_is_not_run(folder, tmp_path):
    # Given a model whose own Python file would leave a mark, under a type that the library does not know
    mark = tmp_path / "ran"
    (folder / "evil.py").write_text(f"open({str(mark)!r}, 'w')\nclass Evil: pass\n")
    references = {"AutoConfig": "evil.Evil", "AutoModel": "evil.Evil", "AutoProcessor": "evil.Evil"}
    edit(folder / "config.json", auto_map=references, model_type="evil")

    with pytest.raises(UserError, match="never run"):
        load_model(str(folder), device="cpu")
    assert not mark.exists()

    # and under a type that it knows, its own class is used
    edit(folder / "config.json", model_type="clip")
    edit(folder / "tokenizer_config.json", auto_map={"AutoTokenizer": ["evil.Evil", "evil.Evil"]})
    edit(folder / "processor_config.json", auto_map=references)
    load_model(str(folder), device="cpu")
    assert not mark.exists()


class Bomb:
    """Unpickling it runs code."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return (Path.touch, (self.mark,))


def test_pickled_weights_are_refused_and_never_run_code(folder, tiny, tmp_path, pictures):
    # Given the same weights, pickled
    model = transformers.CLIPModel.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    torch.save(model.state_dict(), folder / "pytorch_model.bin")

    # Then they are refused, unless asked for
    with pytest.raises(UserError, match=r"pytorch_model\.bin is pickled.*unsafe_weights=True"):
        load_model(str(folder), device="cpu")
    allowed = load_model(str(folder), device="cpu", unsafe_weights=True)
    safe = load_model(str(tiny("clip")), device="cpu")
    np.testing.assert_array_equal(allowed.encode_images(pictures), safe.encode_images(pictures))

    # and even then code in them is not run
    mark = tmp_path / "ran"
    torch.save({"x": Bomb(mark)}, folder / "pytorch_model.bin")
    with pytest.raises(UserError, match="more than tensors, which is never unpickled"):
        load_model(str(folder), device="cpu", unsafe_weights=True)
    assert not mark.exists()


def one_line(error: pytest.ExceptionInfo[UserError]) -> bool:
    return "\n" not in str(error.value)


def test_a_model_of_another_kind_is_refused(tmp_path, folder):
    # Given a text model, and a CLIP whose weights lack the projections
    config = transformers.BertConfig(vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=1)
    transformers.BertModel(config).save_pretrained(tmp_path / "bert")
    with pytest.raises(UserError, match="bert is not a dual encoder") as error:
        load_model(str(tmp_path / "bert"), device="cpu")
    assert one_line(error)

    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    kept = {name: tensor for name, tensor in weights.items() if "projection" not in name}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UserError, match=r"weights lack 2 tensors.*text_projection\.weight") as error:
        load_model(str(folder), device="cpu")
    assert one_line(error)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "config.json").unlink(), "no config.json"),
        (lambda f: (f / "config.json").write_text("{"), "cannot be loaded"),
        (lambda f: (f / "model.safetensors").unlink(), "no weights"),
        (lambda f: (f / "model.safetensors").write_bytes(b"not safetensors"), "its weights are 15 bytes"),
        (lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:-40]), "cannot be"),
        (lambda f: (f / "processor_config.json").unlink(), "no usable image processor"),
        (lambda f: [p.unlink() for p in f.glob("tokenizer*")], "tokenizer"),
    ],
)
def test_a_broken_folder_gives_one_line(folder, damage, message):
    damage(folder)

    with pytest.raises(UserError, match=message) as error:
        load_model(str(folder), device="cpu")

    assert one_line(error)
    assert str(folder) in str(error.value)


def test_nan_weights_are_named(folder, pictures):
    model = transformers.CLIPModel.from_pretrained(folder)
    model.visual_projection.weight.data[:] = float("nan")
    model.text_projection.weight.data[:] = 0
    model.save_pretrained(folder)
    encoder = load_model(str(folder), device="cpu")

    with pytest.raises(UserError, match="model copy: features of images are NaN"):
        encoder.encode_images(pictures)
    with pytest.raises(UserError, match="model copy: features of texts are all zero"):
        encoder.encode_texts(["a"])


def test_long_texts_are_cut_at_the_models_context(tiny):
    encoder = load_model(str(tiny("clip")), device="cpu")

    features = encoder.encode_texts(["photo " * 50, "photo " * 60, "man"])

    np.testing.assert_allclose(features[0], features[1], atol=BATCH_TOLERANCE)
    assert not np.allclose(features[0], features[2], atol=1e-3)


def test_loading_prints_nothing_and_leaves_the_librarys_settings(folder, capfd):
    from huggingface_hub.utils.tqdm import are_progress_bars_disabled
    from transformers.utils import logging

    logging.enable_progress_bar()  # whatever another test has left
    before = logging.get_verbosity(), logging.is_progress_bar_enabled(), are_progress_bars_disabled()
    assert before[1:] == (True, False)
    load_model(str(folder), device="cpu")
    with pytest.raises(UserError):
        load_model(f"transformers:{folder.parent}", device="cpu")
    assert capfd.readouterr() == ("", "")
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled(), are_progress_bars_disabled()) == before


@pytest.mark.parametrize(
    ("file", "part", "lie", "message"),
    [
        ("config.json", "vision_config", {"num_hidden_layers": 10**6}, r"asks for 1e\+06 layers \(num_hidden_layers\)"),
        (
            "config.json",
            "vision_config",
            {"hidden_size": 10**6},
            r"asks for \S+ numbers, and its weights are \S+ bytes",
        ),
        ("config.json", "vision_config", {"hidden_size": 24}, "other shapes than its config.json says"),
        ("config.json", "text_config", {"hidden_act": "magic"}, "cannot be loaded: 'magic'"),
        (
            "processor_config.json",
            "image_processor",
            {"crop_size": {"height": 60000, "width": 32}},
            "6e.04 pixels a side",
        ),
        ("processor_config.json", "image_processor", {"image_mean": [0, 0]}, "fails over an image"),
        ("processor_config.json", "image_processor", {"crop_size": {"height": 30, "width": 30}}, "fails over images"),
    ],
)
def test_a_folder_that_lies_gives_one_line(folder, pictures, file, part, lie, message):
    parts = json.loads((folder / file).read_text())
    edit(folder / file, **{part: parts[part] | lie})

    with pytest.raises(UserError, match=message) as error:
        load_model(str(folder), device="cpu").encode_images(pictures)

    assert one_line(error)
