"""A disk that fills up in mid-run: a clear message, nothing lost, and the same command continues after making room."""

import errno
import subprocess
from pathlib import Path

import pytest
from command_line import start_command
from small_run import assert_same_run, run_to_end, train_command, wait_for_step

from seqtool.errors import SeqtoolError
from seqtool.run_directory import RunDir
from seqtool.training.pipeline import explaining_full_disk


@pytest.fixture
def small_disk(tmp_path: Path):  # type: ignore[no-untyped-def]
    """A file system of 6 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small file system needs more rights than this user has")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_full_disk_is_reported_and_the_run_continues_after_making_room(
    corpus: list[str], finished: Path, small_disk: Path
) -> None:
    command = train_command(corpus, small_disk / "run")
    process = start_command(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert wait_for_step(small_disk / "run", 12, process)
    filler = small_disk / "filler"
    with open(filler, "wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                pass
        except OSError:
            pass
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1, errors
    assert "the disk is full" in errors
    assert "Traceback" not in errors
    filler.unlink()
    run_to_end(command)
    assert_same_run(small_disk / "run", finished)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_explained_whatever_was_being_written(tmp_path: Path, number: int) -> None:
    with pytest.raises(SeqtoolError, match=r"the disk is full.*Make room and run the same"):  # noqa: SIM117
        with explaining_full_disk(RunDir(tmp_path)):
            raise OSError(number, "as a write to a full disk ends")
    with pytest.raises(PermissionError), explaining_full_disk(RunDir(tmp_path)):
        raise PermissionError(errno.EACCES, "as other errors do")
