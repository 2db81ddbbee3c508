"""Parts of a file by several processes: joined in order, and kept where joining fails."""

import errno
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from seqtool.errors import SeqtoolError
from seqtool.translation.lines import sharding
from seqtool.translation.lines.output import FileSink
from seqtool.translation.lines.sharding import Shard, ShardedFile, refuse_other_parts

BLOCKS = [[b"a", b"b"], [b"c"], [b"d"]]
EXPECTED = b"A\nB\nC\nD\n"


def start(path: Path, rank: int, resume: bool = False) -> ShardedFile:
    """Do what a process does before the joining; its translation is in capitals."""
    shard = Shard(rank, 2)
    file = ShardedFile(path, shard, "f", resume)
    for index, lines in enumerate(BLOCKS):
        if index < file.sink.n_done or not shard.is_mine(index):
            file.sink.skip(index, lines)
        else:
            file.sink.write(index, lines, [line.upper() + b"\n" for line in lines])
    return file


def join(path: Path, resume: bool = False) -> None:
    """Let two processes write a file; the second is a thread."""
    first, second = start(path, 0, resume), start(path, 1, resume)
    other = threading.Thread(target=second.finish, daemon=True)
    other.start()
    first.finish()
    other.join(timeout=30)


def test_parts_are_joined_in_order_in_a_folder_that_is_new(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "out"
    join(path)
    assert path.read_bytes() == EXPECTED
    assert list(path.parent.iterdir()) == [path]


def test_parts_that_cannot_be_joined_are_kept_for_a_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def full_disk(path: Path) -> Iterator[None]:
        raise OSError(errno.ENOSPC, "No space left on device")
        yield

    path = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(sharding, "open_whole", full_disk)
        with pytest.raises(SeqtoolError, match=r"No space left on device\), but they are kept; .* resume=True"):
            join(path)
    assert not path.exists()
    join(path, resume=True)
    assert path.read_bytes() == EXPECTED


def test_another_number_of_processes_cannot_continue(tmp_path: Path) -> None:
    start(tmp_path / "out", 0).sink.close()
    with pytest.raises(SeqtoolError, match=r"part-0-of-2.partial is of a translation with 2 processes, and here are 3"):
        ShardedFile(tmp_path / "out", Shard(0, 3), "f", resume=True)
    with pytest.raises(SeqtoolError, match="resume it with 2, or delete it"):
        refuse_other_parts(tmp_path / "out", 1)


def test_what_one_process_has_begun_is_not_begun_again_by_two(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "out", "f")
    sink.write(0, [b"a"], [b"A\n"])
    sink.close()
    with pytest.raises(SeqtoolError, match=r"out\.partial is of a translation with one process, and here are 2"):
        start(tmp_path / "out", 0, resume=True)


def test_processes_that_read_different_inputs_are_noticed(tmp_path: Path) -> None:
    first, second = start(tmp_path / "out", 0), start(tmp_path / "out", 1)
    second.sink.write(3, [b"e"], [b"E\n"])
    second.sink.write(5, [b"f"], [b"F\n"])
    threading.Thread(target=second.finish, daemon=True).start()
    with pytest.raises(SeqtoolError, match="did not all read the same input"):
        first.finish()
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_made_is_named_with_the_option(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SeqtoolError, match=r"give another path$"):
        ShardedFile(tmp_path / "file" / "out", Shard(0, 2), "f")
