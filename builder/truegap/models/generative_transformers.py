"""Generative models of the transformers library: whatever it maps from an image and a text to text."""

from __future__ import annotations

import importlib.util
import logging
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import transformers
from PIL import Image

from truegap.errors import UserError, first_line
from truegap.hub.snapshots import Files
from truegap.models import _shared_prefix, _whole
from truegap.models._encoded_once import encoded_once
from truegap.models._look import Look
from truegap.models._memory import in_halves, is_out_of_memory
from truegap.models._prompts import make_reader
from truegap.models._rows import Ids, Row, answer_of, letter_tokens, rows_of
from truegap.models._shared_prefix import NeverShareableError, NotShareableError
from truegap.models._torch import (
    content_hash,
    describe_compute,
    describe_tokenizer,
    loading,
    place,
    reading,
    release_memory,
    resolve_device,
    resolve_dtype,
    versioned_key,
)
from truegap.models._transformers import (
    GENERATIVE,
    PICKLED_WEIGHTS,
    SAFE_WEIGHTS,
    describe_config,
    generative_class,
    load_processor,
    load_weights,
    read_config,
)
from truegap.models.files import find_weights, locate, short_name, split_revision
from truegap.models.generative import Answer, GenerativeModel, Question
from truegap.models.quiet import quiet_transformers
from truegap.results.records import ModelRecord

ADAPTER = "transformers"
EXACT = 1e-4
"""Largest difference of a log-probability between ways to batch the same questions, in float32.

Matrix products add in another order for another shape.
"""
SHARE = {torch.float32: 0.0, torch.bfloat16: 1 / 48, torch.float16: 1 / 384}
"""What is added to that in coarser numbers, as a share of the largest logit: some five of their steps.

Random models differ by up to 1 step with 2 layers and 2.4 with 24. Where a question sees another one or half of the
prefix is hidden, it is 11 and more; where it stands one place too far, mostly 4 to 30.
"""
RULES = 1
"""Raised where the same question to the same model is scored otherwise: what is kept under another is asked again."""
TRIAL = 3
"""Questions of the first image that are read both ways."""
QUANTIZATIONS = ("4bit", "8bit")


class Asked(NamedTuple):
    """A row, and the text that its question is for the processor."""

    text: str
    row: Row


class TransformersGenerative(GenerativeModel):
    """A transformers model that goes on with a text about an image, and its processor."""

    def __init__(
        self, model: transformers.PreTrainedModel, processor: Any, record: ModelRecord, dtype: torch.dtype
    ) -> None:
        """Take a loaded model, where it runs, and its processor."""
        self._model: Any = model
        self._tokenizer = processor.tokenizer
        self._record = record
        self._dtype = dtype
        self._reader = make_reader(record.name, model.config, processor)
        self._letters: dict[str, Ids] = {}
        self._limit: int | None = None  # largest batch that fitted into memory, once one did not
        self._tried = False
        self._shares = self._reader.whole is None
        self.notes: list[str] = []
        weights = quantized(model)
        # Eight-bit products are as coarse as bfloat16, whatever goes in.
        self._share = max(SHARE[dtype], SHARE[torch.bfloat16] if weights == "8bit" else 0.0)
        kind = str(dtype).removeprefix("torch.") + (f", weights in {weights}" if weights else "")
        self.compute = describe_compute(model).model_copy(update={"dtype": kind})
        if self._reader.whole is not None:
            self._note(self._reader.whole)
        if self._reader.note is not None:
            self._add_note(self._reader.note)
        if self._share:
            self._add_note(
                f"{self.compute.dtype}: with another batch size, log-probabilities may differ by up to "
                f"1/{1 / self._share:.0f} of the largest logit (about {25 * self._share:.1g} in large models); float32 "
                f"holds them to {EXACT}"
            )

    def record(self) -> ModelRecord:
        """Which model this is."""
        return self._record

    @property
    def cache_key(self) -> str:
        """The model's content, our rules, the libraries and the kind of device, all of which move scores or bits."""
        return versioned_key(f"{self._record.content} {RULES}", self._model.device)

    def prompt(self, question: Question) -> str:
        """Exactly what the model reads for a question, with its own mark where the image goes."""
        return self._reader.shown(question)

    def answer(self, image: Image.Image, questions: Sequence[Question], batch_size: int = 32) -> list[Answer]:
        """Answers to questions about one upright RGB image, in their order.

        Args:
            image: The image; read once for all questions where the model allows it.
            questions: What is asked.
            batch_size: Questions per forward pass, halved where memory does not suffice; changes no answer beyond
                rounding (`EXACT`, `SHARE`).

        Raises:
            UserError: An option is not what the scoring needs, one question alone does not fit into memory, or a
                log-probability is not a number.
            ValueError: `batch_size` is below 1.
        """
        if batch_size < 1:
            raise ValueError(f"batch_size is {batch_size}: it must be at least 1")
        with reading(self._record.name, "a question about an image"):
            return self._answers(image, questions, batch_size)

    def _answers(self, image: Image.Image, questions: Sequence[Question], batch_size: int) -> list[Answer]:
        look = self._reader.look(image.convert("RGB"))
        texts = [self._reader.text(question) for question in questions]
        rows = [self._rows(look, question, text) for question, text in zip(questions, texts, strict=True)]
        asked = [Asked(text, row) for text, own in zip(texts, rows, strict=True) for row in own]
        for own in asked:
            self._reader.require_room(own.row.ids)
        with torch.inference_mode():
            values = self._values(look, asked, batch_size)
        if any(math.isnan(value) for own in values for value in own):
            raise UserError(
                f"model {self._record.name}: log-probabilities are not numbers; the weights are damaged, or the dtype "
                "is too small (use bfloat16 or float32)"
            )
        found = iter(values)
        return [answer_of(q, own, [next(found) for _ in own]) for q, own in zip(questions, rows, strict=True)]

    def _rows(self, look: Look, question: Question, text: str) -> list[Row]:
        return rows_of(question, lambda option: self._reader.ids(look, text, option), self._letter, self._record.name)

    def _letter(self, letter: str) -> Ids:
        if letter not in self._letters:
            self._letters[letter] = letter_tokens(self._tokenizer, letter, self._record.name)
        return self._letters[letter]

    def _values(self, look: Look, asked: Sequence[Asked], most: int) -> list[list[float]]:
        """Log-probabilities per row and read, over a shared prefix where that is possible."""
        if not self._shares or len(asked) < 2:  # noqa: PLR2004 (one question has nobody to share with)
            return self._whole(look, asked, most)
        try:
            values = self._shared(look, asked, most)
        except NotShareableError as error:
            self._shares = not isinstance(error, NeverShareableError)
            self._note(str(error))
            return self._whole(look, asked, most)
        except Exception as error:
            if self._tried or isinstance(error, UserError) or is_out_of_memory(error):
                raise
            self._never(f"transformers' class refuses questions that share a prefix ({first_line(error)})")
            return self._whole(look, asked, most)
        if not self._tried:
            some = range(min(TRIAL, len(asked)))
            with _whole.largest_logit(self._model) as largest:
                plain = self._whole(look, [asked[n] for n in some], 1)
            worst = max(abs(a - b) for n in some for a, b in zip(values[n], plain[n], strict=True))
            if not worst <= EXACT + self._share * largest[0]:
                self._never(f"a shared prefix changes log-probabilities by up to {worst:.2g}")
                return self._whole(look, asked, most)
            self._tried = True
        return values

    def _shared(self, look: Look, asked: Sequence[Asked], most: int) -> list[list[float]]:
        """All questions over one prefix."""
        rows = [row for _, row in asked]
        inputs = {
            name: tensor.to(self._model.device, self._dtype if tensor.is_floating_point() else None)
            for name, tensor in self._reader.inputs(look, asked[0].text).items()
        }
        image_end = self._reader.image_end(rows[0].ids)
        (prefix,) = self._in_halves(
            lambda one: _shared_prefix.read_prefix(self._model, one[0], rows, image_end), [inputs]
        )
        found: list[list[float]] = []
        for pack in _shared_prefix.packs(rows, prefix.length, most):
            parts = self._in_halves(lambda piece: _shared_prefix.read_rests(self._model, prefix, piece), pack)
            found += [values for part in parts for values in part]
        return found

    def _whole(self, look: Look, asked: Sequence[Asked], most: int) -> list[list[float]]:
        """Every question with the image of its own."""
        sheets = [
            _whole.Sheet(row, self._reader.fitted(self._reader.inputs(look, text), row.ids)) for text, row in asked
        ]
        found: dict[int, list[float]] = {}
        with encoded_once(self._model) as reused:
            for places in _whole.batches(sheets, most):
                parts = self._in_halves(
                    lambda piece: _whole.read(self._model, piece, self._dtype), [sheets[n] for n in places]
                )
                found |= zip(places, (values for part in parts for values in part), strict=True)
        if reused.rows and not self._shares:
            self._add_note(f"{self._record.name} encodes the image once, and reads what that gives with every question")
        return [found[n] for n in range(len(asked))]

    def _in_halves(self, forward: Any, batch: Sequence[Any]) -> list[Any]:
        parts, self._limit = in_halves(
            forward,
            batch,
            self._limit,
            model=self._record.name,
            release=lambda: release_memory(self._model.device),
        )
        return parts

    def _never(self, reason: str) -> None:
        self._shares = False
        self._note(reason)

    def _note(self, reason: str) -> None:
        self._add_note(f"{self._record.name} reads the image once per question: {reason}")

    def _add_note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)


def load(
    identifier: str,
    *,
    spec: str,
    revision: str | None,
    device: str,
    dtype: str,
    unsafe_weights: bool,
    device_map: str | None = None,
    quantization: str | None = None,
) -> TransformersGenerative:
    """Load a generative model from a folder or the Hub.

    Args:
        identifier: Folder that `save_pretrained` wrote (model and processor), or `org/name[@revision]`.
        spec: What the user typed, for the record and for messages.
        revision: Branch, tag or commit on the Hub.
        device: `auto` or a torch device.
        dtype: `float32`, `bfloat16` or `float16`.
        unsafe_weights: Allow pickled weights (read with torch's `weights_only` even so).
        device_map: How accelerate spreads the model over devices, such as `auto`; then `device` stays `auto`.
        quantization: `4bit` or `8bit`, with bitsandbytes.

    Raises:
        UserError: There is no such model, it is not a generative one, or its files are incomplete, damaged or unsafe.
    """
    where, kind = resolve_device(device), resolve_dtype(dtype)
    options = _placement(spec, where, kind, device, device_map, quantization)
    name, revision = split_revision(identifier, revision)
    patterns = SAFE_WEIGHTS + (PICKLED_WEIGHTS if unsafe_weights else ())
    files = locate(name, revision, patterns, subfolders=True)
    with loading(spec), quiet_transformers():
        config = read_config(spec, files.folder)
        model_class = generative_class(config)
        if model_class is None:
            raise UserError(
                f"model {spec}: {config.model_type} does not go on with a text about an image, as {GENERATIVE}"
            )
        if saved_so := getattr(config, "quantization_config", None) is not None:
            if quantization is not None:
                raise UserError(f"model {spec}: its weights are quantized already; leave quantization out")
            options.setdefault("device_map", {"": where})
        # It warns at every product, not once, that numbers are cast.
        logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
        find_weights(spec, files.folder, SAFE_WEIGHTS + PICKLED_WEIGHTS, unsafe=unsafe_weights)
        processor = load_processor(spec, files.folder)
        make_reader(spec, config, processor)  # what cannot be asked need not be loaded
        model = load_weights(
            spec, model_class, files.folder, "auto" if saved_so else kind, unsafe=unsafe_weights, **options
        )
        if any(parameter.is_meta for parameter in model.parameters()):
            raise UserError(
                f"model {spec}: the devices of device_map {device_map} do not hold all of it; "
                "use a smaller dtype, a quantization or a smaller model"
            )
        record = _record(spec, files, short_name(name), model, processor, quantization)
    placed = model if options else place(model, record.name, where, None)
    # What was saved with quantized weights is in the numbers that it was saved in.
    return TransformersGenerative(placed, processor, record, model.dtype if saved_so else kind)


def _placement(
    spec: str, where: torch.device, dtype: torch.dtype, device: str, device_map: str | None, quantization: str | None
) -> dict[str, Any]:
    """What `from_pretrained` must know to put the weights elsewhere than whole onto one device."""
    options: dict[str, Any] = {}
    if device_map is not None:
        _require(spec, "device_map", "accelerate")
        if device != "auto":
            raise UserError(f"model {spec}: give a device ({device}) or a device_map ({device_map}), not both")
        options["device_map"] = device_map
    if quantization is not None:
        if quantization not in QUANTIZATIONS:
            raise UserError(f"model {spec}: quantization {quantization}: unknown; one of {', '.join(QUANTIZATIONS)}")
        _require(spec, f"quantization {quantization}", "bitsandbytes")
        options.setdefault("device_map", {"": where})
        options["quantization_config"] = (
            transformers.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_compute_dtype=dtype)
            if quantization == "4bit"
            else transformers.BitsAndBytesConfig(load_in_8bit=True)
        )
    return options


def quantized(model: Any) -> str | None:
    """In how few bits a model's weights are; None where they are whole."""
    return next((kind for kind in QUANTIZATIONS if getattr(model, f"is_loaded_in_{kind}", False)), None)


def _require(spec: str, what: str, package: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise UserError(f"model {spec}: {what} needs {package}; `pip install {package}`")


def _record(spec: str, files: Files, name: str, model: Any, processor: Any, quantization: str | None) -> ModelRecord:
    asks = make_reader(name, model.config, processor)
    description = {
        "adapter": ADAPTER,
        "class": type(model).__name__,
        "config": describe_config(model),
        "quantization": quantization,
        "processor": {k: v for k, v in processor.to_dict().items() if k != "video_processor"},
        "tokenizers": {
            part: describe_tokenizer(tokenizer)
            for part in ("tokenizer", "qformer_tokenizer")
            if (tokenizer := getattr(processor, part, None)) is not None
        },
        "reader": asks.describe(),
    }
    return ModelRecord(
        spec=spec,
        name=name,
        adapter=ADAPTER,
        kind=asks.kind,
        revision=files.commit,
        content=content_hash(model, description),
        parameters=model.num_parameters(),  # which knows how many numbers share a byte
    )
