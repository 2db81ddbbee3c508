"""What a file is: one rule for every command. Its first bytes decide, and its name if they leave it open.

A file holds either plain lines, one side of a corpus, or pairs: TSV, TMX, CSV, JSON Lines, PO, or an archive of files.
"""

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath

from seqtool.corpus.reading.opening import read_chunks, without_compression
from seqtool.corpus.text import BYTE_ORDER_MARK
from seqtool.errors import SeqtoolError

LINES, TSV, TMX, CSV, JSONL, PO, ZIP, TAR = "lines", "TSV", "TMX", "CSV", "JSON Lines", "PO", "zip", "tar"
ARCHIVES = (ZIP, TAR)
SUFFIXES = {".tmx": TMX, ".csv": CSV, ".jsonl": JSONL, ".ndjson": JSONL, ".json": JSONL, ".po": PO, ".pot": PO}
SUFFIXES |= {".zip": ZIP, ".tar": TAR, ".tgz": TAR, ".txz": TAR, ".tzst": TAR}
SAMPLE_BYTES, SAMPLE_LINES = 1 << 16, 1000
TSV_SHARE = 0.9  # of the lines that are not blank must have a tab
JSON_LINES = 10  # that must be JSON objects if the name does not say so
UTF16 = (b"\xff\xfe", b"\xfe\xff")
PO_ENTRY = re.compile(rb'^msgid ".*^msgstr', re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class OpenFile:
    """A file that has been looked at: its form, and its bytes from the start."""

    name: str
    form: str
    chunks: Iterator[bytes]


def open_file(path: Path) -> OpenFile:
    """Open a file, plain or compressed, and recognise its form; it may be a pipe."""
    return recognise(str(path), read_chunks(path))


def recognise(name: str, chunks: Iterator[bytes]) -> OpenFile:
    """Recognise the form of a stream by its first bytes and its name."""
    head: list[bytes] = []
    size = 0
    for chunk in chunks:
        head.append(chunk)
        size += len(chunk)
        if size >= SAMPLE_BYTES:
            break
    sample = b"".join(head)
    return OpenFile(name, form_of(name, sample), itertools.chain([sample], chunks))


def form_of(name: str, sample: bytes) -> str:
    """Return the form of a file with this name that begins with these bytes."""
    named = SUFFIXES.get(_suffix(name), LINES)
    if sample.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return ZIP
    if sample[257:262] == b"ustar" or named == TAR:
        return TAR
    if named == ZIP:
        raise SeqtoolError(f"{name}: is no zip archive, despite its name; rename it, or copy or download it again")
    if named == TMX or _is_tmx(sample):
        return TMX
    lines = _first_lines(sample)
    if named == JSONL or _is_jsonl(lines):
        return JSONL
    if named == PO or PO_ENTRY.search(sample):
        return PO
    if lines and sum(b"\t" in line for line in lines) >= TSV_SHARE * len(lines):
        return TSV
    return named


def require_lines(file: OpenFile) -> None:
    """Raise if a file that should be one side of a corpus, one sentence per line, plainly is something else."""
    if file.form == LINES:
        return
    what = {
        TSV: "has a tab in nearly every line, so it is TSV, source and target in one file",
        TMX: "is TMX, source and target in one file",
        PO: "is PO, source and target in one file",
        CSV: "is CSV",
        JSONL: "is JSON",
        ZIP: "is an archive",
        TAR: "is an archive",
    }[file.form]
    raise SeqtoolError(
        f"{file.name}: {what}, but a text file with one sentence per line is needed. If it holds pairs, give it "
        "alone: as the corpus, as `valid`, `against` or `corpus`, or as the test set"
    )


def holds_pairs(path: Path) -> bool:
    """Return whether a file holds source and target; a pipe, which can be read only once, is judged by its name."""
    if not path.is_file():
        return _suffix(str(path)) == ".tsv" or _suffix(str(path)) in SUFFIXES
    return open_file(path).form != LINES


def _suffix(name: str) -> str:
    return without_compression(PurePath(name)).suffix.lower()


def _is_tmx(sample: bytes) -> bool:
    if sample.startswith(UTF16):
        sample = sample.replace(b"\0", b"")[2:]
    return sample.removeprefix(BYTE_ORDER_MARK).lstrip().startswith(b"<") and b"<tmx" in sample[:8192]


def _first_lines(sample: bytes) -> list[bytes]:
    lines = sample[: 8 * SAMPLE_BYTES].removeprefix(BYTE_ORDER_MARK).split(b"\n", SAMPLE_LINES + 1)
    if len(lines) > 1:
        lines.pop()  # cut off somewhere, or empty
    return [line for line in lines if line.strip(b" \r\n")]


def _is_jsonl(lines: list[bytes]) -> bool:
    return bool(lines) and all(_is_object(line) for line in lines[:JSON_LINES])


def _is_object(line: bytes) -> bool:
    if not line.lstrip().startswith(b"{"):
        return False
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
