"""A tiny CLIP of the real class, saved as transformers saves any: for tests of several rooms."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

SIDE = 32
TEXT = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
VISION = {**TEXT, "image_size": SIDE, "patch_size": 8}
SQUARE = {"height": SIDE, "width": SIDE}


def clip_tokenizer(limit: int = 48):
    from tokenizers.pre_tokenizers import ByteLevel
    from transformers import CLIPTokenizer

    letters = sorted(ByteLevel.alphabet())
    entries = [*letters, *(f"{c}</w>" for c in letters), "<|startoftext|>", "<|endoftext|>"]
    return CLIPTokenizer(vocab={entry: i for i, entry in enumerate(entries)}, merges=[], model_max_length=limit)


def bert_tokenizer(words: Sequence[str], limit: int = 512):
    from transformers import BertTokenizer

    entries = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    return BertTokenizer(vocab={entry: i for i, entry in enumerate(entries)}, model_max_length=limit)


def clip():
    import transformers as t

    tokenizer = clip_tokenizer()
    ids = {"bos_token_id": 512, "eos_token_id": 513, "pad_token_id": 513}
    text = {**TEXT, "vocab_size": len(tokenizer), "max_position_embeddings": 48, **ids}
    model = t.CLIPModel(t.CLIPConfig(text_config=text, vision_config=VISION, projection_dim=12))
    images = t.CLIPImageProcessor(size={"shortest_edge": SIDE}, crop_size=SQUARE)
    return model, t.CLIPProcessor(images, tokenizer)


def save_clip(folder: Path) -> Path:
    """The same tiny CLIP every time, as a folder."""
    import torch

    torch.manual_seed(7)
    model, processor = clip()
    model.eval().save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder
