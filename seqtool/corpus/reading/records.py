"""Pairs that come one by one, from files that are more than lines: their columns, and how they become blocks."""

import re
from collections.abc import Iterable, Iterator, Sequence

from seqtool.corpus.reading.lines import PairBlock
from seqtool.errors import SeqtoolError

Record = tuple[bytes, bytes | None]  # the target is None if there is none
Columns = tuple[str, str]  # the names, or the numbers from 1 on, of source and target

MAX_RECORD_BYTES = 1 << 20  # of one pair: parsing takes many times as much
BLOCK_PAIRS, BLOCK_BYTES = 4096, 1 << 20
KNOWN_NAMES = (("source", "target"), ("src", "tgt"), ("src", "trg"), ("source_text", "target_text"))
LANGUAGE = re.compile(r"[a-z]{2,3}([-_][a-z0-9]{2,8})*", re.IGNORECASE)
BREAKS = re.compile(r"\r\n|[\r\n]")


def in_blocks(records: Iterable[Record]) -> Iterator[PairBlock]:
    """Gather pairs into blocks; the number of a pair is its place among them."""
    pairs: list[Record] = []
    size, number = 0, 1
    for src, tgt in records:
        pairs.append((src, tgt))
        size += len(src) + len(tgt or b"")
        if len(pairs) == BLOCK_PAIRS or size >= BLOCK_BYTES:
            yield PairBlock.from_pairs(pairs, number)
            number += len(pairs)
            pairs, size = [], 0
    if pairs:
        yield PairBlock.from_pairs(pairs, number)


def to_line(text: str) -> bytes:
    """Return a text as one line, with a space for each line break; what was not UTF-8 stays what it was."""
    if "\n" in text or "\r" in text:
        text = BREAKS.sub(" ", text)
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")  # half a character, from an escape in JSON


def choose_columns(name: str, present: Sequence[str], wanted: Columns | None) -> Columns:
    """Return which of the columns of a file are source and target, as wanted or by their names; raise if unclear."""
    listed = ", ".join(f"'{column[:40]}'" for column in present[:12]) + (", ..." if len(present) > 12 else "")
    if wanted:
        for column in wanted:
            if column not in present:
                raise SeqtoolError(f"{name}: has no column '{column}'; its columns are {listed}")
        return wanted
    lowered = {column.strip().lower(): column for column in present}
    for src, tgt in KNOWN_NAMES:
        if src in lowered and tgt in lowered:
            return lowered[src], lowered[tgt]
    if len(present) == 2 and all(LANGUAGE.fullmatch(column.strip()) for column in present):
        return present[0], present[1]
    raise SeqtoolError(
        f"{name}: which columns are source and target? It has {listed}. Name them after the file, as in {name}:en:de"
    )
