"""What a shared prefix saves: 81 questions on one image, against the model's plain API.

    python benchmarks/vqa.py [--device cpu] [--size small] [--threads N]       one plain forward per question
    python benchmarks/vqa.py --device cuda --size 7b --dtype bfloat16          plain forwards in batches

A LLaVA with random weights and 576 tokens per image. Both sides begin with the image and the texts, and end with the
log-probabilities of three letters; both compute the logits of the last token alone. The bound is what the counts of
tokens allow: q questions of S tokens on a prefix of P take P + qS tokens instead of q(P + S). It counts the language
model alone; the image is also prepared and encoded once instead of q times, so that the whole ratio can pass it. So
the ratio of the language model alone is given too: both sides less what preparing and encoding take, timed apart.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
import transformers
from PIL import Image

from truegap.models import Question
from truegap.models.devices import count_parameters
from truegap.models.generative_transformers import TransformersGenerative
from truegap.protocols.questions import packaged
from truegap.results.records import ModelRecord

LETTERS = ("A", "B", "C")
SIDE, PATCH = 336, 14
SIZES = {
    "small": (
        {"hidden_size": 384, "intermediate_size": 1024, "num_hidden_layers": 8, "num_attention_heads": 6},
        {"hidden_size": 192, "intermediate_size": 512, "num_hidden_layers": 4, "num_attention_heads": 3},
    ),
    "7b": (
        {"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32},
        {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16},
    ),
}
TEMPLATE = (
    "{% for m in messages %}USER: {% for c in m['content'] %}{% if c['type'] == 'image' %}<image>\n{% else %}"
    "{{ c['text'] }}{% endif %}{% endfor %} {% endfor %}{% if add_generation_prompt %}ASSISTANT:{% endif %}"
)


def prompts() -> list[str]:
    """The package's 81 questions with their options."""
    asked = packaged("vqa-r1")
    return [asked.prompt(question, (0, 1, 2)) for question in asked.questions]


def tokenizer(texts: list[str]) -> Any:
    """Whole words for the most part, as large vocabularies have them."""
    from tokenizers import Tokenizer
    from tokenizers.decoders import ByteLevel as Decoder
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import ByteLevel
    from tokenizers.trainers import BpeTrainer

    inner = Tokenizer(BPE())
    inner.pre_tokenizer, inner.decoder = ByteLevel(add_prefix_space=False), Decoder()
    marks = ["<s>", "</s>", "<pad>", "<image>"]
    trainer = BpeTrainer(
        vocab_size=2000, special_tokens=marks, initial_alphabet=ByteLevel.alphabet(), show_progress=False
    )
    inner.train_from_iterator([*texts, " A B C" * 100], trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner,
        bos_token="<s>",  # noqa: S106
        eos_token="</s>",  # noqa: S106
        pad_token="<pad>",  # noqa: S106
        unk_token="<pad>",  # noqa: S106
        padding_side="left",
    )


def llava(size: str, device: str, dtype: torch.dtype) -> tuple[Any, Any]:
    """A LLaVA and its processor."""
    words = tokenizer(prompts())
    text, vision = SIZES[size]
    config = transformers.LlavaConfig(
        text_config=transformers.LlamaConfig(**text, vocab_size=max(len(words), 32064 if size == "7b" else 0)),
        vision_config=transformers.CLIPVisionConfig(**vision, image_size=SIDE, patch_size=PATCH),
        image_token_index=words.convert_tokens_to_ids("<image>"),
    )
    torch.manual_seed(0)
    default = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device(device):
            model = transformers.LlavaForConditionalGeneration(config).eval()
    finally:
        torch.set_default_dtype(default)
    square = {"height": SIDE, "width": SIDE}
    processor = transformers.LlavaProcessor(
        transformers.CLIPImageProcessor(size={"shortest_edge": SIDE}, crop_size=square),
        words,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=TEMPLATE,
    )
    return model, processor


def plain(model: Any, processor: Any, image: Image.Image, texts: list[str], batch: int) -> Iterator[torch.Tensor]:
    """Log-probabilities of the next token, as the library's documentation shows it."""
    for start in range(0, len(texts), batch):
        turns = [
            [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": text}]}]
            for text in texts[start : start + batch]
        ]
        read = processor.apply_chat_template(turns, add_generation_prompt=True)
        inputs = processor(images=[image] * len(read), text=read, padding=True, return_tensors="pt")
        inputs = inputs.to(model.device, model.dtype)
        with torch.inference_mode():
            yield from model(**inputs, logits_to_keep=1).logits[:, -1].float().log_softmax(-1).cpu()


def seconds(run: Callable[[], Any], device: str) -> tuple[float, Any]:
    start = time.perf_counter()
    result = run()
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    return time.perf_counter() - start, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--plain-batch", type=int, help="questions per plain forward; 1, or 27 on a GPU")
    parser.add_argument("--batch-size", type=int, default=81)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3, help="in turn; the best counts")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    dtype = getattr(torch, options.dtype)
    model, processor = llava(options.size, options.device, dtype)
    record = ModelRecord(
        spec="random", name="random", adapter="transformers", kind="generative", content="random", parameters=0
    )
    ours = TransformersGenerative(model, processor, record, dtype)
    pixels = np.random.default_rng(0).integers(0, 256, (480, 640, 3), dtype=np.uint8)
    image, texts = Image.fromarray(pixels), prompts()
    questions = [Question(text, LETTERS) for text in texts]
    batch = options.plain_batch or (1 if options.device == "cpu" else 27)

    def plainly() -> list[torch.Tensor]:
        return list(plain(model, processor, image, texts, batch))

    def shared() -> Any:
        return ours.answer(image, questions, options.batch_size)

    def beside() -> Any:
        """What comes before the language model, once."""
        with torch.inference_mode():
            pixels = processor(images=[image], text=[ours.prompt(questions[0])], return_tensors="pt")["pixel_values"]
            return model.get_image_features(pixel_values=pixels.to(model.device, model.dtype))

    shared()  # the first image is also read the plain way, in part, to check
    next(plain(model, processor, image, texts[:batch], batch))
    runs = [
        [seconds(side, options.device) for side in (plainly, shared, beside, beside, beside)]
        for _ in range(options.repeats)
    ]
    expected, answers = runs[0][0][1], runs[0][1][1]
    letters = [ours._letter(letter) for letter in LETTERS]  # noqa: SLF001 (the same tokens on both sides)
    worst = max(
        abs(float(row[list(tokens)].logsumexp(0)) - value)
        for row, answer in zip(expected, answers, strict=True)
        for tokens, value in zip(letters, answer.log_probs or (), strict=True)
    )
    lengths = [
        len(processor.tokenizer(ours.prompt(question).replace("<image>", ""), add_special_tokens=False).input_ids)
        for question in questions
    ]
    image_tokens = (SIDE // PATCH) ** 2
    first = len(processor.tokenizer("<s>USER: ", add_special_tokens=False).input_ids)
    prefix, rest, count = image_tokens + first, float(np.mean(lengths)) - first, len(questions)
    bound = count * (prefix + rest) / (prefix + count * rest)
    one, other = (min(run[side][0] for run in runs) for side in (0, 1))
    image_alone = min(taken for run in runs for taken, _ in run[2:])
    language = (one - count * image_alone) / (other - image_alone)
    print(
        f"{count_parameters(model) / 1e6:.0f} M parameters, {options.dtype} on {options.device}, {options.threads} "
        f"threads; {count} questions, prefix P = {prefix} tokens, question S = {rest:.1f} tokens on average"
    )
    print(f"plain, {batch} per forward  {one:8.3f} s")
    print(f"shared prefix         {other:8.3f} s")
    print(f"preparing and encoding the image once {image_alone:.3f} s")
    print(f"ratio                 {one / other:8.2f}")
    print(f"  language model alone{language:8.2f}")
    print(f"token-count bound     {bound:8.2f}")
    print(f"share of it           {one / other / bound:8.0%}, language model alone {language / bound:.0%}")
    print(f"largest difference of a log-probability {worst:.1e}; notes: {list(ours.notes) or 'none'}")


if __name__ == "__main__":
    main()
