"""Models: dual encoders of open_clip and transformers, other people's by plug-in, and the cache of embeddings."""

from truegap.models.base import BATCH_TOLERANCE, DualEncoder
from truegap.models.cache import Embedded, EmbeddingCache
from truegap.models.registry import load_model, plugins

__all__ = ["BATCH_TOLERANCE", "DualEncoder", "Embedded", "EmbeddingCache", "load_model", "plugins"]
