"""timm's networks: saved folders, random weights, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
import timm
import torch
from PIL import Image

from truegap.errors import UserError
from truegap.models.backbones import load_backbone

NAME = "test_byobnet"
LACKING = json.dumps({"architecture": NAME, "pretrained_cfg": {"input_size": [3, 32, 32]}})


@pytest.fixture
def picture():
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (50, 80, 3), np.uint8))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("timm") / "small"
    torch.manual_seed(3)
    network = timm.create_model(NAME)
    timm.models.save_for_hf(network, str(folder), safe_serialization=True)
    return folder, network.eval()


def load(name=NAME, **options):
    return load_backbone(str(name), device="cpu", **options)


@torch.inference_mode()
def test_a_saved_folder_gives_the_features_of_its_network(saved, picture):
    folder, network = saved
    backbone = load(folder, side=32)
    small = picture.resize((32, 32), Image.Resampling.BICUBIC)
    pixels = torch.from_numpy(np.asarray(small, np.float32) / 255)
    settings = network.pretrained_cfg
    batch = ((pixels - torch.tensor(settings["mean"])) / torch.tensor(settings["std"])).permute(2, 0, 1)[None]
    theirs = network.forward_head(network.forward_features(batch), pre_logits=True)
    ours = backbone.encode_preprocessed([backbone.preprocess(picture)])
    assert ours == pytest.approx(theirs.numpy(), abs=1e-5)
    assert (backbone.name, backbone.pretrained, backbone.side) == ("small", True, 32)


def test_a_new_classifier_has_two_outputs_the_networks_weights_and_a_head_of_the_seed(saved):
    folder, network = saved
    backbone = load(folder, side=32)
    torch.manual_seed(0)
    first = backbone.classifier()
    torch.manual_seed(1)
    second = backbone.classifier()
    stem = next(iter(network.state_dict()))
    assert torch.equal(first.state_dict()[stem], network.state_dict()[stem])
    assert first(torch.zeros(2, 3, 32, 32)).shape == (2, 2)
    head = list(first.state_dict())[-2]
    assert not torch.equal(first.state_dict()[head], second.state_dict()[head])


def test_random_weights_are_the_same_every_time_and_the_key_knows_what_matters(saved):
    backbone = load(pretrained=False, side=32)
    assert backbone.cache_key == load(pretrained=False, side=32).cache_key
    assert not backbone.pretrained
    others = [
        load(pretrained=False, side=40),
        load(saved[0], side=32),
        load(pretrained=False, side=32, dtype="bfloat16"),
    ]
    assert len({backbone.cache_key, *(each.cache_key for each in others)}) == 4


def test_features_do_not_depend_on_the_batch(picture):
    backbone = load(pretrained=False, side=32)
    inputs = [backbone.preprocess(picture), backbone.preprocess(picture.transpose(Image.Transpose.ROTATE_90))]
    alone = np.concatenate([backbone.encode_preprocessed([each]) for each in inputs])
    assert backbone.encode_preprocessed(inputs) == pytest.approx(alone, rel=1e-4, abs=1e-6)


def test_stored_pictures_are_the_preprocessed_ones_and_their_file_has_no_name(picture, tmp_path, monkeypatch):
    monkeypatch.setenv("TRUEGAP_CACHE", str(tmp_path))
    backbone, done = load(pretrained=False, side=32), []
    stored = backbone.stored([lambda: picture, lambda: picture.convert("L").convert("RGB")], done.append)
    assert stored.shape == (2, 32, 32, 3)
    assert (stored[0] == backbone.preprocess(picture)).all()
    assert (stored[1][..., 0] == stored[1][..., 2]).all()
    assert done == [1, 1]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("allocates", [True, False])
def test_a_full_disk_gives_one_line(picture, tmp_path, monkeypatch, allocates):
    import resource

    # Given that files may have a thousand bytes, as on a disk that is full by then
    monkeypatch.setenv("TRUEGAP_CACHE", str(tmp_path))
    if not allocates:
        monkeypatch.delattr("os.posix_fallocate")
    backbone = load(pretrained=False, side=32)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(UserError, match=r"no room for 3.07e-06 GB of pictures \(.+\); set TRUEGAP_CACHE") as caught:
            backbone.stored([lambda: picture])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "\n" not in str(caught.value)


def test_a_transformer_takes_another_side():
    assert (
        load("test_vit", pretrained=False, side=32).encode_preprocessed([np.zeros((32, 32, 3), np.uint8)]).shape[0] == 1
    )


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("convnext_bse", {}, "--backbone convnext_bse: neither a name in timm nor a folder that timm saved; near it"),
        ("test_resnet", {}, "use --no-pretrained|--no-pretrained"),
        ("test_resnet", {"pretrained": False, "side": 0}, "--side 0"),
        ("test_resnet", {"pretrained": False, "dtype": "int4"}, "dtype int4: unknown"),
    ],
)
def test_what_is_not_at_hand_is_one_line(name, options, message):
    with pytest.raises(UserError, match=message) as caught:
        load(name, **options)
    assert "\n" not in str(caught.value)


def test_pickled_weights_and_foreign_folders_are_refused(saved, tmp_path):
    folder = tmp_path / "pickled"
    folder.mkdir()
    (folder / "config.json").write_bytes((saved[0] / "config.json").read_bytes())
    torch.save({}, folder / "pytorch_model.bin")
    with pytest.raises(UserError, match="no weights"):
        load(folder)
    for content in ("{", "[]", json.dumps({"architecture": "evil", "pretrained_cfg": {}}), LACKING):
        (folder / "config.json").write_text(content)
        with pytest.raises(UserError, match="no folder that timm saved"):
            load(folder)
