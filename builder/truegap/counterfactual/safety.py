"""Whether an image is safe to show, by an image classifier of transformers that the user names."""

from __future__ import annotations

from collections.abc import Callable, Collection

from PIL import Image

from truegap.errors import UserError

UNSAFE = ("nsfw", "unsafe", "porn", "hentai", "sexy", "explicit", "violence", "gore")
"""Labels that count as unsafe, in any case, unless the user names others."""
THRESHOLD = 0.5
WEIGHTS = ("model*.safetensors",)


def load_classifier(
    spec: str, *, unsafe: Collection[str] = UNSAFE, threshold: float = THRESHOLD, device: str = "auto"
) -> Callable[[Image.Image], str | None]:
    """Loads an image classifier such as `Falconsai/nsfw_image_detection`; weights are safetensors only.

    Args:
        spec: A folder that `save_pretrained` wrote, or `org/name[@revision]` on the Hub.
        unsafe: Labels that count as unsafe; at least one must be the model's.
        threshold: Least sum of their probabilities, 0 to 1.
        device: `auto` or a torch device.

    Returns:
        A function from an RGB image to the reason why it is unsafe, None if it is not.

    Raises:
        UserError: The model cannot be loaded, or has none of the labels.
    """
    try:
        import torch
        from transformers import AutoImageProcessor, AutoModelForImageClassification
    except ImportError:
        raise UserError("--safety-model needs torch and transformers: pip install 'truegap[models]'") from None

    from truegap.models.devices import loading, resolve_device
    from truegap.models.files import find_weights, locate, split_revision

    where = resolve_device(device)
    place, revision = split_revision(spec, None)
    files = locate(place, revision, WEIGHTS)
    find_weights(spec, files.folder, (*WEIGHTS, "pytorch_model*.bin"), unsafe=False)
    with loading(spec):
        model = AutoModelForImageClassification.from_pretrained(
            files.folder, use_safetensors=True, trust_remote_code=False, local_files_only=True
        )
        processor = AutoImageProcessor.from_pretrained(files.folder, trust_remote_code=False, local_files_only=True)
    wanted = {label.strip().lower() for label in unsafe}
    places = [place for place, label in model.config.id2label.items() if str(label).strip().lower() in wanted]
    if not places:
        labels = ", ".join(map(str, model.config.id2label.values()))[:200]
        raise UserError(
            f"model {spec}: has none of the unsafe labels; name those of its own in --unsafe-labels: {labels}"
        )
    model = model.to(where).eval()

    def classify(image: Image.Image) -> str | None:
        inputs = {name: tensor.to(where) for name, tensor in processor(image, return_tensors="pt").items()}
        with torch.inference_mode():
            shares = model(**inputs).logits.float().softmax(-1)[0]
        return "called unsafe by the classifier" if float(shares[places].sum()) >= threshold else None

    return classify
