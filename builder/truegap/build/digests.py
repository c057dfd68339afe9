"""Many SHA-256 in little memory: a build has thirty for each image."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import overload

_BYTES = 32
_CHARACTERS = 2 * _BYTES


class Digests(Sequence[str]):
    """SHA-256 as lower-case hexadecimal; each takes 32 bytes, where a list of strings takes 121."""

    __slots__ = ("_bytes",)

    def __init__(self, digests: Iterable[str] = ()) -> None:
        """See `extend`."""
        self._bytes = bytearray()
        self.extend(digests)

    def extend(self, digests: Iterable[str]) -> None:
        """Adds some at the end.

        Raises:
            ValueError: One of them is no SHA-256.
        """
        some = list(digests)
        try:
            packed = bytes.fromhex("".join(some))
        except (TypeError, ValueError):
            packed = b""
        # All at once, since there are many: where each has its characters, and all their bytes, each is one.
        if len(packed) != _BYTES * len(some) or not {_CHARACTERS}.issuperset(map(len, some)):
            raise ValueError("something among them is no SHA-256")
        self._bytes += packed

    def __len__(self) -> int:
        """How many there are."""
        return len(self._bytes) // _BYTES

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> Digests: ...

    def __getitem__(self, place: int | slice) -> str | Digests:
        """One of them, or some."""
        if isinstance(place, slice):
            return Digests(self[each] for each in range(len(self))[place])
        start = range(len(self))[place] * _BYTES
        return self._bytes[start : start + _BYTES].hex()

    def __eq__(self, other: object) -> bool:
        """Whether the other ones, or those of a list, are the same in the same order."""
        if isinstance(other, Digests):
            return self._bytes == other._bytes
        return list(self) == other if isinstance(other, list) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # more may be added

    def __repr__(self) -> str:
        """How many there are, and the first."""
        return f"Digests({len(self)}: {', '.join(self[:1])}…)"
