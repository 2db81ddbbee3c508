"""One change that breaks the code, and how it is made."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """A small change that breaks something, and the tests that should notice."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]  # files in tests/, or single tests as file.py::name

    def apply(self, root: Path) -> None:
        """Change the file under a folder."""
        path = root / self.file
        text = path.read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: {self.file} has the old text {text.count(self.old)} times instead of once")
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")
