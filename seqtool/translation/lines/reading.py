r"""Reads lines for translation as blocks of bytes. Lines are split on "\n" only; nothing here knows what they mean.

A block is what is translated together. A file gives large blocks, always the same ones for the same bytes; a terminal
or a pipe gives what is there a moment after the first line, so that someone who waits for an answer gets it.
"""

import os
import select
import stat
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from seqtool.corpus.reading.opening import MAGIC, read_chunks, readable
from seqtool.corpus.text import BYTE_ORDER_MARK, MAX_LINE_BYTES
from seqtool.errors import SeqtoolError
from seqtool.files import is_stream

MAX_LINES = 4096  # in a block: enough to group by length
MAX_BYTES = 1 << 20
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
UTF16_PROBE = 64  # bytes at the start of the input
SIGNAL_WAIT = 0.5  # seconds; a signal that comes just before a wait begins is noticed when that ends
LIVE_WAIT = 0.03  # seconds that a line waits for others to be translated with


class LineBuffer:
    """Bytes in, whole lines out; what follows the last line break waits for more."""

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque()
        self._rest: list[bytes] = []  # pieces of a line that is not complete
        self._n_rest = 0
        self._n_bytes = 0
        self._n_added = 0

    def feed(self, piece: bytes) -> None:
        """Add bytes, however few."""
        first, *others = piece.split(b"\n")
        self._rest.append(first)
        self._n_rest += len(first)
        if others:
            self._add(b"".join(self._rest))
            for line in others[:-1]:
                self._add(line)
            self._rest = [others[-1]]
            self._n_rest = len(others[-1])
        if self._n_rest > MAX_LINE_BYTES:
            raise SeqtoolError(
                f"line {self._n_added + 1:,} is longer than {MAX_LINE_BYTES >> 20} MiB; "
                "the input must be text with one sentence or paragraph per line"
            )

    def finish(self) -> None:
        """Take what is left as the last line; there is none after a final line break."""
        rest = b"".join(self._rest)
        self._rest = []
        if rest:
            self._add(rest)

    def take(self, max_lines: int = MAX_LINES, max_bytes: int = MAX_BYTES) -> list[bytes]:
        """Remove and return a block: at most max_lines lines, and max_bytes or one line."""
        block: list[bytes] = []
        room = max_bytes
        while self._lines and len(block) < max_lines and (room >= len(self._lines[0]) + 1 or not block):
            line = self._lines.popleft()
            room -= len(line) + 1
            block.append(line)
        self._n_bytes -= sum(map(len, block)) + len(block)
        return block

    @property
    def has_lines(self) -> bool:
        return bool(self._lines)

    @property
    def is_full(self) -> bool:
        """True if there is more than enough for a block."""
        return len(self._lines) > MAX_LINES or self._n_bytes > MAX_BYTES

    def _add(self, line: bytes) -> None:
        if not self._n_added:
            line = line.removeprefix(BYTE_ORDER_MARK)
        self._n_added += 1
        self._lines.append(line)
        self._n_bytes += len(line) + 1


def file_blocks(pieces: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Cut a file, given in pieces of any size, into blocks; which ones does not depend on the pieces."""
    buffer = LineBuffer()
    for piece in pieces:
        buffer.feed(piece)
        while buffer.is_full:
            yield buffer.take()
    buffer.finish()
    while buffer.has_lines:
        yield buffer.take()


def live_blocks(handle: int, wait: float = LIVE_WAIT) -> Iterator[list[bytes]]:
    """Read a terminal, pipe or socket; a block is what has come by `wait` seconds after its first line.

    Someone who types gets an answer at once, and a pipe that is always full gives blocks as large as a file does.
    """
    buffer = LineBuffer()
    at_end = False
    while not at_end:
        deadline: float | None = None
        while not buffer.is_full:
            if buffer.has_lines and deadline is None:
                deadline = time.monotonic() + wait
            left = SIGNAL_WAIT if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([handle], [], [], left)[0]:
                if deadline is None:
                    continue
                break
            piece = os.read(handle, 1 << 16)
            if not piece:
                buffer.finish()
                at_end = True
                break
            buffer.feed(piece)
            if deadline is not None and time.monotonic() > deadline:
                break
        if buffer.has_lines:
            yield buffer.take()
    while buffer.has_lines:
        yield buffer.take()


def input_blocks(source: Path | int, live: bool, notify: Callable[[str], None]) -> Iterator[list[bytes]]:
    """Yield the blocks of a file, which may be open already; a terminal or pipe is read as it comes if `live`.

    `notify` is called if what comes through a pipe is compressed.
    """
    if isinstance(source, Path) and not (live and is_stream(source)):
        yield from refuse_utf16(file_blocks(read_chunks(source)), str(source))
        return
    with readable(Path("stdin") if isinstance(source, int) else source):
        handle = source if isinstance(source, int) else os.open(source, os.O_RDONLY)
        is_file = not live or stat.S_ISREG(os.fstat(handle).st_mode)
        blocks = file_blocks(read_pieces(handle)) if is_file else live_blocks(handle)
        for number, block in enumerate(refuse_utf16(blocks, "the input")):
            if number == 0 and block[0].startswith(tuple(MAGIC)):
                notify(
                    "the input seems to be compressed, and a pipe is read as it is; "
                    "give the file itself as `input`, or decompress it on the way in"
                )
            yield block


def refuse_utf16(blocks: Iterable[list[bytes]], name: str) -> Iterator[list[bytes]]:
    """Yield blocks; raise if the first one begins as UTF-16 does, whose line ends and characters would be torn."""
    for number, block in enumerate(blocks):
        start = b"\n".join(block[:2])[:UTF16_PROBE]
        if number == 0 and (start.startswith(UTF16_MARKS) or _alternates(start)):
            raise SeqtoolError(f"{name}: is UTF-16, not UTF-8; convert it with 'iconv -f UTF-16 -t UTF-8'")
        yield block


def _alternates(start: bytes) -> bool:
    """Return whether every second byte is NUL, as in UTF-16 without a mark; a line that only has a NUL is none."""
    zeros = max(start[::2].count(0), start[1::2].count(0))
    return zeros >= 8 and zeros >= 0.9 * (len(start) // 2) and start.count(0) <= zeros + 1


def read_pieces(handle: int) -> Iterator[bytes]:
    """Read a file that is open, to its end."""
    while piece := os.read(handle, 1 << 19):
        yield piece


def decode_line(line: bytes) -> tuple[str, bool]:
    """Return the text of a line, without a carriage return at its end, and whether it is valid UTF-8."""
    line = line[:-1] if line.endswith(b"\r") else line
    try:
        return line.decode("utf-8"), True
    except UnicodeDecodeError:
        return line.decode("utf-8", "replace"), False
