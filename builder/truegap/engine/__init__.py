"""Runs shards: here on the cores of one machine."""

from truegap.engine.local import cores, run_tasks

__all__ = ["cores", "run_tasks"]
