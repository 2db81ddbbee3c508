"""Locks, and files and folders that appear whole or not at all."""

import errno
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from seqtool.errors import SeqtoolError
from seqtool.files import locked, open_whole, restore_folders, whole_folder, write_whole


def test_a_lock_keeps_others_out_until_it_is_given_back(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "lock"):
        with locked(path, "busy"), pytest.raises(SeqtoolError, match="busy"), locked(path, "busy", patience=0.2):
            pass
        with locked(path, "busy"):
            pass


def test_a_file_system_without_locks_does_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(handle: int, operation: int) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    entered = False
    with locked(tmp_path, "busy"):
        entered = True
    assert entered


def fill(path: Path, value: str) -> None:
    with whole_folder(path) as folder:
        for name in ("one", "two"):
            (folder / name).write_text(value)


def content_of(path: Path) -> list[str]:
    return [(path / name).read_text() for name in ("one", "two")]


def is_killed(path: Path, value: str, moment: int) -> bool:
    """Fill a folder in a process that dies, without tidying up, before its n-th change on disk."""
    child = os.fork()
    if child == 0:
        left = moment

        def or_die(change):  # type: ignore[no-untyped-def]
            def call(*arguments, **options):  # type: ignore[no-untyped-def]
                nonlocal left
                left -= 1
                if left < 0:
                    os._exit(9)
                return change(*arguments, **options)

            return call

        for name in ("mkdir", "open", "rename", "rmdir", "unlink"):
            setattr(os, name, or_die(getattr(os, name)))
        try:
            fill(path, value)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


@pytest.mark.parametrize("tidy", [restore_folders, lambda parent: fill(parent / "folder", "newer")])
def test_a_writer_killed_at_any_moment_leaves_the_old_folder_or_the_new(tmp_path: Path, tidy) -> None:  # type: ignore[no-untyped-def]
    found = []
    for moment in range(100):
        parent = tmp_path / str(moment)
        fill(parent / "folder", "old")
        killed = is_killed(parent / "folder", "new", moment)
        tidy(parent)
        found.append(content_of(parent / "folder"))
        assert found[-1] in (["old"] * 2, ["new"] * 2, ["newer"] * 2)
        assert [path.name for path in parent.iterdir()] == ["folder"]
        if not killed:
            break
    assert moment > 10
    if tidy is restore_folders:
        assert found[0] == ["old"] * 2
        assert found[-1] == ["new"] * 2
        assert found == sorted(found, reverse=True)  # once the new one is in place, it stays


def test_a_failure_leaves_the_folder_that_was_there(tmp_path: Path) -> None:
    fill(tmp_path / "folder", "old")
    with pytest.raises(FileNotFoundError), whole_folder(tmp_path / "folder") as folder:
        (folder / "one").write_text(str(len((folder / "none").read_text())))
    assert content_of(tmp_path / "folder") == ["old", "old"]
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_folder_that_another_process_writes_is_left_to_it(tmp_path: Path) -> None:
    with whole_folder(tmp_path / "folder") as folder:
        (folder / "one").write_text("first")
        with pytest.raises(SeqtoolError, match="folder: is being written by another process"):
            fill(tmp_path / "folder", "second")
        restore_folders(tmp_path)
        (folder / "two").write_text("first")
    assert content_of(tmp_path / "folder") == ["first", "first"]


def record_disk_events(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[str]:
    """Return a list that fills with the syncs and renames in a folder: a power cut, where they matter, is no test."""
    events: list[str] = []
    fsync = os.fsync

    def relative(path: str | os.PathLike[str]) -> str:
        return str(Path(path).relative_to(folder)).replace(".folder.seqtool", "workshop")

    def recording_fsync(handle: int) -> None:
        status = os.fstat(handle)
        found = [path for path in [folder, *folder.rglob("*")] if os.path.samestat(path.stat(), status)]
        events.append(f"sync {relative(found[0])}")
        fsync(handle)

    def recording(rename: Callable[..., None]) -> Callable[..., None]:
        def renaming(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
            rename(source, target)
            events.append(f"rename {relative(source)} to {relative(target)}")

        return renaming

    monkeypatch.setattr(os, "fsync", recording_fsync)
    monkeypatch.setattr(os, "replace", recording(os.replace))
    monkeypatch.setattr(os, "rename", recording(os.rename))
    return events


def test_a_file_is_on_disk_before_it_takes_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    events = record_disk_events(monkeypatch, tmp_path)
    write_whole(path, "new")
    assert events == ["sync a.txt.tmp", "rename a.txt.tmp to a.txt", "sync ."]
    assert path.read_text() == "new"


def test_a_folder_is_on_disk_before_it_takes_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "folder", "old")
    events = record_disk_events(monkeypatch, tmp_path)
    fill(tmp_path / "folder", "new")
    assert sorted(events[:2]) == ["sync workshop/new/one", "sync workshop/new/two"]
    assert events[2:] == [
        "sync workshop/new",
        "rename folder to workshop/old",
        "rename workshop/new to folder",
        "sync .",
    ]


def test_a_file_whose_writing_fails_leaves_the_old_one_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(TypeError), open_whole(path) as file:
        file.writelines([b"half", None])  # type: ignore[list-item]
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
