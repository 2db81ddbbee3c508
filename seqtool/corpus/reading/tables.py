"""Pairs from tables: chosen columns of TSV, CSV with a line of names, and JSON Lines, read record by record."""

import csv
import json
from collections.abc import Iterable, Iterator
from typing import Any

from seqtool.corpus.reading.records import MAX_RECORD_BYTES, Columns, Record, choose_columns, to_line
from seqtool.errors import SeqtoolError


def read_tsv_columns(name: str, lines: Iterable[bytes], columns: Columns) -> Iterator[Record]:
    """Yield two columns of a TSV file, which are given by their numbers."""
    if not all(column.isdecimal() and 0 < int(column[:6]) < 1000 for column in columns):
        raise SeqtoolError(
            f"{name}: the columns of a TSV file have numbers and no names; write {name}:1:2, not {columns[0]}"
        )
    src, tgt = (int(column) - 1 for column in columns)
    for line in lines:
        parts = line.split(b"\t", max(src, tgt) + 1)
        yield parts[src] if src < len(parts) else b"", parts[tgt] if tgt < len(parts) else None


def read_csv(name: str, lines: Iterable[bytes], columns: Columns | None) -> Iterator[Record]:
    """Yield the pairs of a CSV file, separated by commas or semicolons; its first line names the columns, unless the
    columns wanted are numbers."""
    texts = _csv_lines(name, lines)
    first = next(texts, "")
    by_number = columns is not None and all(column.isdecimal() for column in columns)
    rows = csv.reader(_with(first, texts), delimiter=max(",;", key=first.count), strict=True)
    try:
        if by_number and columns:
            src, tgt = (int(column[:6]) - 1 for column in columns)
        else:
            names = next(rows, [])
            src, tgt = (names.index(column) for column in choose_columns(name, names, columns))
        for row in rows:
            if row:  # a blank line is no record
                yield (
                    to_line(row[src]) if 0 <= src < len(row) else b"",
                    to_line(row[tgt]) if 0 <= tgt < len(row) else None,
                )
    except csv.Error as error:
        raise SeqtoolError(
            f"{name}: line {rows.line_num:,} is not valid CSV ({error}); is a quotation mark not closed or not doubled?"
        ) from None


def _with(first: str, others: Iterator[str]) -> Iterator[str]:
    if first:
        yield first
    yield from others


def _csv_lines(name: str, lines: Iterable[bytes]) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        _check_size(name, number, line)
        yield line.decode("utf-8", "surrogateescape") + "\n"


def read_jsonl(name: str, lines: Iterable[bytes], columns: Columns | None) -> Iterator[Record]:
    """Yield the pairs of a JSON Lines file; a key within an object is written with a dot, as in translation.en."""
    keys = None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        _check_size(name, number, line)
        record = _flat(_parse(name, number, line))
        keys = keys or choose_columns(name, list(record), columns)
        src, tgt = (record.get(key) for key in keys)
        yield to_line(src or ""), None if tgt is None else to_line(tgt)


def _parse(name: str, number: int, line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        hint = " If the file is one JSON array, convert it with jq -c '.[]'." if line.lstrip()[:1] == b"[" else ""
        raise SeqtoolError(f"{name}: line {number:,} is not a JSON object; JSON Lines has one per line.{hint}")
    return record


def _flat(record: dict[str, Any]) -> dict[str, str]:
    """Return the texts of an object, and those of objects in it under names with a dot."""
    texts = {key: value for key, value in record.items() if isinstance(value, str)}
    for key, inner in record.items():
        if isinstance(inner, dict):
            inside = {name: value for name, value in inner.items() if isinstance(value, str)}
            texts |= {f"{key}.{name}": value for name, value in inside.items()}
            if key == "translation":  # as in the data sets of Hugging Face
                sides = dict(zip(("source", "target"), inside.values(), strict=True)) if len(inside) == 2 else {}
                texts = {**inside, **sides, **texts}
    return texts


def _check_size(name: str, number: int, line: bytes) -> None:
    if len(line) > MAX_RECORD_BYTES:
        raise SeqtoolError(
            f"{name}: line {number:,} is longer than {MAX_RECORD_BYTES >> 20} MiB, too much for one pair"
        )
