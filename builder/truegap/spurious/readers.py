"""What reads the pictures of a feature: a backbone that is trained, or features of a frozen one with a linear probe.

Categories of objects are no picture: beside a backbone an MLP reads them. An evaluated model reads the objects
themselves, alone on black.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from truegap.errors import UserError
from truegap.models import DualEncoder, EmbeddingCache
from truegap.schema import Feature
from truegap.spurious.pool import Pool
from truegap.spurious.records import ReaderRecord
from truegap.spurious.views import categories, multi_hot

if TYPE_CHECKING:
    from truegap.models.backbones import Backbone
    from truegap.models.classifier import Training

Advance = Callable[[int], object]


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the classifiers of a feature are trained on.

    Attributes:
        array: `(n, ...)` in the order of the images.
        make: Gives a new classifier.
        ready: From a batch to what the classifier takes; None where the batch is it.
        standardise: Whether columns are brought to one scale, by the training images.
    """

    array: NDArray[np.float32] | NDArray[np.uint8]
    make: Callable[[], Any]
    ready: Callable[[Any], Any] | None = None
    standardise: bool = False


@dataclass(frozen=True, slots=True)
class Reader:
    """A backbone or an evaluated model.

    Attributes:
        spec: What the user typed.
        encoder: What turns pictures into features.
        cache: Of such features.
        finetuned: Whether the backbone is trained with its head; else it is frozen.
        hidden: Units of the MLP.
        batch_size: Pictures per forward pass of a frozen encoder; changes no result.
    """

    spec: str
    encoder: Backbone | DualEncoder
    cache: EmbeddingCache
    finetuned: bool = False
    hidden: int = 128
    batch_size: int = 64

    @property
    def is_model(self) -> bool:
        """Whether an evaluated model reads."""
        return isinstance(self.encoder, DualEncoder)

    def check(self) -> None:
        """Refuses what cannot be trained.

        Raises:
            UserError: A backbone that half precision would not train.
        """
        if self.finetuned and self._network.compute.dtype == "float16":
            raise UserError("--dtype float16 is too narrow to train in: use bfloat16 or float32, or --training frozen")

    def record(self) -> ReaderRecord:
        """Which reader this is."""
        if isinstance(self.encoder, DualEncoder):
            model = self.encoder.record()
            return ReaderRecord(
                kind="model",
                name=model.name,
                spec=self.spec,
                revision=model.revision,
                content=model.content,
                parameters=model.parameters,
                pretrained=True,
            )
        return ReaderRecord(
            kind="backbone",
            name=self.encoder.name,
            spec=self.spec,
            revision=self.encoder.revision,
            content=self.encoder.content,
            parameters=self.encoder.parameters,
            pretrained=self.encoder.pretrained,
            side=self.encoder.side,
        )

    def reads_categories(self, feature: str) -> bool:
        """Whether the feature is read as a list of categories, not as a picture."""
        return feature == Feature.OBJECT and not self.is_model

    def classifier(self, feature: str) -> str:
        """What is trained."""
        if self.reads_categories(feature):
            return f"MLP of two layers, {self.hidden} hidden units"
        name = self.record().name
        return f"{name}, fine-tuned" if self.finetuned else f"linear probe of {name}"

    def training(self, feature: str) -> Training:
        """How, where the user says nothing: gently where a whole network is trained."""
        from truegap.models.classifier import Training

        if self._trains_network(feature):
            return Training(epochs=50, patience=8, learning_rate=1e-4, weight_decay=0.05, batch_size=32)
        return Training(epochs=200, patience=20, learning_rate=3e-3, weight_decay=0.05, batch_size=64)

    def key(self, feature: str) -> list[str]:
        """What decides a training beside its images: weights, libraries, kind of device."""
        from truegap.models.classifier import head_key

        if self.reads_categories(feature):
            return [self.classifier(feature), head_key()]
        return [self.encoder.cache_key, "fine-tuned" if self.finetuned else "linear"]

    def device(self, feature: str) -> Any:
        """Where a classifier is trained: a network where it is, small heads on the CPU."""
        from truegap.models.classifier import HEAD_DEVICE

        return self._network.device if self._trains_network(feature) else HEAD_DEVICE

    def dtype(self, feature: str) -> Any:
        """Of the activations of what is trained."""
        from truegap.models.classifier import HEAD_DTYPE

        return self._network.dtype if self._trains_network(feature) else HEAD_DTYPE

    def inputs(self, pool: Pool, feature: str, places: Sequence[int], advance: Advance) -> Inputs:
        """What the classifiers of a feature are trained on.

        Args:
            pool: The images.
            feature: The feature.
            places: Which images.
            advance: Called with the number of images just read.

        Raises:
            UserError: An image cannot be read.
        """
        from truegap.models import classifier

        if self.reads_categories(feature):
            labels = [pool.labels(n) for n in places]
            names = categories(labels)
            advance(len(places))
            return Inputs(multi_hot(labels, names), lambda: classifier.mlp(len(names), self.hidden))
        if self.finetuned:
            backbone = self._network
            stored = backbone.stored([pool.picture(feature, n) for n in places], advance)
            return Inputs(stored, backbone.classifier, backbone.ready)
        items = [(pool.key(feature, n), pool.picture(feature, n)) for n in places]
        found = self.cache.embed_images(self.encoder, items, self.batch_size, advance)
        advance(len(places) - found.cached - found.computed)
        width = found.features.shape[1]
        return Inputs(found.features, lambda: classifier.linear(width), standardise=True)

    def _trains_network(self, feature: str) -> bool:
        """Whether the whole backbone is trained, not a small head."""
        return self.finetuned and not self.reads_categories(feature)

    @property
    def _network(self) -> Backbone:
        """The backbone: an evaluated model is never trained."""
        assert not isinstance(self.encoder, DualEncoder)
        return self.encoder
