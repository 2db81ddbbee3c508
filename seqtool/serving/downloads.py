"""Translated files that wait to be fetched: a folder of limited size and age that all processes share."""

import re
import time
import uuid
from pathlib import Path, PurePath

MAX_AGE = 30 * 60  # seconds
MAX_BYTES = 256 << 20
NAME = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.[\w.-]{1,120}")


class Downloads:
    """The files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, original: str, target: str, content: str) -> str:
        """Keep a translated file; return the name to fetch it by."""
        self._make_room(len(content))
        name = f"{uuid.uuid4()}.{translated_name(original, target)}"
        (self.folder / name).write_text(content, encoding="utf-8", newline="")
        return name

    def find(self, name: str) -> Path | None:
        """Return a file by that name if it is still there."""
        path = self.folder / name
        return path if NAME.fullmatch(name) and path.is_file() else None

    def _make_room(self, n_bytes: int) -> None:
        """Remove what is too old, then the oldest, until there is room."""
        files = sorted((file.stat().st_mtime, file) for file in self.folder.iterdir())
        total = sum(file.stat().st_size for _, file in files)
        for changed, file in files:
            if time.time() - changed > MAX_AGE or total + n_bytes > MAX_BYTES:
                total -= file.stat().st_size
                file.unlink(missing_ok=True)


def translated_name(original: str, target: str) -> str:
    """Return a name for a translated file: a_de.txt for a.txt, with nothing in it that could be a path."""
    name = PurePath(original.replace("\\", "/")).name
    stem, suffix = PurePath(name).stem, PurePath(name).suffix
    safe = re.sub(r"[^\w-]+", "_", stem, flags=re.ASCII).strip("_")[:80] or "file"
    return f"{safe}_{re.sub(r'[^A-Za-z0-9-]', '', target)}{suffix}"
