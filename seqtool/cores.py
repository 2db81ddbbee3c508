"""The cores of this machine, and threads that share them."""

import contextlib
import os
import sys
from collections.abc import Iterator

# Threads that compute hand Python's lock to each other all the time. One that does not get it at once waits for this
# long; the usual 5 ms is the time of many operations of a small model.
TURN_SECONDS = 1e-4


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextlib.contextmanager
def quick_turns() -> Iterator[None]:
    """Let threads take turns quickly while they compute side by side."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(TURN_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
