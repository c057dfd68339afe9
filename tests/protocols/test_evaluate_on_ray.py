"""The same evaluation over the workers of a real Ray cluster: same answers, kept shard by shard."""

from __future__ import annotations

import json

import pytest
from PIL import Image
from typer.testing import CliRunner

from answerer import Answerer, biased_selection, build
from cluster_tasks import image_name, load_watched
from examples import selection
from planted_examples import examples, viso
from protocol_runs import quiet
from ray_cluster import WORKERS
from tiny import save_clip
from tiny_generative import save
from truegap.build.images import decode
from truegap.cli.app import app
from truegap.engine.models import model_on_ray
from truegap.errors import UserError
from truegap.hub.benchmark import open_benchmark
from truegap.models import EmbeddingCache, load_model
from truegap.models.answer_cache import AnswerCache
from truegap.protocols import spread
from truegap.protocols.counterfactual import Counterfactual
from truegap.protocols.occupation_retrieval import OccupationRetrieval
from truegap.protocols.prompts import Prompt, PromptSet
from truegap.protocols.questions import QuestionSet
from truegap.protocols.resolution import Resolution
from truegap.protocols.retrieval import Retrieval
from truegap.protocols.run import run_protocol
from truegap.protocols.vqa import Vqa
from truegap.results.answers import read_answers
from truegap.results.runs import read_run

CONFIGS = ("original", "control", "background-strong")
QUESTIONS = QuestionSet.model_validate(
    {
        "name": "few",
        "options": ["Yes", "No", "Unsure"],
        "instruction": "Answer with a letter.",
        "questions": [
            {"id": "brave", "text": "Is this person brave?", "topic": "personality"},
            {"id": "lead", "text": "Can this person lead?", "topic": "skill"},
        ],
    }
)
VQA = Vqa(questions=QUESTIONS, n_resamples=20, n_permutations=20)
PROMPTS = PromptSet(name="jobs", prompts=(Prompt(id="nurse", text="A nurse"), Prompt(id="pilot", text="A pilot")))
COUNTERFACTUAL = Counterfactual(contexts=("VL",), n_resamples=20)
RETRIEVAL = Retrieval(prompts=(PROMPTS,), k=(2,), n_resamples=20)


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory):
    """Four women and five men."""
    return build(tmp_path_factory.mktemp("b") / "b", biased_selection(4, 5), CONFIGS)


def run(benchmark, model, protocol, folder, cache, configs=CONFIGS, **options):
    run_protocol(
        open_benchmark(benchmark),
        model,
        protocol,
        folder=folder,
        configs=configs,
        progress=quiet,
        cache=cache,
        **options,
    )
    return read_run(folder)


def assert_same(there, here):
    """Something was computed, and nothing but the way differs."""
    assert here.record.statistics["computed"]
    assert read_answers(there.folder).equals(read_answers(here.folder))
    assert there.scores == here.scores
    told = {"command", "created", "engine", "statistics"}
    assert there.record.model_dump(exclude=told) == here.record.model_dump(exclude=told)
    assert (there.record.engine, here.record.engine) == ("ray", "local")
    assert there.record.statistics["computed"] == here.record.statistics["computed"]
    assert there.record.statistics["cached"] == here.record.statistics["cached"]


@pytest.fixture
def one_thread():
    """As many threads as a worker with one core has: sums in another number of parts differ in their last bits."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


SIX = [("man", 180, None), ("woman", 60, None), ("man", 170, "woman"), ("woman", 70, "man"), ("man", 90, "woman")]


@pytest.fixture(scope="module")
def sentences(tmp_path_factory):
    """Doctors with and without a patient, as VisoGender has them."""
    people = [viso(n, *each) for n, each in enumerate([*SIX, ("woman", 80, "woman")])]
    return build(tmp_path_factory.mktemp("b") / "b", selection(0, *people), ("original",), name="visogender")


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Pairs of occupations, as GenderBias-VL has them."""
    return build(tmp_path_factory.mktemp("b") / "b", selection(0, *examples()), ("original",), name="genderbias-vl")


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
def test_same_embeddings_and_none_of_them_twice(cluster, benchmark, sentences, tmp_path, monkeypatch):
    # given a real dual encoder, whose shards are one batch each, and two protocols that rank with it
    monkeypatch.setattr(spread, "BATCHES", 1)
    spec, occupations = str(save_clip(tmp_path / "tiny-clip")), OccupationRetrieval(k=(1, 2), n_resamples=20)
    asked = {"prompts": (benchmark, RETRIEVAL, CONFIGS), "occupations": (sentences, occupations, ("original",))}

    def all_of(model, where):
        with EmbeddingCache(tmp_path / f"{where}.sqlite") as cache:
            return {
                name: run(spec, model, protocol, tmp_path / f"{where}-{name}", cache, configs, batch_size=4)
                for name, (spec, protocol, configs) in asked.items()
            }

    here = all_of(load_model(spec, device="cpu"), "here")
    with model_on_ray(load_model, spec, device="cpu", workers=WORKERS) as model:
        there = all_of(model, "there")
        with EmbeddingCache(tmp_path / "there.sqlite") as cache:
            again = run(benchmark, model, RETRIEVAL, tmp_path / "again", cache, batch_size=4, limit=6)
    for name in asked:
        assert_same(there[name], here[name])
    assert again.record.statistics["computed"] == 0


@pytest.mark.slow
def test_sentences_and_pairs_are_answered_alike(cluster, sentences, pairs, watched, tmp_path):
    # given two protocols of other questions for every image, and one worker for both
    asked = {"resolution": (sentences, Resolution(n_resamples=20)), "counterfactual": (pairs, COUNTERFACTUAL)}
    with (
        AnswerCache(tmp_path / "there.sqlite") as cache,
        model_on_ray(load_watched, str(watched), device="cpu", workers=1) as model,
    ):
        there = {
            name: run(spec, model, protocol, tmp_path / f"there-{name}", cache, ["original"])
            for name, (spec, protocol) in asked.items()
        }
    with AnswerCache(tmp_path / "here.sqlite") as cache:
        for name, (spec, protocol) in asked.items():
            assert_same(there[name], run(spec, Answerer(), protocol, tmp_path / f"here-{name}", cache, ["original"]))


@pytest.fixture
def watched(tmp_path, monkeypatch):
    """Where the workers note which image they saw; shards of four images."""
    monkeypatch.setattr(spread, "IMAGES", 4)
    folder = tmp_path / "seen"
    folder.mkdir()
    return folder


def names(benchmark, config="original"):
    """The images in the order in which they are asked about, as the workers see them."""
    opened = open_benchmark(benchmark)
    order = sorted(range(9), key=opened.image_ids().__getitem__)
    images = opened.images(config)
    return [image_name(Image.fromarray(decode(images[place]))) for place in order]


def seen(folder):
    return {each.name: len(each.read_text().split()) for each in folder.glob("image-*")}


@pytest.mark.slow
def test_a_killed_worker_costs_its_shard(cluster, benchmark, watched, tmp_path):
    # given the sixth of nine images, which kills the first process that sees it, after the fifth of its shard
    images = names(benchmark)
    (watched / "deadly").write_text(images[5])
    with (
        AnswerCache(tmp_path / "there.sqlite") as cache,
        model_on_ray(load_watched, str(watched), device="cpu", workers=WORKERS) as model,
    ):
        there = run(benchmark, model, VQA, tmp_path / "there", cache, ["original"])
    assert seen(watched) == {name: 2 if place in (4, 5) else 1 for place, name in enumerate(images)}
    with AnswerCache(tmp_path / "here.sqlite") as cache:
        assert_same(there, run(benchmark, Answerer(), VQA, tmp_path / "here", cache, ["original"]))


@pytest.mark.slow
def test_a_run_that_stopped_asks_only_what_is_missing(cluster, benchmark, watched, tmp_path):
    # given one worker, which refuses the sixth of nine images: the first shard is kept, the second is not
    images = names(benchmark)
    (watched / "unwanted").write_text(images[5])
    with (
        AnswerCache(tmp_path / "cache.sqlite") as cache,
        model_on_ray(load_watched, str(watched), device="cpu", workers=1) as model,
    ):
        with pytest.raises(UserError, match=f"^{images[5]} is not wanted$"):
            run(benchmark, model, VQA, tmp_path / "run", cache, ["original"])
        assert set(seen(watched)) == set(images[:6])
        (watched / "unwanted").unlink()
        statistics = run(benchmark, model, VQA, tmp_path / "run", cache, ["original"]).record.statistics
    assert (statistics["cached"], statistics["computed"]) == (4 * 2, 5 * 2)
    assert seen(watched) == {name: 2 if place in (4, 5) else 1 for place, name in enumerate(images)}


@pytest.mark.slow
def test_the_command_asks_a_real_model_on_the_cluster(cluster, benchmark, tmp_path, monkeypatch):
    monkeypatch.setenv("TRUEGAP_CACHE", str(tmp_path / "cache"))
    (tmp_path / "few.json").write_text(QUESTIONS.model_dump_json())
    save("llava", tmp_path / "tiny-llava")
    monkeypatch.chdir(tmp_path)  # given a folder by a relative path

    def command(out, *more):
        options = (
            "--configs",
            "control",
            "--resamples",
            "0",
            "--device",
            "cpu",
            "--json",
            "--questions",
            "few.json",
            "--view",
            "person",
        )
        call = ["evaluate", "--model", "tiny-llava", "--benchmark", benchmark, *options, "--out", out, *more]
        done = CliRunner().invoke(app, list(map(str, call)))
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout), read_run(tmp_path / out).record

    there, record = command("there", "--engine", "ray", "--workers", 1)
    assert (record.engine, record.statistics["computed"]) == ("ray", 9 * 2 * 2)
    # then the same command without the cluster knows all answers, and has the same record
    here, again = command("here")
    assert there == here
    assert again.statistics["computed"] == 0
    assert (record.model, record.prompts, record.notes) == (again.model, again.prompts, again.notes)


@pytest.mark.parametrize("option", ["--workers", "--gpus"])
def test_options_of_a_cluster_without_one(benchmark, option):
    call = ["evaluate", "--model", "baseline:random", "--benchmark", benchmark, option, "2"]
    done = CliRunner().invoke(app, call)
    assert isinstance(done.exception, UserError)
    assert "--workers and --gpus are those of --engine ray" in str(done.exception)
