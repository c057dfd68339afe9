"""Where a PyTorch model runs, and how it is loaded there: for the rooms that run one of their own."""

from truegap.models._torch import count_parameters, loading, resolve_device, resolve_dtype

__all__ = ["count_parameters", "loading", "resolve_device", "resolve_dtype"]
