"""How each family of generative models is asked: the text of a question, and the tensors that the model reads.

Chat models bring a template of their own, as part of their processor. The older families have none, and are asked in
the words of their authors, which are written down here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import torch
from PIL import Image

from truegap.errors import UserError, first_line
from truegap.models._look import Look, Tensors
from truegap.models._rows import Ids
from truegap.models._whole import fitted
from truegap.models.generative import Question

REMEMBERED = 10_000
"""Texts of which a chat model's words and tokens are kept."""


CLOCK = "strftime_now"
"""What templates call to tell the model today's date, as Mistral's do."""
DAY = {
    "%-d": "1",
    "%d": "01",
    "%-m": "1",
    "%m": "01",
    "%B": "January",
    "%b": "Jan",
    "%Y": "2025",
    "%y": "25",
    "%A": "Wednesday",
    "%a": "Wed",
    "%H": "12",
    "%I": "12",
    "%p": "PM",
    "%M": "00",
    "%S": "00",
}
"""The date that they tell here, whatever the day: else scores would change from one to the next."""
_STOPPED = (
    f"{{% macro {CLOCK}(format) %}}{{{{ format"
    + "".join(f" | replace('{sign}', '{value}')" for sign, value in DAY.items())
    + " }}{% endmacro %}{{ '' }}"
)
"""A macro hides the function of its name; the empty text at its end keeps a line break that may follow."""


class Wording(NamedTuple):
    """What a family without a chat template reads.

    Attributes:
        chat: The words around a question, in which `{}` stands for it.
        shown: A text with what the processor adds: before and after it, and the mark of the image.
        whole: Why the image is read once per question.
    """

    chat: str
    shown: str
    whole: str


_CAPTIONER = Wording("{}", "<image>{first}{text}", "the image is no part of its sequence of tokens")
_SEPARATE = "the class takes no earlier states without the image"
WORDINGS = {
    "blip": _CAPTIONER,
    "git": _CAPTIONER,
    "blip-2": Wording("Question: {} Answer:", "<image>{before}{text}{after}", _SEPARATE),
    "instructblip": Wording(
        "{}", "<image>{before}{text}{after}", "its Q-Former reads the question together with the image"
    ),
    "kosmos-2": Wording("Question: {} Answer:", "{first}<image></image>{text}", _SEPARATE),
    "paligemma": Wording("answer en {}", "<image>{first}{text}\n", "it reads image and question in both directions"),
}
"""Families without a chat template, by `model_type`: BLIP-2 and Kosmos-2 as in their papers' visual question
answering, PaliGemma with the prefix that its mixture was trained on."""


class Reader(ABC):
    """Asks a model: through its chat template, or in its family's words."""

    kind: Literal["generative", "captioner"] = "generative"
    whole: str | None = None
    """Why the image must be read once per question; None where it need not."""
    note: str | None = None
    """What else a reader of the scores must know."""
    _added: Mapping[str, int] | None = None  # what goes along with an option's tokens, where not as with the last

    def __init__(self, name: str, config: Any, processor: Any) -> None:
        """Take a model's configuration and its processor."""
        self._name = name
        self._processor = processor
        self._tokenizer = processor.tokenizer
        self._image_token: int | None = next(
            (token for key in ("image_token_id", "image_token_index") if (token := getattr(config, key, None))), None
        )
        text = getattr(config, "text_config", config)
        starts = (getattr(text, name, None) for name in ("decoder_start_token_id", "pad_token_id"))  # T5's are the same
        self.start: int | None = next(n for n in starts if n is not None) if text.is_encoder_decoder else None
        """The token that a decoder of its own begins with: then options stand there, and the question does not."""
        self._most: int | None = None if self.start is not None else getattr(text, "max_position_embeddings", None)
        if self.start is not None:
            self.whole = "options are read by a decoder of their own"

    def look(self, image: Image.Image) -> Look:
        """The processor for one image."""
        return Look(self._name, self._processor, image)

    @abstractmethod
    def text(self, question: Question) -> str:
        """What the processor gets; a blank at its end stands between question and option."""

    @abstractmethod
    def shown(self, question: Question) -> str:
        """What the model reads, with a mark where the image goes."""

    def inputs(self, look: Look, text: str) -> Tensors:
        """The model's inputs for a text, a batch of 1."""
        return look(text.rstrip(" "), **self._options(text))

    def ids(self, look: Look, text: str, option: str) -> Ids:
        """The tokens of a text and what follows it; of what follows alone where a decoder of its own reads that."""
        if self.start is not None:
            return (self.start, *self._apart(option))
        return self._joined(look, text, option)

    def require_room(self, ids: Ids) -> None:
        """Refuse more tokens than the model has positions for.

        Raises:
            UserError: There are more.
        """
        if self._most is not None and len(ids) > self._most:
            raise UserError(
                f"model {self._name}: image, question and option are {len(ids)} tokens, its context holds "
                f"{self._most}; ask less"
            )

    def fitted(self, inputs: Tensors, ids: Ids) -> Tensors:
        """The inputs with these tokens in place of their own, which they go on from."""
        if self.start is not None:
            return {**inputs, "decoder_input_ids": torch.tensor([ids])}
        return fitted(inputs, ids, self._added)

    def describe(self) -> dict[str, Any]:
        """Whatever decides how a question turns into a text, for the model's content."""
        return {"class": type(self).__name__}

    def image_end(self, ids: Ids) -> int | None:
        """The place after the image's last token; None where the image is not among the tokens."""
        if self._image_token is None or self._image_token not in ids:
            return None
        return len(ids) - ids[::-1].index(self._image_token)

    def _joined(self, look: Look, text: str, option: str) -> Ids:
        """Both as one text, since a tokenizer may write an option in another way where something goes before it."""
        asked = text.rstrip(" ")
        blank = " " if option and len(asked) < len(text) else ""
        return self._tokens(look, asked + blank + option)

    def _tokens(self, look: Look, text: str) -> Ids:
        return _ids(self.inputs(look, text))

    def _apart(self, option: str) -> Ids:
        return tuple(self._tokenizer(option, add_special_tokens=False).input_ids)

    def _options(self, text: str) -> dict[str, Any]:  # noqa: ARG002 (the text matters to chat templates)
        return {}


class ChatReader(Reader):
    """A chat model: the template of its processor says it all."""

    def __init__(self, name: str, config: Any, processor: Any) -> None:
        """Take a model's configuration and its processor."""
        super().__init__(name, config, processor)
        self._template = lru_cache(REMEMBERED)(self._rendered)
        self._words = _default_template(name, processor.chat_template)
        if CLOCK in self._words:
            self._words = _STOPPED + self._words
            self.note = "the chat template tells the model a date: always that of 1 January 2025"
        self._parts: dict[str, tuple[Ids, Ids]] = {}  # of a text: the tokens before the image, and after it

    def describe(self) -> dict[str, Any]:
        """Whatever decides how a question turns into a text, for the model's content."""
        return {**super().describe(), "template": self._words}

    def text(self, question: Question) -> str:
        """One turn of the user, and the beginning of the model's."""
        if question.form == "chat":
            return self._template(question.text)
        return self._template(None) + question.text

    def shown(self, question: Question) -> str:
        """The same, with what the tokenizer adds."""
        text = self.text(question).rstrip(" ")
        if self._options(text):
            return text
        before, after = _specials(self._tokenizer)
        return before + text + after

    def _rendered(self, text: str | None) -> str:
        content = [{"type": "image"}, *([] if text is None else [{"type": "text", "text": text}])]
        try:
            prompt: str = self._processor.apply_chat_template(
                [{"role": "user", "content": content}], chat_template=self._words, add_generation_prompt=True
            )
        except Exception as error:  # templates are programs of their own, and fail as they like
            raise UserError(
                f"model {self._name}: its chat template takes no turn with one image: {first_line(error)}"
            ) from error
        return prompt + self._blank(prompt)

    def _blank(self, prompt: str) -> str:
        """The blank that stands before an answer, unless a line break or a mark of the template does its work."""
        if not prompt or prompt[-1].isspace():
            return ""
        last = self._tokenizer(prompt, add_special_tokens=False).input_ids[-1]
        return "" if last in self._tokenizer.all_special_ids else " "

    def _tokens(self, look: Look, text: str) -> Ids:
        """The tokens of a text: what goes before the image, the image's, and what goes after it.

        The last part is remembered from one image to the next, for tokenizing is slow beside a forward pass of some
        devices. The first text of an image is always tokenized as a whole; what it says of the memory decides.
        """
        before, after = self._parts.get(text, ((), ()))
        if after and before in look.heads:
            return (*look.heads[before], *after)
        ids = super()._tokens(look, text)
        end = self.image_end(ids)
        if end is None:
            if self._image_token is not None:
                raise UserError(
                    f"model {self._name}: its chat template leaves the image out; put that of its authors there"
                )
            return ids
        if (after and after != ids[end:]) or len(self._parts) >= REMEMBERED:
            self._parts.clear()
        self._parts[text] = ids[: ids.index(self._image_token)], ids[end:]
        look.heads[self._parts[text][0]] = ids[:end]
        return ids

    def _options(self, text: str) -> dict[str, Any]:
        """No second mark of the beginning where the template writes one."""
        bos = self._tokenizer.bos_token
        return {"add_special_tokens": False} if bos and text.startswith(bos) else {}


class PlainReader(Reader):
    """A family without a chat template."""

    def __init__(self, name: str, config: Any, processor: Any) -> None:
        """Take a model's configuration and its processor."""
        super().__init__(name, config, processor)
        self._wording = WORDINGS[config.model_type]
        self.whole = self.whole or self._wording.whole

    def describe(self) -> dict[str, Any]:
        """Whatever decides how a question turns into a text, for the model's content."""
        return {**super().describe(), "wording": self._wording.chat}

    def text(self, question: Question) -> str:
        """The question in the family's words; a sentence to continue as it is."""
        return self._wording.chat.format(question.text) + " " if question.form == "chat" else question.text

    def shown(self, question: Question) -> str:
        """The same, with what the processor adds."""
        before, after = _specials(self._tokenizer)
        text = self.text(question).rstrip(" ")
        return self._wording.shown.format(text=text, before=before, after=after, first=self._first())

    def _first(self) -> str | None:
        """The mark that a text begins with."""
        mark: str | None = self._tokenizer.bos_token
        return mark


class PaliGemmaReader(PlainReader):
    """PaliGemma: the prompt ends in a line break, and what follows is tokenized apart and read in one direction."""

    _added = {"token_type_ids": 1}  # noqa: RUF012 (never changed)

    def inputs(self, look: Look, text: str) -> Tensors:
        """The model's inputs for a text, a batch of 1."""
        inputs = super().inputs(look, f"<image>{text}")
        return {name: tensor for name, tensor in inputs.items() if name != "labels"}

    def _joined(self, look: Look, text: str, option: str) -> Ids:
        return (*_ids(self.inputs(look, text)), *self._apart(option))


class CaptionerReader(PlainReader):
    """BLIP and GIT go on with a text; their tokenizers end it with a mark that they would have to write themselves."""

    kind = "captioner"

    def __init__(self, name: str, config: Any, processor: Any) -> None:
        """Take a model's configuration and its processor."""
        super().__init__(name, config, processor)
        # As BLIP's own `generate` begins; GIT keeps its tokenizer's mark.
        self._begin: int = (
            config.text_config.bos_token_id if config.model_type == "blip" else self._tokenizer.cls_token_id
        )

    def inputs(self, look: Look, text: str) -> Tensors:
        """The model's inputs for a text, a batch of 1."""
        inputs = dict(super().inputs(look, text))
        length = inputs["input_ids"].shape[1]
        for name in ("input_ids", "attention_mask"):
            inputs[name] = inputs[name][:, : length - 1]
        inputs["input_ids"] = inputs["input_ids"].clone()
        inputs["input_ids"][:, 0] = self._begin
        return inputs

    def _first(self) -> str:
        mark: str = self._tokenizer.convert_ids_to_tokens(self._begin)
        return mark


def make_reader(name: str, config: Any, processor: Any) -> Reader:
    """How this model is asked.

    Raises:
        UserError: It has no chat template, and its family no wording here.
    """
    special = {"paligemma": PaliGemmaReader, "blip": CaptionerReader, "git": CaptionerReader}
    if config.model_type in WORDINGS:
        return special.get(config.model_type, PlainReader)(name, config, processor)
    if not processor.chat_template:
        raise UserError(
            f"model {name}: its processor has no chat template, so that nothing says how to ask it; "
            "put its authors' chat_template.jinja into its folder"
        )
    return ChatReader(name, config, processor)


def _default_template(name: str, given: str | dict[str, str]) -> str:
    """The template of a processor; where it has several, the one for everyday use.

    Raises:
        UserError: None of several is that.
    """
    found = given.get("default") if isinstance(given, dict) else given
    if not found:
        raise UserError(
            f"model {name}: its processor has the chat templates {', '.join(given)}, and none that is named default"
        )
    return found


def _ids(inputs: Tensors) -> Ids:
    return tuple(inputs["input_ids"][0].tolist())


def _specials(tokenizer: Any) -> tuple[str, str]:
    """What a tokenizer writes before and after a text."""
    bare, full = (tokenizer("a", add_special_tokens=special).input_ids for special in (False, True))
    start = next(n for n in range(len(full)) if full[n : n + len(bare)] == bare)
    before, after = full[:start], full[start + len(bare) :]
    return "".join(tokenizer.convert_ids_to_tokens(before)), "".join(tokenizer.convert_ids_to_tokens(after))
