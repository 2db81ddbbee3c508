"""Over-long lines: cut at sentence ends, else clause ends, else spaces, else between characters; and joined again."""

import re
import unicodedata
from collections.abc import Callable

CountTokens = Callable[[list[str]], list[int]]  # the number of tokens of each of several texts

# A sentence ends in one of these marks and its closing quotes or brackets. Latin marks need a space after them
# (3.14, example.org); the full-width ones do not. A match begins at the first of several marks and gives none of them
# back, so that a line of fifty thousand full stops takes no longer than any other.
_CLOSERS = "\"'”’»)\\]』」）"
_SENTENCE_END = re.compile(rf"(?:(?<![.!?…])[.!?…]++[{_CLOSERS}]*+\s+|[。！？｡]+[{_CLOSERS}]*\s*)")
_CLAUSE_END = re.compile(rf"(?:(?<![,;:—–])[,;:—–]++[{_CLOSERS}]*+\s+|[、，；：]+\s*)")
_SPACE = re.compile(r"\s+")

# Scripts that put no space between sentences: kana, Han, Thai, Lao, Myanmar, Khmer, full-width forms.
_SPACELESS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff01-\uff60"
    "\U00020000-\U0003ffff]"
)
_MIN_TOKENS = 6  # a shorter sentence is kept together with its neighbour


def split_text(text: str, count_tokens: CountTokens, limit: int) -> list[str]:
    """Cut a text into parts of at most `limit` tokens each; nothing but white space between the parts is lost.

    Every sentence becomes a part of its own, because that is what models are trained on; only within a sentence
    that is too long are the pieces packed as full as they may be.
    """
    sentences = [part for part in cut_at(text, _SENTENCE_END, is_sentence_end) if part.strip()]
    packed = [sentence for sentence, _ in pack(sentences, count_tokens(sentences), _MIN_TOKENS, limit)]
    parts: list[str] = []
    # Joined sentences may come out as other tokens than they did alone, so what was packed is counted again.
    for sentence, size in zip(packed, count_tokens(packed), strict=True):
        parts += [sentence] if size <= limit else _split_long(sentence, count_tokens, limit)
    return parts


def split_sentences(text: str) -> list[str]:
    """Cut a text after each end of a sentence and the white space that follows it; nothing is lost."""
    return [part for part in cut_at(text, _SENTENCE_END, is_sentence_end) if part]


def join_parts(parts: list[str]) -> str:
    """Put the translations of a line's parts together, with a space where the script uses one."""
    joined = ""
    for part in parts:
        joined += separator(joined, part) + part
    return joined


def separator(before: str, after: str) -> str:
    """Return what stands between two translations that belong together: a space where the script uses one."""
    return " " if before and after and not (is_spaceless(before[-1]) and is_spaceless(after[0])) else ""


def is_spaceless(char: str) -> bool:
    """Tell whether a character is of a script that puts no space between words or sentences."""
    return _SPACELESS.match(char) is not None


def cut_at(text: str, end: re.Pattern[str], is_end: Callable[[str, re.Match[str]], bool]) -> list[str]:
    """Cut a text after each match that counts as an end."""
    parts, start = [], 0
    for match in end.finditer(text):
        if is_end(text, match):
            parts.append(text[start : match.end()])
            start = match.end()
    return [*parts, text[start:]]


def is_sentence_end(text: str, match: re.Match[str]) -> bool:
    """Tell a full stop from the one of an abbreviation: what follows is no small letter, what precedes no 'Dr'."""
    following = text[match.end() : match.end() + 1]
    if following.islower():
        return False
    if not match.group().startswith("."):
        return True
    word = re.search(r"\w*\Z", text[max(0, match.start() - 30) : match.start()])
    before = word.group() if word else ""
    return len(before) > 3 or before.islower() or not before.isalpha()


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
    pieces = [piece for piece in cut_at(text, (_CLAUSE_END, _SPACE)[level], lambda *_: True) if piece]
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
    """Tell whether a character is an accent, a variation selector, or joined to the one before it."""
    joiner = "\u200d"
    return unicodedata.category(text[index]).startswith("M") or joiner in (text[index], text[index - 1])
