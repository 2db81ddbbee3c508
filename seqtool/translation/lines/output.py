"""Where translations go: at once to a stream, or to a file that appears whole and can be continued after a break."""

import contextlib
import hashlib
import json
import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from seqtool.errors import SeqtoolError
from seqtool.files import locked, make_folder, sha256_of, sync, to_json, write_whole
from seqtool.translation.engines.interface import Engine
from seqtool.translation.export.record import read_record
from seqtool.verification import MIB, read_limited, seal

if TYPE_CHECKING:
    from seqtool.translation.translator import Translator

PATIENCE = 2.0  # seconds: a process that was stopped, and whose work is continued, may still be ending
MAX_STATE = MIB
FRAME = struct.Struct(">Q")  # the length of a block, before its bytes, in files that are to be joined


class StreamSink:
    """Writes to a pipe or terminal, and keeps nothing back."""

    n_done = 0

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def skip(self, index: int, lines: list[bytes]) -> None:
        """Pass a block over."""

    def write(self, index: int, lines: list[bytes], block: list[bytes]) -> None:
        """Write a block's translations."""
        left = memoryview(b"".join(block))
        while left:
            left = left[self._stream.write(left) :]  # a device may take a part
        self._stream.flush()


class FileSink:
    """Writes FILE.partial and, beside it, how far it is; it becomes FILE when all is done.

    How far it is counts in blocks of the input, with the checksums of what was read and of what was written: a
    continued translation reads both again, which is quick, and is sure to go on where the other stopped.
    """

    def __init__(self, path: Path, fingerprint: str, resume: bool = False, framed: bool = False) -> None:
        """Begin a file, or continue one whose fingerprint (of options and model) is the same."""
        self.path = path
        self.partial = path.with_name(path.name + ".partial")
        self.state_path = path.with_name(path.name + ".partial.json")
        self.n_done = 0
        self._framed = framed
        self._state: dict[str, Any] = {"fingerprint": fingerprint, "blocks": 0, "lines": 0, "bytes": 0, "sha256": ""}
        self._state["written_sha256"] = ""
        self._digest, self._written = hashlib.sha256(), hashlib.sha256()
        self._n_read = 0
        make_folder(path.parent)
        if not self.partial.exists() and self.state_path.exists():
            self._put_right(resume)
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._locked())
            earlier = self._read_state()
            if earlier and not resume:
                raise SeqtoolError(
                    f"{self.partial} holds {earlier['lines']:,} lines of an interrupted translation; "
                    f"continue it with `resume=True`, or delete it to start over"
                )
            if earlier and earlier["fingerprint"] != fingerprint:
                raise SeqtoolError(
                    f"{self.partial} was begun with another model or other options; "
                    "give the same ones to `resume` it, or delete it to start over"
                )
            self._open(earlier)
            self._lock = stack.pop_all()

    def skip(self, index: int, lines: list[bytes]) -> None:
        """Pass over a block that is written already, or that is another process's."""
        self._read(lines)
        if index == self.n_done - 1 and self._digest.hexdigest() != self._state["sha256"]:
            raise SeqtoolError(
                f"the input has changed since {self.partial} was begun; "
                "give the same input to `resume` it, or delete it to start over"
            )

    def write(self, index: int, lines: list[bytes], block: list[bytes]) -> None:
        """Write a block's translations, and that they are written."""
        self._read(lines)
        content = b"".join(block)
        content = FRAME.pack(len(content)) + content if self._framed else content
        try:
            self._file.write(content)
            self._file.flush()
            os.fsync(self._file.fileno())
            self._written.update(content)
            state = self._state
            state["blocks"] = index + 1
            state["lines"] += len(lines)
            state["bytes"] += len(content)
            state["sha256"] = self._digest.hexdigest()
            state["written_sha256"] = self._written.hexdigest()
            write_whole(self.state_path, to_json({**state, "seal": seal(state)}))
        except OSError as error:
            raise SeqtoolError(
                f"{self.partial}: cannot be written ({error.strerror}); "
                f"what is done so far is kept: make room and run the same with `resume=True`"
            ) from None

    def finish(self) -> None:
        """Give the file its name."""
        self.complete()
        os.replace(self.partial, self.path)
        self.state_path.unlink(missing_ok=True)
        sync(self.path.parent)

    def complete(self) -> None:
        """Close the file after the last block."""
        if self._n_read < self.n_done:
            raise SeqtoolError(
                f"the input is shorter than when {self.partial} was begun; "
                "give the same input to `resume` it, or delete it to start over"
            )
        self.close()

    def close(self) -> None:
        """Leave the file as it is, complete or to be continued."""
        self._file.close()
        self._lock.close()

    def abandon(self) -> str:
        """Leave the file to be continued, or remove it if it holds nothing; return what to do next, if anything."""
        if not self._state["blocks"]:
            self.partial.unlink(missing_ok=True)
        self.close()
        if not self._state["blocks"]:
            return ""
        return f"{self._state['lines']:,} lines are kept in {self.partial}; continue with `resume=True`"

    def _read(self, lines: list[bytes]) -> None:
        self._n_read += 1
        for line in lines:
            self._digest.update(line)
            self._digest.update(b"\n")

    def _put_right(self, resume: bool) -> None:
        """Take back the name of a file whose process was killed between naming it and removing its state.

        A translation that is continued then finds that nothing is left to do. Of any other file the state is removed.
        """
        state = self._read_state()
        if resume and state and self.path.is_file() and sha256_of(self.path) == state["written_sha256"]:
            os.replace(self.path, self.partial)
        else:
            self.state_path.unlink(missing_ok=True)

    def _read_state(self) -> dict[str, Any] | None:
        """Return how far an earlier translation came; None if there is none to continue."""
        try:
            state = json.loads(read_limited(self.state_path, MAX_STATE))
            if seal({name: state[name] for name in self._state}) != state["seal"]:
                raise ValueError("its seal is another")
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, RecursionError, SeqtoolError):
            raise SeqtoolError(
                f"{self.state_path}: is damaged, so {self.partial} cannot be continued; delete both to start over"
            ) from None
        del state["seal"]
        return state if state["blocks"] else None

    def _locked(self) -> contextlib.AbstractContextManager[None]:
        """Keep the file to this process."""
        try:
            open(self.partial, "ab").close()
        except OSError as error:
            raise SeqtoolError(f"{self.partial}: cannot be written ({error.strerror}); give another `output`") from None
        busy = f"{self.partial}: another translation is writing this file; wait for it, or give another `output`"
        return locked(self.partial, busy, patience=PATIENCE)

    def _open(self, earlier: dict[str, Any] | None) -> None:
        """Open the file at the end of what is known to be written; what was written after that is cut off."""
        with contextlib.suppress(OSError):
            if not earlier:
                self.state_path.unlink(missing_ok=True)
        self._file = open(self.partial, "r+b" if earlier else "wb")  # noqa: SIM115
        if earlier:
            self._state = earlier
            self.n_done = earlier["blocks"]
            self._read_written(earlier["bytes"])
            self._file.truncate(earlier["bytes"])

    def _read_written(self, n_bytes: int) -> None:
        """Go to the end of what was written, and raise if it is not what was written."""
        left = n_bytes
        while left and (piece := self._file.read(min(left, MIB))):
            self._written.update(piece)
            left -= len(piece)
        if left or self._written.hexdigest() != self._state["written_sha256"]:
            self._file.close()
            raise SeqtoolError(
                f"{self.partial}: was changed or damaged after it was written, so it cannot be continued; "
                "delete it to start over"
            )


def fingerprint(translator: "Translator", engine: Engine, identity: Sequence[Any]) -> str:
    """Return a text that changes when a translation would: by its model, its arithmetic, its options or its form."""
    exported = read_record(translator.runs[0].ctranslate2) if engine.name == "ctranslate2" else None
    parts = [list(translator.checksums), engine.name, engine.compute_type, exported, *identity]
    return hashlib.sha256(repr(parts).encode()).hexdigest()
