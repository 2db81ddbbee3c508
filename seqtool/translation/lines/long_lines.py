"""Lines of many megabytes: read in pieces, cut into windows at sentence ends, and translated some windows at a time.

Memory is bounded by a group of windows, and time grows with the length of the line: nothing looks at the whole of it.
Where it is cut depends on the line alone. What a line of ordinary length is translated by is not changed by this.
"""

import codecs
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from seqtool.corpus.sentences import split_sentences
from seqtool.translation.engines.interface import SearchOptions
from seqtool.translation.splitting import CLAUSE_END, SPACE, separator
from seqtool.translation.translator import Translator

LONG_BYTES = 1 << 18  # of a line, from which on it is translated in windows
WINDOW = 1 << 14  # characters
GROUP = 16  # windows that are translated together
PIECE_BYTES = 1 << 16
LONGEST_CLUSTER = 32  # characters within which a letter and its accents end


@dataclass(frozen=True)
class LongTranslation:
    """The translation of a long line, without the details that would take far more memory than the line."""

    text: bytes
    n_parts: int
    n_replaced: int
    n_doubtful: int
    is_valid: bool  # UTF-8


class LineText:
    """The characters of a line in pieces; afterwards `is_valid` is True if all of it was UTF-8."""

    def __init__(self, line: bytes, progress: Callable[[float], None] | None = None) -> None:
        self.is_valid = True
        self._line = memoryview(line)[: -1 if line.endswith(b"\r") else None]
        self._progress = progress or (lambda share: None)

    def __iter__(self) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        n_marks = 0
        for start in range(0, len(self._line), PIECE_BYTES):
            piece = decoder.decode(self._line[start : start + PIECE_BYTES])
            n_marks += piece.count("\ufffd")
            self._progress(start / len(self._line))
            yield piece
        rest = decoder.decode(b"", final=True)
        yield rest
        self.is_valid = n_marks + rest.count("\ufffd") == self._line.obj.count("\ufffd".encode())  # type: ignore[attr-defined]


def windows(pieces: Iterable[str]) -> Iterator[str]:
    """Cut a text that comes in pieces of any size into windows; the places do not depend on the pieces."""
    rest = ""
    for piece in pieces:
        rest += piece
        while len(rest) > WINDOW + LONGEST_CLUSTER:
            end = _find_end(rest)
            yield rest[:end]
            rest = rest[end:]
    if rest:
        yield rest


def _find_end(text: str) -> int:
    """Return where the first window of a text ends: behind a sentence, else a clause, a word, or anywhere."""
    window = text[:WINDOW]
    if before := len(window) - len(split_sentences(window)[-1]):
        return before
    for pattern in (CLAUSE_END, SPACE):
        if ends := [match.end() for match in pattern.finditer(window) if match.end() < len(window)]:
            return ends[-1]
    places = range(WINDOW, WINDOW + LONGEST_CLUSTER)
    return next((place for place in places if not unicodedata.category(text[place]).startswith("M")), WINDOW)


def translate_long(
    translator: Translator,
    line: bytes,
    options: SearchOptions,
    prefix: str = "",
    progress: Callable[[float], None] | None = None,
) -> LongTranslation:
    """Translate one long line, some windows at a time."""
    pieces = LineText(line, progress)
    written: list[bytes] = []
    n_parts = n_replaced = n_doubtful = 0
    last = ""
    for group in _groups(windows(pieces)):
        prefixes = [prefix, *[""] * (len(group) - 1)] if prefix else None
        for found in translator.translate(group, options, prefixes=prefixes):
            n_parts += found.n_parts
            n_replaced += found.n_replaced
            n_doubtful += found.n_doubtful
            if found.text:
                written.append((separator(last, found.text) + found.text).encode())
                last = found.text[-1]
                prefix = ""
    return LongTranslation(b"".join(written), n_parts, n_replaced, n_doubtful, pieces.is_valid)


def _groups(texts: Iterable[str]) -> Iterator[list[str]]:
    group: list[str] = []
    for text in texts:
        group.append(text)
        if len(group) == GROUP:
            yield group
            group = []
    if group:
        yield group
