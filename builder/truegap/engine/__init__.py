"""Runs shards: on the cores of one machine, or on a Ray cluster."""

from truegap.engine.dispatch import Engine, check_engine, run_tasks
from truegap.engine.local import check_workers

__all__ = ["Engine", "check_engine", "check_workers", "run_tasks"]
