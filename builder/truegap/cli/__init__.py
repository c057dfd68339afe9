"""The `truegap` command: one module per verb, each a thin shell around a room of the house."""

from __future__ import annotations

import sys

_INTERRUPTED = 130
"""What a shell reports for a command that Ctrl-C ended; newer typer returns it instead of raising."""


def main() -> None:
    """Runs the command; a user's mistake is one line on standard error and exit status 2."""
    import typer

    from truegap.cli.app import app
    from truegap.errors import UserError

    try:
        status = app(standalone_mode=False)
    except UserError as error:
        _say(str(error))
        sys.exit(2)
    except OSError as error:
        # A full disk, a folder that cannot be written: what was begun is beside its place and goes on from there.
        _say(f"{error.filename or 'a file'}: {error.strerror or error}")
        sys.exit(2)
    except (typer.Abort, KeyboardInterrupt):
        status = _INTERRUPTED
    except Exception as error:
        # Mistakes in the command line; newer typer has them in a copy of click of its own.
        show, status = getattr(error, "show", None), getattr(error, "exit_code", None)
        if show is None or status is None:
            raise
        show()
    if status == _INTERRUPTED:
        _say("interrupted; nothing finished is lost: the same command goes on from here")
    sys.exit(status if isinstance(status, int) else 0)


def _say(message: str) -> None:
    sys.stderr.write(f"truegap: {message}\n")
