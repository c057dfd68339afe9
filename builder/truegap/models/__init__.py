"""Models: dual encoders, models that answer questions, other people's by plug-in, and the cache of embeddings."""

from truegap.models.base import BATCH_TOLERANCE, DualEncoder
from truegap.models.cache import Embedded, EmbeddingCache
from truegap.models.generative import Answer, GenerativeModel, Item, Question
from truegap.models.registry import load_dual_encoder, load_model, plugins

__all__ = [
    "BATCH_TOLERANCE",
    "Answer",
    "DualEncoder",
    "Embedded",
    "EmbeddingCache",
    "GenerativeModel",
    "Item",
    "Question",
    "load_dual_encoder",
    "load_model",
    "plugins",
]
