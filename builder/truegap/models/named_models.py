"""Every model that the four papers name: how it is had here, or why not and what to do instead."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, StringConstraints, TypeAdapter, model_validator

from truegap.errors import UserError
from truegap.results.published import CDA, HALL, HIROTA, XIAO

PAPERS = (HIROTA, HALL, XIAO, CDA)
WAYS = {
    "open_clip": "loads here, with open_clip",
    "transformers": "loads here, with transformers",
    "endpoint": "over an OpenAI-compatible server: `--model endpoint:URL#MODEL`",
    "plug-in": "with a small class of your own: see [plug_in.md](plug_in.md)",
}
"""How a model is had."""

_HEAD = ("| model | kind | how | `--model` | remarks |", "|---|---|---|---|---|")

Way = Literal["open_clip", "transformers", "endpoint", "plug-in"]
Line = Annotated[str, StringConstraints(pattern=r"^[^\n\r]+$")]


class NamedModel(BaseModel):
    """A model as a paper names it; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    paper: Literal["Hirota et al. 2025", "Hall et al. 2023", "Xiao et al. 2024", "CLIP-CDA report"]
    name: Line
    """As its tables print it."""
    kind: Literal["generative", "captioner", "dual-encoder"]
    way: Way
    spec: Line | None
    """What `--model` takes; None where it does not load here."""
    origin: Annotated[str, StringConstraints(pattern=r"^[\w.-]+/[\w.-]+$")] | None
    """Its authors' repository on the Hub, where it does not load here; None where that is not verified."""
    note: str
    """What a reader must know; may be empty."""

    @model_validator(mode="after")
    def _whole(self) -> NamedModel:
        loads = self.way in {"open_clip", "transformers"}
        if loads != (self.spec is not None) or (loads and self.origin is not None):
            raise ValueError(f"{self.name}: a model that loads here has a spec and no origin, any other the reverse")
        if self.spec is not None and self.spec.startswith("open_clip:") != (self.way == "open_clip"):
            raise ValueError(f"{self.name}: {self.spec} does not go with {self.way}")
        if not loads and not self.note:
            raise ValueError(f"{self.name}: say why it does not load here")
        return self


@lru_cache
def every() -> tuple[NamedModel, ...]:
    """All of them, paper by paper.

    >>> every()[0].name, every()[0].spec
    ('LLaVA-1.5-7B', 'llava-hf/llava-1.5-7b-hf')
    """
    data = files(__package__).joinpath("named_models.json").read_bytes()
    return TypeAdapter(tuple[NamedModel, ...]).validate_json(data)


def of_paper(paper: str | None) -> tuple[NamedModel, ...]:
    """Those of one paper, named by any part of its key or title, such as `hirota`; of all where it is None.

    Raises:
        UserError: There is no such paper, or there are several.
    """
    if paper is None:
        return every()
    found = [each.key for each in PAPERS if paper.casefold() in f"{each.key} {each.title}".casefold()]
    if len(found) != 1:
        keys = ", ".join(each.key for each in PAPERS)
        raise UserError(
            f"--paper {paper!r} names {'several' if found else 'none'} of {keys}: use a word of its key or title"
        )
    return tuple(each for each in every() if each.paper == found[0])


def page(models: Sequence[NamedModel]) -> str:
    """The page of the documentation: a table per paper, in Markdown."""
    lines = [
        "# Models that the papers name",
        "",
        "How each is had here. The page is made from the package's own table: `truegap models --markdown`.",
        "Ids on the Hub are written down, not asked for: see that it is the model you mean, and pin",
        "`--model-revision`. Older repositories hold pickled weights alone, which need `--unsafe-weights`.",
        "",
        *(f"- **{way}**: {what}" for way, what in WAYS.items()),
    ]
    for paper in PAPERS:
        named = [each for each in models if each.paper == paper.key]
        if named:
            title = f"[{paper.title}]({paper.url})" if paper.url else paper.title
            lines += [
                "",
                f"## {paper.key}",
                "",
                title,
                "",
                "| model | kind | how | `--model` | remarks |",
                "|---|---|---|---|---|",
            ]
            lines += [_row(each) for each in named]
    return "\n".join(lines) + "\n"


def _row(model: NamedModel) -> str:
    where = f"`{model.spec}`" if model.spec else f"({model.origin})" if model.origin else "-"
    return f"| {model.name} | {model.kind} | {model.way} | {where} | {model.note} |"
