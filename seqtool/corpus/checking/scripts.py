"""Which writing system the letters of a line belong to, by the names of Unicode's characters."""

import unicodedata
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from seqtool.corpus.reading.lines import LineBlock, Mask, Offsets
from seqtool.corpus.text import decode_strictly

MIN_LETTERS = 2  # in lines with fewer letters a script is no sign of a language

# Letters by name that are symbols by use: ordinal and modifier letters, letterlike and mathematical symbols.
SYMBOLS = [range(0xAA, 0xAB), range(0xB5, 0xBB), range(0x2B0, 0x300), range(0x2100, 0x2150), range(0x1D400, 0x1D800)]
# Chinese and Japanese share characters, so they count as one script.
EAST_ASIAN = "Chinese/Japanese"
FIRST_WORDS = {"CJK": EAST_ASIAN, "HIRAGANA": EAST_ASIAN, "KATAKANA": EAST_ASIAN, "BOPOMOFO": EAST_ASIAN}
# Where the name of the script ends in the name of a letter, as in "LATIN SMALL LETTER A".
STOP_WORDS = {"LETTER", "SMALL", "CAPITAL", "SYLLABLE", "SYLLABICS", "CHARACTER", "LIGATURE", "SIGN", "VOWEL"}
STOP_WORDS |= {"IDEOGRAPH"}


@dataclass(frozen=True)
class ScriptTable:
    """names[script_of[code]] is the script of a code point; script 0 is for all that is not a letter."""

    script_of: NDArray[np.uint8]
    names: list[str]


@dataclass(frozen=True)
class LineScripts:
    """dominant[i] is the script of most letters of line i (0: none); letters counts the letters of each script."""

    dominant: NDArray[np.uint8]
    letters: Offsets


@cache
def script_table() -> ScriptTable:
    """Work out the script of every letter, once per process."""
    script_of = np.zeros(0x110000, np.uint8)
    names = ["none", EAST_ASIAN, "Hangul"]
    numbers = {name: number for number, name in enumerate(names)}
    ranges = [(0x3400, 0xA000, 1), (0xAC00, 0xD7A4, 2), (0x20000, 0x40000, 1)]
    for low, high, number in ranges:
        script_of[low:high] = number
    for code in range(0x20000):
        if script_of[code] or unicodedata.category(chr(code))[0] != "L" or any(code in part for part in SYMBOLS):
            continue
        first, name = _script_name(unicodedata.name(chr(code), ""))
        name = first if first in numbers else name  # "Georgian Mtavruli" is Georgian, but "Old Italic" is not Old
        if name and name not in numbers and len(names) < 256:
            numbers[name] = len(names)
            names.append(name)
        script_of[code] = numbers.get(name, 0)
    return ScriptTable(script_of, names)


def _script_name(letter_name: str) -> tuple[str, str]:
    """Return the first word of the script's name and the whole of it, both empty for a letter without script."""
    words = letter_name.replace("-", " ").split()
    if words[:1] in (["HALFWIDTH"], ["FULLWIDTH"]):
        words = words[1:]
    if not words or words[0] == "MODIFIER":
        return "", ""
    if words[0] in FIRST_WORDS:
        return FIRST_WORDS[words[0]], FIRST_WORDS[words[0]]
    end = next((i for i, word in enumerate(words) if word in STOP_WORDS), 0)
    return words[0].title(), " ".join(words[:end]).title()


def find_scripts(block: LineBlock) -> LineScripts:
    """Find the dominant script of each line; a line that is not UTF-8 has none."""
    scripts, starts, ends = _letters_of(block)
    present = np.flatnonzero(np.bincount(scripts, minlength=256)[1:]) + 1
    letters = np.zeros(256, np.int64)
    dominant = np.zeros(len(block), np.uint8)
    total = _count_within(scripts != 0, starts, ends)
    for script in present.tolist():
        counts = _count_within(scripts == script, starts, ends) if len(present) > 1 else total
        letters[script] = counts.sum()
        dominant[(2 * counts > total) & (total >= MIN_LETTERS)] = script
    return LineScripts(dominant, letters)


def _count_within(mask: Mask, starts: Offsets, ends: Offsets) -> Offsets:
    sums = np.concatenate([[0], np.cumsum(mask)])
    counts: Offsets = sums[ends] - sums[starts]
    return counts


def _letters_of(block: LineBlock) -> tuple[NDArray[np.uint8], Offsets, Offsets]:
    """Return the script of each character of a block, and where in them each line starts and ends."""
    script_of = script_table().script_of
    if block.data.isascii():
        return np.frombuffer(block.data.translate(script_of[:256].tobytes()), np.uint8), block.starts, block.ends
    text = decode_strictly(block.data)
    if text is None:
        return _letters_of(
            LineBlock.from_lines([b"" if decode_strictly(line) is None else line for line in block.lines()])
        )
    codes = np.frombuffer(text.encode("utf-32-le"), "<u4")
    following = np.flatnonzero((np.frombuffer(block.data, np.uint8) & 0xC0) == 0x80)
    starts, ends = (places - np.searchsorted(following, places) for places in (block.starts, block.ends))
    return script_of[codes], starts, ends
