"""Single pairs as a report shows them: where they are, what they say, and what is wrong in words."""

import re
import unicodedata
from dataclasses import dataclass
from typing import Any

from seqtool.corpus.reading.lines import PairBlock

SHOWN_CHARS = 300  # of each side; an example must not make a report long
CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")
CONTROL_NAMES = {0: "NUL", 0x0B: "vertical tab", 0x0C: "form feed", 0x0D: "carriage return", 0x85: "next line"}


@dataclass(frozen=True)
class Example:
    """One pair of a corpus; the texts may be cut, and invalid bytes read as U+FFFD."""

    line: int
    source: str
    target: str
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {"line": self.line, "note": self.note, "source": self.source, "target": self.target}


def make_example(block: PairBlock, i: int, note: str = "") -> Example:
    """Show pair i of a block."""
    texts = (side.line(i)[: 4 * SHOWN_CHARS].decode("utf-8", "replace") for side in (block.src, block.tgt))
    source, target = (text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…" for text in texts)
    return Example(block.number + i, source, target, note)


def name_controls(block: PairBlock, i: int) -> str:
    """Name the first control character of each side, as in "source: U+0000 (NUL)"."""
    parts = []
    for side, lines in (("source", block.src), ("target", block.tgt)):
        if match := CONTROL.search(lines.line(i).decode("utf-8", "replace")):
            code = ord(match.group())
            name = CONTROL_NAMES.get(code) or unicodedata.name(match.group(), "control character").lower()
            parts.append(f"{side}: U+{code:04X} ({name})")
    return ", ".join(parts)


def name_invalid(block: PairBlock, i: int) -> str:
    """Name the first byte of each side that is not UTF-8, as in "source: byte 0xFC at 7"."""
    parts = []
    for side, lines in (("source", block.src), ("target", block.tgt)):
        line = lines.line(i)
        try:
            line.decode("utf-8")
        except UnicodeDecodeError as error:
            parts.append(f"{side}: byte 0x{line[error.start]:02X} at {error.start + 1}")
    return ", ".join(parts)


def name_lengths(block: PairBlock, i: int) -> str:
    """Give the lengths of both sides."""
    src, tgt = (len(side.line(i).decode("utf-8", "replace").strip()) for side in (block.src, block.tgt))
    return f"{src:,} and {tgt:,} characters"
