from __future__ import annotations

import json
import shutil
import sys

import numpy as np
import pytest
from PIL import Image

from truegap.counterfactual import Settings, load_pipeline
from truegap.errors import UserError

FAST = Settings(steps=2)


@pytest.fixture
def copy(pipelines, tmp_path):
    """A pipeline's folder that a test may damage."""

    def make(name: str):
        return shutil.copytree(pipelines(name), tmp_path / name)

    return make


@pytest.fixture
def photo():
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (48, 48, 3), np.uint8))


@pytest.mark.parametrize("name", ["sd", "sdxl"])
def test_a_seed_and_a_prompt_make_one_image(pipelines, name):
    make = load_pipeline(str(pipelines(name)), "text-to-image", FAST, device="cpu")
    image, unsafe = make("a photo of a pilot", 1)
    assert (image.mode, image.size, unsafe) == ("RGB", (32, 32), None)
    assert np.asarray(image).std() > 1
    assert make("a photo of a pilot", 1)[0].tobytes() == image.tobytes()
    assert make("a photo of a pilot", 2)[0].tobytes() != image.tobytes()
    assert make("a photo of a nurse", 1)[0].tobytes() != image.tobytes()
    again = load_pipeline(str(pipelines(name)), "text-to-image", FAST, device="cpu")
    assert again("a photo of a pilot", 1)[0].tobytes() == image.tobytes()
    assert again.record() == make.record()


def test_settings_reach_the_pipeline(pipelines):
    folder = str(pipelines("sd"))

    def image(**settings):
        return load_pipeline(folder, "text-to-image", Settings(steps=2, **settings), device="cpu")("a pilot", 1)[0]

    plain = image(guidance=7.5)
    assert image(guidance=7.5).tobytes() == plain.tobytes()
    assert image(guidance=7.5, negative_prompt="crowd").tobytes() != plain.tobytes()
    assert image(guidance=2.0).tobytes() != plain.tobytes()
    assert image(height=16, width=48).size == (48, 16)


def test_an_editor_starts_from_the_image(pipelines, photo):
    edit = load_pipeline(str(pipelines("pix2pix")), "edit", Settings(steps=2, image_guidance=1.5), device="cpu")
    changed, _ = edit("turn the female into a male", 1, photo)
    assert changed.size == photo.size
    assert edit("turn the female into a male", 1, photo)[0].tobytes() == changed.tobytes()
    other = Image.fromarray(255 - np.asarray(photo))
    assert edit("turn the female into a male", 1, other)[0].tobytes() != changed.tobytes()


@pytest.mark.parametrize(("name", "unsafe"), [("alarmed", True), ("calm", False)])
def test_the_pipelines_own_safety_checker_is_heard(pipelines, name, unsafe):
    make = load_pipeline(str(pipelines(name)), "text-to-image", FAST, device="cpu")
    assert make("a pilot", 1)[1] is unsafe


def test_the_content_changes_with_the_weights_alone(pipelines, copy):
    first = load_pipeline(str(pipelines("sd")), "text-to-image", FAST, device="cpu").record()
    folder = copy("sd")
    assert load_pipeline(str(folder), "text-to-image", FAST, device="cpu").record() == first
    weights = next((folder / "vae").glob("*.safetensors"))
    data = bytearray(weights.read_bytes())
    data[-3] ^= 1
    weights.write_bytes(data)
    assert load_pipeline(str(folder), "text-to-image", FAST, device="cpu").record()["content"] != first["content"]
    assert first["pipeline"] == "StableDiffusionPipeline"
    assert str(folder.parent) not in json.dumps(first)


def test_a_pipeline_that_cannot_do_the_task_is_refused(pipelines):
    with pytest.raises(UserError, match="StableDiffusionPipeline makes images from text; give one that edits images"):
        load_pipeline(str(pipelines("sd")), "edit", device="cpu")
    with pytest.raises(UserError, match="edits images; give one that makes images from text"):
        load_pipeline(str(pipelines("pix2pix")), "text-to-image", device="cpu")
    with pytest.raises(UserError, match="knows no image guidance"):
        load_pipeline(str(pipelines("sd")), "text-to-image", Settings(image_guidance=1.0), device="cpu")


def test_a_failing_call_is_one_line(pipelines):
    make = load_pipeline(str(pipelines("sd")), "text-to-image", Settings(steps=2, height=17, width=17), device="cpu")
    with pytest.raises(UserError, match=r"StableDiffusionPipeline failed: .*divisible by 8"):
        make("a pilot", 1)


@pytest.mark.parametrize("part", ["unet", "text_encoder", "vae"])
def test_pickled_weights_are_refused(copy, part):
    folder = copy("sd")
    weights = next((folder / part).glob("*.safetensors"))
    weights.rename(weights.with_name("diffusion_pytorch_model.bin"))
    with pytest.raises(UserError, match=f"{part}/diffusion_pytorch_model.bin is pickled"):
        load_pipeline(str(folder), "text-to-image", device="cpu")


@pytest.mark.parametrize("where", ["pipeline", "component"])
def test_code_of_a_repository_is_never_run(copy, tmp_path, where):
    folder = copy("sd")
    trace = tmp_path / "trace"
    code = f"open({str(trace)!r}, 'w').write('run')\nfrom diffusers import *\n"
    index = json.loads((folder / "model_index.json").read_text())
    if where == "pipeline":
        (folder / "pipeline.py").write_text(code)
        index["_class_name"] = ["pipeline", "StableDiffusionPipeline"]
    else:
        (folder / "unet" / "evil.py").write_text(code)
        index["unet"] = ["evil", "UNet2DConditionModel"]
    (folder / "model_index.json").write_text(json.dumps(index))
    with pytest.raises(UserError, match="never run"):
        load_pipeline(str(folder), "text-to-image", device="cpu")
    assert not trace.exists()


def test_a_folder_that_is_no_pipeline_is_one_line(pipelines, tmp_path, copy):
    with pytest.raises(UserError, match=r"no model_index\.json"):
        load_pipeline(str(tmp_path), "edit", device="cpu")
    with pytest.raises(UserError, match="no such folder, and not a Hub id"):
        load_pipeline(str(tmp_path / "absent"), "edit", device="cpu")
    with pytest.raises(UserError, match="a folder has no revision v1"):
        load_pipeline(str(tmp_path), "edit", revision="v1", device="cpu")
    folder = copy("sd")
    (folder / "model_index.json").write_text("{")
    with pytest.raises(UserError, match="cannot be read as JSON"):
        load_pipeline(str(folder), "edit", device="cpu")
    shutil.rmtree(folder)
    folder = copy("sd")
    shutil.rmtree(folder / "vae")
    with pytest.raises(UserError, match="cannot be loaded") as caught:
        load_pipeline(str(folder), "text-to-image", device="cpu")
    assert "\n" not in str(caught.value)


def test_a_hub_model_that_is_not_in_the_cache_is_one_line(pipelines):
    with pytest.raises(UserError, match="model nobody/nothing: not in the local cache") as caught:
        load_pipeline("nobody/nothing", "text-to-image", device="cpu")
    assert "\n" not in str(caught.value)


def test_of_a_pipeline_on_the_hub_nothing_else_comes(pipelines, loopback_hub):
    # given a repository that holds the same weights in other forms, and code
    folder = pipelines("sd")
    files = {each.relative_to(folder).as_posix(): each.read_bytes() for each in folder.rglob("*") if each.is_file()}
    weights = "unet/diffusion_pytorch_model"
    others = ["sd.safetensors", f"{weights}.fp16.safetensors", f"{weights}.bin", "unet/evil.py", "pipeline.py"]
    # and a template, without which some tokenizers do not know how a prompt is put
    files["tokenizer/chat_template.jinja"] = b"{{ messages }}"
    commit = loopback_hub.commit("model", "org/sd", files | dict.fromkeys(others, b"x"), "v1")
    # when it is loaded
    make = load_pipeline("org/sd@v1", "text-to-image", FAST, device="cpu")
    # then it is the pipeline of the folder at that commit, and the rest was not asked for
    here = load_pipeline(str(folder), "text-to-image", FAST, device="cpu")
    assert make("a pilot", 1)[0].tobytes() == here("a pilot", 1)[0].tobytes()
    assert (make.name, make.content) == ("org/sd", commit)
    asked = {path.split(f"{commit}/")[-1] for path in loopback_hub.asked if f"/resolve/{commit}/" in path}
    assert {f"{weights}.safetensors", "tokenizer/chat_template.jinja"} <= asked
    assert not asked & set(others)
    # and pickled weights alone are no weights
    del files[f"{weights}.safetensors"]
    loopback_hub.commit("model", "org/sd", files | {f"{weights}.bin": b"x"})
    with pytest.raises(
        UserError, match=r"org/sd: cannot be loaded: .*no file named diffusion_py\w+\.safetensors"
    ) as caught:
        load_pipeline("org/sd", "text-to-image", device="cpu")
    assert "\n" not in str(caught.value)


def test_without_diffusers_the_command_to_install_it_is_named(monkeypatch):
    import importlib.util

    find = importlib.util.find_spec
    module = sys.modules["truegap.counterfactual.diffusion"]
    monkeypatch.setattr(module, "find_spec", lambda name: None if name == "diffusers" else find(name))
    with pytest.raises(UserError, match=r"needs diffusers: pip install 'truegap\[counterfactual\]'"):
        load_pipeline("anything", "edit")
