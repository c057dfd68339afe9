"""What a submission must pass, in this order; a refusal names its reason and the remedy."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from truegap.build.manifest import FILE, read_manifest
from truegap.errors import UserError
from truegap.hub.models import look_at_model
from truegap.hub.snapshots import folder_at, is_repository, locate, split_revision
from truegap.leaderboard.default_benchmark import default_benchmark
from truegap.leaderboard.limits import DEFAULT_BENCHMARK, Limits
from truegap.leaderboard.model_files import (
    CARD,
    CONFIG,
    OPEN_CLIP,
    Source,
    count_parameters,
    library_of,
    licence_of,
    look_at_folder,
    needed,
    read_json,
    weights,
)
from truegap.leaderboard.request import Library, Request
from truegap.results.show import plain

PROTOCOLS = ("vqa", "retrieval", "resolution", "retrieval-occupations", "counterfactual")

_PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".msgpack", ".h5")
_DAY = timedelta(days=1)


class RefusedError(UserError):
    """A model that no further attempt would make acceptable."""


class TakenError(UserError):
    """The same was asked for already."""


class TooManyError(UserError):
    """A user who has asked for too much by now."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Which benchmark, pinned."""

    benchmark: str
    revision: str | None
    version: str
    content: str


@dataclass(frozen=True, slots=True)
class Found:
    """What the files of a model say of it."""

    library: Library
    model_type: str
    parameters: int
    licence: str | None


def find_benchmark(spec: str, limits: Limits) -> Asked:
    """A benchmark that the leaderboard offers; on a machine of one's own, any.

    Raises:
        UserError: It is not offered, or cannot be read.
    """
    if spec not in limits.offered and (limits.benchmarks or not limits.folders):
        hint = "" if limits.benchmarks else " (TRUEGAP_BENCHMARKS names others)"
        raise UserError(f"benchmark {plain(spec)}: this leaderboard offers {', '.join(limits.offered)}{hint}")
    if spec == DEFAULT_BENCHMARK:
        manifest = read_manifest(default_benchmark())
        return Asked(spec, None, manifest.version, manifest.content)
    files = locate(spec, [FILE], "a built benchmark")
    manifest = read_manifest(files.folder)
    return Asked(place_of(spec), files.commit, manifest.version, manifest.content)


def place_of(spec: str) -> str:
    """Where a benchmark is, without its revision; the default one has its name alone."""
    if spec == DEFAULT_BENCHMARK:
        return spec
    folder = folder_at(spec)
    return str(folder.resolve()) if folder else split_revision(spec)[0]


def check_offered(request: Request, limits: Limits) -> None:
    """What a worker asks of a request that it did not accept itself: no folder is read that nobody offered.

    Raises:
        RefusedError: The benchmark is not one of the worker's.
    """
    if limits.benchmarks:
        if request.benchmark not in map(place_of, limits.benchmarks):
            raise RefusedError(f"benchmark {request.benchmark}: this worker offers {', '.join(limits.benchmarks)}")
    elif request.benchmark != DEFAULT_BENCHMARK and not is_repository(request.benchmark) and not limits.folders:
        raise RefusedError(f"benchmark {request.benchmark}: a folder, and this worker reads none")


def find_model(model: str, revision: str | None, limits: Limits) -> Source:
    """Checks one and two: the model exists, and its revision is pinned to a commit.

    Raises:
        UserError: There is no such model or revision, or it is a folder where none may be given.
    """
    name, written = split_revision(model)
    if is_repository(name):
        if written and revision and written != revision:
            raise UserError(f"model {plain(model)}: revision {plain(revision)} is asked for too; give one of the two")
        return look_at_model(name, revision or written)
    if not limits.folders:
        raise UserError(f"model {plain(model)}: give ORG/NAME of a public model on the Hub")
    if revision:
        raise UserError(f"model {plain(model)}: a folder has no revision; leave it out")
    return look_at_folder(model)


def check_new(held: Request | None, now: datetime, limits: Limits) -> None:
    """Check three: nobody has asked for the same already.

    Raises:
        TakenError: It waits, runs or is finished, or failed a short while ago.
    """
    if held is None:
        return
    asked = f"model {held.model} at {held.revision[:19]} was submitted already by {held.user}"
    if held.state != "FAILED":
        remedy = "see its row" if held.state == "FINISHED" else "see the queue"
        raise TakenError(f"{asked} and is {held.state}: {remedy}, or submit another revision")
    if (again := datetime.fromisoformat(held.changed) + timedelta(seconds=limits.again)) > now:
        raise TakenError(
            f"{asked} and FAILED ({held.reason}): mend the model and submit its new revision, or try this one again "
            f"after {again:%Y-%m-%d %H:%M} UTC"
        )


def examine(source: Source, limits: Limits) -> Found:
    """Checks four to seven: no remote code, safetensors, licence and card, size.

    Raises:
        RefusedError: The first that fails.
        UserError: The files cannot be read now.
    """
    library = library_of(source)
    model_type = _no_remote_code(source, library)
    files = _safetensors(source, library)
    licence = _licence(source)
    return Found(library, model_type, _size(source, library, files, limits), licence)


def check_rate(requests: Sequence[Request], user: str, now: datetime, limits: Limits) -> None:
    """Check eight: the user has not asked for too much.

    Raises:
        TooManyError: Too many requests wait, or were made today.
    """
    own = [each for each in requests if each.user == user]
    waiting = sum(each.state in {"PENDING", "RUNNING"} for each in own)
    if waiting >= limits.waiting:
        raise TooManyError(f"{waiting} requests of {user} are not finished: wait until one of them is")
    today = [each for each in own if datetime.fromisoformat(each.submitted) > now - _DAY]
    if len(today) >= limits.requests_per_day:
        first = min(datetime.fromisoformat(each.submitted) for each in today) + _DAY
        raise TooManyError(f"{len(today)} requests of {user} within a day are the most: try after {first:%H:%M} UTC")


def _no_remote_code(source: Source, library: Library) -> str:
    """The kind of model that the configuration names."""
    config = read_json(source, CONFIG if library == "transformers" else OPEN_CLIP)
    if library == "open_clip":
        inner = config.get("model_cfg")
        text = inner.get("text_cfg") if isinstance(inner, dict) else None
        if not isinstance(text, dict) or "trust_remote_code" in str(config):
            raise _refused(source, f"{OPEN_CLIP} has no text_cfg or asks for remote code, which is never run")
        if text.get("hf_model_name"):
            raise _refused(source, "its text tower comes from another repository: submit it saved by transformers")
        return "open_clip"
    kind = config.get("model_type")
    if not isinstance(kind, str) or kind != plain(kind, 60) or not kind:
        raise _refused(source, f"{CONFIG} names no model_type: save the model with save_pretrained")
    if not _known(kind):
        code = "needs code of its own (auto_map), which is never run" if config.get("auto_map") else "is not known"
        raise _refused(source, f"{kind} {code} here: convert it to a model class of transformers")
    return kind


def _known(model_type: str) -> bool:
    """Whether transformers has the class itself; where it is not installed, the worker finds out."""
    with suppress(ImportError):
        # Nearly all kinds are here, and torch is not, which a page and a worker that hands on have no use for.
        from transformers.models.auto import auto_mappings

        listed: Any = auto_mappings
        if model_type in listed.CONFIG_MAPPING_NAMES:
            return True
    try:
        from transformers.models.auto import configuration_auto
    except ImportError:
        return True
    automatic: Any = configuration_auto
    return model_type in automatic.CONFIG_MAPPING_NAMES


def _safetensors(source: Source, library: Library) -> dict[str, int]:
    found = weights(source, library)
    if not found:
        pickled = sorted(path for path in source.files if path.endswith(_PICKLED) and path == plain(path))
        seen = f" (only {pickled[0]}, and loading that could run code)" if pickled else ""
        raise _refused(source, f"no weights as safetensors{seen}: save them with safe_serialization=True")
    return found


def _licence(source: Source) -> str | None:
    """The licence; only of a folder it may be missing, which nobody else gets to see."""
    licence = licence_of(source)
    if licence is None and is_repository(source.model):
        if CARD not in source.files:
            raise _refused(source, f"it has no card: add a {CARD} with `license:` in its front matter")
        raise _refused(source, "its card names no licence: add `license:` to its front matter")
    return licence


def _size(source: Source, library: Library, files: dict[str, int], limits: Limits) -> int:
    total = sum(needed(source, library).values())
    if total > limits.weight_bytes:
        raise _refused(
            source,
            f"its files have {total / 1e9:.1f} GB, and this worker takes {limits.weight_bytes / 1e9:.1f} GB: evaluate "
            "it with `truegap evaluate` and submit the run",
        )
    try:
        parameters = count_parameters(source, files, limits.header_bytes)
    except UserError as error:
        raise _refused(source, str(error)) from None
    if parameters > limits.parameters:
        raise _refused(
            source,
            f"it has {parameters / 1e9:.2f} billion parameters, and this worker takes {limits.parameters / 1e9:.2f}: "
            "evaluate it with `truegap evaluate` and submit the run",
        )
    return parameters


def _refused(source: Source, why: str) -> RefusedError:
    return RefusedError(f"model {source.model}: {why}")
