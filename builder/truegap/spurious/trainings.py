"""The trainings behind one feature's accuracy: known ones from the cache, the others done now."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from truegap.protocols.run import Progress
from truegap.schema import GENDERS
from truegap.spurious.conventions import Conventions
from truegap.spurious.pool import Pool, usable
from truegap.spurious.records import AccuracyRecord, SeedRecord
from truegap.spurious.split import LEAST, Split, balanced_split
from truegap.spurious.statistics import chance_p, effective_images, wilson

if TYPE_CHECKING:
    from truegap.spurious.readers import Reader


class Work:
    """The measurement of one feature after another.

    Attributes:
        statistics: How many images were read, and how many trainings were done now or known already.
    """

    def __init__(self, pool: Pool, reader: Reader, conventions: Conventions, progress: Progress) -> None:
        """Takes the images, what reads them, how, and what shows progress."""
        self._pool, self._reader, self._conventions, self._progress = pool, reader, conventions, progress
        self.statistics = {"images_read": 0, "trained": 0, "known": 0}

    def accuracy(self, feature: str) -> AccuracyRecord:
        """Acc_b of one feature."""
        pool, reader = self._pool, self._reader
        places, skipped = usable(pool, feature)
        genders = [pool.images.genders[n] for n in places]
        women, men = (genders.count(gender) for gender in GENDERS)
        base = AccuracyRecord(
            feature=feature,
            classifier=reader.classifier(feature),
            accuracy=None,
            women=women,
            men=men,
            skipped=skipped,
        )
        if min(women, men) < LEAST:
            why = next(iter(skipped), "too few images")
            reason = f"{why}: {women} women and {men} men are left, {LEAST} of each are needed"
            return base.model_copy(update={"reason": reason})
        ids = [pool.images.ids[n] for n in places]
        splits = [
            balanced_split(ids, genders, benchmark=pool.benchmark, seed=seed) for seed in range(self._conventions.seeds)
        ]
        fits = self._fits(feature, places, splits)
        accuracies = [float(fitted.correct.mean()) for fitted in fits]
        mean, images = float(np.mean(accuracies)), effective_images([split.test for split in splits])
        low, high = wilson(mean, images)
        seeds = [
            SeedRecord(
                seed=seed,
                accuracy=accuracy,
                train=len(split.train),
                validation=len(split.validation),
                test=len(split.test),
                epochs=fitted.epochs,
                best_epoch=fitted.best_epoch,
            )
            for seed, (accuracy, split, fitted) in enumerate(zip(accuracies, splits, fits, strict=True))
        ]
        update = {
            "accuracy": mean,
            "sd": float(np.std(accuracies, ddof=1)) if len(accuracies) > 1 else None,
            "ci_low": low,
            "ci_high": high,
            "p_value": chance_p(mean, images),
            "images": images,
            "seeds": seeds,
        }
        return base.model_copy(update=update)

    def _fits(self, feature: str, places: Sequence[int], splits: Sequence[Split]) -> list[Any]:
        """The trainings of all seeds: known ones, and those done now."""
        from truegap.models.classifier import fit, standardised
        from truegap.models.fit_cache import FitCache

        pool, reader = self._pool, self._reader
        training = replace(reader.training(feature), **self._conventions.training)
        shows = [(pool.images.ids[n], pool.images.genders[n], pool.key(feature, n)) for n in places]
        common = {
            "reader": reader.key(feature),
            "training": asdict(training),
            "benchmark": pool.benchmark,
            "images": hashlib.sha256(json.dumps(shows).encode()).hexdigest(),
        }
        asked = [{**common, "seed": seed} for seed in range(len(splits))]
        with FitCache() as cache:
            known = [cache.find(each) for each in asked]
            lacking = [seed for seed, fitted in enumerate(known) if fitted is None]
            self.statistics["known"] += len(known) - len(lacking)
            if not lacking:
                return known
            with self._progress(feature, len(places) + len(lacking) * training.epochs) as advance:
                inputs = reader.inputs(pool, feature, places, advance)
                self.statistics["images_read"] += len(places)
                labels = pool.codes(places)
                for seed in lacking:
                    split = splits[seed]
                    array = inputs.array
                    if inputs.standardise:
                        array = standardised(np.asarray(array, np.float32), split.train)
                    fitted = fit(
                        inputs.make,
                        array,
                        labels,
                        (split.train, split.validation, split.test),
                        training,
                        seed=seed,
                        device=reader.device(feature),
                        dtype=reader.dtype(feature),
                        ready=inputs.ready,
                        advance=advance,
                    )
                    cache.keep(asked[seed], fitted)
                    advance(training.epochs - fitted.epochs)
                    self.statistics["trained"] += 1
                    known[seed] = fitted
        return known
