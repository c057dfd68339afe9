"""Headers of other people's servers, read with suspicion."""

from __future__ import annotations

import re
import time
from email.utils import parsedate_to_datetime

_SECONDS = re.compile(r"\d+(\.\d+)?", re.ASCII)
_LONGEST = 999_999_999.0


def retry_after(value: str | None, unit: float = 1.0) -> float | None:
    """Seconds that a server asks to wait, at least 0; None where it asks for nothing that can be read.

    Source: RFC 9110, section 10.2.3.

    Args:
        value: Of `Retry-After`: a number, or a date. Some send a fraction, some another header with a number alone.
        unit: Seconds that a number counts: 0.001 for `retry-after-ms`.

    >>> retry_after("1.5"), retry_after("250", unit=0.001), retry_after("soon"), retry_after(None)
    (1.5, 0.25, None, None)
    """
    if value is None:
        return None
    if _SECONDS.fullmatch(value):
        return min(float(value) * unit, _LONGEST)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
