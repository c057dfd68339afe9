"""What `datasets/<name>/benchmark.yaml` says about a benchmark: origin, licences, filters, published size, citation."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from truegap.errors import UserError
from truegap.resources import house

Line = Annotated[str, StringConstraints(min_length=1, pattern=r"^[^\n\r]+$")]
Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
Url = Annotated[str, StringConstraints(pattern=r"^https?://[^\s<>\"']+$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Origin(_Strict):
    """A file or page that the benchmark is made from."""

    name: Line
    url: Url
    note: Line | None = None
    hub: Annotated[str, StringConstraints(pattern=r"^[\w.-]+/[\w.-]+$")] | None = None
    """The authors' dataset on the Hub, from which a build can take it."""


class License(_Strict):
    """What a licence lets anybody do with an image or its annotations."""

    url: Url | None = None
    redistribution: bool
    """Unchanged copies may be published, with attribution where the licence asks for it."""
    derivatives: bool
    """Changed copies may be published too; without this a photograph stays out of the perturbed configs."""
    commercial: bool


class LabelRule(_Strict):
    """One way to label the images, and whether those labels may be published."""

    description: Text
    license: Line
    redistribution: bool
    url: Url | None = None


class Published(_Strict):
    """The size that the paper prints."""

    woman: int = Field(ge=0)
    man: int = Field(ge=0)
    where: Line

    @property
    def total(self) -> int:
        """Women and men together."""
        return self.woman + self.man

    def distance(self, woman: int, man: int) -> str:
        """One line that says how far a selection of `woman` and `man` images is from the published size."""
        here = {"women": (woman, self.woman), "men": (man, self.man), "in all": (woman + man, self.total)}
        parts = (f"{n:,} {name} ({n - published:+,})" for name, (n, published) in here.items())
        return f"{', '.join(parts)}, against {self.woman:,} + {self.man:,} = {self.total:,} in {self.where}"


def _has_entry(text: str) -> str:
    if not text.lstrip().startswith("@"):
        raise ValueError("a BibTeX entry starts with @")
    return text


class BenchmarkSpec(_Strict):
    """The pinned metadata of one benchmark; an unknown key is an error."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
    version: Annotated[str, StringConstraints(pattern=r"^\d+\.\d+\.\d+$")]
    title: Line
    description: Text
    origins: list[Origin] = Field(default_factory=list)
    language: list[Line]
    task_categories: list[Line]
    tags: list[Line] = Field(default_factory=list)
    license: Line
    """The licence of the whole as the Hub names it, such as `apache-2.0` or `other`."""
    annotations_license: Line
    """Short name of the licence of boxes, masks and objects."""
    images_license: Line
    """Short name of the images' licence, or `per image` where every row says its own."""
    licenses: dict[str, License]
    """The licences that a row may have; an image under any other is never published."""
    labels: dict[str, LabelRule]
    filters: dict[str, Text]
    defaults: dict[str, Any]
    """The options that a build uses when none is given."""
    published: Published | None = None
    citation: Annotated[Text, AfterValidator(_has_entry)] | None = None

    def publishable(self, license_name: str, *, perturbed: bool) -> bool:
        """Whether an image under this licence may be published, changed or as it is."""
        terms = self.licenses.get(license_name)
        return terms is not None and terms.redistribution and (terms.derivatives or not perturbed)


def load_benchmark(name: str) -> BenchmarkSpec:
    """Read `datasets/<name>/benchmark.yaml`.

    Raises:
        UserError: There is no such benchmark, or its file is not what `BenchmarkSpec` describes.
    """
    import yaml

    path = house("datasets", name, "benchmark.yaml")
    try:
        return BenchmarkSpec.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except yaml.YAMLError as error:
        raise UserError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from None
    except ValidationError as error:
        raise UserError(f"{path}: {first_problem(error)}") from None


def load_card(name: str) -> str:
    """The sections that are special to a benchmark's card: Markdown from `datasets/<name>/card.md`.

    Raises:
        UserError: There is no such benchmark.
    """
    return house("datasets", name, "card.md").read_text(encoding="utf-8")


def first_problem(error: ValidationError) -> str:
    """The first problem that pydantic found, on one line; an unknown key before the missing one that it stands for."""
    problem = min(error.errors(include_url=False), key=lambda found: found["type"] != "extra_forbidden")
    where = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        return f"{where!r} is not known"
    message = problem["msg"].removeprefix("Value error, ")
    return f"{where}: {message}" if where else message
