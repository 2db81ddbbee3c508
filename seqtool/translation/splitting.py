"""Texts cut into sentences, and these, if over-long, at clause ends, spaces or between characters; joined again."""

import re
import unicodedata
from collections.abc import Callable

from seqtool.corpus.sentences import split_sentences
from seqtool.corpus.text import clean_text

CountTokens = Callable[[list[str]], list[int]]  # the number of tokens of each of several texts

# A clause ends in one of these marks and its closing quotes or brackets. Latin marks need a space after them; the
# full-width ones do not. A match begins at the first of several marks and gives none of them back, so that a line of
# fifty thousand commas takes no longer than any other.
_CLOSERS = "\"'”’»)\\]』」）"
CLAUSE_END = re.compile(rf"(?:(?<![,;:—–])[,;:—–]++[{_CLOSERS}]*+\s+|[、，；：]+\s*)")
SPACE = re.compile(r"\s+")

# Scripts that put no space between sentences: kana, Han, Thai, Lao, Myanmar, Khmer, full-width forms.
_SPACELESS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff01-\uff60"
    "\U00020000-\U0003ffff]"
)
_WIDE_MARKS = "。！？．」』）】》"
_MIN_TOKENS = 6  # a shorter sentence is kept together with its neighbour


def split_text(text: str, count_tokens: CountTokens, limit: int) -> list[str]:
    """Cut a text into parts of at most `limit` tokens each; nothing but white space between the parts is lost.

    Every sentence becomes a part of its own, because that is what models are trained on; only within a sentence
    that is too long are the pieces packed as full as they may be.
    """
    sentences = [part for part in split_sentences(text) if part.strip()]
    packed = [sentence for sentence, _ in pack(sentences, count_tokens(sentences), _MIN_TOKENS, limit)]
    parts: list[str] = []
    # Joined sentences may come out as other tokens than they did alone, so what was packed is counted again.
    for sentence, size in zip(packed, count_tokens(packed), strict=True):
        parts += [sentence] if size <= limit else _split_long(sentence, count_tokens, limit)
    return parts


def cut_text(text: str, split: bool) -> list[tuple[str, str]]:
    """Cut a text at its line breaks, and with `split` into sentences; return each after the line breaks before it."""
    if not split and "\n" not in text:
        return [("", text)]
    found: list[tuple[str, str]] = []
    breaks = ""
    for line in text.split("\n"):
        for sentence in split_sentences(line) if split else [line]:
            if cleaned := clean_text(sentence):
                found.append((breaks if found else "", cleaned))
                breaks = ""
        breaks += "\n"
    return found


def join_parts(parts: list[str], breaks: list[str] | None = None) -> str:
    """Put a line's translated parts together, with their line breaks, else a space if the script has one."""
    joined = ""
    for part, gap in zip(parts, breaks or [""] * len(parts), strict=True):
        if gap:
            joined += gap
        elif not joined.endswith("\n"):
            joined += separator(joined, part)
        joined += part
    return joined


def separator(before: str, after: str) -> str:
    """Return what stands between two translations that belong together: a space if the script uses one."""
    if not (before and after) or before[-1] in _WIDE_MARKS:  # 。2019年に: a wide mark has its space in it
        return ""
    return "" if is_spaceless(before[-1]) and is_spaceless(after[0]) else " "


def is_spaceless(char: str) -> bool:
    """Return whether a character is of a script that puts no space between words or sentences."""
    return _SPACELESS.match(char) is not None


def cut_at(text: str, end: re.Pattern[str]) -> list[str]:
    """Cut a text after each match."""
    ends = [match.end() for match in end.finditer(text)]
    return [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True)]


def pack(parts: list[str], sizes: list[int], enough: int, limit: int) -> list[tuple[str, int]]:
    """Join neighbours while one of them has fewer than `enough` tokens and both together stay within the limit."""
    packed: list[tuple[str, int]] = []
    for part, size in zip(parts, sizes, strict=True):
        if packed and min(packed[-1][1], size) < enough and packed[-1][1] + size <= limit:
            before, before_size = packed.pop()
            packed.append((before + part, before_size + size))
        else:
            packed.append((part, size))
    return packed


def _split_long(text: str, count_tokens: CountTokens, limit: int, level: int = 0) -> list[str]:
    """Cut a text that is over the limit at the strongest ends that it has, and pack the pieces full."""
    if level == 2:
        return _split_anywhere(text, count_tokens, limit)
    pieces = [piece for piece in cut_at(text, (CLAUSE_END, SPACE)[level]) if piece]
    parts: list[str] = []
    for piece, size in pack(pieces, count_tokens(pieces), limit, limit):
        # Joined pieces may come out as other tokens than the pieces did, so what was packed is counted again.
        if size <= limit and count_tokens([piece])[0] <= limit:
            parts.append(piece)
        elif piece.strip():
            parts += _split_long(piece, count_tokens, limit, level + 1)
    return [part for part in parts if part.strip()]


def _split_anywhere(text: str, count_tokens: CountTokens, limit: int) -> list[str]:
    """Cut a text without spaces in halves until each fits, not between a letter and its accents if it can be helped."""
    if len(text) < 2 or count_tokens([text])[0] <= limit:
        return [text]
    middle = len(text) // 2
    cut = next((i for i in range(middle, min(middle + 32, len(text))) if not _belongs_to_previous(text, i)), middle)
    return _split_anywhere(text[:cut], count_tokens, limit) + _split_anywhere(text[cut:], count_tokens, limit)


def _belongs_to_previous(text: str, index: int) -> bool:
    """Return whether a character is an accent, a variation selector, or joined to the one before it."""
    joiner = "\u200d"
    return unicodedata.category(text[index]).startswith("M") or joiner in (text[index], text[index - 1])
