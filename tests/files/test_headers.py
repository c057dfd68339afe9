"""Headers of other people's servers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from truegap.files.headers import retry_after


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("", None),
        ("7", 7),
        ("1.25", 1.25),
        ("soon", None),
        ("-1", None),
        ("٣", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0),
        ("Wed, 99 Oct 2015 07:28:00 GMT", None),
        ("9" * 5000, 999_999_999),
    ],
)
def test_the_pause_that_a_host_asks_for_is_seconds_or_a_date(value, seconds):
    assert retry_after(value) == seconds


def test_a_date_counts_from_now_and_a_number_in_its_unit():
    in_an_hour = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    wait = retry_after(in_an_hour)
    assert wait is not None
    assert 0 < wait <= 3600
    assert retry_after("250", unit=0.001) == 0.25
