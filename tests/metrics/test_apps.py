import importlib.util
import json

import pytest

gradio = pytest.importorskip("gradio")

INPUTS = {
    "ygap": ([0.95], "ygap", 0.34),
    "retrieval_bias": (["2,4", 0, "uniform", "clip"], "max_skew@2", 0.6931472),
    "resolution_bias": (["three", "wrong"], "ra_avg", 0.75),
    "counterfactual_bias": (["per_order", "abs", "probability", "pair"], "b_ovl", 0.1875),
    "feature_sensitivity": (["mean_of_ratios", 0.005], "counts", {"rows": 3, "kept": 2, "excluded": 1}),
}


def app(root, name):
    spec = importlib.util.spec_from_file_location(f"app_{name}", root / "metrics" / name / "app.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", sorted(INPUTS))
def test_the_example_is_scored(root, name):
    module = app(root, name)
    options, key, value = INPUTS[name]
    assert json.loads(module.score(module.EXAMPLE, *options))[key] == pytest.approx(value)


@pytest.mark.parametrize("name", sorted(INPUTS))
def test_a_mistake_is_one_line(root, name):
    module = app(root, name)
    for table in ("", "a,b\n1,x\n", module.EXAMPLE.replace("0", "x")):
        with pytest.raises(gradio.Error) as caught:
            module.score(table, *INPUTS[name][0])
        assert "\n" not in caught.value.message


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(INPUTS))
def test_the_page_serves(root, name):
    client = pytest.importorskip("gradio_client")
    module = app(root, name)
    page = module.build()
    _, url, _ = page.launch(prevent_thread_lock=True, quiet=True, share=False)
    try:
        options, key, value = INPUTS[name]
        answer = client.Client(url, verbose=False).predict(module.EXAMPLE, *options, api_name="/score")
        text = answer["value"] if isinstance(answer, dict) else answer
        assert json.loads(text)[key] == pytest.approx(value)
    finally:
        page.close()
