"""Translated files that wait to be fetched: a folder of limited size and age that all processes share."""

import contextlib
import os
import re
import time
import uuid
from collections.abc import Iterator
from pathlib import Path, PurePath

MAX_AGE = 30 * 60  # seconds
MAX_BYTES = 256 << 20
MAX_FILES = 4096
NAME = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.[\w.-]{1,120}")


class Downloads:
    """The files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, original: str, target: str, content: str) -> str:
        """Keep a translated file; return the name to fetch it by."""
        data = content.encode("utf-8", "replace")
        self._make_room(len(data))
        name = f"{uuid.uuid4()}.{translated_name(original, target)}"
        (self.folder / name).write_bytes(data)
        return name

    def find(self, name: str) -> Path | None:
        """Return a file by that name if it is still there."""
        path = self.folder / name
        return path if NAME.fullmatch(name) and path.is_file() else None

    def _make_room(self, n_bytes: int) -> None:
        """Remove what is too old, then the oldest, until there is room for one more file of this size."""
        files = sorted(self._list())
        total = sum(size for _, size, _ in files)
        for index, (changed, size, path) in enumerate(files):
            is_full = total + n_bytes > MAX_BYTES or len(files) - index >= MAX_FILES
            if is_full or time.time() - changed > MAX_AGE:
                total -= size
                with contextlib.suppress(FileNotFoundError):  # another process was quicker
                    os.unlink(path)

    def _list(self) -> Iterator[tuple[float, int, str]]:
        for entry in os.scandir(self.folder):
            with contextlib.suppress(FileNotFoundError):
                found = entry.stat()
                yield found.st_mtime, found.st_size, entry.path


def translated_name(original: str, target: str) -> str:
    """Return a name for a translated file: a_de.txt for a.txt, with nothing in it that could be a path."""
    name = PurePath(original.replace("\\", "/")).name
    stem, suffix = PurePath(name).stem, PurePath(name).suffix
    safe = re.sub(r"[^\w-]+", "_", stem, flags=re.ASCII).strip("_")[:80] or "file"
    return f"{safe}_{re.sub(r'[^A-Za-z0-9-]', '', target)}{suffix}"
