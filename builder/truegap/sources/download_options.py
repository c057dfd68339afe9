"""How images are fetched by their addresses: how many at a time, how patiently, and how large they may be."""

from __future__ import annotations

from pydantic import Field

from truegap.schema import MAX_PIXELS
from truegap.sources._source import Names, Options


class DownloadOptions(Options):
    """How images are fetched."""

    workers: int = Field(default=8, ge=1, le=64)
    """Downloads at a time, over all hosts."""
    per_host: int = Field(default=2, ge=1, le=16)
    """Downloads at a time from one host."""
    timeout: float = Field(default=20.0, gt=0)
    """Seconds to wait for a connection and for each part of an answer."""
    deadline: float = Field(default=120.0, gt=0)
    """Seconds that one answer may take in all, however steadily it trickles."""
    attempts: int = Field(default=4, ge=1, le=10)
    """Tries per address, where another may help: no answer, 408, 425, 429 and 5xx."""
    backoff: float = Field(default=1.0, ge=0)
    """Seconds before the second try; doubled before each further one, with jitter."""
    longest_wait: float = Field(default=120.0, ge=0)
    """Most seconds to wait before a try, also where the host asks for more (`Retry-After`)."""
    max_bytes: int = Field(default=32_000_000, ge=1)
    """Largest image file."""
    max_pixels: int = Field(default=MAX_PIXELS, ge=1)
    """Largest image; it is checked before any pixel is decoded."""
    max_redirects: int = Field(default=5, ge=0)
    """Redirects per address."""
    private_hosts: Names = ()
    """Hosts that may be in a private network or this machine; every other such address is refused, and so is every
    redirect to one."""
    retry_dead: bool = False
    """Whether addresses that an earlier run found dead (404, no image, …) are tried again."""
    user_agent: str = "truegap (benchmark image downloader)"
    """What the hosts are told."""
