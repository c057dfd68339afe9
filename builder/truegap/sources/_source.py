"""What every source is made of: its name, its options, and the function that reads the archive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from truegap.errors import UserError
from truegap.schema import Selection
from truegap.sources.benchmark import BenchmarkSpec, first_problem, load_benchmark


def listed(value: Any) -> Any:
    """`("a", "b")` from `a,b`, as a command line writes it; anything else as it is."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(listed)]
"""An option that is a list of names, or one text with commas."""


class Options(BaseModel):
    """The options of a source, each with a default; an unknown one is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Chosen = TypeVar("Chosen", bound=Options)


@dataclass(frozen=True, slots=True)
class Source(Generic[Chosen]):
    """One archive that people download, and how it becomes examples.

    Attributes:
        name: As in `truegap build NAME` and `datasets/<name>/`.
        options: The options it takes.
        reader: Reads the archive in a folder.
    """

    name: str
    options: type[Chosen]
    reader: Callable[[Path, Chosen], Selection]

    @property
    def benchmark(self) -> BenchmarkSpec:
        """Origin, licences, filters, published size and citation."""
        return load_benchmark(self.name)

    def read(self, folder: Path, **options: Any) -> Selection:
        """The examples of the archive in `folder`.

        Raises:
            UserError: An option or the archive cannot be used.
        """
        try:
            chosen = self.options(**options)
        except ValidationError as error:
            known = ", ".join(self.options.model_fields)
            raise UserError(f"{self.name}: {first_problem(error)} (options: {known})") from None
        if not folder.is_dir():
            raise UserError(f"{self.name}: {folder} is not a folder; give the one that holds the archive as it unpacks")
        return self.reader(folder, chosen)
