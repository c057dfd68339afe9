"""Runs shards: here on the cores of one machine."""

from truegap.engine.local import check_workers, cores, run_tasks

__all__ = ["check_workers", "cores", "run_tasks"]
