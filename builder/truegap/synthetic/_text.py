"""The demo models' text tower: how a prompt leans, by a rule that holds for any text.

A text is cut into words, and words into pairs of letters; a few words are kept whole. Each piece has a fixed
embedding: its leaning (woman -1 ... man +1), a constant, and two contents.

- Words that every prompt template uses (`a`, `photo`, `person`, ...) do not lean and say little.
- Words that name a gender (`woman`, `his`, ...) lean fully.
- A pair of letters leans as its hash says: so every word leans, always the same and unlike other words, and nothing
  that is known of its meaning has a part in it.

A text's embedding is the direction of the mean over its pieces and a beginning that does not lean. A CLIP text
transformer of one layer computes it exactly: its attention is uniform, its values are the pieces, its MLP is 0.
"""

from __future__ import annotations

import string
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from truegap.synthetic.draws import hashed

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import CLIPTextModelWithProjection, PreTrainedTokenizerFast

PARTS = 4
"""Leaning, constant, two contents: the layout of every embedding, of images too."""

PLAIN = frozenset(
    [
        "a",
        "an",
        "and",
        "as",
        "at",
        "by",
        "face",
        "human",
        "image",
        "in",
        "individual",
        "is",
        "it",
        "of",
        "on",
        "people",
        "person",
        "photo",
        "photograph",
        "picture",
        "portrait",
        "someone",
        "that",
        "the",
        "their",
        "them",
        "they",
        "this",
        "to",
        "who",
        "with",
    ]
)
WOMAN = frozenset(["woman", "women", "female", "females", "she", "her", "hers", "girl", "lady", "feminine"])
MAN = frozenset(["man", "men", "male", "males", "he", "him", "his", "boy", "gentleman", "masculine"])

_PAD, _BEGIN, _UNKNOWN, _END = "[PAD]", "[BEGIN]", "[UNKNOWN]", "[END]"
_LEAN, _CONTENT = 0.6, 0.6
_LEVEL = 16.0
_WIDTH = 16
LENGTH = 77


def _embedding(piece: str) -> list[float]:
    """What a piece says, whatever its place in the word."""
    if piece in (_PAD, _END):
        return [0.0] * PARTS
    if piece == _BEGIN:  # a text without words has a direction, too
        return [0.0, 0.1, 0.0, 0.0]
    draw = [2 * hashed("piece", piece, part) - 1 for part in range(PARTS)]
    if piece in WOMAN or piece in MAN:
        return [2.0 if piece in MAN else -2.0, 0.5, 0.0, 0.0]
    if piece in PLAIN:
        return [0.0, 0.25, 0.1 * draw[2], 0.1 * draw[3]]
    return [_LEAN * draw[0], 0.5, _CONTENT * draw[2], _CONTENT * draw[3]]


def _tokenizer() -> Tokenizer:
    from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers, processors
    from tokenizers.models import WordPiece

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    pairs = ["".join(pair) for pair in product(string.ascii_lowercase, repeat=2)]
    whole = sorted(PLAIN | WOMAN | MAN)
    pieces = [_PAD, _BEGIN, _UNKNOWN, _END, *letters, *pairs, *(word for word in whole if len(word) > 2)]  # noqa: PLR2004
    pieces += [f"##{piece}" for piece in (*letters, *pairs)]
    pieces = list(dict.fromkeys(pieces))
    tokenizer = Tokenizer(
        WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token=_UNKNOWN, max_input_chars_per_word=10_000)
    )
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"[\p{L}\p{M}\p{N}]+"), behavior="removed", invert=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    begin, end = (_BEGIN, tokenizer.token_to_id(_BEGIN)), (_END, tokenizer.token_to_id(_END))
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{_BEGIN} $A {_END}", pair=f"{_BEGIN} $A $B {_END}", special_tokens=[begin, end]
    )
    return tokenizer


@lru_cache(maxsize=1)
def _shared_tokenizer() -> Tokenizer:
    return _tokenizer()


def text_tokenizer() -> PreTrainedTokenizerFast:
    """The tokenizer as transformers saves it."""
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(
        tokenizer_object=_tokenizer(),
        pad_token=_PAD,
        bos_token=_BEGIN,
        unk_token=_UNKNOWN,
        eos_token=_END,
        model_max_length=LENGTH,
    )


def _pieces(prompt: str) -> list[str]:
    tokens: list[str] = _shared_tokenizer().encode(prompt, add_special_tokens=False).tokens
    return [_BEGIN, *(token.removeprefix("##") for token in tokens[: LENGTH - 2])]


def text_embedding(prompt: str) -> NDArray[np.float64]:
    """A prompt's embedding, straight from the rule.

    Args:
        prompt: Any text.

    Returns:
        Unit vector: leaning (woman -1 ... man +1), constant, two contents.
    """
    mean = np.mean([_embedding(piece) for piece in _pieces(prompt)], axis=0)
    return np.asarray(mean / np.linalg.norm(mean))


def leaning(prompt: str) -> float:
    """How much a prompt asks for men (+1) or women (-1): the first part of its embedding.

    A demo model ranks the pictures that it takes for men first where this is positive.
    """
    return float(text_embedding(prompt)[0])


def text_tower() -> CLIPTextModelWithProjection:
    """The constructed text tower."""
    import torch
    from transformers import CLIPTextConfig, CLIPTextModelWithProjection

    tokenizer = _tokenizer()
    pieces = sorted((index, piece.removeprefix("##")) for piece, index in tokenizer.get_vocab().items())
    table = torch.tensor([_embedding(piece) for _, piece in pieces])
    tower: CLIPTextModelWithProjection = CLIPTextModelWithProjection(
        CLIPTextConfig(
            vocab_size=len(pieces),
            hidden_size=_WIDTH,
            intermediate_size=_WIDTH,
            num_hidden_layers=1,
            num_attention_heads=1,
            max_position_embeddings=LENGTH,
            projection_dim=PARTS,
            bos_token_id=tokenizer.token_to_id(_BEGIN),
            eos_token_id=tokenizer.token_to_id(_END),
            pad_token_id=tokenizer.token_to_id(_PAD),
        )
    ).eval()
    # Each part is written twice, with either sign, and a constant far above both: normalisation changes only the scale.
    part, minus = slice(0, PARTS), slice(PARTS, 2 * PARTS)
    with torch.no_grad():
        for name, weights in tower.named_parameters():
            weights.fill_(1.0 if "norm" in name and name.endswith("weight") else 0.0)
        words = tower.text_model.embeddings.token_embedding.weight
        words[:, part], words[:, minus] = table, -table
        words[:, -2], words[:, -1] = _LEVEL, -_LEVEL
        mean = tower.text_model.encoder.layers[0].self_attn
        for linear in (mean.v_proj, mean.out_proj):
            linear.weight[: 2 * PARTS, : 2 * PARTS] = torch.eye(2 * PARTS)
        tower.text_projection.weight[:, part] = torch.eye(PARTS)
    return tower
