"""Generative models: what they refuse, and how they fall back; LLaVA stands for all where any family would do."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

from loopback_hub import LoopbackHub
from tiny_generative import CHATML, TEXT, save, template
from truegap.errors import UserError
from truegap.models import DualEncoder, GenerativeModel, Item, Question, load_dual_encoder, load_model
from truegap.models import _shared_prefix as prefix
from truegap.models._whole import largest_logit
from truegap.models.generative_transformers import EXACT, SHARE

LETTERS = ("A", "B", "C")
QUESTIONS = [Question(f"Is it {word}?", LETTERS) for word in ("kind", "a dog", "at home in the wood", "x", "very old")]


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("generative")
    return {name: save(name, folder / name) for name in ("llava", "gemma3", "blip", "qwen2_vl", "instructblip_t5")}


@pytest.fixture
def folder(saved, tmp_path) -> Path:
    """A copy of the tiny LLaVA that a test may damage."""
    return Path(shutil.copytree(saved["llava"], tmp_path / "copy"))


@pytest.fixture
def model(saved):
    return load_model(str(saved["llava"]), device="cpu")


@pytest.fixture(scope="module")
def image() -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (80, 60, 3), dtype=np.uint8))


def log_probs(answers) -> np.ndarray:
    return np.array([answer.log_probs for answer in answers])


def refusal(*arguments, **options) -> str:
    """The one line of what cannot be loaded."""
    with pytest.raises(UserError) as error:
        load_model(*map(str, arguments), device=options.pop("device", "cpu"), **options)
    assert "\n" not in str(error.value)
    return str(error.value)


def edit(path: Path, **changes) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


# loading


def test_the_files_say_which_kind_of_model_it_is(saved, tiny):
    assert isinstance(load_model(str(saved["llava"]), device="cpu"), GenerativeModel)
    assert isinstance(load_model(str(tiny("clip")), device="cpu"), DualEncoder)
    with pytest.raises(UserError, match=r"answers questions about images \(generative\); here a dual encoder") as error:
        load_dual_encoder(str(saved["llava"]), device="cpu")
    assert "\n" not in str(error.value)


def test_a_class_that_is_both_is_what_was_saved(saved, tmp_path):
    # Given BLIP's captioner, and its dual encoder under the same type
    both = transformers.BlipModel(transformers.BlipConfig.from_pretrained(saved["blip"]))
    shutil.copytree(saved["blip"], tmp_path / "dual", ignore=shutil.ignore_patterns("model*", "config.json"))
    both.save_pretrained(tmp_path / "dual")

    assert load_model(str(saved["blip"]), device="cpu").record().kind == "captioner"
    assert load_model(str(tmp_path / "dual"), device="cpu").record().kind == "dual-encoder"


def test_a_text_model_is_neither(tmp_path):
    transformers.LlamaForCausalLM(transformers.LlamaConfig(**TEXT, vocab_size=30)).save_pretrained(tmp_path)

    message = refusal(tmp_path)

    assert "llama is not a dual encoder (CLIP, " in message
    assert "does not go on with a text about an image either (LLaVA, " in message


def test_the_record_follows_the_content(folder, saved):
    def content() -> str:
        return load_model(str(folder), device="cpu").record().content

    first = load_model(str(saved["llava"]), device="cpu").record()
    assert (first.adapter, first.kind, first.name, first.revision) == ("transformers", "generative", "llava", None)
    found = [first.content]
    assert content() == first.content

    words = folder / "chat_template.jinja"
    words.write_text(words.read_text().replace("USER", "HUMAN"))
    found.append(content())
    edit(folder / "tokenizer_config.json", model_max_length=77)
    found.append(content())
    edit(
        folder / "processor_config.json",
        image_processor=json.loads((folder / "processor_config.json").read_text())["image_processor"]
        | {"image_mean": [0, 0, 0]},
    )
    found.append(content())
    changed = transformers.LlavaForConditionalGeneration.from_pretrained(folder)
    changed.lm_head.weight.data[0, 0] += 1
    changed.save_pretrained(folder)
    found.append(content())
    found.append(load_model(str(folder), device="cpu", dtype="bfloat16").record().content)
    assert len(set(found)) == len(found)


def test_a_model_in_this_folder_has_its_name(folder, monkeypatch):
    monkeypatch.chdir(folder)

    assert load_model(".", device="cpu").record().name == "copy"


def test_answers_of_other_rules_are_not_taken(model, monkeypatch):
    before = model.cache_key
    monkeypatch.setattr("truegap.models.generative_transformers.RULES", 0)

    assert model.cache_key != before


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "chat_template.jinja").unlink(), "no chat template.*put its authors' chat_template.jinja"),
        (lambda f: (f / "processor_config.json").unlink(), "no usable image processor"),
        (lambda f: [p.unlink() for p in f.glob("tokenizer*")], "tokenizer"),
        (lambda f: (f / "config.json").unlink(), "no config.json"),
        (lambda f: (f / "model.safetensors").unlink(), "no weights"),
        (lambda f: (f / "model.safetensors").write_bytes(b"not safetensors"), "its weights are 15 bytes"),
        (lambda f: edit(f / "config.json", model_type="mine", auto_map={"AutoConfig": "mine.Mine"}), "never run"),
    ],
)
def test_a_broken_folder_gives_one_line(folder, damage, message):
    damage(folder)

    found = refusal(folder)

    assert re.search(message, found)
    assert str(folder) in found


def test_code_of_a_repository_is_never_run(folder):
    mark = folder / "ran"
    (folder / "mine.py").write_text(f"open({str(mark)!r}, 'w')\nclass Mine: pass\n")
    edit(folder / "config.json", auto_map={"AutoConfig": "mine.Mine", "AutoModelForImageTextToText": "mine.Mine"})
    edit(folder / "processor_config.json", auto_map={"AutoProcessor": "mine.Mine"})

    with suppress(UserError):
        load_model(str(folder), device="cpu")
    assert not mark.exists()


def test_a_configuration_does_not_choose_how_attention_is_computed(folder, model, image):
    # Given one that names code on the Hub, and a library that is not here
    text = json.loads((folder / "config.json").read_text())["text_config"]
    edit(
        folder / "config.json",
        attn_implementation="org/kernel",
        text_config=text | {"_attn_implementation": "flash_attention_2"},
    )

    loaded = load_model(str(folder), device="cpu")

    assert loaded.record().content == model.record().content
    np.testing.assert_allclose(log_probs(loaded.answer(image, QUESTIONS)), log_probs(model.answer(image, QUESTIONS)))


def test_an_adapter_beside_the_weights_is_refused(folder):
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "org/other", "peft_type": "LORA"}')

    assert "adapter_config.json in" in refusal(folder)


def test_pickled_weights_are_refused_unless_asked_for(folder, saved, image):
    weights = transformers.LlavaForConditionalGeneration.from_pretrained(folder).state_dict()
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")

    assert "pytorch_model.bin is pickled" in refusal(folder)

    allowed = load_model(str(folder), device="cpu", unsafe_weights=True).answer(image, QUESTIONS)
    safe = load_model(str(saved["llava"]), device="cpu").answer(image, QUESTIONS)
    np.testing.assert_allclose(log_probs(allowed), log_probs(safe), atol=1e-5)


def test_weights_of_another_model_are_refused(folder, saved):
    shutil.copy(saved["gemma3"] / "model.safetensors", folder / "model.safetensors")
    assert refusal(folder).endswith("its weights have other shapes than its config.json says")

    from safetensors.torch import load_file, save_file

    weights = load_file(saved["llava"] / "model.safetensors")
    kept = {name: tensor for name, tensor in weights.items() if "multi_modal_projector" not in name}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    assert "its weights lack 4 tensors that LlavaForConditionalGeneration needs" in refusal(folder)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quantization": "3bit"}, "quantization 3bit: unknown; one of 4bit, 8bit"),
        ({"device_map": "auto"}, "give a device .cpu. or a device_map .auto., not both"),
        ({"dtype": "int3"}, "dtype int3: unknown"),
    ],
)
def test_options_that_cannot_be(saved, options, message):
    assert re.search(message, refusal(saved["llava"], **options))


def test_quantization_needs_its_library(saved, monkeypatch):
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name, *rest: None if name == "bitsandbytes" else find(name, *rest)
    )
    message = refusal(saved["llava"], quantization="4bit")
    assert message.endswith("quantization 4bit needs bitsandbytes; `pip install bitsandbytes`")


def test_a_device_map_gives_the_same_answers(saved, image, model):
    spread = load_model(str(saved["llava"]), device_map="cpu")

    np.testing.assert_allclose(
        log_probs(spread.answer(image, QUESTIONS)), log_probs(model.answer(image, QUESTIONS)), atol=1e-5
    )
    assert spread.record().content == model.record().content


def test_a_dual_encoder_takes_no_options_of_large_models(tiny):
    assert refusal(tiny("clip"), quantization="8bit").endswith("is a dual encoder, and takes no quantization")


def test_it_comes_from_the_hub_with_template_and_second_tokenizer(saved, tmp_path, monkeypatch):
    hub = LoopbackHub()
    try:
        hub.connect(monkeypatch, tmp_path / "cache")
        for name in ("llava", "instructblip_t5"):
            files = {str(p.relative_to(saved[name])): p.read_bytes() for p in saved[name].rglob("*") if p.is_file()}
            commit = hub.commit("model", f"org/{name}", files, "v1")
            loaded = load_model(f"org/{name}@v1", device="cpu").record()
            local = load_model(str(saved[name]), device="cpu").record()
            assert (loaded.revision, loaded.content) == (commit, local.content)
    finally:
        hub.close()


# asking


def test_bfloat16_and_float16_stay_near_float32(saved, image, model):
    exact = log_probs(model.answer(image, QUESTIONS))
    for dtype, step in (("bfloat16", 2**-8), ("float16", 2**-11)):
        rough = load_model(str(saved["llava"]), device="cpu", dtype=dtype)
        packed = log_probs(rough.answer(image, QUESTIONS))
        assert [note.split(":")[0] for note in rough.notes] == [dtype]
        rough._shares = False
        with largest_logit(rough._model) as largest:
            plain = log_probs(rough.answer(image, QUESTIONS, 1))

        assert 2 < largest[0] < 8
        assert 0 < np.abs(packed - exact).max() < 2 * step * 8
        assert np.abs(packed - plain).max() < 2.5 * step * largest[0] < SHARE[rough._dtype] * largest[0]


def test_an_option_of_several_tokens_is_no_letter(model, image):
    with pytest.raises(UserError, match=r"model llava: its tokenizer writes the option 'Yes' as 3 tokens"):
        model.answer(image, [Question("?", ("Yes", "No"))])


@pytest.mark.parametrize("mode", ["L", "RGBA", "P"])
def test_any_picture_is_read_in_colour(model, image, mode):
    other = image.convert(mode)

    np.testing.assert_allclose(
        log_probs(model.answer(other, QUESTIONS)), log_probs(model.answer(other.convert("RGB"), QUESTIONS)), atol=1e-5
    )


def test_many_items_come_in_their_order(model, image):
    items = [Item(image, (QUESTIONS[0],)), Item(image.rotate(90), tuple(QUESTIONS[:3]))]

    found = list(model.answer_each(items))

    assert [len(answers) for answers in found] == [1, 3]
    np.testing.assert_allclose(log_probs(found[1]), log_probs(model.answer(items[1].image, QUESTIONS[:3])), atol=1e-6)


def test_no_questions_have_no_answers(model, image):
    assert model.answer(image, []) == []
    with pytest.raises(ValueError, match="batch_size is 0"):
        model.answer(image, QUESTIONS, 0)


@pytest.mark.parametrize("name", ["llava", "blip"])
def test_a_question_beyond_the_context_gives_one_line(saved, image, name):
    model = load_model(str(saved[name]), device="cpu")

    with pytest.raises(UserError, match=r"image, question and option are \d+ tokens, its context holds \d+") as error:
        model.answer(image, [Question("why? " * 600, LETTERS)])
    assert "\n" not in str(error.value)


def test_an_image_that_the_processor_refuses_gives_one_line(saved):
    model = load_model(str(saved["qwen2_vl"]), device="cpu")

    with pytest.raises(UserError, match="its processor refuses an image of 3000 x 4 pixels") as error:
        model.answer(Image.new("RGB", (3000, 4)), QUESTIONS)
    assert "\n" not in str(error.value)


def test_a_processor_of_another_model_gives_one_line(folder, image):
    # Given a processor that cuts an image into more patches than the model does
    edit(folder / "processor_config.json", patch_size=7)

    with pytest.raises(UserError, match="model copy: fails over a question about an image") as error:
        load_model(str(folder), device="cpu").answer(image, QUESTIONS)
    assert "\n" not in str(error.value)


def test_a_question_with_the_mark_of_an_image_gives_one_line(model, image):
    with pytest.raises(UserError, match="its processor refuses an image") as error:
        model.answer(image, [Question("Is <image> kind?", LETTERS)])
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("{{ raise_exception('no images here') }}", "takes no turn with one image: no images here"),
        ("{{ messages[0]['content'] + 'x' }}", "takes no turn with one image"),
        (template(**CHATML, image=""), "leaves the image out|refuses an image"),
    ],
)
def test_a_template_that_cannot_be_used_gives_one_line(folder, image, words, message):
    (folder / "chat_template.jinja").write_text(words)
    model = load_model(str(folder), device="cpu")

    with pytest.raises(UserError, match=message) as error:
        model.answer(image, QUESTIONS)
    assert "\n" not in str(error.value)


def test_a_template_that_begins_the_text_gets_no_second_mark(folder, image, model):
    before = model.prompt(QUESTIONS[0])
    words = folder / "chat_template.jinja"
    words.write_text("{{ bos_token }}" + words.read_text())

    marked = load_model(str(folder), device="cpu")

    assert marked.prompt(QUESTIONS[0]) == before
    assert before.startswith("<s>USER: <image>\nIs it kind?")
    np.testing.assert_allclose(
        log_probs(marked.answer(image, QUESTIONS)), log_probs(model.answer(image, QUESTIONS)), atol=1e-6
    )


def test_a_template_that_tells_the_date_tells_the_same_every_day(folder, image):
    # Given a template that reads the clock, as Mistral's does
    words = folder / "chat_template.jinja"
    clock = "{%- set today = strftime_now('%d %B %Y, %Y-%m-%d') %}Today is {{ today }}.\n"
    words.write_text(clock + words.read_text())

    model = load_model(str(folder), device="cpu")

    assert model.prompt(QUESTIONS[0]).startswith("<s>Today is 01 January 2025, 2025-01-01.\nUSER: <image>\n")
    assert model.notes == ["the chat template tells the model a date: always that of 1 January 2025"]
    assert len(model.answer(image, QUESTIONS)) == len(QUESTIONS)


def test_of_several_templates_the_default_is_taken(folder, saved):
    # Given a folder with two, as save_pretrained writes them
    processor = transformers.AutoProcessor.from_pretrained(folder)
    default = processor.chat_template
    processor.chat_template = {"default": default, "tools": "{{ messages }}"}
    processor.save_pretrained(folder)
    model = load_model(str(folder), device="cpu")
    assert model.prompt(QUESTIONS[0]) == load_model(str(saved["llava"]), device="cpu").prompt(QUESTIONS[0])

    (folder / "chat_template.jinja").unlink()

    assert "has the chat templates tools, and none that is named default" in refusal(folder)


def test_nan_weights_are_named(folder, image):
    broken = transformers.LlavaForConditionalGeneration.from_pretrained(folder)
    broken.lm_head.weight.data[:] = float("nan")
    broken.save_pretrained(folder)

    with pytest.raises(UserError, match="model copy: log-probabilities are not numbers"):
        load_model(str(folder), device="cpu").answer(image, QUESTIONS)


# falling back


def plain(folder: Path, image: Image.Image, questions=QUESTIONS) -> np.ndarray:
    """One forward per question."""
    model = load_model(str(folder), device="cpu")
    model._shares = False
    return log_probs(model.answer(image, questions, 1))


def test_text_before_the_image_is_not_shared(folder, image):
    # Given a template that puts the image last
    (folder / "chat_template.jinja").write_text(
        "USER: {% for c in messages[0]['content'] %}{% if c['type'] == 'text' %}{{ c['text'] }}{% endif %}{% endfor %}"
        "<image> ASSISTANT:"
    )
    model = load_model(str(folder), device="cpu")

    found = [log_probs(model.answer(picture, QUESTIONS)) for picture in (image, image.rotate(180))]

    # Then it says so, once, and is right
    assert model.notes == [
        "copy reads the image once per question: text that differs between questions stands before the image"
    ]
    np.testing.assert_allclose(found[0], plain(folder, image), atol=1e-4)
    np.testing.assert_allclose(found[1], plain(folder, image.rotate(180)), atol=1e-4)


def test_a_sliding_window_is_shared_only_within_it(saved, tmp_path, image):
    # Given a window that the short questions fit into, and the long ones do not
    folder = Path(shutil.copytree(saved["gemma3"], tmp_path / "gemma"))
    text = json.loads((folder / "config.json").read_text())["text_config"]
    edit(folder / "config.json", text_config=text | {"sliding_window": 80})
    model = load_model(str(folder), device="cpu")
    long = [
        Question(f"{question.text} Say it after all these words, if you please.", LETTERS) for question in QUESTIONS
    ]

    short = log_probs(model.answer(image, QUESTIONS * 3, 15))
    assert model.notes == []
    found = log_probs(model.answer(image, long))

    assert len(model.notes) == 1
    assert "more than its sliding window of 80" in model.notes[0]
    np.testing.assert_allclose(short, np.tile(plain(folder, image), (3, 1)), atol=1e-4)
    np.testing.assert_allclose(found, plain(folder, image, long), atol=1e-4)
    # and the window matters
    assert np.abs(found - plain(saved["gemma3"], image, long)).max() > 1e-3


def test_a_cache_of_another_kind_is_tried_once(tmp_path, image):
    # Given layers that keep a state
    model = load_model(str(save("qwen3_5", tmp_path / "qwen")), device="cpu")
    tokens = []
    model._model.register_forward_pre_hook(lambda *args: tokens.append(args[2]["input_ids"].numel()), with_kwargs=True)

    for picture in (image, image.rotate(90)):
        tokens.clear()
        model.answer(picture, QUESTIONS)

    assert model.notes == [
        "qwen reads the image once per question: its layers keep more than keys and values (LinearAttentionLayer)"
    ]
    assert len(tokens) == 5  # the questions, each of another length, and no prefix


def test_tokens_that_look_at_the_image_each_in_its_way_are_not_shared(tmp_path, image):
    model = load_model(str(save("mllama", tmp_path / "mllama")), device="cpu")

    model.answer(image, QUESTIONS)

    assert "cross_attention_mask says more of the tokens after the image" in model.notes[0]


@pytest.mark.parametrize("name", ["llava", "instructblip_t5"])
def test_an_image_is_prepared_once(saved, image, monkeypatch, name):
    model = load_model(str(saved[name]), device="cpu")
    kind, calls = type(model._reader._processor.image_processor), []
    prepare = kind.__call__
    monkeypatch.setattr(kind, "__call__", lambda *a, **k: calls.append(1) or prepare(*a, **k))

    model.answer(image, QUESTIONS)

    assert len(calls) == 1


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_a_prefix_that_changes_scores_is_found_out(image, monkeypatch, saved, dtype):
    # Given rests that are read one place too far
    model = load_model(str(saved["llava"]), device="cpu", dtype=dtype)
    read = prefix.read_rests

    def shifted(model, before, pack):
        return read(model, prefix.Prefix(before.length, before.states, torch.ones(1)), pack)

    monkeypatch.setattr(prefix, "read_rests", shifted)
    monkeypatch.setattr(type(model._model), "forward", accepting_three(type(model._model).forward))

    found = log_probs(model.answer(image, QUESTIONS))

    said = [note for note in model.notes if not note.startswith(dtype)]
    assert "a shared prefix changes log-probabilities by up to" in said[0]
    assert said[1:] == ["llava encodes the image once, and reads what that gives with every question"]
    coarse = SHARE[model._dtype] * 8
    np.testing.assert_allclose(found, plain(saved["llava"], image), atol=EXACT + coarse)


def accepting_three(forward):
    """A forward pass that takes the first of three positions."""

    def taking(self, *arguments, position_ids=None, **options):
        if position_ids is not None and position_ids.ndim == 3:
            position_ids = position_ids[0]
        return forward(self, *arguments, position_ids=position_ids, **options)

    return taking


def test_a_class_that_refuses_is_not_asked_again(model, image, monkeypatch, saved):
    calls = []

    def refuse(*_):
        calls.append(1)
        raise TypeError("unexpected keyword argument 'position_ids'")

    monkeypatch.setattr(prefix, "read_rests", refuse)

    found = [log_probs(model.answer(image, QUESTIONS)) for _ in range(2)]

    assert len(calls) == 1
    assert "class refuses questions that share a prefix (unexpected keyword" in model.notes[0]
    np.testing.assert_allclose(found[1], plain(saved["llava"], image), atol=1e-4)


def test_remembered_tokens_that_no_longer_hold_are_forgotten(model, image):
    expected = log_probs(model.answer(image, QUESTIONS))
    parts = model._reader._parts
    for text, (before, after) in list(parts.items()):
        parts[text] = before, (after[1:])

    np.testing.assert_allclose(log_probs(model.answer(image, QUESTIONS)), expected, atol=1e-6)


# memory


def hungry(monkeypatch, kind, most: int) -> list[int]:
    """Let forward passes over more than so many tokens fail as on a full device; gives the sizes that were tried."""
    forward, tried = kind.forward, []

    def failing(self, *arguments, input_ids=None, **options):
        tokens = input_ids.numel()
        tried.append(tokens)
        if tokens > most:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB")
        return forward(self, *arguments, input_ids=input_ids, **options)

    monkeypatch.setattr(kind, "forward", failing)
    return tried


@pytest.mark.parametrize("name", ["llava", "blip"])
def test_a_batch_that_does_not_fit_is_halved(saved, image, monkeypatch, name):
    model = load_model(str(saved[name]), device="cpu")
    same = [Question(f"Is it {letter}?", LETTERS) for letter in "abcdefgh"]
    expected = log_probs(model.answer(image, same))
    size = 40 if name == "blip" else 60
    tried = hungry(monkeypatch, type(model._model), size)

    found = log_probs(model.answer(image, same))
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert max(tried) > size  # it was tried
    assert max(tokens for tokens in tried if tokens <= size) > size // 2  # and halved, no more than needed

    # and what fitted is kept
    tried.clear()
    model.answer(image, same)
    assert max(tried) <= size


def test_one_question_that_does_not_fit_is_an_error(model, image, monkeypatch):
    hungry(monkeypatch, type(model._model), 10)

    with pytest.raises(UserError, match="model llava: a single input does not fit into memory; use a smaller model"):
        model.answer(image, QUESTIONS)


# plug-ins

PLUGIN = """
from truegap.models import Answer, GenerativeModel
from truegap.results.records import ModelRecord

class AlwaysYes(GenerativeModel):
    def record(self):
        return ModelRecord(spec="yes:", name="yes", adapter="yes", kind="generative", content="1", parameters=0)

    def answer(self, image, questions, batch_size=32):
        return [Answer(None, None, 0, "Yes") for _ in questions]

    def prompt(self, question):
        return question.text

def load(name, *, revision, device, dtype, unsafe_weights):
    return AlwaysYes()
"""


def test_a_plugin_may_answer_questions(tmp_path, monkeypatch, image):
    (tmp_path / "yes_models.py").write_text(PLUGIN)
    info = tmp_path / "yes_models-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: yes-models\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[truegap.models]\nyes = yes_models:load\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    model = load_model("yes:always")

    assert [answer.text for answer in model.answer(image, QUESTIONS[:2])] == ["Yes", "Yes"]
    with pytest.raises(UserError, match="answers questions about images"):
        load_dual_encoder("yes:always")
