"""One image by its address: where it may lead, how long and how large it may be, when to try again."""

from __future__ import annotations

import ipaddress
import random
import socket
import threading
import time
import warnings
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Self
from urllib.parse import urljoin, urlsplit

from truegap.files.headers import retry_after
from truegap.sources.download_options import DownloadOptions

_AGAIN = {408, 425, 429, 500, 502, 503, 504}
"""Statuses after which another try may help."""
_REDIRECTS = {301, 302, 303, 307, 308}
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_EXTENSIONS = {"JPEG": "jpg", "PNG": "png", "WEBP": "webp"}


class Refused(Exception):  # noqa: N818  # an answer, not an error of ours
    """There is no image to be had; the message is a reason that can be counted.

    Attributes:
        lasting: Another run would find the same.
    """

    def __init__(self, reason: str, *, lasting: bool = True) -> None:
        super().__init__(reason)
        self.lasting = lasting


class _Later(Exception):  # noqa: N818  # a signal inside this module
    """Another try may help, after so many seconds if the host says so."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


@dataclass(frozen=True, slots=True)
class Fetched:
    """An image as it came."""

    data: bytes
    extension: str
    width: int
    height: int


class Fetcher:
    """Fetches images; safe in threads.

    Names are resolved here, every address is checked, and the connection goes to the checked address: a host cannot
    be public when it is looked up and private when it is called.
    """

    def __init__(self, options: DownloadOptions, stop: threading.Event) -> None:
        """Opens no connection yet; once `stop` is set, whatever is under way is refused."""
        import httpx2

        self._options = options
        self._stop = stop
        self._lock = threading.Lock()
        self._slots: dict[str, threading.Semaphore] = {}
        self._free_at: dict[str, float] = {}
        self._client = httpx2.Client(
            timeout=options.timeout,
            follow_redirects=False,
            headers={"User-Agent": options.user_agent, "Accept": "image/*", "Accept-Encoding": "identity"},
            # Connections are known by their address: one that was kept could serve another host on the same machine,
            # whose certificate nobody checked.
            limits=httpx2.Limits(max_keepalive_connections=0),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def fetch(self, url: str) -> Fetched:
        """The image at an address.

        Raises:
            Refused: There is none to be had.
        """
        options = self._options
        for attempt in range(1, options.attempts + 1):
            try:
                return self._follow(url)
            except _Later as later:
                if attempt == options.attempts:
                    raise Refused(f"{later} ({attempt} tries)", lasting=False) from None
                # Jitter, so that what failed together does not come back together.
                own = options.backoff * 2 ** (attempt - 1) * random.uniform(0.5, 1.0)  # noqa: S311
                wait = min(own if later.wait is None else later.wait, options.longest_wait)
                self._sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    def _follow(self, url: str) -> Fetched:
        for _ in range(self._options.max_redirects + 1):
            answer = self._get(url)
            if isinstance(answer, bytes):
                return _image(answer, self._options.max_pixels)
            url = urljoin(url, answer)
        raise Refused(f"more than {self._options.max_redirects} redirects")

    def _get(self, url: str) -> bytes | str:
        """The body, or the address that it redirects to."""
        import httpx2

        host, port = _parts(url)
        addresses = self._resolve(host, port)
        with self._slot(host):
            self._sleep(self._free_at.get(host, 0.0) - time.monotonic())
            for address in addresses:
                try:
                    response = self._client.send(self._request(url, address), stream=True)
                    break
                except httpx2.ConnectError:
                    continue
                except httpx2.TimeoutException:
                    raise _Later("no answer in time") from None
                except httpx2.TransportError as error:
                    raise _Later(f"no connection: {type(error).__name__}") from None
            else:
                raise _Later("no connection")
            try:
                return self._answer(response)
            except _Later as later:
                if later.wait is not None:
                    # The host asked for a pause: nobody calls it before that.
                    self._free_at[host] = time.monotonic() + later.wait
                raise
            finally:
                response.close()

    def _slot(self, host: str) -> threading.Semaphore:
        with self._lock:
            return self._slots.setdefault(host, threading.Semaphore(self._options.per_host))

    def _request(self, url: str, address: str) -> Any:
        """The request to this address of the host, which is still told and shown its own name."""
        import httpx2

        try:
            target = httpx2.URL(url)
            return self._client.build_request(
                "GET",
                target.copy_with(host=address, fragment=None),
                headers={"Host": target.netloc.decode("ascii")},
                extensions={"sni_hostname": target.raw_host.decode("ascii")},
            )
        except (httpx2.InvalidURL, UnicodeError):
            raise Refused("address is malformed") from None

    def _answer(self, response: Any) -> bytes | str:
        status = response.status_code
        if status in _REDIRECTS and "location" in response.headers:
            location: str = response.headers["location"]
            return location
        if status in _AGAIN:
            raise _Later(f"status {status}", retry_after(response.headers.get("retry-after")))
        if status != 200:  # noqa: PLR2004
            raise Refused(f"status {status}")
        return self._body(response)

    def _body(self, response: Any) -> bytes:
        import httpx2

        limit = self._options.max_bytes
        declared = response.headers.get("content-length", "")
        if declared.isascii() and declared.isdigit() and (len(declared) > 15 or int(declared) > limit):  # noqa: PLR2004
            raise Refused("image file is too large")
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            # It was not asked for, and a small body could unpack to any size.
            raise Refused("answer is compressed")
        ends = time.monotonic() + self._options.deadline
        body = bytearray()
        try:
            for part in response.iter_raw():
                body += part
                if len(body) > limit:
                    raise Refused("image file is too large")
                if time.monotonic() > ends:
                    raise _Later("answer took too long")
                if self._stop.is_set():
                    raise Refused("interrupted", lasting=False)
        except httpx2.TimeoutException:
            raise _Later("answer stopped") from None
        except httpx2.TransportError:
            raise _Later("answer was cut off") from None
        return bytes(body)

    def _resolve(self, host: str, port: int) -> list[str]:
        """The addresses of a host; all must be public, unless the host may be private."""
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except socket.gaierror:
            raise _Later("host is not known") from None
        except (UnicodeError, ValueError, OSError):
            raise Refused("address is malformed") from None
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        if host not in self._options.private_hosts and not all(map(_is_public, addresses)):
            raise Refused("host is in a private network")
        return addresses

    def _sleep(self, seconds: float) -> None:
        if self._stop.wait(max(0.0, min(seconds, self._options.longest_wait))):
            raise Refused("interrupted", lasting=False)


def _parts(url: str) -> tuple[str, int]:
    """Host and port of an address that may be asked.

    Raises:
        Refused: It is none.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise Refused("address is malformed") from None
    if parts.scheme not in {"http", "https"}:
        raise Refused("address is not http or https")
    if not host or not url.isprintable():
        raise Refused("address is malformed")
    if parts.username is not None or parts.password is not None:
        raise Refused("address holds a user name or password")
    return host, port or (443 if parts.scheme == "https" else 80)


def _is_public(address: str) -> bool:
    """Whether an address is in the public internet, the IPv4 address that an IPv6 one stands for too."""
    number = ipaddress.ip_address(address.partition("%")[0])
    inner: ipaddress.IPv4Address | ipaddress.IPv6Address | None = None
    if isinstance(number, ipaddress.IPv6Address):
        inner = number.ipv4_mapped or number.sixtofour
        if number in _NAT64:
            inner = ipaddress.IPv4Address(int(number) & 0xFFFFFFFF)
    return all(each.is_global and not each.is_multicast for each in (number, inner) if each is not None)


def _image(data: bytes, max_pixels: int) -> Fetched:
    """The image that a body holds, decoded once to know that it is whole.

    Raises:
        Refused: It is none, too large, or damaged.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            # Pillow warns at its own limit; ours is checked below, before any pixel is decoded.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            image = Image.open(BytesIO(data), formats=tuple(_EXTENSIONS))
        if image.width * image.height > max_pixels:
            raise Refused("image has too many pixels")
        extension = _EXTENSIONS.get(image.format or "", "jpg")  # several JPEG images in one call themselves MPO
        image.load()
    except Image.DecompressionBombError:
        raise Refused("image has too many pixels") from None
    except UnidentifiedImageError:
        is_page = data.lstrip()[:15].lower().startswith((b"<!doctype", b"<html"))
        raise Refused("a web page, no image" if is_page else "not a JPEG, PNG or WebP image") from None
    except (OSError, ValueError, SyntaxError, EOFError):
        raise Refused("image is damaged or cut off", lasting=False) from None
    return Fetched(data, extension, image.width, image.height)
