"""Opens a text file, plain or compressed, as a stream of byte chunks. Knows nothing of lines."""

import contextlib
import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import IO

from seqtool.errors import SeqtoolError

CHUNK_BYTES = 1 << 19
ZSTD_PIECE_BYTES = 1 << 10  # compressed bytes taken at once, few because they may expand thirty thousandfold

# No UTF-8 text starts with one of these, so a compressed file is known whatever its name.
MAGIC = {b"\x1f\x8b\x08": ".gz", b"\xfd7zXZ\x00": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}
SKIPPABLE_FRAME = b"\x2a\x4d\x18"  # after one free byte; pzstd begins its files with such a frame


def read_chunks(path: Path) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file in chunks; raise SeqtoolError if it cannot be read."""
    with readable(path), open(path, "rb") as file:
        kind = compression_of(path, file)
        if kind == ".gz":
            yield from _parts_of(gzip.GzipFile(fileobj=file))
        elif kind == ".xz":
            with lzma.LZMAFile(file) as stream:
                yield from _parts_of(stream)
        elif kind == ".zst":
            yield from _zstd_chunks(file)
        else:
            yield from _parts_of(file)


def _parts_of(stream: IO[bytes] | gzip.GzipFile | lzma.LZMAFile) -> Iterator[bytes]:
    while chunk := stream.read(CHUNK_BYTES):
        yield chunk


@contextlib.contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn what can go wrong in reading a file into an error that names it."""
    try:
        yield
    except FileNotFoundError:
        raise SeqtoolError(f"{path}: no such file; check the path") from None
    except IsADirectoryError:
        raise SeqtoolError(f"{path}: is a folder, but a text file is needed") from None
    except PermissionError:
        raise SeqtoolError(f"{path}: no permission to read this file; change it with 'chmod u+r {path}'") from None
    except EOFError:
        raise SeqtoolError(f"{path}: the compressed file ends too early; copy or download it again") from None
    except (zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise SeqtoolError(f"{path}: the compressed file is damaged ({error}); copy or download it again") from None
    except OSError as error:
        raise SeqtoolError(f"{path}: cannot be read ({error.strerror or error})") from None


def compression_of(path: Path, file: io.BufferedReader) -> str:
    """Return ".gz", ".xz", ".zst" or "" by the first bytes, which a file's name must not contradict."""
    start = file.peek(8)[:8]
    kind = next((kind for magic, kind in MAGIC.items() if start.startswith(magic)), "")
    if path.suffix == ".zst" and start[1:4] == SKIPPABLE_FRAME:
        return ".zst"
    if not kind and path.suffix in MAGIC.values():
        problem = "is empty" if not start else "does not hold compressed data"
        raise SeqtoolError(f"{path}: {problem}, despite its name; rename it, or copy or download it again")
    return kind


def without_compression(path: PurePath) -> PurePath:
    """Return a path without the suffix of a compression: train.en for train.en.gz."""
    return path.with_suffix("") if path.suffix.lower() in MAGIC.values() else path


def _zstd_chunks(file: IO[bytes]) -> Iterator[bytes]:
    import zstandard

    parts: list[bytes] = []
    size = 0
    frame = None
    try:
        while piece := file.read(ZSTD_PIECE_BYTES):
            while piece:
                frame = frame or zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj()
                parts.append(frame.decompress(piece))
                size += len(parts[-1])
                piece = b""
                if frame.eof:  # another frame may follow
                    piece, frame = frame.unused_data, None
            if size >= CHUNK_BYTES:
                yield b"".join(parts)
                parts, size = [], 0
    except zstandard.ZstdError as error:
        raise zlib.error(str(error)) from None
    if frame is not None:
        raise EOFError
    if size:
        yield b"".join(parts)
