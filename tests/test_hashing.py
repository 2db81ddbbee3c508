"""Hashes of lines, and the table of hashes against a Python set."""

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from seqtool.corpus.cleaning.hashing import HashTable, hash_lines, hash_pairs
from seqtool.corpus.reading.lines import LineBlock


def hash_all(lines: list[bytes]) -> list[int]:
    block = LineBlock.from_lines(lines)
    return hash_lines(block.data, block.starts, block.ends).tolist()


@given(st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"")), max_size=20), st.randoms())
def test_a_hash_depends_on_the_bytes_of_the_line_alone(lines, rng):
    alone = {line: hash_all([line])[0] for line in lines}
    shuffled = rng.sample(lines, len(lines))
    assert hash_all(shuffled) == [alone[line] for line in shuffled]
    assert len(set(alone.values())) == len(alone)


def test_lines_that_differ_little_have_different_hashes():
    base = b"A man in a black shirt is singing into a microphone."
    near = {base[:i] + bytes([byte]) + base[i + 1 :] for i in range(len(base)) for byte in range(256) if byte != 10}
    near |= {base[:i] + base[i + 1 :] for i in range(len(base))} | {base[:i] for i in range(len(base))}
    near |= {bytes(n) for n in range(100)}  # zeros, which padding must not hide
    near |= {base[8:16] + base[:8] + base[16:], base[16:24] + base[8:16] + base[:8] + base[24:]}  # swapped words
    assert len(set(hash_all(sorted(near)))) == len(near)


def test_every_bit_of_a_hash_is_set_about_half_the_time():
    hashes = np.array(hash_all([b"%d" % n for n in range(20000)]), np.uint64)
    shares = [float(((hashes >> np.uint64(bit)) & np.uint64(1)).mean()) for bit in range(64)]
    assert min(shares) > 0.48
    assert max(shares) < 0.52


def test_a_pair_is_not_its_mirror_image():
    src, tgt = (np.array(hash_all(lines), np.uint64) for lines in ([b"a", b"b", b"c"], [b"b", b"a", b"c"]))
    assert len({*hash_pairs(src, tgt).tolist(), *hash_pairs(tgt, src).tolist()}) == 3


def mix_by_hand(value: int) -> int:
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        value = (value ^ value >> 33) * factor % 2**64
    return value ^ value >> 33


def hash_by_hand(line: bytes) -> int:
    words = [int.from_bytes(line[i : i + 8], "little") for i in range(0, len(line), 8)]
    total = sum(mix_by_hand((word + i * 0x9E3779B97F4A7C15) % 2**64) for i, word in enumerate(words))
    return mix_by_hand((total + len(line) * 0xD6E8FEB86659FD93) % 2**64)


@given(st.binary(max_size=50).map(lambda line: line.replace(b"\n", b"")))
def test_a_hash_is_what_plain_arithmetic_gives(line):
    assert hash_all([b"before", line, b"after"])[1] == hash_by_hand(line)


blocks_of_hashes = st.lists(
    st.lists(st.one_of(st.integers(0, 8), st.integers(0, 2**64 - 1), st.just(2**64 - 1)), max_size=40), max_size=10
)


@given(blocks_of_hashes, st.sampled_from([8, 64, 1 << 16]))
@settings(deadline=None)
def test_the_table_finds_the_repeats_that_a_set_finds(blocks, capacity):
    table, seen = HashTable(capacity=capacity), set()
    for block in blocks:
        expected = []
        for value in block:
            value = max(value, 1)  # the table takes 0 for 1
            expected.append(value in seen)
            seen.add(value)
        assert table.add(np.array(block, np.uint64)).tolist() == expected
    assert table.count == len(seen)


def test_the_table_grows_and_remembers_first_numbers():
    rng = random.Random(1)
    table, first = HashTable(with_numbers=True, capacity=16), {}
    values = [rng.choice([rng.getrandbits(64), rng.randrange(1, 500)]) for _ in range(30000)]
    for start in range(0, len(values), 1000):
        part = values[start : start + 1000]
        numbers = np.arange(start, start + 1000, dtype=np.uint32)
        expected = []
        for number, value in zip(numbers.tolist(), part, strict=True):
            expected.append(value in first)
            first.setdefault(value, number)
        hashes = np.array(part, np.uint64)
        assert table.add(hashes, numbers).tolist() == expected
        assert table.numbers_of(hashes).tolist() == [first[value] for value in part]
    assert len(table.slots) * 8 < 24 * table.count
