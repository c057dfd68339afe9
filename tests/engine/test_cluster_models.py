"""How a cluster's machines are shared out, and which models and devices are not for it."""

from __future__ import annotations

import pytest

from answerer import Answerer
from truegap.engine.crew import Staff, staff
from truegap.engine.models import Shard, _answer, model_on_ray
from truegap.errors import UserError
from truegap.models import load_model


@pytest.mark.parametrize(
    ("machines", "workers", "gpus", "expected"),
    [
        ([(2, 0)], None, 0, Staff(2, 1, 0)),
        ([(2, 0), (4, 0)], None, None, Staff(6, 1, 0)),
        # fewer workers than cores have several each, as many as every one of them can have on its machine
        ([(16, 0)], 2, 0, Staff(2, 8, 0)),
        ([(8, 0), (4, 0)], 3, 0, Staff(3, 4, 0)),
        ([(2, 0)], 5, 0, Staff(5, 1, 0)),
        # one model per GPU, on machines that have any
        ([(8, 0), (16, 4), (16, 2)], None, None, Staff(6, 1, 1)),
        ([(16, 4)], None, 2, Staff(2, 1, 2)),
        ([(16, 1)], None, 0.1, Staff(10, 1, 0.1)),
        ([(2, 1)], None, 0.25, Staff(2, 1, 0.25)),
        ([(16, 4)], 3, 1, Staff(3, 1, 1)),
        ([(16, 4)], None, 0, Staff(16, 1, 0)),
    ],
)
def test_machines_are_shared_out(machines, workers, gpus, expected):
    assert staff(machines, workers, gpus) == expected


@pytest.mark.parametrize(
    ("machines", "workers", "gpus", "message"),
    [
        ([(16, 0)], None, 1, "no machine of the cluster has 1 GPU for a worker: use fewer --gpus"),
        ([(16, 2)], None, 1.5, r"--gpus 1\.5: give a whole number, or a part of 1"),
        ([(16, 2)], None, -1, "--gpus -1: give a whole number"),
        ([(16, 2)], 0, 1, "--workers 0"),
    ],
)
def test_what_no_cluster_gives_is_one_line(machines, workers, gpus, message):
    with pytest.raises(UserError, match=message):
        staff(machines, workers, gpus)


@pytest.mark.parametrize(
    ("spec", "options", "message"),
    [
        ("endpoint:http://host/v1#m", {}, "--engine ray: endpoint:http://host/v1#m runs on its server"),
        ("baseline:prior:endpoint:e.yaml", {}, "runs on its server"),
        ("org/name", {"device": "cuda:1"}, "--device cuda:1: Ray gives every worker a GPU of its own: use cuda"),
        ("org/name", {"device": "cuda", "gpus": 0}, "--device cuda needs GPUs"),
        ("org/name", {"device": "cpu", "gpus": 1}, "--device cpu needs no GPUs: leave --gpus 1 out"),
    ],
)
def test_what_is_not_for_a_cluster_is_one_line(spec, options, message):
    with pytest.raises(UserError, match=message), model_on_ray(load_model, spec, **options):
        pass


def test_a_worker_with_another_model_does_not_answer():
    with pytest.raises(UserError, match=r"^--engine ray: machine .* has other weights of answerer, or another kind"):
        _answer(Answerer(), Shard("another key", [], 32))
