"""What a pretend GPU is asked to do: copies, waits of the host with the place of each, and the memory in use."""

import json
import sys
import threading
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch

WATCHED = "/seqtool/"  # frames of other code are not recorded


@dataclass(frozen=True)
class Event:
    """Something that goes between host and device."""

    kind: str  # "h2d" or "d2h": a copy; "value": the host reads a number; "shape": the host learns a size
    waits: bool  # whether the host stands still until the device has done all that it was given before
    stack: tuple[str, ...]  # functions of seqtool that led here, outermost first, each as "file.py:function:line"


@dataclass
class Ledger:
    """Counts events, calls and bytes; one for a process, whatever its threads."""

    capacity: int = 0  # bytes of memory of each device, 0: no limit
    events: Counter[Event] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    allocated: Counter[int] = field(default_factory=Counter)  # bytes by device
    peak: Counter[int] = field(default_factory=Counter)
    refused: int = 0  # allocations for which there was no room
    lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    def note(self, kind: str, waits: bool) -> None:
        """Record an event with the place in seqtool that caused it."""
        event = Event(kind, waits, find_stack())
        with self.lock:
            self.events[event] += 1

    def allocate(self, device: int, n_bytes: int) -> None:
        """Take memory, or fail as a GPU does where there is too little."""
        with self.lock:
            if self.capacity and self.allocated[device] + n_bytes > self.capacity:
                self.refused += 1
                raise torch.OutOfMemoryError(
                    f"CUDA out of memory. Tried to allocate {n_bytes} bytes. GPU {device} has a total capacity of "
                    f"{self.capacity} bytes of which {self.capacity - self.allocated[device]} are free."
                )
            self.allocated[device] += n_bytes
            self.peak[device] = max(self.peak[device], self.allocated[device])

    def release(self, device: int, n_bytes: int) -> None:
        """Give memory back."""
        with self.lock:
            self.allocated[device] -= n_bytes

    def write(self, path: Path) -> None:
        """Write all of it as JSON."""
        with self.lock:
            events = [{**asdict(event), "times": times} for event, times in self.events.items()]
            values = {"events": events, "calls": self.calls, "peak": self.peak, "refused": self.refused}
            path.write_text(json.dumps(values, indent=1), encoding="utf-8")


class Allocation:
    """Memory of a device for as long as a tensor refers to it; views share that of their base."""

    def __init__(self, ledger: Ledger, device: int, n_bytes: int) -> None:
        ledger.allocate(device, n_bytes)
        self._ledger, self._device, self._n_bytes = ledger, device, n_bytes

    def __del__(self) -> None:
        if hasattr(self, "_n_bytes"):
            self._ledger.release(self._device, self._n_bytes)


def find_stack() -> tuple[str, ...]:
    """Return the functions of seqtool that are at work in this thread, outermost first."""
    found = []
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if WATCHED in code.co_filename:
            file = code.co_filename.rpartition(WATCHED)[2]
            found.append(f"{file}:{code.co_name}:{frame.f_lineno}")
        frame = frame.f_back  # type: ignore[assignment]
    return tuple(reversed(found))
