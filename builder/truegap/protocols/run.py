"""A run from benchmark, model and protocol to a folder of answers and scores."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from truegap.engine.models import ClusterModel
from truegap.errors import UserError
from truegap.hub.benchmark import Benchmark
from truegap.models.generative import GenerativeModel
from truegap.protocols.base import ORIGINAL, Asking, Cache, Images, Model, Protocol, Session, all_images
from truegap.protocols.beside import beside
from truegap.protocols.pictures import write_pictures
from truegap.protocols.profiles import FULL, Profile
from truegap.protocols.spread import ask_ahead
from truegap.results.answers import AnswersWriter
from truegap.results.environment import environment
from truegap.results.records import FORMAT_VERSION, BenchmarkRecord, RunRecord
from truegap.results.runs import write_record
from truegap.schema import CONFIGS, EXTRA_CONFIGS

Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""What shows progress: called with a few words and a total, gives a context with what to call per step."""


def run_protocol(
    benchmark: Benchmark,
    model: Model,
    protocol: Protocol,
    *,
    folder: Path | None,
    configs: Sequence[str],
    progress: Progress,
    cache: Cache,
    limit: int | None = None,
    profile: Profile = FULL,
    batch_size: int = 64,
    command: Sequence[str] = (),
) -> tuple[Path, bool]:
    """Runs a protocol on every config.

    Embeddings and answers go through the cache, so an interrupted run goes on where it stopped. `run.json` is written
    last: a folder without it is not a finished run.

    Args:
        benchmark: The opened benchmark.
        model: The model; where it stands for those of a cluster (`truegap.engine.models`), their workers answer what
            the cache lacks, shard by shard, and every finished shard is kept.
        protocol: The conventions.
        folder: Where the run goes; None for `runs/<model>-<benchmark>-<run id>`.
        configs: Which configs; the original is always there.
        progress: What shows progress.
        cache: Of embeddings for a dual encoder, of answers for a model that answers.
        limit: A sample of so many images, which need not be frozen.
        profile: How much is asked.
        batch_size: Images, or questions, per forward pass; changes no result beyond rounding.
        command: What the user typed, for the record.

    Returns:
        The run's folder, and whether it was finished already.

    Raises:
        UserError: The folder holds another run, the benchmark cannot be scored, or the model cannot be asked.
    """
    started = time.monotonic()
    wanted = configs if profile.configs is None else [config for config in configs if config in profile.configs]
    chosen = [config for config in (*CONFIGS, *EXTRA_CONFIGS) if config == ORIGINAL or config in wanted]
    protocol.check(benchmark)
    every = all_images(benchmark)
    images = _sample(protocol, benchmark, every, limit, profile)
    asking = protocol.asking(benchmark, model, images)
    asking.check()
    record = RunRecord(
        run_id="",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        protocol=protocol.name,
        command=list(command),
        options={**asking.options, "limit": limit, "profile": profile.version},
        configs=chosen,
        benchmark=_benchmark_record(benchmark, asking.images),
        model=model.record(),
        environment=environment(),
        engine="ray" if isinstance(model, ClusterModel) else "local",
        compute=getattr(model, "compute", None),
        prompts=_prompts(model, asking),
    )
    record = record.model_copy(update={"run_id": _run_id(record)})
    short = record.model.name.replace("/", "-")
    folder = folder or Path("runs") / f"{short}-{record.benchmark.name}-{record.run_id[:8]}"
    if _finished(folder, record.run_id):
        return folder, True
    folder.mkdir(parents=True, exist_ok=True)
    session = Session(benchmark, model, asking.images, cache, batch_size)
    what, total = f"{record.model.name} on {record.benchmark.name}", len(chosen) * len(asking.images.ids)
    ahead = ask_ahead(asking, session, chosen, partial(progress, f"{what}, over the cluster"))
    with progress(what, total) as session.advance:
        scores = beside(partial(asking.score, record.run_id), _answered(asking, session, chosen, folder))
    write_pictures(benchmark, folder / "pictures", asking.images.places)
    write_record(folder / "scores.json", scores)
    notes = [*asking.notes_on(scores), *(model.notes if isinstance(model, GenerativeModel) else ())]
    if said := profile.note(every, asking):
        notes.append(said)
    if dropped := sum(len(ids) for ids in benchmark.manifest.dropped.values()):
        notes.append(f"{dropped} images of the archive are not in the benchmark; its manifest gives the reasons")
    statistics = {
        "seconds": round(time.monotonic() - started, 1),
        "images": len(asking.images.ids),
        "cached": session.counts.cached - ahead,
        "computed": session.counts.computed + ahead,
        **(model.statistics() if isinstance(model, GenerativeModel) else {}),
    }
    write_record(folder / "run.json", record.model_copy(update={"statistics": statistics, "notes": notes}))
    return folder, False


def sample_answers(
    benchmark: Benchmark,
    model: Model,
    protocol: Protocol,
    *,
    image_ids: Sequence[str],
    configs: Sequence[str],
    cache: Cache,
    batch_size: int = 64,
) -> Iterator[dict[str, Any]]:
    """The rows of the table of answers to a few images, config by config; nothing is scored or written.

    Raises:
        UserError: The benchmark has no such image, or the model cannot be asked.
    """
    import pyarrow as pa

    protocol.check(benchmark)
    every = all_images(benchmark)
    if unknown := [each for each in image_ids if each not in every.ids]:
        raise UserError(f"--sample-id {unknown[0]}: {benchmark.spec} has no such image, but such as {every.ids[0]}")
    chosen = every.only(every.places[every.ids.index(each)] for each in image_ids)
    asking = protocol.asking(benchmark, model, chosen)
    session = Session(benchmark, model, asking.images, cache, batch_size)
    for config in configs:
        columns, _ = asking.answers(config, session)
        yield from ({"config": config, **row} for row in pa.table(dict(columns)).to_pylist())


def _answered(
    asking: Asking[Any], session: Session, configs: Sequence[str], folder: Path
) -> Generator[tuple[str, Any], None, None]:
    """Asks config by config, writes the answers, and gives on what scores are made of."""
    with AnswersWriter(folder, asking.columns) as writer:
        for config in configs:
            columns, measured = asking.answers(config, session)
            writer.add(config, columns)
            yield config, measured


def _sample(protocol: Protocol, benchmark: Benchmark, every: Images, limit: int | None, profile: Profile) -> Images:
    """The images of a run: those of the profile, and of these a sample where a limit is given."""
    images = every
    if profile.images is not None and profile.images < len(images.ids):
        images = protocol.sample(benchmark, images, profile.images, profile.version, 0)
    return images if limit is None else protocol.sample(benchmark, images, limit, "limit", protocol.seed)


def _prompts(model: Model, asking: Asking[Any]) -> dict[str, str]:
    if not isinstance(model, GenerativeModel):
        return {}
    return {name: model.prompt(question) for name, question in asking.prompts().items()}


def _benchmark_record(benchmark: Benchmark, images: Images) -> BenchmarkRecord:
    manifest = benchmark.manifest
    return BenchmarkRecord(
        spec=benchmark.spec,
        name=manifest.benchmark,
        version=manifest.version,
        revision=benchmark.revision,
        content=manifest.content,
        women=images.count("woman"),
        men=images.count("man"),
    )


def _run_id(record: RunRecord) -> str:
    """A hash of everything that decides the answers and scores: the same question has the same id."""
    asked = {
        "protocol": record.protocol,
        "options": record.options,
        "configs": record.configs,
        "benchmark": record.benchmark.content,
        "model": record.model.content,
    }
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]


def _finished(folder: Path, run_id: str) -> bool:
    """Whether the folder holds this very run, finished and in today's format."""
    from truegap.results.runs import read_run

    if not folder.exists() or not any(folder.iterdir()):
        return False
    if not (folder / "run.json").exists():
        # What an interrupted run left; nothing else may be touched.
        known = {"answers.parquet", "scores.json", "pictures"}
        if any(each.name not in known and not each.name.startswith(".") for each in folder.iterdir()):
            raise UserError(f"{folder} exists and is not a run: choose another --out")
        return False
    found = read_run(folder)
    if found.record.run_id != run_id:
        raise UserError(f"{folder} holds another run: choose another --out or remove it")
    # An older format lacks scores that this one has; they cost no forward pass.
    return found.scores.format_version == FORMAT_VERSION
