"""Pairs from a gettext PO file: each message and its translation, plural forms as pairs of their own.

A message without translation, or with one that is marked fuzzy, has an empty target: cleaning drops and counts it.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from seqtool.corpus.reading.records import MAX_RECORD_BYTES, Record, to_line
from seqtool.errors import SeqtoolError

FIELD = re.compile(r'(msgctxt|msgid|msgid_plural|msgstr|msgstr\[(\d{1,3})\])\s*(".*")')
ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)")
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
CHARSET = re.compile(r"charset=([\w-]+)", re.IGNORECASE)


@dataclass
class _Entry:
    """A message as far as it has been read."""

    fuzzy: bool = False
    parts: dict[str, list[str]] = field(default_factory=dict)
    current: str = ""
    size: int = 0

    def text(self, name: str) -> str:
        return "".join(self.parts.get(name, ()))

    @property
    def is_complete(self) -> bool:
        return self.current.startswith("msgstr")

    def records(self) -> Iterator[Record]:
        """Yield the message, and its plural with the last of the plural forms."""
        if not self.text("msgid"):  # the header
            return
        forms = sorted(name for name in self.parts if name.startswith("msgstr"))
        yield self._record("msgid", forms[0] if forms else "")
        if "msgid_plural" in self.parts:
            yield self._record("msgid_plural", forms[-1] if forms else "")

    def _record(self, src: str, tgt: str) -> Record:
        return to_line(self.text(src)), b"" if self.fuzzy else to_line(self.text(tgt))


def read_po(name: str, lines: Iterable[bytes]) -> Iterator[Record]:
    """Yield the pairs of a PO file; obsolete messages are left out."""
    entry = _Entry()
    for number, raw in enumerate(lines, 1):
        line = raw.decode("utf-8", "surrogateescape").strip()
        if not line or line.startswith("#"):
            if entry.is_complete:
                yield from _finish(name, entry)
                entry = _Entry()
            entry.fuzzy |= line.startswith("#,") and "fuzzy" in line
            continue
        match = FIELD.fullmatch(line)
        if match:
            if entry.is_complete and match[1] in ("msgctxt", "msgid"):
                yield from _finish(name, entry)
                entry = _Entry()
            entry.current = match[1]
            text = match[3]
        elif line.startswith('"') and entry.current:
            text = line
        else:
            raise _bad_line(name, number)
        if len(text) < 2 or not text.endswith('"'):
            raise _bad_line(name, number)
        entry.parts.setdefault(entry.current, []).append(ESCAPE.sub(_unescape, text[1:-1]))
        entry.size += len(raw)
        if entry.size > MAX_RECORD_BYTES:
            raise SeqtoolError(f"{name}: line {number:,}: a message is longer than {MAX_RECORD_BYTES >> 20} MiB")
    yield from _finish(name, entry)


def _finish(name: str, entry: _Entry) -> Iterator[Record]:
    if "msgid" in entry.parts and not entry.text("msgid"):
        charset = CHARSET.search(entry.text("msgstr"))
        if charset and charset[1].lower() not in ("utf-8", "utf8", "us-ascii", "ascii", "charset"):
            raise SeqtoolError(f"{name}: is in {charset[1]}; convert it with 'msgconv -t UTF-8'")
    yield from entry.records()


def _bad_line(name: str, number: int) -> SeqtoolError:
    return SeqtoolError(f"{name}: line {number:,} is not valid in a PO file; 'msgfmt -c' shows what is wrong with it")


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] == "x" and len(code) > 1:
        return chr(int(code[1:], 16))
    if code[0] in "01234567":
        return chr(int(code, 8))
    return ESCAPES.get(code, code)
