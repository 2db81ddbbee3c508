"""The formats of documents, by name."""

from seqtool.errors import OptionError
from seqtool.translation.documents.html import HtmlDocument
from seqtool.translation.documents.interface import Document
from seqtool.translation.documents.srt import SrtDocument
from seqtool.translation.documents.text import TextDocument

FORMATS: dict[str, type[TextDocument] | type[HtmlDocument] | type[SrtDocument]] = {
    "text": TextDocument,
    "html": HtmlDocument,
    "srt": SrtDocument,
}


def open_document(format: str, data: str) -> Document:
    """Find the texts in data of a format; data that cannot be of that format is an error that names the line."""
    if format not in FORMATS:
        raise OptionError(f"there is no document format '{format}'; give one of {', '.join(FORMATS)}")
    return FORMATS[format](data)
