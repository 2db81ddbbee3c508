"""Corpora in archives: a pair of files, as Moses and OPUS have them, or one file with pairs, in a zip or tar archive.

Nothing is unpacked; each file is read as a stream. The tar reader is its own: that of the standard library believes
what a header says of its size and so can be made to fill the memory.
"""

import re
import struct
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath

from seqtool.corpus.reading.forms import SUFFIXES, ZIP
from seqtool.corpus.reading.opening import CHUNK_BYTES, read_chunks, readable
from seqtool.corpus.reading.records import LANGUAGE, Columns
from seqtool.errors import SeqtoolError

MAX_MEMBERS = 10_000
MAX_DIRECTORY_BYTES = 4 << 20  # of a zip archive's list of files, which is read at once
MAX_NAME_BYTES = 1 << 16
NOT_LANGUAGES = {"txt", "xml", "ids", "log", "md", "pdf", "doc", "rtf", "htm", "css", "xsl", "dtd", "sh", "py", "pl"}
NOT_LANGUAGES |= {"cfg", "ini", "gz", "bz2", "xz", "zip", "tar", "png", "jpg", "gif", "lic", "yml", "csv", "tsv", "tmx"}
BLOCK = 512  # of a tar archive


@dataclass(frozen=True)
class Member:
    """A file in an archive."""

    archive: Path
    form: str
    inner: str

    @property
    def name(self) -> str:
        return f"{self.archive}/{self.inner}"

    def chunks(self) -> Iterator[bytes]:
        """Yield its bytes."""
        return _zip_chunks(self) if self.form == ZIP else _tar_chunks(self)


def choose_members(path: Path, form: str, columns: Columns | None) -> list[Member]:
    """Return the two files of an archive that are source and target, or the one that holds pairs; raise if unclear."""
    if not path.is_file():
        raise SeqtoolError(f"{path}: an archive cannot be read from a pipe; write it to a file and name that")
    facts = path.stat()
    names = _names(path, form, facts.st_size, facts.st_mtime_ns)
    if columns and (pair := _match(path, names, columns)):
        return [Member(path, form, name) for name in pair]
    whole = [name for name in names if _is_corpus(name)]
    found = _aligned(names)
    if len(whole) + len(found) == 1:
        if whole:
            return [Member(path, form, whole[0])]
        if columns:
            raise _unclear(path, names, f"no two files in it end with .{columns[0]} and .{columns[1]}")
        if pair := _in_order(found[0]):
            return [Member(path, form, name) for name in pair]
        first, second = (PurePosixPath(name).suffix[1:] for name in found[0])
        raise _unclear(
            path, names, f"which language is the source? Write {path}:{first}:{second} or {path}:{second}:{first}"
        )
    reason = "no files in it are a corpus" if not whole and not found else "several files in it could be the corpus"
    raise _unclear(path, names, f"{reason}; name source and target after the archive, as in {path}:NAME.en:NAME.de")


def _unclear(path: Path, names: Sequence[str], what: str) -> SeqtoolError:
    listed = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    return SeqtoolError(f"{path}: {what}. It holds: {listed or 'nothing'}")


def _match(path: Path, names: Sequence[str], columns: Columns) -> list[str] | None:
    """Return the files that the columns name: by their whole name, or by how it ends."""
    chosen = []
    for wanted in columns:
        exact = [name for name in names if name == wanted or PurePosixPath(name).name == wanted]
        ending = exact or [name for name in names if name.lower().endswith("." + wanted.lower())]
        if len(ending) > 1:
            raise _unclear(path, ending, f"several files in it are '{wanted}'; give more of the name")
        chosen += ending
    return chosen if len(chosen) == 2 else None


def _is_corpus(name: str) -> bool:
    suffix = PurePosixPath(name).suffix.lower()
    return suffix == ".tsv" or suffix in SUFFIXES


def _aligned(names: Sequence[str]) -> list[list[str]]:
    """Return the groups of two files that differ in nothing but a language at the end of their names."""
    groups: dict[str, list[str]] = {}
    for name in names:
        stem, _, language = name.rpartition(".")
        if stem and LANGUAGE.fullmatch(language) and language.lower() not in NOT_LANGUAGES:
            groups.setdefault(stem, []).append(name)
    return [group for group in groups.values() if len(group) == 2]


def _in_order(pair: list[str]) -> list[str] | None:
    """Return source and target if the name says which is which, as in Books.en-it.en."""
    first, second = (PurePosixPath(name).suffix[1:] for name in pair)
    stem = PurePosixPath(pair[0]).stem
    for src, tgt, order in ((first, second, pair), (second, first, pair[::-1])):
        if re.search(rf"(^|\W){re.escape(src)}[-_]{re.escape(tgt)}$", stem):
            return order
    return None


@lru_cache(maxsize=16)
def _names(path: Path, form: str, size: int, modified: int) -> tuple[str, ...]:
    """Return the names of the files in an archive; size and time say whether it is still the same one."""
    names = []
    for name in _zip_names(path) if form == ZIP else (name for name, _ in _tar_members(path)):
        names.append(name)
        if len(names) > MAX_MEMBERS:
            raise SeqtoolError(f"{path}: holds more than {MAX_MEMBERS:,} files; unpack it and give the corpus itself")
    return tuple(names)


# zip


def _zip_names(path: Path) -> list[str]:
    with _open_zip(path) as archive:
        return [entry.filename for entry in archive.infolist() if not entry.is_dir()]


def _zip_chunks(member: Member) -> Iterator[bytes]:
    try:
        with readable(member.archive), _open_zip(member.archive) as archive, archive.open(member.inner) as file:
            while chunk := file.read(CHUNK_BYTES):
                yield chunk
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:  # damaged, or with a password
        raise SeqtoolError(
            f"{member.name}: cannot be read ({error}); unpack it and give the files themselves"
        ) from None


def _open_zip(path: Path) -> zipfile.ZipFile:
    with readable(path), open(path, "rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - (1 << 16) - 22))
        end = file.read()
    if _directory_bytes(end) > MAX_DIRECTORY_BYTES:
        raise SeqtoolError(f"{path}: its list of files is too long; unpack it and give the corpus itself")
    try:
        return zipfile.ZipFile(path)
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise SeqtoolError(f"{path}: the archive is damaged ({error}); copy or download it again") from None


def _directory_bytes(end: bytes) -> int:
    """Return the size of the list of files by the end of the archive, as the standard library will find it."""
    place = len(end) - 22 if end[-22:].startswith(b"PK\x05\x06") else end.rfind(b"PK\x05\x06")
    if not 0 <= place <= len(end) - 22:
        return 0
    size: int = struct.unpack_from("<L", end, place + 12)[0]
    large = place - 20 - 56  # where a record with larger numbers stands, if there is one
    if large >= 0 and end[large:].startswith(b"PK\x06\x06"):
        size = struct.unpack_from("<Q", end, large + 40)[0]
    return size


# tar


class _TarStream:
    """The bytes of an archive, taken in the portions that its headers ask for."""

    def __init__(self, path: Path) -> None:
        self.path, self._chunks, self._rest = path, read_chunks(path), memoryview(b"")

    def pieces(self, size: int) -> Iterator[memoryview]:
        """Yield the next bytes in pieces of no more than a chunk; raise if there are fewer."""
        while size:
            if not self._rest:
                self._rest = memoryview(next(self._chunks, b""))
                if not self._rest:
                    raise SeqtoolError(f"{self.path}: the archive ends too early; copy or download it again")
            piece, self._rest = self._rest[:size], self._rest[size:]
            size -= len(piece)
            yield piece

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        return b"".join(self.pieces(size))

    @property
    def is_over(self) -> bool:
        """Return whether there is nothing more."""
        if not self._rest:
            self._rest = memoryview(next(self._chunks, b""))
        return not self._rest


def _tar_members(path: Path) -> Iterator[tuple[str, Iterator[memoryview]]]:
    """Yield the name and content of each file of an archive."""
    stream = _TarStream(path)
    name = ""  # from a record that goes before the header of a file with a long one
    while not stream.is_over and (header := stream.take(BLOCK)).strip(b"\0"):
        kind, size = header[156:157], _tar_number(path, header[124:136])
        if sum(header) - sum(header[148:156]) + 8 * ord(" ") != _tar_number(path, header[148:156]):
            raise SeqtoolError(f"{path}: the archive is damaged; copy or download it again")
        padding = -size % BLOCK
        if kind in b"Lx":
            if size > MAX_NAME_BYTES:
                raise SeqtoolError(
                    f"{path}: the archive has a name of {size:,} bytes; unpack it and give the corpus itself"
                )
            content = stream.take(size + padding)[:size]
            name = _long_name(content) if kind == b"x" else content.rstrip(b"\0").decode("utf-8", "replace")
            continue
        if kind in b"0\0":
            content_pieces = stream.pieces(size)
            yield name or _tar_name(header), content_pieces
            for _ in content_pieces:  # what the reader left
                pass
            stream.take(padding)
        else:
            for _ in stream.pieces(size + padding):
                pass
        name = ""


def _tar_number(path: Path, field: bytes) -> int:
    try:
        if field[0] & 0x80:
            return int.from_bytes(field[1:], "big")
        return int(field.strip(b"\0 ") or b"0", 8)
    except ValueError:
        raise SeqtoolError(f"{path}: the archive is damaged; copy or download it again") from None


def _tar_name(header: bytes) -> str:
    name, prefix = header[:100].split(b"\0")[0], header[345:500].split(b"\0")[0]
    joined = prefix + b"/" + name if prefix and header[257:263] == b"ustar\0" else name
    return joined.decode("utf-8", "replace")


def _long_name(records: bytes) -> str:
    match = re.search(rb"(?:^|\n)\d+ path=([^\n]*)\n", records)
    return match[1].decode("utf-8", "replace") if match else ""


def _tar_chunks(member: Member) -> Iterator[bytes]:
    for name, pieces in _tar_members(member.archive):
        if name == member.inner:
            for piece in pieces:
                yield bytes(piece)
            return
    raise SeqtoolError(f"{member.name}: is not in the archive any more; was it changed while it was read?")
