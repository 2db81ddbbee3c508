"""What a file from outside must be before it is used: small enough, inside its folder, and as it was recorded.

The checksums of large files are remembered by user, so that a model is read in full only when it is first seen. A
remembered checksum holds for one inode with one size, time of modification and time of change; that last one cannot be
set back, and a file that changed just now is not remembered, since another change could still have the same time.
"""

import contextlib
import errno
import hashlib
import json
import os
import stat
import time
from pathlib import Path
from typing import Any

from seqtool.errors import SeqtoolError
from seqtool.files import sha256_of, write_whole

MIB = 1 << 20
REMEMBERED = MIB  # bytes from which on a checksum is remembered
SETTLED = 2_000_000_000  # nanoseconds after a change in which another may have the same time


def require_regular(path: Path, folder: Path | None = None) -> os.stat_result:
    """Return what the system says of a file; raise if it is no regular file, or lies outside of a folder."""
    facts = path.stat()
    if not stat.S_ISREG(facts.st_mode):
        raise SeqtoolError(f"{path}: is not a regular file; put a copy of the file itself there")
    if folder is not None and not path.resolve().is_relative_to(folder.resolve()):
        raise SeqtoolError(f"{path}: leads out of the folder; put a copy of the file itself there")
    if facts.st_size > MIB and count_written(path) < facts.st_size / 2:  # it would cost time, and nothing to send
        raise SeqtoolError(f"{path}: most of its bytes were never written; restore it from a copy")
    return facts


def count_written(path: Path) -> int:
    """Return how many bytes of a file are not in holes; all if the system cannot tell."""
    written = end = 0
    size = path.stat().st_size
    with open(path, "rb") as file:
        while end < size:
            try:
                start = os.lseek(file.fileno(), end, os.SEEK_DATA)
                end = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            except OSError as error:
                return written if error.errno == errno.ENXIO else size  # the rest is one hole
            written += end - start
    return written


def read_limited(path: Path, limit: int, *, stream: bool = False) -> bytes:
    """Return the content of a file of at most `limit` bytes; a pipe or device only where a stream is allowed."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | (0 if stream else os.O_NONBLOCK))
    facts = os.fstat(handle)
    is_regular = stat.S_ISREG(facts.st_mode)
    if stat.S_ISDIR(facts.st_mode) or not (stream or is_regular):
        os.close(handle)
        raise SeqtoolError(f"{path}: is not a regular file; put a copy of the file itself there")
    with open(handle, "rb") as file:
        most = min(limit, facts.st_size) if is_regular else limit  # memory is taken for as much as is asked for
        content = file.read(most + 1) if facts.st_size <= limit else b""
    if facts.st_size > limit or len(content) > limit:
        raise SeqtoolError(f"{path}: is larger than the {limit:,} bytes that such a file may have")
    return content


def seal(content: dict[str, Any]) -> str:
    """Return the checksum of a JSON object, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def checksum(path: Path) -> str:
    """Return the sha256 of a file in hexadecimal, remembered if it is large and has not changed since."""
    facts = path.stat()
    if facts.st_size < REMEMBERED:
        return sha256_of(path)
    stamp = _stamp(facts)
    memory = _memory(facts)
    if memory is not None:
        with contextlib.suppress(OSError, ValueError):
            known, _, found = memory.read_text("ascii").partition(" ")
            if known == stamp and len(found) == 64:
                return found
    now = time.time_ns()
    found = sha256_of(path)
    if memory is not None and _stamp(path.stat()) == stamp and 0 < facts.st_ctime_ns < now - SETTLED:
        with contextlib.suppress(OSError):
            memory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(memory, f"{stamp} {found}")
    return found


def _stamp(facts: os.stat_result) -> str:
    return f"{facts.st_size}-{facts.st_mtime_ns}-{facts.st_ctime_ns}"


def _memory(facts: os.stat_result) -> Path | None:
    """Return the file that remembers a checksum: one for each inode, in the user's own cache."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    with contextlib.suppress(RuntimeError):
        cache = Path(base) if os.path.isabs(base) else Path.home() / ".cache"
        return cache / "seqtool" / "checksums" / f"{facts.st_dev:x}-{facts.st_ino:x}"
    return None
