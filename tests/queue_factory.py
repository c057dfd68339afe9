"""Requests, and models as the Hub holds them, without any training."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from truegap.leaderboard.request import Request, key_of, stamp

START = datetime(2026, 1, 1, tzinfo=UTC)
COMMIT = "a" * 40
CONTENT = "b" * 64
CARD = b"---\nlicense: apache-2.0\n---\n# A model\n"


def make_request(model: str = "org/model", *, revision: str = COMMIT, profile: str = "lite", **changes: Any) -> Request:
    """A request that waits since the start of 2026."""
    key = key_of(model, revision, "1.0.0", CONTENT, "retrieval", profile)
    fields: dict[str, Any] = {
        "key": key,
        "model": model,
        "revision": revision,
        "benchmark": "org/synthetic",
        "benchmark_revision": "c" * 40,
        "version": "1.0.0",
        "content": CONTENT,
        "protocol": "retrieval",
        "profile": profile,
        "user": "ada",
        "submitted": stamp(START),
        "changed": stamp(START),
    }
    return Request.model_validate(fields | changes)


def safetensors(tensors: int = 2, side: int = 8, *, length: int | None = None, short: int = 0) -> bytes:
    """A weight file of zeros; `length` is what it claims of its header, `short` how many bytes it lacks."""
    size = side * side * 4
    header = json.dumps(
        {
            f"layer{n}": {"dtype": "F32", "shape": [side, side], "data_offsets": [n * size, (n + 1) * size]}
            for n in range(tensors)
        }
    ).encode()
    data = (len(header) if length is None else length).to_bytes(8, "little") + header + bytes(tensors * size)
    return data[: len(data) - short]


def hub_model(**changes: Any) -> dict[str, bytes]:
    """The files of a small CLIP that passes every check; a change of None leaves a file out, by its name with `__`."""
    files: dict[str, bytes | None] = {
        "README.md": CARD,
        "config.json": b'{"model_type": "clip"}',
        "model.safetensors": safetensors(),
    }
    files |= {name.replace("__", "."): data for name, data in changes.items()}
    return {name: data for name, data in files.items() if data is not None}


def manifest() -> bytes:
    """Of a benchmark with one config and no images: all that a submission reads of one."""
    summary = {"rows": 0, "woman": 0, "man": 0}
    return json.dumps(
        {
            "benchmark": "synthetic",
            "version": "1.0.0",
            "build_key": "0",
            "seed": 0,
            "encoder": {},
            "perturbations": {},
            "selection": {},
            "steps": [],
            "splits": {"test": {**summary, "files": 1}},
            "configs": {"original": {**summary, "sha256": CONTENT, "split_sha256": {"test": CONTENT}}},
            "versions": {},
            "rows": {"image_id": [], "sha256": {"original": []}, "image_sha256": {"original": []}},
        }
    ).encode()
