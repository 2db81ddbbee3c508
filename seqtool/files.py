"""Files and folders that appear whole or not at all, their locks and their checksums."""

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from seqtool.errors import SeqtoolError

WORKSHOP = ".seqtool"  # ends the name of a folder in which another is made


def is_stream(path: Path) -> bool:
    """Return whether a path is a device, a pipe or the like: it is written into, and never replaced.

    /dev/stdout is one even where it leads to a file, because it is the system's name and not that file's.
    """
    if not path.exists() or path.is_dir():
        return False
    folder = str(path.absolute().parent)
    return not path.is_file() or folder in ("/dev", "/dev/fd") or folder.startswith("/proc/")


def is_same_file(path: Path, other: Path) -> bool:
    """Return whether two names are of one file; a pipe or device may well be read and written."""
    try:
        return not is_stream(path) and path.samefile(other)
    except OSError:
        return False


@contextlib.contextmanager
def open_whole(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing under a temporary name; it takes its own name, on disk, only when all went well."""
    if is_stream(path):
        with open(path, "wb") as stream:
            yield stream
        return
    temporary = path.with_name(path.name + ".tmp")
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync(path.parent)


@contextlib.contextmanager
def locked(path: Path, busy: str, patience: float = 0.0) -> Iterator[None]:
    """Hold the lock of a folder, or of a file made for it; raise with the message `busy` if another process keeps it.

    The lock ends with the process, however that ends. A file system without locks does without.
    """
    import fcntl

    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_CREAT | os.O_RDWR)
    deadline = time.monotonic() + patience
    try:
        with contextlib.suppress(OSError):
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() >= deadline:
                        raise SeqtoolError(busy) from None
                    time.sleep(0.1)
        yield
    finally:
        os.close(handle)


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file so that a reader finds the old content or the new, never a part."""
    with open_whole(path) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


@contextlib.contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Yield a new folder to fill; when all went well, it takes the place of `path`, on disk.

    It is made in a workshop beside `path`, which also holds what it replaces until it has its name. What a killed
    process leaves there is put right by the next one to write this folder, or by `restore_folders`.
    """
    path = path.absolute()  # so that "." has a name
    workshop = path.with_name(f".{path.name}{WORKSHOP}")
    workshop.mkdir(parents=True, exist_ok=True)
    with locked(workshop, f"{path}: is being written by another process; wait for it to end"):
        _empty_workshop(workshop)
        new, old = workshop / "new", workshop / "old"
        try:
            new.mkdir()
            yield new
            for entry in new.rglob("*"):
                sync(entry)
            sync(new)
            if os.path.lexists(path):
                os.rename(path, old)
            os.rename(new, path)
            sync(path.parent)
        finally:
            _empty_workshop(workshop)
            shutil.rmtree(workshop, ignore_errors=True)


def require_new(path: Path) -> None:
    """Raise if there is something at the place of a folder that is to be made."""
    if os.path.lexists(path) and not (path.is_dir() and not any(path.iterdir())):
        raise SeqtoolError(f"{path}: is there already and not empty; give another `out`")


def restore_folders(parent: Path) -> None:
    """Put right what a killed process left of the folders it wrote: a former one has its name again, the rest goes."""
    for workshop in parent.glob(f".*{WORKSHOP}"):
        with contextlib.suppress(SeqtoolError), locked(workshop, "another process is at work in it"):
            _empty_workshop(workshop)
            shutil.rmtree(workshop, ignore_errors=True)


def _empty_workshop(workshop: Path) -> None:
    path = workshop.with_name(workshop.name.removesuffix(WORKSHOP)[1:])
    new, old = workshop / "new", workshop / "old"
    if os.path.lexists(old) and not os.path.lexists(path):
        os.rename(old, path)
    for folder in (new, old):
        shutil.rmtree(folder, ignore_errors=True)


def sync(path: Path) -> None:
    """Bring a file to disk, or a folder, so that renames and new names in it survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def to_json(value: Any) -> str:
    """Write a value as readable JSON with a final newline."""
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=False) + "\n"


def make_folder(path: Path) -> Path:
    """Make a folder and its parents, or say why it cannot be made."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise SeqtoolError(f"{path}: is a file, but a folder is needed; give another path") from None
    except OSError as error:
        reason = f"cannot make this folder ({error.strerror})"
        raise SeqtoolError(f"{path}: {reason}; give another path") from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise SeqtoolError(f"{path}: cannot write into this folder; change its permissions or give another")
    return path
