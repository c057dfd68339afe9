"""A run from benchmark and model to a folder of answers and scores."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from truegap.errors import UserError
from truegap.hub.benchmark import Benchmark
from truegap.models import DualEncoder, EmbeddingCache
from truegap.perturbations.keys import Key
from truegap.protocols import retrieval
from truegap.protocols.pictures import write_pictures
from truegap.protocols.retrieval import ORIGINAL, PROTOCOL, Retrieval, Similarities
from truegap.results.answers import AnswersWriter
from truegap.results.environment import environment
from truegap.results.records import BenchmarkRecord, RunRecord, ScoresRecord
from truegap.results.runs import write_record
from truegap.schema import CONFIGS, GENDERS

Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""What shows progress: called with a few words and a total, gives a context with what to call per step."""


def run_retrieval(
    benchmark: Benchmark,
    encoder: DualEncoder,
    protocol: Retrieval,
    *,
    folder: Path | None,
    configs: Sequence[str],
    progress: Progress,
    cache: EmbeddingCache,
    limit: int | None = None,
    batch_size: int = 64,
    command: Sequence[str] = (),
) -> tuple[Path, bool]:
    """Runs the retrieval protocol on every config.

    Embeddings go through the cache, so an interrupted run goes on where it stopped. `run.json` is written last: a
    folder without it is not a finished run.

    Args:
        benchmark: The opened benchmark.
        encoder: The model.
        protocol: The conventions.
        folder: Where the run goes; None for `runs/<model>-<benchmark>-<run id>`.
        configs: Which configs; the original is always there.
        progress: What shows progress.
        cache: Of embeddings.
        limit: A balanced sample of so many images.
        batch_size: Images per forward pass; no result depends on it.
        command: What the user typed, for the record.

    Returns:
        The run's folder, and whether it was finished already.

    Raises:
        UserError: The folder holds another run, or the benchmark cannot be scored.
    """
    started = time.monotonic()
    chosen = [config for config in CONFIGS if config == ORIGINAL or config in configs]
    image_ids, genders, places = _images(benchmark, limit, protocol.seed)
    k = retrieval.cuts(protocol, genders)
    record = RunRecord(
        run_id="",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        protocol=PROTOCOL,
        command=list(command),
        options={**protocol.record(k), "limit": limit},
        configs=chosen,
        benchmark=_benchmark_record(benchmark, genders),
        model=encoder.record(),
        environment=environment(),
    )
    record = record.model_copy(update={"run_id": _run_id(record)})
    short = record.model.name.replace("/", "-")
    folder = folder or Path("runs") / f"{short}-{record.benchmark.name}-{record.run_id[:8]}"
    if _finished(folder, record.run_id):
        return folder, True
    folder.mkdir(parents=True, exist_ok=True)
    texts = encoder.encode_texts([text for _, _, text, _ in protocol.texts()])
    counts = {"cached": 0, "computed": 0}

    def answers(advance: Callable[[int], None]) -> Iterator[tuple[str, Similarities]]:
        with AnswersWriter(folder) as writer:
            for config in chosen:
                images = benchmark.images(config)
                items = [(images.sha256[place], lambda place=place, images=images: images[place]) for place in places]
                found = cache.embed_images(encoder, items, batch_size, advance)
                # Equal images are embedded once; they are done all the same.
                advance(len(items) - found.cached - found.computed)
                counts["cached"] += found.cached
                counts["computed"] += found.computed
                similarities = np.asarray(texts @ found.features.T, np.float32)
                writer.write(config, protocol.texts(), image_ids, genders, similarities)
                yield config, similarities

    with progress(f"{record.model.name} on {record.benchmark.name}", len(chosen) * len(places)) as advance:
        scores = retrieval.score(protocol, record.run_id, image_ids, genders, answers(advance))
    write_pictures(benchmark, folder / "pictures", places)
    write_record(folder / "scores.json", scores)
    notes = _notes(scores, benchmark)
    if protocol.k is None:
        rule = "1000, since a draw has at least 2,000 images" if k[0] == 1000 else "a tenth of the images of a draw"  # noqa: PLR2004
        notes.append(f"k = {k[0]}: {rule}")
    statistics = {"seconds": round(time.monotonic() - started, 1), "images": len(image_ids), **counts}
    write_record(folder / "run.json", record.model_copy(update={"statistics": statistics, "notes": notes}))
    return folder, False


def _images(benchmark: Benchmark, limit: int | None, seed: int) -> tuple[list[str], list[str], list[int]]:
    """Ids and labels of the images in the order of their ids, and their places in the files."""
    all_ids = benchmark.manifest.rows.image_id
    labels = [GENDERS[code] for code in benchmark.column(ORIGINAL, "gender")]
    places = sorted(range(len(all_ids)), key=lambda place: all_ids[place])
    if limit is not None:
        if limit < 2:  # noqa: PLR2004  one of each
            raise UserError(f"--limit {limit}: give at least 2 images, one of each gender")
        ranked = sorted(
            places, key=lambda place: Key(benchmark.manifest.benchmark, all_ids[place], "limit", seed).uniform()
        )
        half = {gender: [place for place in ranked if labels[place] == gender][: limit // 2] for gender in GENDERS}
        places = sorted((place for kept in half.values() for place in kept), key=lambda place: all_ids[place])
    return [all_ids[place] for place in places], [labels[place] for place in places], places


def _benchmark_record(benchmark: Benchmark, genders: Sequence[str]) -> BenchmarkRecord:
    manifest = benchmark.manifest
    return BenchmarkRecord(
        spec=benchmark.spec,
        name=manifest.benchmark,
        version=manifest.version,
        revision=benchmark.revision,
        content=manifest.content,
        women=list(genders).count("woman"),
        men=list(genders).count("man"),
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
    """Whether the folder holds this very run, finished."""
    from truegap.results.runs import read_run

    if not folder.exists() or not any(folder.iterdir()):
        return False
    if not (folder / "run.json").exists():
        # What an interrupted run left; nothing else may be touched.
        known = {"answers.parquet", "scores.json", "pictures"}
        if any(each.name not in known and not each.name.startswith(".") for each in folder.iterdir()):
            raise UserError(f"{folder} exists and is not a run: choose another --out")
        return False
    if read_run(folder).record.run_id != run_id:
        raise UserError(f"{folder} holds another run: choose another --out or remove it")
    return True


def _notes(scores: ScoresRecord, benchmark: Benchmark) -> list[str]:
    """What a reader must know."""
    original = [each for each in scores.scores if each.config == ORIGINAL and each.scope == "all"]
    notes = [
        f"{each.metric}: {each.counts['ties']} of {each.counts['queries']} prompts have equal similarities "
        "at the cut; images were taken in the order of their ids"
        for each in original
        if each.metric.startswith("max_skew@") and each.counts.get("ties")
    ]
    ranked = original[0].counts
    notes.append(
        f"each of {ranked['draws']} balanced draws ranks {ranked['ranked_woman']} women and {ranked['ranked_man']} men "
        f"of {ranked['images_woman']} and {ranked['images_man']}"
    )
    if dropped := sum(len(ids) for ids in benchmark.manifest.dropped.values()):
        notes.append(f"{dropped} images of the archive are not in the benchmark; its manifest gives the reasons")
    return notes
