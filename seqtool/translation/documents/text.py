"""Plain text: each line is translated by itself; blank lines, line ends and the space around a line stay."""

from collections.abc import Sequence

from seqtool.corpus.text import clean_text
from seqtool.translation.documents.interface import Document
from seqtool.translation.results import Translation


class TextDocument(Document):
    """Lines, which end in a line feed and nothing else."""

    def __init__(self, data: str) -> None:
        self._lines = data.split("\n")
        self._translated = [bool(clean_text(line)) for line in self._lines]
        self.texts = [line.strip() for line, wanted in zip(self._lines, self._translated, strict=True) if wanted]

    def _parts(self, translations: Sequence[Translation]) -> list[str]:
        remaining = iter(translations)
        parts: list[str] = []
        for line, wanted in zip(self._lines, self._translated, strict=True):
            parts += ["\n", _replace(line, next(remaining).text) if wanted else line]
        return parts[1:]


def _replace(line: str, text: str) -> str:
    """Put another text between the white space of a line; a text is one line, whatever the model made of it."""
    start = len(line) - len(line.lstrip())
    end = len(line.rstrip())
    return line[:start] + text + line[end:]
