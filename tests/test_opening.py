"""Plain and compressed files, and the files that cannot be read."""

import gzip
import lzma
import os
from pathlib import Path

import pytest
import zstandard

from seqtool.corpus.reading.opening import read_chunks
from seqtool.errors import SeqtoolError

TEXT = b"".join(b"Satz %d: \xc3\xbc\xe2\x80\xa8 und mehr\n" % n for n in range(3000))
COMPRESS = {"gz": gzip.compress, "xz": lzma.compress, "zst": zstandard.ZstdCompressor().compress}


def read_whole(path: Path) -> bytes:
    return b"".join(read_chunks(path))


@pytest.mark.parametrize("suffix", COMPRESS)
def test_a_compressed_file_reads_as_its_text(tmp_path, suffix):
    path = tmp_path / f"text.{suffix}"
    path.write_bytes(COMPRESS[suffix](TEXT))
    assert read_whole(path) == TEXT


@pytest.mark.parametrize("suffix", COMPRESS)
def test_compression_is_known_without_the_name(tmp_path, suffix):
    path = tmp_path / "text"
    path.write_bytes(COMPRESS[suffix](TEXT))
    assert read_whole(path) == TEXT


@pytest.mark.parametrize("suffix", COMPRESS)
def test_several_compressed_parts_in_one_file_are_all_read(tmp_path, suffix):
    path = tmp_path / f"text.{suffix}"
    path.write_bytes(COMPRESS[suffix](TEXT) + COMPRESS[suffix](b"") + COMPRESS[suffix](b"the end"))
    assert read_whole(path) == TEXT + b"the end"


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("left", [0.99, 0.5, 0.05])
def test_a_truncated_compressed_file_is_an_error_that_names_it(tmp_path, suffix, left):
    path = tmp_path / f"text.{suffix}"
    whole = COMPRESS[suffix](TEXT)
    path.write_bytes(whole[: int(len(whole) * left)])
    with pytest.raises(SeqtoolError, match=rf"text\.{suffix}: the compressed file"):
        read_whole(path)


@pytest.mark.parametrize("suffix", ["gz", "xz"])  # a zstd frame has no checksum unless it was asked for
def test_a_damaged_compressed_file_is_an_error_that_names_it(tmp_path, suffix):
    path = tmp_path / f"text.{suffix}"
    whole = bytearray(COMPRESS[suffix](TEXT))
    whole[len(whole) // 2] ^= 0xFF
    path.write_bytes(bytes(whole))
    with pytest.raises(SeqtoolError, match=rf"text\.{suffix}: the compressed file"):
        read_whole(path)


@pytest.mark.parametrize("content", [b"", b"plain text\n"])
def test_a_name_that_promises_compression_must_keep_it(tmp_path, content):
    path = tmp_path / "text.gz"
    path.write_bytes(content)
    with pytest.raises(SeqtoolError, match="despite its name"):
        read_whole(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(SeqtoolError, match=r"nothing\.en: no such file"):
        read_whole(tmp_path / "nothing.en")


def test_a_folder_is_named(tmp_path):
    with pytest.raises(SeqtoolError, match="is a folder"):
        read_whole(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_named(tmp_path):
    path = tmp_path / "secret.en"
    path.write_bytes(b"a\n")
    path.chmod(0)
    with pytest.raises(SeqtoolError, match=r"secret\.en: no permission"):
        read_whole(path)


def test_a_text_that_expands_enormously_comes_in_bounded_chunks(tmp_path):
    path = tmp_path / "zeros.zst"
    path.write_bytes(zstandard.ZstdCompressor().compress(bytes(200 << 20)))
    sizes = [len(chunk) for chunk in read_chunks(path)]
    assert sum(sizes) == 200 << 20
    assert max(sizes) <= 40 << 20


def test_a_zstd_file_may_begin_with_a_frame_to_skip(tmp_path):
    path = tmp_path / "text.zst"
    path.write_bytes(b"\x50\x2a\x4d\x18" + (3).to_bytes(4, "little") + b"abc" + COMPRESS["zst"](TEXT))
    assert read_whole(path) == TEXT
