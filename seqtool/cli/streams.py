"""How commands use stdout and stderr."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

BROKEN_PIPE = 141  # what a shell reports of a program that wrote into a closed pipe


def notify(message: str) -> None:
    """Tell the user something on stderr."""
    print(f"seqtool: {message}", file=sys.stderr)


@contextmanager
def quiet_if_closed() -> Iterator[None]:
    """End the program quietly where whoever reads its output has seen enough, as in `| head`."""
    try:
        yield
        print(end="", flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nothing is left to flush at the end
        raise SystemExit(BROKEN_PIPE) from None
