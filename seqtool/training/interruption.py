"""SIGTERM and Ctrl-C ask the run to save and stop; a second Ctrl-C ends it at once."""

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Interruption:
    """While active, catches the signals that ask a run to stop."""

    def __init__(self) -> None:
        self.asked_by: signal.Signals | None = None
        self._before: dict[int, Any] = {}

    @property
    def asked(self) -> bool:
        """Whether a signal has come."""
        return self.asked_by is not None

    def __enter__(self) -> "Interruption":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.asked and number == signal.SIGINT:
            os._exit(130)
        self.asked_by = signal.Signals(number)
