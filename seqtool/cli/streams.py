"""How commands use stdout and stderr."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from seqtool.cli.option_names import with_options
from seqtool.errors import SeqtoolError
from seqtool.visible import make_visible

BROKEN_PIPE = 141  # what a shell reports of a program that wrote into a closed pipe


def notify(message: str) -> None:
    """Print a message for the user on stderr."""
    print(f"seqtool: {make_visible(with_options(message))}", file=sys.stderr)


@contextmanager
def quiet_if_closed() -> Iterator[None]:
    """End the program quietly if the reader of its output has closed the pipe, as `| head` does; report a full disk."""
    try:
        yield
        print(end="", flush=True)
    except BrokenPipeError:
        drop_output()
        raise SystemExit(BROKEN_PIPE) from None
    except OSError as error:
        drop_output()
        raise SeqtoolError(
            f"the output cannot be written ({error.strerror}); make room or write elsewhere, and run it again"
        ) from None


def drop_output() -> None:
    """Send what stdout still holds to nowhere: to flush it when the program ends would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
