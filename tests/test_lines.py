"""Lines are cut on newlines only, whatever the pieces they come in, and none is lost or made up."""

import os
import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtool.durations import name_lines
from seqtool.errors import SeqtoolError
from seqtool.translation.lines import reading as module
from seqtool.translation.lines.reading import decode_line, file_blocks, live_blocks


def flat(blocks: Iterator[list[bytes]]) -> list[bytes]:
    return [line for block in blocks for line in block]


def expected_lines(content: bytes) -> list[bytes]:
    """What `wc -l` counts, and one more where the last line has no newline."""
    lines = content.split(b"\n")
    return lines[:-1] if lines[-1] == b"" else lines


def in_pieces(content: bytes, size: int) -> list[bytes]:
    return [content[start : start + size] for start in range(0, len(content), size)]


@given(st.binary(max_size=60), st.integers(1, 70))
def test_lines_do_not_depend_on_the_pieces_they_come_in(content: bytes, size: int) -> None:
    if not content.startswith(module.BYTE_ORDER_MARK):
        assert flat(file_blocks(in_pieces(content, size))) == expected_lines(content)


def test_only_a_newline_ends_a_line() -> None:
    content = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\rh\0i\n\nj\r\nlast".encode()
    expected = ["a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\rh\0i".encode(), b"", b"j\r", b"last"]
    assert flat(file_blocks([content])) == expected


def test_a_byte_order_mark_is_no_part_of_the_first_line() -> None:
    assert flat(file_blocks([b"\xef", b"\xbb\xbfa\n\xef\xbb\xbfb\n"])) == [b"a", b"\xef\xbb\xbfb"]


def test_a_line_without_an_end_is_refused_before_it_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_LINE_BYTES", 1 << 20)
    pieces = (piece for piece in [b"a\nb\n", *[b"x" * 100_000] * 100])
    with pytest.raises(SeqtoolError, match="line 3 is longer than 1 MiB"):
        list(file_blocks(pieces))
    assert sum(1 for _ in pieces) > 80


def test_blocks_are_bounded_and_the_same_for_any_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_LINES", 5)
    monkeypatch.setattr(module, "MAX_BYTES", 40)
    monkeypatch.setattr(module.LineBuffer.take, "__defaults__", (5, 40))
    content = b"\n" * 13 + b"x" * 100 + b"\n" + b"y" * 15 + b"\n" + b"z" * 15 + b"\nq\nlast"
    first = list(file_blocks([content]))
    assert [[len(line) for line in block] for block in first] == [[0] * 5, [0] * 5, [0] * 3, [100], [15, 15, 1, 4]]
    for size in (1, 7, 64):
        assert list(file_blocks(in_pieces(content, size))) == first


def test_a_pipe_is_answered_before_it_ends() -> None:
    reader, writer = os.pipe()
    blocks = live_blocks(reader)
    os.write(writer, b"first\nsecond\nunfin")
    assert next(blocks) == [b"first", b"second"]
    os.write(writer, b"ished\n")
    assert next(blocks) == [b"unfinished"]
    os.write(writer, b"no newline")
    os.close(writer)
    assert list(blocks) == [[b"no newline"]]
    os.close(reader)


def test_a_pipe_of_single_bytes_gives_whole_lines() -> None:
    content = "ä\n\nb\r\nlast".encode()
    reader, writer = os.pipe()

    def send() -> None:
        for byte in content:
            os.write(writer, bytes([byte]))
            time.sleep(0.001)
        os.close(writer)

    thread = threading.Thread(target=send)
    thread.start()
    assert flat(live_blocks(reader)) == expected_lines(content)
    thread.join()
    os.close(reader)


def test_a_full_pipe_gives_large_blocks() -> None:
    content = b"a line\n" * 9000
    reader, writer = os.pipe()

    def send() -> None:
        with os.fdopen(writer, "wb") as stream:
            stream.write(content)

    thread = threading.Thread(target=send)
    thread.start()
    sizes = [len(block) for block in live_blocks(reader, wait=1.0)]
    thread.join()
    os.close(reader)
    assert sizes == [4096, 4096, 808]


def test_a_carriage_return_at_the_end_is_left_out_and_bad_bytes_are_told() -> None:
    assert decode_line(b"abc\r") == ("abc", True)
    assert decode_line(b"a\rb\r\r") == ("a\rb\r", True)
    assert decode_line(b"a\xffb") == ("a\ufffdb", False)
    assert decode_line("\ud800".encode("utf-8", "surrogatepass"))[1] is False


def test_lines_are_named_in_ranges() -> None:
    assert name_lines([7]) == "line 7"
    assert name_lines([12, 3, 9, 10, 11]) == "lines 3, 9-12"
    assert name_lines([1000, 1001]) == "lines 1,000-1,001"
