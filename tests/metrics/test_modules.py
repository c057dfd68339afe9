import json
import multiprocessing
import os
import subprocess
import sys

import datasets
import evaluate
import numpy as np
import pytest

from truegap import scores
from truegap.scores.portable import portable_files

MODULES = ("ygap", "retrieval_bias", "resolution_bias", "counterfactual_bias", "feature_sensitivity")


@pytest.fixture
def load(root, tmp_path):
    return lambda name, *args, **options: evaluate.load(
        str(root / "metrics" / name), *args, cache_dir=str(tmp_path), **options
    )


ANSWERS = {
    "predictions": [0.9, 0.4, 0.7, 0.2, 0.8, 0.6, 0.3, 0.5],
    "genders": ["man", "woman"] * 4,
    "images": list("abcdabcd"),
    "questions": ["x"] * 4 + ["y"] * 4,
}


def plain(value):
    return json.loads(json.dumps(value))


def test_ygap_is_the_core_function(load):
    result = load("ygap").compute(**ANSWERS, seed=3)
    core = scores.ygap(**ANSWERS, seed=3)
    assert (result["ygap"], result["ci_low"], result["ci_high"]) == (core.ygap, core.ci_low, core.ci_high)
    assert result["abs_ygap"] == abs(result["ygap"])
    assert [each["question"] for each in result["per_question"]] == ["x", "y"]
    assert result["options"]["seed"] == 3
    assert result["counts"]["images_woman"] == 2
    assert plain(result)["p_value"] == core.p_value


def test_ygap_without_images_has_no_interval(load):
    result = load("ygap").compute(predictions=[0.9, 0.1], genders=["man", "woman"])
    assert result["ygap"] == pytest.approx(0.8)
    assert (result["ci_low"], result["ci_high"], result["p_value"]) == (None, None, None)


def test_rows_may_come_one_by_one_and_in_batches(load):
    metric = load("ygap")
    whole = metric.compute(**ANSWERS)
    metric.add_batch(**{name: column[:5] for name, column in ANSWERS.items()})
    names = {"predictions": "prediction"}
    for row in range(5, 8):
        metric.add(**{names.get(name, name): column[row] for name, column in ANSWERS.items()})
    assert len(metric) == 8
    assert metric.compute() == whole
    # and the module starts afresh, with other columns
    assert metric.compute(predictions=[1.0, 0.0], genders=[1, 0])["counts"]["rows"] == 2


def test_tensors_and_codes_are_accepted(load):
    torch = pytest.importorskip("torch")
    metric = load("ygap")
    metric.add_batch(
        predictions=torch.tensor([0.75, 0.25]), genders=torch.tensor([1, 0]), images=torch.tensor([139, 285])
    )
    assert metric.compute()["ygap"] == 0.5
    assert metric.compute(predictions=np.array([0.75, 0.25]), genders=np.array([1, 0]))["ygap"] == 0.5


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"predictions": [0.5, 0.4]},
            "column 'genders' is missing; give predictions, genders; optional: images, questions",
        ),
        ({"predictions": [0.5], "genders": ["man", "woman"]}, "genders: 2 rows, but predictions has 1"),
        ({"predictions": [0.5, 0.4], "genders": ["man", "unsure"]}, "genders: row 1 is 'unsure'"),
        ({"predictions": [0.5, 0.4], "genders": ["man", "woman"], "images": ["a", None]}, "images: row 1 has none"),
        ({"predictions": [0.5, float("nan")], "genders": ["man", "woman"]}, "predictions: row 1 is nan"),
        ({"predictions": [0.5, 7.0], "genders": ["man", "woman"]}, "predictions: row 1 is 7"),
    ],
)
def test_bad_input_is_one_line_and_leaves_the_module_usable(load, columns, message):
    metric = load("ygap")
    with pytest.raises(ValueError, match=message):
        metric.compute(**columns)
    assert metric.compute(predictions=[0.5, 0.25], genders=["man", "woman"])["ygap"] == 0.25


def test_batches_must_have_the_same_columns(load):
    metric = load("ygap")
    metric.add_batch(predictions=[0.5], genders=["man"], images=["a"])
    with pytest.raises(ValueError, match="this batch lacks 'images'"):
        metric.add_batch(predictions=[0.5], genders=["woman"])
    with pytest.raises(ValueError, match="unknown column 'references'"):
        metric.add_batch(predictions=[0.5], genders=["woman"], references=[1])


def test_an_unknown_config_is_refused(load):
    with pytest.raises(ValueError, match="'topics' is no optional column; there are: images, questions"):
        load("ygap", "topics")


def test_combine_passes_every_module_its_columns(load):
    both = evaluate.combine([load("ygap", "images,questions"), load("feature_sensitivity")])
    both.add_batch(references=[0.5] * 8, **ANSWERS)
    result = both.compute()
    alone = load("ygap").compute(**ANSWERS)
    assert (result["ygap"], result["ygap_ci_low"]) == (alone["ygap"], alone["ci_low"])
    assert (
        result["delta"]
        == load("feature_sensitivity").compute(references=[0.5] * 8, predictions=ANSWERS["predictions"])["delta"]
    )


def test_combine_gives_options_of_the_interval_to_every_module(load):
    both = evaluate.combine([load("ygap", "images,questions"), load("feature_sensitivity")])
    both.add_batch(references=[0.5] * 8, **ANSWERS)
    result = both.compute(confidence=0.9, n_resamples=20, seed=3)
    alone = load("ygap").compute(**ANSWERS, confidence=0.9, n_resamples=20, seed=3)
    assert result["ygap_ci_low"] == alone["ci_low"] is not None
    assert result["feature_sensitivity_ci_low"] is None


def test_combine_of_one_module_under_two_names(load):
    both = evaluate.combine({"with": load("ygap", "images"), "without": load("ygap")}, force_prefix=True)
    both.add_batch(predictions=[0.9, 0.1, 0.8, 0.3], genders=[1, 0, 1, 0], images=[1, 2, 3, 4])
    result = both.compute()
    assert result["with_ygap"] == result["without_ygap"]
    assert result["without_ci_low"] is None
    assert result["with_ci_low"] is not None


def test_retrieval_bias_is_the_core_function(load):
    rng = np.random.default_rng(0)
    rows, genders = rng.normal(size=(4, 30)), ["woman", "man", "man"] * 10
    metric = load("retrieval_bias")
    for row in rows:
        metric.add_batch(predictions=[row])
    result = metric.compute(genders=genders, draws=2, target="dataset", seed=4)
    core = scores.retrieval_bias(rows, genders=genders, draws=2, target="dataset", seed=4)
    assert {name: result[name] for name in core.scores} == core.scores
    assert (result["ci_low"], result["ci_high"]) == (core.ci_low, core.ci_high)
    assert result["per_query"] == core.per_query
    assert plain(result["options"])["k"] == [5, 10]
    wanted = {
        "bias@5",
        "bias@5_sd",
        "max_skew@10",
        "max_skew_null@5",
        "skew_woman@5",
        "skew_man@10",
        "ties@5",
        "ndkl",
        "ndkl_sd",
    }
    assert wanted <= set(result)


def test_retrieval_bias_takes_genders_per_query(load):
    result = load("retrieval_bias").compute(
        predictions=[[3.0, 2, 1, 0], [1.0, 0]], genders=[["man", "man", "woman", "woman"], [1, 0]], k=[2, 4]
    )
    assert (result["bias@2"], result["bias@4"], result["counts"]["null@4"]) == (0.5, 0.0, 1)
    assert result["ci_low"] is None


def test_retrieval_bias_refuses_k_above_the_candidates(load):
    with pytest.raises(ValueError, match="k=5 is above the 2 images"):
        load("retrieval_bias").compute(predictions=[[1.0, 2.0]], genders=["man", "woman"])


def test_feature_sensitivity_is_the_core_function(load):
    result = load("feature_sensitivity").compute(references=[0.1, 0.001], predictions=[0.2, 0.3], threshold=0.01)
    assert result["delta"] == pytest.approx(100)
    assert [row["row"] for row in result["excluded"]] == [1]
    unused = {"confidence": 0.95, "n_resamples": 1000, "seed": 0}
    assert result["ci_low"] is None
    assert result["options"] == {"aggregate": "mean_of_ratios", "threshold": 0.01, **unused}
    everything = load("feature_sensitivity").compute(references=[0.1, 0.001], predictions=[0.2, 0.3], threshold=None)
    assert everything["excluded"] == ()


def _worker(path, cache, rank, results):
    metric = evaluate.load(path, process_id=rank, num_process=2, experiment_id="two", cache_dir=cache)
    half = slice(4 * rank, 4 * rank + 4)
    metric.add_batch(**{name: column[half] for name, column in ANSWERS.items()})
    results.put((rank, metric.compute()))


@pytest.mark.slow
def test_two_processes_share_their_rows(load, root, tmp_path):
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    arguments = (str(root / "metrics" / "ygap"), str(tmp_path))
    workers = [context.Process(target=_worker, args=(*arguments, rank, results)) for rank in range(2)]
    for worker in workers:
        worker.start()
    found = dict(results.get(timeout=600) for _ in workers)
    for worker in workers:
        worker.join()
    assert found[1] is None
    assert found[0] == load("ygap").compute(**ANSWERS)


ITEMS = {
    "base": [0.9, 0.7, 0.85, 0.6] * 2,
    "counterfactual": [0.6, 0.8, 0.65, 0.75, 0.5, 0.8, 0.2, 0.1],
    "occupations": ["pilot", "pilot", "nurse", "nurse"] * 2,
    "pairs": ["pilot|nurse"] * 8,
    "genders": ["man", "woman", "woman", "man"] * 2,
    "orders": [0] * 4 + [1] * 4,
}


def test_resolution_bias_is_the_core_function(load):
    rng = np.random.default_rng(0)
    rows, references, images = rng.random((20, 3)), ["masculine", "feminine"] * 10, list(range(20))
    result = load("resolution_bias").compute(
        predictions=rows, references=references, groups=["x"] * 20, images=images, ties="first"
    )
    core = scores.resolution_bias(rows, references, groups=["x"] * 20, images=images, ties="first")
    assert (result["gap"], result["ra_m"], result["neutral_rate"]) == (
        core.overall.gap,
        core.overall.ra_m,
        core.overall.neutral_rate,
    )
    assert (result["ci_low"], result["ci_high"]) == (core.ci_low, core.ci_high)
    assert result["per_group"]["x"]["gap"] == result["gap"]
    assert (
        load("resolution_bias").compute(predictions=rows[:, :2], references=[1, 0] * 10)["options"]["candidates"]
        == "two"
    )
    with pytest.raises(ValueError, match="references: row 1 is 'x'"):
        load("resolution_bias").compute(predictions=rows[:2], references=["man", "x"])


IMAGES = {"images": list("abcdefgh")}


def test_counterfactual_bias_takes_images_and_the_published_delta_acc(load):
    options = {"delta_acc": "occupation", "seed": 3, "n_resamples": 200}
    result = load("counterfactual_bias").compute(**ITEMS, **IMAGES, **options)
    core = scores.counterfactual_bias(**ITEMS, **IMAGES, **options)
    assert (result["ci_low"], result["ci_high"]) == (core.ci_low, core.ci_high)
    assert result["ci_low"] is not None
    assert result["delta_acc"] == core.delta_acc
    assert plain(result)["intervals"]["ipss"] == list(core.intervals["ipss"])
    assert result["options"]["delta_acc"] == "occupation"
    as_text = ITEMS | {"orders": [str(order) for order in ITEMS["orders"]]}
    assert load("counterfactual_bias").compute(**as_text)["b_ovl"] == result["b_ovl"]


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("ygap", {"predictions": ["a"] * 8}, "predictions: row 0 is 'a', not numbers"),
        ("ygap", {"predictions": [0.5] * 7 + [None]}, "predictions: row 7 is None, not numbers"),
        ("ygap", {"genders": ["man"] * 7 + [float("nan")]}, "genders: row 7 has none"),
        ("ygap", {"n_resamples": -1}, "n_resamples=-1; give a whole number"),
        ("ygap", {"n_permutations": 1e12}, "n_permutations=1000000000000.0; give a whole number"),
        ("ygap", {"confidence": 95}, r"confidence=95 is outside \(0, 1\)"),
        ("retrieval_bias", {"genders": None}, "genders: none given"),
        ("retrieval_bias", {"k": [9]}, "k=9 is above the 4 images"),
        ("retrieval_bias", {"draws": -1}, "draws=-1; give a whole number from 0"),
        ("retrieval_bias", {"predictions": [[4.0, 3, 2, 1], [1.0]]}, "predictions: row 1 has 1 values, row 0 has 4"),
        ("retrieval_bias", {"predictions": [[4.0, 3, 2, float("-inf")]]}, "predictions: row 0, column 3 is -inf"),
        ("retrieval_bias", {"predictions": [[4.0, 3, 2, "x"]]}, "predictions: row 0 is .*, not numbers"),
        ("retrieval_bias", {"predictions": [4.0, 3, 2, 1]}, "a column is not of its kind; give predictions List"),
        ("resolution_bias", {"predictions": [[1.0, 2, 3], [1.0, 2]]}, "predictions: row 1 has 2 values"),
        ("resolution_bias", {"n_resamples": -1}, "n_resamples=-1"),
        ("counterfactual_bias", {"base": [0.5] * 7 + [1.5]}, r"base: row 7 is 1.5, outside \[0, 1\]"),
        ("counterfactual_bias", {"orders": [0] * 7 + [0.5]}, "orders: row 7 is '0.5'; use '0', '1'"),
        (
            "counterfactual_bias",
            {"occupations": ["pilot"] * 8},
            "has no item of 'nurse' in order 0; leave the pair out",
        ),
        ("feature_sensitivity", {"predictions": ["x"]}, "predictions: row 0 is 'x', not numbers"),
        ("feature_sensitivity", {"threshold": float("nan")}, "threshold=nan is negative or not finite"),
    ],
)
def test_mistakes_are_one_line_and_leave_the_module_usable(load, name, change, message):
    metric = load(name)
    with pytest.raises(ValueError, match=message) as caught:
        metric.compute(**(CALLS[name] | change))
    assert "\n" not in str(caught.value)
    metric.compute(**CALLS[name])


def test_minus_infinity_is_null_in_json(load):
    rows = [[4.0, 3, 2, 1], [4.0, 1, 3, 2]]
    genders = ["man", "man", "woman", "woman"]
    result = load("retrieval_bias").compute(predictions=rows, genders=genders, k=[2], empty="neg_inf")
    read = json.loads(json.dumps(result, allow_nan=False))
    assert read["skew_woman@2"] is None
    assert read["reasons"]["skew_woman@2"].startswith("minus infinity")
    assert read["ndkl_null"] > 0


def test_counterfactual_bias_is_the_core_function(load):
    result = load("counterfactual_bias").compute(**ITEMS, ipss="merged", difference="outcome")
    core = scores.counterfactual_bias(**ITEMS, ipss="merged", difference="outcome")
    for name in ("acc", "b_ovl", "b_max", "ipss", "delta_acc", "b_micro", "options"):
        assert result[name] == getattr(core, name)
    assert result["per_pair"][0]["pair"] == "pilot|nurse"
    assert result["ci_low"] is None
    metric = load("counterfactual_bias")
    metric.add_batch(**{name: column[:4] for name, column in ITEMS.items()})
    for row in range(4, 8):
        metric.add(**{name: column[row] for name, column in ITEMS.items()})
    assert metric.compute() == load("counterfactual_bias").compute(**ITEMS)


CALLS = {
    "ygap": ANSWERS,
    "retrieval_bias": {"predictions": [[4.0, 3, 2, 1]], "genders": ["man", "woman"] * 2, "k": [2], "draws": 1},
    "feature_sensitivity": {"references": [0.5], "predictions": [0.25]},
    "resolution_bias": {"predictions": [[0.5, 0.3, 0.2], [0.4, 0.5, 0.6]], "references": ["masculine", "feminine"]},
    "counterfactual_bias": ITEMS,
}

BARE = """
import importlib.abc, json, sys
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("truegap", "scipy", "cv2", "sklearn"):
            raise ImportError(name + " is not installed here")
sys.meta_path.insert(0, Absent())
import evaluate
results = {name: evaluate.load("./" + name).compute(**call) for name, call in json.loads(sys.argv[1]).items()}
assert not any(name.split(".")[0] == "truegap" for name in sys.modules)
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def alone(root, tmp_path_factory):
    """What the published files alone give, by module, where truegap cannot be imported."""
    folder = tmp_path_factory.mktemp("alone")
    for name in MODULES:
        (folder / name).mkdir()
        for file, content in portable_files(root / "metrics" / name).items():
            (folder / name / file).write_bytes(content)
    done = subprocess.run(
        [sys.executable, "-c", BARE, json.dumps(CALLS)],
        env={**os.environ, "HF_HOME": str(folder / "home"), "HF_MODULES_CACHE": str(folder / "modules")},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", MODULES)
def test_the_published_form_needs_no_truegap(load, alone, name):
    assert alone[name] == plain(load(name).compute(**CALLS[name]))


@pytest.mark.parametrize("name", MODULES)
def test_the_core_imports_numpy_and_the_standard_library_only(root, name):
    allowed = set(sys.stdlib_module_names) | {"numpy", ""}
    for file, content in portable_files(root / "metrics" / name).items():
        if file.startswith("truegap_"):
            for line in content.decode().splitlines():
                if line.startswith(("import ", "from ")):
                    assert line.split()[1].split(".")[0] in allowed, f"{file}: {line}"


@pytest.mark.parametrize("name", MODULES)
def test_the_card_says_what_a_card_says(root, name):
    import huggingface_hub

    card = huggingface_hub.RepoCard.load(root / "metrics" / name / "README.md")
    assert card.data.sdk == "gradio"
    assert {"evaluate", "metric"} <= set(card.data.tags)
    for heading in ("Description", "How to use", "Inputs", "Output", "Values from papers", "Limitations", "Citation"):
        assert heading in card.text
    assert (root / "metrics" / name / card.data.to_dict()["app_file"]).is_file()


@pytest.mark.parametrize("name", MODULES)
def test_the_card_the_module_and_the_options_agree(root, load, name):
    # Given what the module returns and takes, then its card names every key, and cites what the module cites
    text = (root / "metrics" / name / "README.md").read_text()
    metric = load(name)
    assert metric.citation.strip() == text.split("```bibtex\n")[1].split("```")[0].strip()
    result = metric.compute(**CALLS[name])
    for key in result:
        shown = key.replace("_sd", "").replace("@2", "@k")
        assert f"`{shown}`" in text, key
    options = set(result["options"]) - {"k"}
    assert [name for name in sorted(options) if f"`{name}`" not in text] == []


@pytest.mark.parametrize("name", MODULES)
def test_the_example_of_the_card_is_true(root, load, name):
    text = (root / "metrics" / name / "README.md").read_text()
    code = text.split("```python\n")[1].split("```")[0]
    code = code.replace(f'evaluate.load("ORG/{name}", revision="v1.0.0")', "metric")
    namespace = {"metric": load(name)}
    lines = code.strip().splitlines()
    exec("\n".join(line for line in lines if not line.startswith("import") and "#" not in line), namespace)  # noqa: S102
    shown = next(line for line in lines if "#" in line)
    expression, _, comment = shown.partition("#")
    assert eval(expression, namespace) == pytest.approx(float(comment.split(":")[0]))  # noqa: S307


def test_features_are_what_evaluate_shows(load):
    assert list(load("ygap").features) == ["predictions", "genders"]
    assert list(load("ygap", "images").features) == ["predictions", "genders", "images"]
    assert load("retrieval_bias").features["predictions"] == datasets.List(datasets.Value("float64"))
