"""Texts to translate, taken out of plain text."""

from collections.abc import Sequence
from dataclasses import dataclass

from seqtool.errors import OptionError
from seqtool.translation.results import Translation


@dataclass
class Document:
    """Lines, blank ones too."""

    texts: list[str]

    def rebuild(self, translations: Sequence[Translation]) -> str:
        """Return the translated lines."""
        return "\n".join(line.text for line in translations)


def open_document(format: str, data: str) -> Document:
    """Return the lines of a text."""
    if format != "text":
        raise OptionError(f"the format {format} is not supported yet")
    return Document(data.split("\n"))
