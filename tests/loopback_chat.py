"""An OpenAI-compatible server on this machine: chat completions with log-probabilities in their documented shape.

It checks what it is asked, as real servers do, and misbehaves on request: busy, broken, slow, gone, talking nonsense.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Spread = list[tuple[str, float]]
"""Tokens and their probabilities."""
Misbehaviour = str | tuple[int, bytes] | tuple[int, bytes, dict[str, str]]
"""`drop`, `hang`, `cut`, or a status with a body and headers."""

HTML = b"<!DOCTYPE html><html><head><title>Bad gateway</title></head><body>nginx</body></html>"


def spread(image: str, text: str) -> Spread:
    """What this server's model thinks comes next: it depends on image and text alone."""
    digest = hashlib.sha256(f"{image}{text}".encode()).digest()
    weights = [1 + byte for byte in digest[:7]]
    tokens = ["A", " A", "▁A", "B", " C", "C", "The"]
    return [(token, weight / sum(weights)) for token, weight in zip(tokens, weights, strict=True)]


class LoopbackChat:
    """Serves until closed."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        """Bodies of the requests that were understood, in the order in which they came."""
        self.headers: dict[str, str] = {}
        """Of the last request."""
        self.times: list[float] = []
        """When each request came."""
        self.script: deque[Misbehaviour | None] = deque()
        """What happens to the next requests; after that all goes well."""
        self.spread: Callable[[str, str], Spread] = spread
        self.most_logprobs = 20
        """0: the server ignores that they are asked for."""
        self.written: Callable[[str], str | None] = lambda _: "A"
        """The answer that is written, by the question's text."""
        self.unsupported: dict[str, str] = {}
        """Parameters that this server refuses, and what it says then."""
        self.refuses: Callable[[str], dict[str, Any] | None] = lambda _: None
        """The error that a question's text leads to."""
        self.key: str | None = None
        self.model = "served-2026-01-01"
        self.fingerprint: str | None = "fp_1"
        self.more: dict[str, Any] = {}
        """Put into the message of every answer."""
        self.finish = "stop"
        self.together: threading.Barrier | None = None
        """Requests wait here for each other."""
        self.released = threading.Event()
        """Until it is set, what hangs does not answer."""
        self.at_once = self.most_at_once = 0
        self.lock = threading.Lock()
        chat = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers["Content-Length"]))
                with chat.lock:
                    chat.times.append(time.monotonic())
                    chat.headers = dict(self.headers)
                    act = chat.script.popleft() if chat.script else None
                    chat.at_once += 1
                    chat.most_at_once = max(chat.most_at_once, chat.at_once)
                try:
                    with suppress(BrokenPipeError, ConnectionResetError):
                        chat.act(self, act, data)
                finally:
                    with chat.lock:
                        chat.at_once -= 1

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/v1"

    def close(self) -> None:
        self.released.set()
        self.server.shutdown()
        self.server.server_close()

    def act(self, handler: BaseHTTPRequestHandler, act: Misbehaviour | None, data: bytes) -> None:
        match act:
            case None:
                if self.together is not None:
                    self.together.wait(120)
                status, found = self.completion(handler.path, json.loads(data))
                self.send(handler, status, json.dumps(found).encode())
            case "drop":
                handler.close_connection = True
                handler.connection.close()
            case "cut":
                handler.send_response(200)
                handler.send_header("Content-Length", "1000")
                handler.end_headers()
                handler.wfile.write(b'{"choices": [')
                handler.close_connection = True
            case "hang":
                self.released.wait(600)
                handler.close_connection = True
            case (status, body):
                self.send(handler, status, body)
            case (status, body, headers):
                self.send(handler, status, body, headers)

    def send(
        self, handler: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str] | None = None
    ) -> None:
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    def completion(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """A chat completion, or an error as the documentation describes it."""
        if path != "/v1/chat/completions":
            return 404, {"error": {"message": f"no route {path}", "type": "invalid_request_error", "code": None}}
        if self.key is not None and self.headers.get("Authorization") != f"Bearer {self.key}":
            shown = self.headers.get("Authorization", "nothing").removeprefix("Bearer ")
            return 401, {"error": {"message": f"Incorrect API key provided: {shown}", "code": "invalid_api_key"}}
        for name, said in self.unsupported.items():
            if name in body:
                return 400, {"error": {"message": said, "param": name, "code": "unsupported_parameter"}}
        if self.most_logprobs and body.get("top_logprobs", 0) > self.most_logprobs:
            said = f"top_logprobs must be at most {self.most_logprobs}"
            return 400, {"error": {"message": said, "code": "invalid_value"}}
        picture, words = body["messages"][0]["content"]
        image, text = picture["image_url"]["url"], words["text"]
        with self.lock:
            self.asked.append(body)
        if (error := self.refuses(text)) is not None:
            return 400, {"error": error}
        choice: dict[str, Any] = {"index": 0, "finish_reason": self.finish}
        if body.get("logprobs") and self.most_logprobs:
            ranked = sorted(self.spread(image, text), key=lambda each: -each[1])[: body["top_logprobs"]]
            listed = [{"token": token, "logprob": math.log(p), "bytes": list(token.encode())} for token, p in ranked]
            choice["logprobs"] = {"content": [{**listed[0], "top_logprobs": listed}]}
            choice["message"] = {"role": "assistant", "content": ranked[0][0], **self.more}
        else:
            choice["message"] = {"role": "assistant", "content": self.written(text), **self.more}
        usage = {"prompt_tokens": 600, "completion_tokens": 1, "total_tokens": 601}
        return 200, {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 0,
            "model": self.model,
            "system_fingerprint": self.fingerprint,
            "choices": [choice],
            "usage": usage,
        }
