"""Examples in, a Hub dataset out: fifteen configs in parquet, a card, a manifest."""

from truegap.build.manifest import Manifest, read_manifest
from truegap.build.plan import Plan, choose_configs, limit, marked, publishable
from truegap.build.rows import redo_row
from truegap.build.shard import build_shard
from truegap.build.workspace import Workspace, mended

__all__ = [
    "Manifest",
    "Plan",
    "Workspace",
    "build_shard",
    "choose_configs",
    "limit",
    "marked",
    "mended",
    "publishable",
    "read_manifest",
    "redo_row",
]
