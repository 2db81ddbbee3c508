"""Measures lines by the thousand, straight from the bytes: validity, characters, words, control characters, hashes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seqtool.corpus.cleaning.hashing import Hashes, hash_lines
from seqtool.corpus.reading.lines import LineBlock, Mask, Offsets, PairBlock
from seqtool.corpus.text import clean_text, decode_strictly

Codes = NDArray[np.uint8]


@dataclass(frozen=True)
class Measures:
    """One entry per line. White space around a line counts neither as characters nor in its hash."""

    invalid: Mask  # not UTF-8; its other entries mean little
    control: Mask  # holds a control character: C0 except the tab, DEL, C1, or a Unicode line or paragraph separator
    blank: Mask  # nothing in it can be seen: only white space, control characters and marks without width
    chars: Offsets
    words: Offsets  # as white space separates them
    hashes: Hashes

    def part(self, start: int, step: int) -> "Measures":
        """Return every step-th entry from start on."""
        parts = (self.invalid, self.control, self.blank, self.chars, self.words, self.hashes)
        return Measures(*(array[start::step] for array in parts))  # type: ignore[arg-type]


def measure_pairs(block: PairBlock) -> tuple[Measures, Measures]:
    """Measure the source and the target lines of a block."""
    src, tgt = block.src, block.tgt
    if src.data is not tgt.data:
        return measure_lines(src), measure_lines(tgt)
    # Both columns of a TSV file lie in one buffer; measured as one run of lines it is walked through only once.
    starts = np.stack([src.starts, tgt.starts], axis=1).ravel()
    ends = np.stack([src.ends, tgt.ends], axis=1).ravel()
    both = measure_lines(LineBlock(src.data, starts, ends))
    return both.part(0, 2), both.part(1, 2)


def measure_lines(block: LineBlock) -> Measures:
    """Measure each line of a block; between two lines there must be at least one byte of ASCII white space."""
    codes = np.frombuffer(block.data, np.uint8)
    is_ascii = block.data.isascii()
    space = _ascii_space(codes)
    word_starts = np.flatnonzero(~space & np.concatenate([[True], space[:-1]]))
    word_ends = np.flatnonzero(~space & np.concatenate([space[1:], [True]])) + 1
    first_word = np.searchsorted(word_starts, block.starts)
    next_word = np.searchsorted(word_starts, block.ends)
    words = next_word - first_word
    blank = words == 0
    starts, ends = block.starts.copy(), block.starts.copy()  # of the line without the white space around it
    starts[~blank] = word_starts[first_word[~blank]]
    ends[~blank] = word_ends[next_word[~blank] - 1]
    chars = ends - starts
    if not is_ascii:
        following = np.flatnonzero((codes & 0xC0) == 0x80)  # bytes of a character after its first
        chars = chars - (np.searchsorted(following, ends) - np.searchsorted(following, starts))
    blank |= _is_unicode_blank(block, codes, starts, ends)
    return Measures(
        invalid=_find_invalid(block),
        control=_mark_lines(block, find_controls(codes, is_ascii)),
        blank=blank,
        chars=chars,
        words=words,
        hashes=hash_lines(block.data, starts, ends),
    )


def find_controls(codes: Codes, is_ascii: bool = False) -> Offsets:
    """Return where control characters begin; "\\n" is taken for the end of a line and not reported."""
    low = codes < 0x20
    low &= codes != ord("\t")
    low &= codes != ord("\n")
    low |= codes == 0x7F
    places = np.flatnonzero(low)
    if is_ascii:
        return places
    c1 = np.flatnonzero(codes[:-1] == 0xC2)
    c1 = c1[(codes[c1 + 1] & 0xE0) == 0x80]
    separators = np.flatnonzero(codes[:-2] == 0xE2)
    separators = separators[(codes[separators + 1] == 0x80) & ((codes[separators + 2] & 0xFE) == 0xA8)]
    return np.sort(np.concatenate([places, c1, separators]))


def _ascii_space(codes: Codes) -> Mask:
    space = codes - np.uint8(9) < 5  # tab, newline, vertical tab, form feed, carriage return
    space |= codes == ord(" ")
    return space


def _mark_lines(block: LineBlock, places: Offsets) -> Mask:
    """Return True for the lines that one of the places lies in."""
    marked = np.zeros(len(block), bool)
    if len(places):
        lines = np.searchsorted(block.starts, places, side="right") - 1
        inside = (lines >= 0) & (places < block.ends[np.maximum(lines, 0)])
        marked[lines[inside]] = True
    return marked


def _find_invalid(block: LineBlock) -> Mask:
    if decode_strictly(block.data) is not None:  # then each line is valid, for a "\n" is never part of a character
        return np.zeros(len(block), bool)
    return np.array([decode_strictly(line) is None for line in block.lines()], bool)


def _is_unicode_blank(block: LineBlock, codes: Codes, starts: Offsets, ends: Offsets) -> Mask:
    """Return True for lines in which nothing can be seen; only those that begin with such a character are decoded."""
    padded = np.concatenate([codes, np.zeros(3, np.uint8)])
    first, second, third = (padded[starts + i] for i in range(3))
    candidates = (first < 0x20) | (first == 0x7F)
    candidates |= (first == 0xC2) & ((second <= 0xA0) | (second == 0xAD))
    candidates |= (first == 0xE1) & (second == 0x9A) & (third == 0x80)
    candidates |= (first == 0xE2) & ((second == 0x80) | (second == 0x81))
    candidates |= (first == 0xE3) & (second == 0x80) & (third == 0x80)
    candidates |= (first == 0xEF) & (second == 0xBB) & (third == 0xBF)
    blank = np.zeros(len(block), bool)
    for i in np.flatnonzero(candidates & (ends > starts)):
        blank[i] = not clean_text(decode_strictly(block.data[starts[i] : ends[i]]) or "?")
    return blank
