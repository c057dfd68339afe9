"""Loading without the library's own bars and reports, which would stand between the lines of a command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silences the transformers library, and leaves its settings as they were.

    Nothing is lost: what it would warn of while loading (weights that are missing) is checked here and raised.
    """
    from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars
    from transformers.utils import logging

    verbosity, bars, no_downloads = (
        logging.get_verbosity(),
        logging.is_progress_bar_enabled(),
        are_progress_bars_disabled(),
    )
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
            if no_downloads:  # the line above shows the Hub's bars too
                disable_progress_bars()
