"""The modules inside a `transformers.Trainer`, a plain PyTorch loop, `evaluate.combine` and several processes."""

import importlib.util
import multiprocessing
import sys

import numpy as np
import pytest

from truegap import scores

pytest.importorskip("torch")


@pytest.fixture(scope="module")
def loop(root):
    import torch

    torch.set_num_threads(1)
    spec = importlib.util.spec_from_file_location("training_loop", root / "docs" / "training_loop.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["training_loop"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["training_loop"]


@pytest.fixture(scope="module")
def pictures(loop):
    return loop.draw(96, seed=0, lean=0.6), loop.draw(50, seed=1, lean=0.0)


def answers(loop, model, pictures):
    model.eval()
    parts = [loop.probabilities(model, pixels).numpy() for _, pixels in loop.batches(pictures)]
    return np.concatenate(parts)


@pytest.mark.slow
def test_a_trainer_logs_the_gap_of_every_evaluation(loop, pictures, tmp_path):
    train, test = pictures
    history = loop.with_trainer(train, test, epochs=2, out=str(tmp_path))
    assert [row["epoch"] for row in history] == [1, 2]
    for row in history:
        assert row["eval_ci_low"] < row["eval_ygap"] < row["eval_ci_high"]
    assert history[0]["eval_ygap"] != history[1]["eval_ygap"]


def test_compute_metrics_is_the_core_function(loop, pictures):
    import evaluate
    from transformers import EvalPrediction

    _, test = pictures
    logits = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32)
    metric = evaluate.load(str(loop.METRICS / "ygap"))
    found = loop.watch(metric, test)(EvalPrediction(predictions=logits, label_ids=test.waves))
    yes = np.exp(logits[:, 1]) / np.exp(logits).sum(axis=1)
    core = scores.ygap(yes, test.genders, images=test.ids)
    assert found == pytest.approx({"ygap": core.ygap, "ci_low": core.ci_low, "ci_high": core.ci_high}, abs=1e-6)
    assert all(isinstance(value, float) for value in found.values())


@pytest.mark.slow
def test_a_plain_loop_measures_batch_by_batch_with_combine(loop, pictures):
    train, test = pictures
    history = loop.plain_loop(train, test, epochs=1)
    assert len(history) == 1
    # Given a model, when batches of 24, 24 and 2 are added, then the scores are those of all rows at once
    model, blurred = loop.tiny_model(seed=3), test.blurred()
    found = loop.measure(model, test, blurred)
    before, after = (answers(loop, model, each) for each in (test, blurred))
    core = scores.ygap(before, test.genders, images=test.ids)
    assert found["ygap"] == pytest.approx(core.ygap, abs=1e-6)
    assert (found["all"]["ci_low"], found["all"]["ci_high"]) == pytest.approx((core.ci_low, core.ci_high), abs=1e-6)
    assert found["ygap_blurred"] == pytest.approx(scores.ygap(after, test.genders).ygap, abs=1e-6)
    assert found["answers_move"] == pytest.approx(np.abs(after - before).mean(), abs=1e-6)
    assert found["answers_move"] > 0


def test_blurring_leaves_the_person_and_takes_the_stripes(loop, pictures):
    _, test = pictures
    blurred = test.blurred()
    assert (blurred.images[test.masks] == test.images[test.masks]).all()
    assert np.ptp(blurred.images[0][:, 24:].astype(int)) < np.ptp(test.images[0][:, 24:].astype(int)) / 2


def _share(loop, rank, cache, pictures, yes, results):
    results.put((rank, loop.share_of_processes(rank, 3, cache, pictures, yes)))


@pytest.mark.slow
def test_three_processes_share_an_evaluation(loop, pictures, tmp_path):
    # Given 50 rows on 3 processes (17, 17 and 16), then the first has the scores of all and the others nothing
    _, test = pictures
    yes = np.random.default_rng(0).random(50)
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    workers = [
        context.Process(target=_share, args=(loop, rank, str(tmp_path), test, yes, results)) for rank in range(3)
    ]
    for worker in workers:
        worker.start()
    found = dict(results.get(timeout=600) for _ in workers)
    for worker in workers:
        worker.join()
    assert (found[1], found[2]) == (None, None)
    core = scores.ygap(yes, test.genders, images=test.ids)
    assert found[0]["ygap"] == pytest.approx(core.ygap)
    assert found[0]["counts"]["rows"] == 50
    assert (found[0]["ci_low"], found[0]["ci_high"]) == pytest.approx((core.ci_low, core.ci_high))
