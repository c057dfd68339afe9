"""Which runs can be compared, and by what."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any


def question(benchmark_content: str, protocol: str, options: Mapping[str, Any], configs: Sequence[str]) -> str:
    """A SHA-256 over what was asked, of whatever model: only answers to the same question can be compared.

    Args:
        benchmark_content: Hash of the benchmark's images and labels.
        protocol: Such as `retrieval`.
        options: Every convention and its value.
        configs: Which configs were run, in any order.
    """
    asked = [benchmark_content, protocol, options, sorted(configs)]
    return hashlib.sha256(json.dumps(asked, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def size_interval(low: float | None, high: float | None) -> tuple[float | None, float | None]:
    """The interval of |x| from that of a signed x; two None where there is none.

    >>> size_interval(-0.2, 0.1), size_interval(-0.3, -0.1)
    ((0.0, 0.2), (0.1, 0.3))
    """
    if low is None or high is None:
        return None, None
    return (0.0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))
