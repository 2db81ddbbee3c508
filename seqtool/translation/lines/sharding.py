"""Several processes translate one file: torchrun starts them, files join them, and no process group is needed.

Process r of n translates the blocks r, r + n, r + 2n, ... into a part file next to the output. The first process then
waits for the others and puts the blocks together. So that it cannot take the leftovers of an earlier run for a part, it
writes a new word into a file that all can see, and takes a part only when that word is written beside it.
"""

import contextlib
import glob
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from seqtool import process
from seqtool.errors import SeqtoolError, Terminated
from seqtool.files import make_folder, open_whole, write_whole
from seqtool.progress import ShowProgress, ignore
from seqtool.translation.lines.output import FRAME, FileSink
from seqtool.translation.lines.stream import LineTranslator, translate_blocks

POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Shard:
    """Which of how many processes this one is."""

    rank: int
    world: int

    @classmethod
    def current(cls) -> "Shard | None":
        """Return the one of this process; None if it is the only process."""
        return cls(process.rank(), process.world_size()) if process.world_size() > 1 else None

    def is_mine(self, index: int) -> bool:
        """Return whether this process translates a block."""
        return index % self.world == self.rank


def refuse_other_parts(path: Path, n_processes: int) -> None:
    """Raise if there is what another number of processes has done, which these cannot continue."""
    whole = path.with_name(path.name + ".partial")
    if n_processes > 1 and whole.with_name(whole.name + ".json").exists():
        raise SeqtoolError(
            f"{whole} is of a translation with one process, and here are {n_processes}; "
            "`resume` it with one, or delete it to start over"
        )
    for part in sorted(path.parent.glob(glob.escape(path.name) + ".part-*-of-*.partial")):
        world = part.name.removesuffix(".partial").rpartition("-of-")[2]
        if world != str(n_processes):
            raise SeqtoolError(
                f"{part} is of a translation with {world} processes, and here are {n_processes}; "
                f"`resume` it with {world}, or delete it to start over"
            )


class ShardedFile:
    """One process's part of an output file, and the joining of all parts."""

    def __init__(self, path: Path, shard: Shard, fingerprint: str, resume: bool = False) -> None:
        self.path, self.shard = path, shard
        make_folder(path.parent)
        refuse_other_parts(path, shard.world)
        self._word_path = path.with_name(path.name + ".run")
        self._word = secrets.token_hex(8)
        if shard.rank == 0:
            write_whole(self._word_path, self._word)
        name = f"{path.name}.part-{shard.rank}-of-{shard.world}"
        self.sink = FileSink(path.with_name(name), f"{fingerprint} {shard}", resume, framed=True)
        self._done(shard.rank).unlink(missing_ok=True)

    def finish(self) -> None:
        """End this process's part; return when the whole file is there."""
        self.sink.complete()
        try:
            if self.shard.rank == 0:
                self._join()
            else:
                self._wait_for_join()
        except OSError as error:
            raise SeqtoolError(
                f"{self.path}: the parts of this file cannot be joined ({error.strerror or error}), but they are kept; "
                "mend that, and run the same with `resume=True`"
            ) from None

    def _part(self, rank: int) -> Path:
        return self.path.with_name(f"{self.path.name}.part-{rank}-of-{self.shard.world}.partial")

    def _done(self, rank: int) -> Path:
        return self._part(rank).with_suffix(".done")

    def _state(self, rank: int) -> Path:
        return self._part(rank).with_suffix(".partial.json")

    @staticmethod
    def _read(path: Path) -> str:
        try:
            return path.read_text(encoding="ascii")
        except OSError:
            return ""

    def _wait_for_join(self) -> None:
        """Say that this part is complete, in the present word, until the first process has taken it."""
        said = None
        done = self._done(self.shard.rank)
        while self._part(self.shard.rank).exists():
            word = self._read(self._word_path)
            if word and word != said:
                write_whole(done, word)
                said = word
            time.sleep(POLL_SECONDS)

    def _join(self) -> None:
        """Wait for all parts, put their blocks together in order, and remove them."""
        ranks = range(self.shard.world)
        for rank in ranks[1:]:
            while self._read(self._done(rank)) != self._word:
                time.sleep(POLL_SECONDS)
        parts = [open(self._part(rank), "rb") for rank in ranks]  # noqa: SIM115
        with open_whole(self.path) as output:
            index = 0
            while header := parts[index % len(parts)].read(FRAME.size):
                length = FRAME.unpack(header)[0] if len(header) == FRAME.size else -1
                content = parts[index % len(parts)].read(max(0, length))
                if len(content) != length:
                    raise SeqtoolError(
                        f"{self._part(index % len(parts))}: is damaged; delete it and run the same again"
                    )
                output.write(content)
                index += 1
            if any(part.read(1) for part in parts):
                raise SeqtoolError(
                    f"{self.path}: the processes did not all read the same input; give one that all of them see"
                )
        for rank, part in zip(ranks, parts, strict=True):
            part.close()
            self._done(rank).unlink(missing_ok=True)
            self._state(rank).unlink(missing_ok=True)
            self._part(rank).unlink()
        self._word_path.unlink(missing_ok=True)


def translate_to_file(
    worker: LineTranslator,
    blocks: Iterable[list[bytes]],
    output: Path,
    identity: str,
    resume: bool,
    *,
    show: ShowProgress = ignore,
    total_bytes: int = 0,
) -> None:
    """Translate blocks into a file that appears when all is done, by one process or by several together.

    `identity` is the fingerprint of what makes the translation; one that was interrupted is continued if that is the
    same and `resume` is set, or torchrun has restarted its processes.
    """
    shard = Shard.current()
    resume = resume or process.is_restarted()
    if shard is None:
        refuse_other_parts(output, 1)
        sink = FileSink(output, identity, resume)
        with _tidied_up(sink, worker.notify):
            translate_blocks(worker, blocks, sink, show=show, total_bytes=total_bytes)
        sink.finish()
    else:
        file = ShardedFile(output, shard, identity, resume)
        with _tidied_up(file.sink, worker.notify):
            translate_blocks(worker, blocks, file.sink, is_mine=shard.is_mine, show=show, total_bytes=total_bytes)
        file.finish()


@contextlib.contextmanager
def _tidied_up(sink: FileSink, notify: Callable[[str], None]) -> Iterator[None]:
    """Leave no empty file behind if a translation is interrupted or fails, and say what can be continued."""
    try:
        yield
    except BaseException as error:
        advice = sink.abandon()
        if advice and isinstance(error, KeyboardInterrupt | Terminated):
            notify(advice)
        raise
