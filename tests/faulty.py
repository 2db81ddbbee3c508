"""`python -m seqtool` as a process that meets a fault at a chosen moment of its work.

    python -m tests.faulty '{"within": "run", "log": "events"}' train corpus.tsv -o run
    python -m tests.faulty '{"within": "run", "at": ["rename run/manifest.json.tmp", 2], "signal": 9}' train ...

Its moments are the changes that it makes to files in a folder: each is named by what is done and to what, with # for a
number, and they are counted by that name. Python reports a change just before it is made. A process that is to get a
signal writes the moment to the file `proof` and sends the signal to itself, so that it is exactly there that it dies.
Without the rights of root, files can be made unreadable and folders read-only for root too.
"""

import ctypes
import json
import os
import re
import runpy
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

CHANGES = ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "os.link", "os.symlink")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
CAPABILITIES = 0x20080522, 0  # the version of the system call's arguments, and this process


class Moments:
    """Counts the changes of files in a folder, and does what is to be done at one of them."""

    def __init__(self, within: str, log: str | None = None, at: Any = None, proof: str = "", signal: int = 0) -> None:
        self.within = os.path.abspath(within)
        self.log = log
        self.at, self.proof, self.signal = at, proof, signal
        self.counts: Counter[str] = Counter()
        self.process = os.getpid()

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Take what Python reports; see sys.addaudithook."""
        if (event != "open" and event not in CHANGES) or os.getpid() != self.process:
            return
        if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & WRITING):
            return
        path = locate(event, arguments)
        if path is None or not path.startswith(self.within) or path in (self.log, self.proof):
            return
        name = f"{event.removeprefix('os.')} {re.sub('[0-9]+', '#', os.path.relpath(path, self.within))}"
        self.counts[name] += 1
        if self.log:
            append(self.log, f"{name}\n")
        if self.at and [name, self.counts[name]] == self.at:
            append(self.proof, f"{name} {self.counts[name]}\n")
            os.kill(self.process, self.signal)


def locate(event: str, arguments: tuple[Any, ...]) -> str | None:
    """Return the path of what is changed."""
    path = arguments[0]
    if not isinstance(path, str | bytes | os.PathLike):
        return None
    path = os.fsdecode(path)
    folder = arguments[-1] if event in ("os.remove", "os.rmdir", "os.mkdir") else -1
    if isinstance(folder, int) and folder >= 0 and not os.path.isabs(path):
        path = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), path)
    return os.path.abspath(path)


def append(path: str, text: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(handle, text.encode())
    os.close(handle)


def give_up_rights() -> None:
    """Leave this process, if it is root's, no right that its files' owner would not have."""
    header = (ctypes.c_uint32 * 2)(*CAPABILITIES)
    if ctypes.CDLL(None, use_errno=True).capset(header, (ctypes.c_uint32 * 6)()):
        raise OSError(ctypes.get_errno(), "capset")


if __name__ == "__main__":
    wanted = json.loads(sys.argv[1])
    if wanted.pop("unprivileged", False):
        give_up_rights()
    if wanted:
        for name in ("log", "proof"):
            if name in wanted:
                wanted[name] = str(Path(wanted[name]).absolute())
        if wanted.get("signal") == signal.SIGINT:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.addaudithook(Moments(**wanted).hear)
    sys.argv[1:] = sys.argv[2:]
    runpy.run_module("seqtool", run_name="__main__", alter_sys=True)
