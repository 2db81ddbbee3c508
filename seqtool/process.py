"""Facts of this process: its place among those that torchrun started, its cores, and its device."""

import contextlib
import os
import socket
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from seqtool.errors import OptionError, SeqtoolError, suggest

if TYPE_CHECKING:
    import torch

DEVICES = ("auto", "cpu", "cuda", "mps")

# Threads that compute hand Python's lock to each other all the time. One that does not get it at once waits for this
# long; the usual 5 ms is the time of many operations of a small model.
TURN_SECONDS = 1e-4


def _read_number(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else default


def world_size() -> int:
    """Return how many processes torchrun started, on all machines; 1 without torchrun."""
    return max(1, _read_number("WORLD_SIZE", 1))


def rank() -> int:
    """Return the number of this process among all of them; the first, 0, is the one that writes and prints."""
    return _read_number("RANK", 0) if world_size() > 1 else 0


def local_rank() -> int:
    """Return the number of this process among those on its machine."""
    return _read_number("LOCAL_RANK", 0)


def is_restarted() -> bool:
    """Return whether torchrun has started this group of processes again after one of them died."""
    return _read_number("TORCHELASTIC_RESTART_COUNT", 0) > 0


def name_launch() -> str | None:
    """Name the torchrun that started this process, the same for those that it starts later; None without torchrun.

    It does not count a restart as one if that is because a machine came back.
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return None
    return f"{socket.gethostname()} {os.getppid()} {os.environ['TORCHELASTIC_RUN_ID']}"


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads_per_process() -> int:
    """Return how many threads compute best: one per core, where the processes on one machine share its cores."""
    return max(1, count_cores() // max(1, _read_number("LOCAL_WORLD_SIZE", 1)))


@contextlib.contextmanager
def quick_turns() -> Iterator[None]:
    """Let threads take turns quickly while they compute side by side."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(TURN_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def parse_device(name: str) -> tuple[str, int | None]:
    """Return the kind of device that a name stands for, and its number if the name has one ('cuda:1')."""
    kind, colon, number = name.partition(":")
    if kind not in DEVICES or (colon and not (kind == "cuda" and number.isdecimal())):
        raise OptionError(f"there is no device '{name}'{suggest(name, (*DEVICES, 'cuda:0'))}")
    return kind, int(number) if colon else None


def choose_device(name: str = "auto") -> "torch.device":
    """Return the device to compute on; 'auto' is cuda if it is there, else mps, else cpu.

    Each process of torchrun takes a GPU of its own, unless the name has a number.
    """
    import torch

    kind, number = parse_device(name)
    n_gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    has_mps = torch.backends.mps.is_available()
    if kind == "auto":
        kind = "cuda" if n_gpus else "mps" if has_mps else "cpu"
    if kind == "mps" and not has_mps:
        raise SeqtoolError("there is no mps device on this machine; use `device='auto'` or `device='cpu'`")
    if kind != "cuda":
        return torch.device(kind)
    if number is None:
        number = local_rank()
    if number >= n_gpus:
        missing = f"cuda device {number}" if n_gpus else "cuda device"
        fewer = ", or start no more processes than there are GPUs" if n_gpus and world_size() > 1 else ""
        raise SeqtoolError(f"there is no {missing} on this machine; use `device='auto'` or `device='cpu'`{fewer}")
    return torch.device("cuda", number)
