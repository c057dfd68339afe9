"""A real web server on this machine, with pages that behave as hosts of images do."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from examples import encoded

IMAGE = encoded(1)
HTML = b"<!DOCTYPE html><html><body>gone</body></html>"
PAGES = {
    "image": (200, IMAGE, {"Content_Type": "image/jpeg"}),
    "png": (200, encoded(2, fmt="PNG"), {}),
    "busy": (429, b"", {"Retry_After": "3600"}),
    "broken": (503, b"", {}),
    "html": (200, HTML, {"Content_Type": "image/jpeg"}),
    "text": (200, b"no image at all", {}),
    "huge": (200, b"x" * 200_000, {}),
    "bomb": (200, encoded(3, (1100, 1100), "PNG"), {}),
    "half": (200, IMAGE[:-100], {}),
    "gzip": (200, IMAGE, {"Content_Encoding": "gzip"}),
    "loop": (302, b"", {"Location": "/loop"}),
    "to-private": (302, b"", {"Location": "http://169.254.169.254/latest/meta-data"}),
    "to-file": (301, b"", {"Location": "file:///etc/passwd"}),
}
"""Status, body and headers of the pages that are always the same."""


class ImageHost:
    """Serves until closed; counts calls and how many slow ones were served at once."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.headers: dict[str, str] = {}
        self.at_once = self.most_at_once = 0
        self.lock = threading.Lock()
        self.times: dict[str, list[float]] = {}
        self.released = threading.Event()
        """Until it is set, pages below `/held` do not answer."""
        host = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                with host.lock:
                    path = self.path.partition("?")[0]
                    host.calls[path] += 1
                    host.times.setdefault(path, []).append(time.monotonic())
                    host.headers = dict(self.headers)
                try:
                    host.answer(self, path)
                except (BrokenPipeError, ConnectionResetError):
                    pass
                finally:
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server.server_port}{path}"

    def close(self) -> None:
        self.released.set()
        self.server.shutdown()
        self.server.server_close()

    def send(self, handler: BaseHTTPRequestHandler, status: int, body: bytes = b"", **headers: str) -> None:
        handler.send_response(status)
        for name, value in {"Content_Length": str(len(body)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    def answer(self, handler: BaseHTTPRequestHandler, path: str) -> None:
        first = self.calls[path] == 1
        kind = path.split("/")[1]
        match kind:
            case "slow-image":
                with self.counted():
                    time.sleep(0.1)
                self.send(handler, 200, IMAGE)
            case "silent":
                time.sleep(3)
            case "held":
                self.released.wait(600)
                self.send(handler, 200, IMAGE)
            case "busy-once" if first:
                self.send(handler, 429, Retry_After="1")
            case "broken-once" if first:
                self.send(handler, 500, b"oops")
            case "busy-once" | "broken-once":
                self.send(handler, 200, IMAGE)
            case "huge-unsaid" | "cut-off" | "drip":
                self.trickle(handler, kind)
            case "to":
                self.send(handler, 302, Location="/" + path.split("/", 2)[2])
            case "to-this-machine":
                self.send(handler, 302, Location=f"http://localhost:{self.server.server_port}/image/1")
            case _:
                status, body, headers = PAGES.get(kind, (404, HTML, {}))
                self.send(handler, status, body, **headers)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count a call as being served, until its answer may leave: from then on the caller's next one may come."""
        with self.lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            yield
        finally:
            with self.lock:
                self.at_once -= 1

    def trickle(self, handler: BaseHTTPRequestHandler, kind: str) -> None:
        """Answers that are longer or shorter than they say, or come slowly."""
        handler.send_response(200)
        if kind != "huge-unsaid":
            handler.send_header("Content-Length", str(len(IMAGE)))
        handler.end_headers()
        if kind == "drip":
            for byte in IMAGE[:60]:
                handler.wfile.write(bytes([byte]))
                handler.wfile.flush()
                time.sleep(0.05)
        else:
            handler.wfile.write(b"x" * 200_000 if kind == "huge-unsaid" else IMAGE[:200])
