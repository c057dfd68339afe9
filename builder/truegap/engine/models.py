"""A model on every worker of a cluster, and what stands for all of them where they are directed from."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, Literal, TypeVar

import numpy as np
from PIL import Image

from truegap.engine.crew import Crew, crew
from truegap.errors import UserError
from truegap.models.answer_cache import Asked, answers_to
from truegap.models.base import DualEncoder, FloatArray
from truegap.models.cache import Source, features_of
from truegap.models.generative import Answer, GenerativeModel, Question
from truegap.results.environment import PACKAGES
from truegap.results.records import Compute, ModelRecord

IMAGES = 16
"""Images per shard of a model that answers questions: what a killed worker costs at most."""
BATCHES = 4
"""Batches per shard of a dual encoder; whole ones, so that forward passes are those of a run on one machine."""

Model = DualEncoder | GenerativeModel
Item = tuple[str, Source]
"""An image's SHA-256, and its encoded bytes or what gives them."""
Piece = TypeVar("Piece")


@dataclass(frozen=True, slots=True)
class Shard(Generic[Piece]):
    """What a worker is asked at once.

    Attributes:
        key: The `cache_key` that its model must have.
        pieces: Images by their bytes, with what is asked about them.
        batch_size: As of the model.
        threads: That decode; None for one per core, at most 8.
    """

    key: str
    pieces: Sequence[Piece]
    batch_size: int
    threads: int | None = None


@dataclass(frozen=True, slots=True)
class About:
    """What a worker says of its model; names as there."""

    answers: bool
    record: ModelRecord
    cache_key: str
    compute: Compute | None
    probabilities_over: Literal["vocabulary", "options"]
    notes: tuple[str, ...]


class ClusterEncoder(DualEncoder):
    """A dual encoder whose workers do the work."""

    def __init__(self, workers: Crew[DualEncoder], about: About) -> None:
        """Stands for the workers' model."""
        self._crew = workers
        self._about = about
        self.compute = about.compute

    def record(self) -> ModelRecord:
        """Which model this is."""
        return self._about.record

    @property
    def cache_key(self) -> str:
        """The workers' own."""
        return self._about.cache_key

    def preprocess(self, image: Image.Image) -> Image.Image:
        """The image: a worker preprocesses it."""
        return image

    def image_features(self, inputs: Sequence[Image.Image]) -> FloatArray:
        """One worker's features."""
        return self._crew.call(_image_features, list(inputs))

    def text_features(self, texts: Sequence[str]) -> FloatArray:
        """One worker's features."""
        return self._crew.call(_text_features, list(texts))

    def embed(
        self, shards: Sequence[Sequence[Item]], batch_size: int
    ) -> Generator[tuple[int, dict[str, FloatArray]], None, None]:
        """Features of distinct images by their SHA-256: shard by shard as they come, with the shard's number.

        Raises:
            UserError: An image or a feature is unusable, a worker has another model, or dies again and again.
        """
        threads = None if self._crew.staff.gpus else self._crew.staff.cpus

        def task(number: int) -> Shard[Item]:
            return Shard(self.cache_key, [(sha, _read(source)) for sha, source in shards[number]], batch_size, threads)

        yield from self._crew.run(_embed, len(shards), task)
        self._crew.close(keep=1)  # for texts: what follows needs no more


class ClusterAnswerer(GenerativeModel):
    """A model that answers questions, whose workers do the work."""

    def __init__(self, workers: Crew[GenerativeModel], about: About) -> None:
        """Stands for the workers' model."""
        self._crew = workers
        self._about = about
        self.compute = about.compute
        self.probabilities_over = about.probabilities_over
        self.notes = about.notes

    def record(self) -> ModelRecord:
        """Which model this is."""
        return self._about.record

    @property
    def cache_key(self) -> str:
        """The workers' own."""
        return self._about.cache_key

    def prompt(self, question: Question) -> str:
        """What a worker's model reads."""
        return self._crew.call(_prompt, question)

    def answer(self, image: Image.Image, questions: Sequence[Question], batch_size: int = 32) -> list[Answer]:
        """One worker's answers."""
        asked = Asked("", partial(_itself, image), tuple(questions))
        shard = Shard(self.cache_key, [asked], batch_size)
        answers, notes = self._crew.call(_answer, shard)
        self._learn(notes)
        return answers[0]

    def answer_shards(
        self, shards: Sequence[Sequence[Asked]], batch_size: int
    ) -> Generator[tuple[int, list[list[Answer]]], None, None]:
        """Answers image by image: shard by shard as they come, with the shard's number.

        Raises:
            UserError: An image or a question is unusable, a worker has another model, or dies again and again.
        """

        def task(number: int) -> Shard[Asked]:
            pieces = [replace(asked, source=_read(asked.source)) for asked in shards[number]]
            return Shard(self.cache_key, pieces, batch_size)

        with closing(self._crew.run(_answer, len(shards), task)) as results:
            for number, (answers, notes) in results:
                self._learn(notes)
                yield number, answers
        self._crew.close(keep=1)

    def _learn(self, notes: Sequence[str]) -> None:
        self.notes = tuple(dict.fromkeys((*self.notes, *notes)))


ClusterModel = ClusterEncoder | ClusterAnswerer


@contextmanager
def model_on_ray(
    load: Callable[..., Model],
    spec: str,
    *,
    device: str = "auto",
    workers: int | None = None,
    gpus: float | None = None,
) -> Iterator[ClusterModel]:
    """A model that every worker of a Ray cluster loads once, and keeps until this is left.

    The cluster is that of `truegap.engine.run_tasks`; its machines need the same versions and see the model, on the
    Hub or in a folder that they share, but not the benchmark: images are sent to them. Answers are those of one
    machine; on CPUs, where a worker has fewer cores than that, they are so within the model's tolerance between batch
    sizes, since sums in another number of parts differ in their last bits.

    Args:
        load: Called on a worker with `spec` and `device`; importable there.
        spec: Which model.
        device: `auto` (a GPU per worker where the cluster has any), `cpu`, or `cuda`.
        workers: How many at most; by default one per GPU, or per CPU where none has a GPU.
        gpus: Of each worker, perhaps a part of one; None for what `device` says.

    Raises:
        UserError: The model is one behind an address, the device is not for a cluster to choose, there is no cluster or
            it lacks what is asked for, or the model cannot be loaded there.
    """
    if _bare(spec).startswith("endpoint:"):
        raise UserError(
            f"--engine ray: {spec} runs on its server, which takes many requests at once: leave --engine out, and say "
            "how many in its settings (concurrency)"
        )
    wanted = _gpus(device, gpus)
    packages = ("truegap", *PACKAGES)
    with crew(partial(_loaded, load, spec, device), workers=workers, gpus=wanted, packages=packages) as made:
        about = made.call(_describe, None)
        yield ClusterAnswerer(made, about) if about.answers else ClusterEncoder(made, about)  # type: ignore[arg-type]


def _bare(spec: str) -> str:
    """The model that a prior shows nothing to."""
    while spec.startswith(prior := "baseline:prior:"):
        spec = spec.removeprefix(prior)
    return spec


def _gpus(device: str, gpus: float | None) -> float | None:
    """How many of them a worker needs on a device.

    Raises:
        UserError: The device and the number do not go together.
    """
    if ":" in device:
        raise UserError(f"--device {device}: Ray gives every worker a GPU of its own: use {device.partition(':')[0]}")
    if device == "cuda":
        if gpus == 0:
            raise UserError("--device cuda needs GPUs: leave --gpus 0 out")
        return 1.0 if gpus is None else gpus
    if device != "auto":
        if gpus:
            raise UserError(f"--device {device} needs no GPUs: leave --gpus {gpus:g} out")
        return 0.0
    return gpus


# What follows runs on a worker.


def _loaded(load: Callable[..., Model], spec: str, device: str) -> Model:
    import ray

    if not ray.get_gpu_ids():
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # else `auto` might take another worker's, which Ray leaves in sight
    return load(spec, device=device)


def _describe(model: Model, _: None) -> About:
    generative = isinstance(model, GenerativeModel)
    return About(
        answers=generative,
        record=model.record(),
        cache_key=model.cache_key,
        compute=getattr(model, "compute", None),
        probabilities_over=model.probabilities_over if isinstance(model, GenerativeModel) else "vocabulary",
        notes=tuple(model.notes) if isinstance(model, GenerativeModel) else (),
    )


def _prompt(model: GenerativeModel, question: Question) -> str:
    return model.prompt(question)


def _text_features(encoder: DualEncoder, texts: list[str]) -> FloatArray:
    return encoder.text_features(texts)


def _image_features(encoder: DualEncoder, images: list[Image.Image]) -> FloatArray:
    return encoder.image_features([encoder.preprocess(image) for image in images])


def _embed(encoder: DualEncoder, shard: Shard[Item]) -> dict[str, FloatArray]:
    _check(encoder, shard)
    batches = features_of(encoder, shard.pieces, shard.batch_size, shard.threads)
    return {sha: np.asarray(row) for batch in batches for sha, row in batch.items()}


def _answer(model: GenerativeModel, shard: Shard[Asked]) -> tuple[list[list[Answer]], tuple[str, ...]]:
    _check(model, shard)
    answers = list(answers_to(model, shard.pieces, shard.batch_size))
    return answers, tuple(model.notes)


def _check(model: Model, shard: Shard[Any]) -> None:
    """Refuses to answer for another model.

    Raises:
        UserError: This worker's model is not that of the first.
    """
    if model.cache_key != shard.key:
        raise UserError(
            f"--engine ray: machine {socket.gethostname()} has other weights of {model.record().name}, or another kind "
            "of device, than the first: use --model-revision, and --device cpu or cuda"
        )


def _read(source: Source) -> Source:
    """What can be sent: the bytes, or what gives the image that the source gave."""
    content = source if isinstance(source, bytes) else source()
    return content if isinstance(content, bytes) else partial(_itself, content)


def _itself(image: Image.Image) -> Image.Image:
    return image
