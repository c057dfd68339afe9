"""Tiny generative models of real classes, each with its real processor: what `save_pretrained` writes of them is what
their authors' repositories hold, but for the size."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

SIDE = 28
PATCH = 14
TEXT = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 2048,
}
VISION = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": SIDE,
    "patch_size": PATCH,
}
SQUARE = {"height": SIDE, "width": SIDE}
LETTERS = [chr(n) for n in range(33, 127)]


def tokenizer(special: list[str], **named: str):
    """Bytes, and the letters of options with a blank before them; it begins every text with a mark."""
    import transformers as t
    from tokenizers import Tokenizer
    from tokenizers.decoders import ByteLevel as Decoder
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import ByteLevel
    from tokenizers.processors import TemplateProcessing

    pieces = sorted(ByteLevel.alphabet())
    merged = [f"Ġ{letter}" for letter in "ABC"]
    vocabulary = {piece: n for n, piece in enumerate(["<s>", "<pad>", "</s>", "<unk>", *pieces, *merged])}
    inner = Tokenizer(BPE(vocab=vocabulary, merges=[("Ġ", letter) for letter in "ABC"]))
    inner.pre_tokenizer = ByteLevel(add_prefix_space=False)
    inner.decoder = Decoder()
    inner.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", vocabulary["<s>"])])
    made = t.PreTrainedTokenizerFast(
        tokenizer_object=inner,
        bos_token="<s>",  # noqa: S106
        eos_token="</s>",  # noqa: S106
        pad_token="<pad>",  # noqa: S106
        unk_token="<unk>",  # noqa: S106
        extra_special_tokens=named,
    )
    made.add_special_tokens({"additional_special_tokens": special}, replace_extra_special_tokens=False)
    return made


def word_pieces():
    """BERT's tokenizer: small letters alone, and marks around every text."""
    from transformers import BertTokenizer

    pieces = [letter for letter in LETTERS if not letter.isupper()]
    entries = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "his", "her", "the", *pieces, *(f"##{p}" for p in pieces)]
    return BertTokenizer(vocab={entry: n for n, entry in enumerate(entries)})


def template(user: str, image: str, assistant: str, *, turn: str = "", start: str = "") -> str:
    """A chat template: what stands before a turn of the user, for an image, after a turn, and before an answer."""
    return (
        f"{start}{{% for m in messages %}}{user}{{% for c in m['content'] %}}{{% if c['type'] == 'image' %}}{image}"
        f"{{% else %}}{{{{ c['text'] }}}}{{% endif %}}{{% endfor %}}{turn}{{% endfor %}}"
        f"{{% if add_generation_prompt %}}{assistant}{{% endif %}}"
    )


CHATML = {"user": "<|im_start|>user\n", "assistant": "<|im_start|>assistant\n", "turn": "<|im_end|>\n"}
COLON = {"user": "USER: ", "assistant": "ASSISTANT:", "turn": " "}


def llava():
    import transformers as t

    words = tokenizer(["<image>"])
    config = t.LlavaConfig(
        text_config=t.LlamaConfig(**TEXT, vocab_size=len(words)),
        vision_config=t.CLIPVisionConfig(**VISION),
        image_token_index=words.convert_tokens_to_ids("<image>"),
    )
    images = t.CLIPImageProcessor(size={"shortest_edge": SIDE}, crop_size=SQUARE)
    processor = t.LlavaProcessor(
        images,
        words,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=template(**COLON, image="<image>\n"),
    )
    return t.LlavaForConditionalGeneration(config), processor


def llava_next():
    import transformers as t

    words = tokenizer(["<image>"])
    grid = [[SIDE, 2 * SIDE], [2 * SIDE, SIDE], [2 * SIDE, 2 * SIDE]]
    config = t.LlavaNextConfig(
        text_config=t.MistralConfig(**TEXT, vocab_size=len(words), sliding_window=None),
        vision_config=t.CLIPVisionConfig(**VISION),
        image_token_index=words.convert_tokens_to_ids("<image>"),
        image_grid_pinpoints=grid,
    )
    images = t.LlavaNextImageProcessor(size={"shortest_edge": SIDE}, crop_size=SQUARE, image_grid_pinpoints=grid)
    processor = t.LlavaNextProcessor(
        images,
        words,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=template("[INST] ", "<image>\n", "", turn=" [/INST]", start="<s>"),
    )
    return t.LlavaNextForConditionalGeneration(config), processor


def llava_onevision():
    import transformers as t

    words = tokenizer(["<image>", "<video>", "<|im_start|>", "<|im_end|>"])
    grid = [[SIDE, 2 * SIDE], [2 * SIDE, 2 * SIDE]]
    config = t.LlavaOnevisionConfig(
        text_config=t.Qwen2Config(**TEXT, vocab_size=len(words)),
        vision_config=t.SiglipVisionConfig(**VISION, vision_use_head=False),
        image_token_index=words.convert_tokens_to_ids("<image>"),
        video_token_index=words.convert_tokens_to_ids("<video>"),
        image_grid_pinpoints=grid,
        vision_feature_layer=-1,
    )
    processor = t.LlavaOnevisionProcessor(
        t.LlavaOnevisionImageProcessor(size=SQUARE, image_grid_pinpoints=grid),
        words,
        t.LlavaOnevisionVideoProcessor(size=SQUARE),
        num_image_tokens=(SIDE // PATCH) ** 2,
        vision_feature_select_strategy="full",
        chat_template=template(**CHATML, image="<image>\n"),
    )
    return t.LlavaOnevisionForConditionalGeneration(config), processor


QWEN_MARKS = ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>", "<|im_start|>", "<|im_end|>"]
QWEN_IMAGE = "<|vision_start|><|image_pad|><|vision_end|>"
ROPE = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [1, 1, 2]}


def _qwen_ids(words) -> dict[str, int]:
    names = ("vision_start_token_id", "vision_end_token_id", "image_token_id", "video_token_id")
    return {name: words.convert_tokens_to_ids(mark) for name, mark in zip(names, QWEN_MARKS, strict=False)}


def qwen2_vl():
    import transformers as t

    words = tokenizer(QWEN_MARKS)
    config = t.Qwen2VLConfig(
        text_config={**TEXT, "vocab_size": len(words), "rope_parameters": ROPE},
        vision_config={"depth": 2, "embed_dim": 16, "hidden_size": 32, "num_heads": 2, "mlp_ratio": 2, "patch_size": 7},
        **_qwen_ids(words),
    )
    images = t.Qwen2VLImageProcessor(patch_size=7, min_pixels=28 * 28, max_pixels=56 * 56)
    videos = t.Qwen2VLVideoProcessor(patch_size=7)
    processor = t.Qwen2VLProcessor(images, words, videos, chat_template=template(**CHATML, image=QWEN_IMAGE))
    return t.Qwen2VLForConditionalGeneration(config), processor


def qwen2_5_vl():
    import transformers as t

    words = tokenizer(QWEN_MARKS)
    vision = {
        "depth": 2,
        "hidden_size": 16,
        "out_hidden_size": 32,
        "intermediate_size": 24,
        "num_heads": 2,
        "patch_size": 7,
        "window_size": 28,
        "fullatt_block_indexes": [1],
    }
    config = t.Qwen2_5_VLConfig(
        text_config={**TEXT, "vocab_size": len(words), "rope_parameters": ROPE},
        vision_config=vision,
        **_qwen_ids(words),
    )
    images = t.Qwen2VLImageProcessor(patch_size=7, min_pixels=28 * 28, max_pixels=56 * 56)
    videos = t.Qwen2VLVideoProcessor(patch_size=7)
    processor = t.Qwen2_5_VLProcessor(images, words, videos, chat_template=template(**CHATML, image=QWEN_IMAGE))
    return t.Qwen2_5_VLForConditionalGeneration(config), processor


def qwen3_vl():
    import transformers as t

    words = tokenizer(QWEN_MARKS)
    vision = {
        "depth": 2,
        "hidden_size": 16,
        "out_hidden_size": 32,
        "intermediate_size": 24,
        "num_heads": 2,
        "patch_size": 7,
        "num_position_embeddings": 16,
        "deepstack_visual_indexes": [0],
    }
    config = t.Qwen3VLConfig(
        text_config={**TEXT, "head_dim": 8, "vocab_size": len(words), "rope_parameters": ROPE},
        vision_config=vision,
        **_qwen_ids(words),
    )
    images = t.Qwen2VLImageProcessor(patch_size=7, min_pixels=28 * 28, max_pixels=56 * 56)
    videos = t.Qwen3VLVideoProcessor(patch_size=7)
    processor = t.Qwen3VLProcessor(images, words, videos, chat_template=template(**CHATML, image=QWEN_IMAGE))
    return t.Qwen3VLForConditionalGeneration(config), processor


def internvl():
    import transformers as t

    named = {
        "start_image_token": "<img>",
        "end_image_token": "</img>",
        "context_image_token": "<IMG_CONTEXT>",
        "video_token": "<video>",
    }
    words = tokenizer(["<|im_start|>", "<|im_end|>"], **named)
    vision = {**VISION, "image_size": [SIDE, SIDE], "patch_size": [7, 7]}
    config = t.InternVLConfig(
        text_config=t.Qwen2Config(**TEXT, vocab_size=len(words)),
        vision_config=vision,
        image_token_id=words.convert_tokens_to_ids("<IMG_CONTEXT>"),
        image_seq_length=4,
    )
    processor = t.InternVLProcessor(
        t.GotOcr2ImageProcessor(size=SQUARE, crop_to_patches=True, min_patches=1, max_patches=4),
        words,
        t.InternVLVideoProcessor(size=SQUARE),
        image_seq_length=4,
        chat_template=template(**CHATML, image="<IMG_CONTEXT>\n"),
    )
    return t.InternVLForConditionalGeneration(config), processor


IDEFICS_MARKS = ["<fake_token_around_image>", "<image>", "<end_of_utterance>", "<global-img>"]
IDEFICS_ROWS = [f"<row_{row}_col_{column}>" for row in range(1, 4) for column in range(1, 4)]
IDEFICS_WORDS = {"user": "User:", "assistant": "Assistant:", "turn": "<end_of_utterance>\n", "start": "<|im_start|>"}


def idefics3():
    import transformers as t

    words = tokenizer([*IDEFICS_MARKS, *IDEFICS_ROWS, "<|im_start|>"])
    config = t.Idefics3Config(
        text_config=t.LlamaConfig(**TEXT, vocab_size=len(words)),
        vision_config={**VISION, "patch_size": 7},
        image_token_id=words.convert_tokens_to_ids("<image>"),
        scale_factor=2,
        pad_token_id=words.pad_token_id,
    )
    images = t.Idefics3ImageProcessor(size={"longest_edge": 2 * SIDE}, max_image_size={"longest_edge": SIDE})
    processor = t.Idefics3Processor(
        images, words, image_seq_len=4, chat_template=template(**IDEFICS_WORDS, image="<image>")
    )
    return t.Idefics3ForConditionalGeneration(config), processor


def smolvlm():
    import transformers as t

    named = {
        "fake_image_token": "<fake_token_around_image>",
        "image_token": "<image>",
        "end_of_utterance_token": "<end_of_utterance>",
        "global_image_token": "<global-img>",
    }
    words = tokenizer([*IDEFICS_ROWS, "<|im_start|>"], **named)
    config = t.SmolVLMConfig(
        text_config=t.LlamaConfig(**TEXT, vocab_size=len(words)),
        vision_config={**VISION, "patch_size": 7},
        image_token_id=words.convert_tokens_to_ids("<image>"),
        scale_factor=2,
        pad_token_id=words.pad_token_id,
    )
    images = t.SmolVLMImageProcessor(size={"longest_edge": 2 * SIDE}, max_image_size={"longest_edge": SIDE})
    videos = t.SmolVLMVideoProcessor(size={"longest_edge": SIDE}, max_image_size={"longest_edge": SIDE})
    processor = t.SmolVLMProcessor(
        images, words, videos, image_seq_len=4, chat_template=template(**IDEFICS_WORDS, image="<image>")
    )
    return t.SmolVLMForConditionalGeneration(config), processor


def gemma3():
    import transformers as t

    named = {"boi_token": "<start_of_image>", "eoi_token": "<end_of_image>", "image_token": "<image_soft_token>"}
    words = tokenizer(["<start_of_turn>", "<end_of_turn>"], **named)
    text = {
        **TEXT,
        "vocab_size": len(words),
        "head_dim": 8,
        "sliding_window": 512,
        "layer_types": ["sliding_attention", "full_attention"],
    }
    config = t.Gemma3Config(
        text_config=text,
        vision_config={**VISION, "vision_use_head": False},
        mm_tokens_per_image=4,
        boi_token_index=words.convert_tokens_to_ids("<start_of_image>"),
        eoi_token_index=words.convert_tokens_to_ids("<end_of_image>"),
        image_token_index=words.convert_tokens_to_ids("<image_soft_token>"),
    )
    turns = {"user": "<start_of_turn>user\n", "assistant": "<start_of_turn>model\n", "turn": "<end_of_turn>\n"}
    processor = t.Gemma3Processor(
        t.Gemma3ImageProcessor(size=SQUARE, do_pan_and_scan=False),
        words,
        image_seq_length=4,
        chat_template=template(**turns, image="<start_of_image>", start="<s>"),
    )
    return t.Gemma3ForConditionalGeneration(config), processor


def mistral3():
    import transformers as t

    words = tokenizer(["[IMG]", "[IMG_BREAK]", "[IMG_END]", "[INST]", "[/INST]"])
    vision = {**VISION, "image_size": 2 * SIDE, "patch_size": 7}
    config = t.Mistral3Config(
        text_config=t.MistralConfig(**TEXT, vocab_size=len(words), sliding_window=None),
        vision_config=t.PixtralVisionConfig(**vision),
        image_token_index=words.convert_tokens_to_ids("[IMG]"),
        spatial_merge_size=2,
    )
    processor = t.PixtralProcessor(
        t.PixtralImageProcessor(size={"longest_edge": 2 * SIDE}, patch_size=7),
        words,
        patch_size=7,
        spatial_merge_size=2,
        chat_template=template("[INST]", "[IMG]", "", turn="[/INST]", start="<s>"),
    )
    return t.Mistral3ForConditionalGeneration(config), processor


def mllama():
    import torch
    import transformers as t

    words = tokenizer(["<|image|>"])
    text = {
        **TEXT,
        "num_hidden_layers": 3,
        "cross_attention_layers": [1],
        "vocab_size": len(words),
        "pad_token_id": words.pad_token_id,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
    }
    vision = {
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_hidden_layers": 2,
        "num_global_layers": 1,
        "attention_heads": 2,
        "image_size": SIDE,
        "patch_size": PATCH,
        "max_num_tiles": 4,
        "intermediate_layers_indices": [0, 1],
        "vision_output_dim": 48,
    }
    config = t.MllamaConfig(
        text_config=text, vision_config=vision, image_token_index=words.convert_tokens_to_ids("<|image|>")
    )
    model = t.MllamaForConditionalGeneration(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "gate" in name:  # closed at the beginning of training
                parameter.fill_(0.5)
    processor = t.MllamaProcessor(
        t.MllamaImageProcessor(size=SQUARE, max_image_tiles=4),
        words,
        chat_template=template(**COLON, image="<|image|>", start="<s>"),
    )
    return model, processor


def qwen3_5():
    """Every second layer keeps a state instead of keys and values."""
    import transformers as t

    words = tokenizer(QWEN_MARKS)
    vision = {
        "depth": 2,
        "hidden_size": 16,
        "out_hidden_size": 32,
        "intermediate_size": 24,
        "num_heads": 2,
        "patch_size": 7,
        "num_position_embeddings": 16,
    }
    text = {
        **TEXT,
        "head_dim": 8,
        "vocab_size": len(words),
        "rope_parameters": {**ROPE, "partial_rotary_factor": 1.0, "mrope_interleaved": True},
        "layer_types": ["linear_attention", "full_attention"],
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 2,
        "linear_key_head_dim": 8,
        "linear_value_head_dim": 8,
    }
    config = t.Qwen3_5Config(text_config=text, vision_config=vision, **_qwen_ids(words))
    images = t.Qwen2VLImageProcessor(patch_size=7, min_pixels=28 * 28, max_pixels=56 * 56)
    videos = t.Qwen3VLVideoProcessor(patch_size=7)
    processor = t.Qwen3VLProcessor(images, words, videos, chat_template=template(**CHATML, image=QWEN_IMAGE))
    return t.Qwen3_5ForConditionalGeneration(config), processor


def paligemma():
    import transformers as t

    words = tokenizer(["<image>"])
    images = t.SiglipImageProcessor(size=SQUARE)
    images.image_seq_length = (SIDE // PATCH) ** 2
    processor = t.PaliGemmaProcessor(images, words)
    config = t.PaliGemmaConfig(
        text_config=t.GemmaConfig(**TEXT, head_dim=8, vocab_size=len(words)),
        vision_config=t.SiglipVisionConfig(**VISION, vision_use_head=False, projection_dim=32),
        image_token_index=words.convert_tokens_to_ids("<image>"),
        projection_dim=32,
    )
    return t.PaliGemmaForConditionalGeneration(config), processor


def paligemma2():
    import transformers as t

    words = tokenizer(["<image>"])
    images = t.SiglipImageProcessor(size=SQUARE)
    images.image_seq_length = (SIDE // PATCH) ** 2
    processor = t.PaliGemmaProcessor(images, words)
    config = t.PaliGemmaConfig(
        text_config=t.Gemma2Config(**TEXT, head_dim=8, vocab_size=len(words), sliding_window=512),
        vision_config=t.SiglipVisionConfig(**VISION, vision_use_head=False, projection_dim=32),
        image_token_index=words.convert_tokens_to_ids("<image>"),
        projection_dim=32,
    )
    return t.PaliGemmaForConditionalGeneration(config), processor


QUERIES = 4


def _q_former(vocabulary: int) -> dict:
    return {
        "vocab_size": vocabulary,
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "encoder_hidden_size": 16,
        "cross_attention_frequency": 1,
    }


def _opt(words):
    import transformers as t

    return t.OPTConfig(
        vocab_size=len(words),
        hidden_size=32,
        ffn_dim=48,
        word_embed_proj_dim=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=512,
        bos_token_id=words.bos_token_id,
        eos_token_id=words.eos_token_id,
        pad_token_id=words.pad_token_id,
    )


def _t5(words):
    import transformers as t

    return t.T5Config(
        vocab_size=len(words),
        d_model=32,
        d_kv=8,
        d_ff=48,
        num_layers=2,
        num_heads=4,
        decoder_start_token_id=words.pad_token_id,
        pad_token_id=words.pad_token_id,
        eos_token_id=words.eos_token_id,
    )


def _blip2(text):
    import transformers as t

    words = tokenizer([])
    images = t.BlipImageProcessor(size=SQUARE)
    processor = t.Blip2Processor(images, words, num_query_tokens=QUERIES)
    config = t.Blip2Config(
        vision_config=t.Blip2VisionConfig(**VISION),
        qformer_config=_q_former(10),
        text_config=text(words),
        num_query_tokens=QUERIES,
        image_token_index=words.convert_tokens_to_ids("<image>"),
    )
    return t.Blip2ForConditionalGeneration(config), processor


def blip2_opt():
    return _blip2(_opt)


def blip2_t5():
    return _blip2(_t5)


def _instructblip(text):
    import transformers as t

    words, pieces = tokenizer([]), word_pieces()
    images = t.BlipImageProcessor(size=SQUARE)
    processor = t.InstructBlipProcessor(images, words, pieces, num_query_tokens=QUERIES)
    config = t.InstructBlipConfig(
        vision_config=t.InstructBlipVisionConfig(**VISION),
        qformer_config=_q_former(len(pieces)),
        text_config=text(words),
        num_query_tokens=QUERIES,
        image_token_index=words.convert_tokens_to_ids("<image>"),
    )
    return t.InstructBlipForConditionalGeneration(config), processor


def instructblip_vicuna():
    import transformers as t

    return _instructblip(lambda words: t.LlamaConfig(**TEXT, vocab_size=len(words)))


def instructblip_t5():
    return _instructblip(_t5)


def blip():
    import transformers as t

    pieces = word_pieces()
    pieces.add_special_tokens({"bos_token": "[DEC]"})
    config = t.BlipConfig(
        text_config={
            "vocab_size": len(pieces),
            "hidden_size": 16,
            "encoder_hidden_size": 16,
            "intermediate_size": 24,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "bos_token_id": pieces.bos_token_id,
            "sep_token_id": pieces.sep_token_id,
            "pad_token_id": pieces.pad_token_id,
        },
        vision_config=VISION,
    )
    return t.BlipForConditionalGeneration(config), t.BlipProcessor(t.BlipImageProcessor(size=SQUARE), pieces)


def git():
    import transformers as t

    pieces = word_pieces()
    config = t.GitConfig(
        vision_config=VISION,
        vocab_size=len(pieces),
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=512,
        bos_token_id=pieces.cls_token_id,
        eos_token_id=pieces.sep_token_id,
        pad_token_id=pieces.pad_token_id,
    )
    images = t.CLIPImageProcessor(size={"shortest_edge": SIDE}, crop_size=SQUARE)
    return t.GitForCausalLM(config), t.GitProcessor(images, pieces)


def kosmos2():
    import transformers as t

    words = tokenizer([])
    images = t.CLIPImageProcessor(size={"shortest_edge": SIDE}, crop_size=SQUARE)
    processor = t.Kosmos2Processor(images, words, num_patch_index_tokens=4)
    config = t.Kosmos2Config(
        text_config={
            "vocab_size": len(words),
            "embed_dim": 32,
            "ffn_dim": 48,
            "layers": 2,
            "attention_heads": 4,
            "max_position_embeddings": 512,
            "pad_token_id": words.pad_token_id,
            "bos_token_id": words.bos_token_id,
            "eos_token_id": words.eos_token_id,
        },
        vision_config=VISION,
        latent_query_num=64,
    )
    return t.Kosmos2ForConditionalGeneration(config), processor


SHARED = (
    llava,
    llava_next,
    llava_onevision,
    qwen2_vl,
    qwen2_5_vl,
    qwen3_vl,
    internvl,
    idefics3,
    smolvlm,
    gemma3,
    mistral3,
)
WHOLE = (
    qwen3_5,
    mllama,
    paligemma,
    paligemma2,
    blip2_opt,
    blip2_t5,
    instructblip_vicuna,
    instructblip_t5,
    blip,
    git,
    kosmos2,
)
FAMILIES: dict[str, Callable] = {family.__name__: family for family in (*SHARED, *WHOLE)}


def save(family: str, folder: Path) -> Path:
    """The same tiny model every time, as a folder."""
    import torch

    torch.manual_seed(7)
    model, processor = FAMILIES[family]()
    with torch.no_grad():
        for parameter in model.parameters():  # else all answers are nearly alike, and agreement would mean nothing
            parameter.normal_(std=0.2) if parameter.ndim > 1 else parameter
    model.eval().save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder
