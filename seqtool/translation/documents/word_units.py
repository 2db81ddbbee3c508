"""The words of a translation, each with the place in the source that it comes from.

Tokens are found in their text by their written form. What an alignment joins are tokens; what markup is put around are
units: tokens that belong to one word are one unit, punctuation is a unit of its own, and in scripts without spaces
each token is.
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from seqtool.corpus.tokenizer.interface import SPACE
from seqtool.translation.results import Translation
from seqtool.translation.splitting import is_spaceless

_BYTE = re.compile("<0x([0-9A-F]{2})>")
_IN_NUMBER = re.compile(r"\d[.,:]\d.?|.?\d[.,:]\d")  # around a place before or after the point of 3.14
_LOOKAHEAD = 24  # characters in which a token is searched whose tokenizer writes the text differently


class Unit(NamedTuple):
    """A stretch of a translation that markup does not divide."""

    start: int
    end: int
    source: float  # the place in the source text that it comes from
    weight: float  # how much it counts: half where it has no letter and no digit


def find_tokens(text: str, tokens: Sequence[str]) -> list[tuple[int, int]]:
    """Return where each token stands in a text; one that is not found there is empty and stands where it would be."""
    found: list[tuple[int, int]] = []
    position = 0
    for written, n_tokens in _join_bytes(tokens):
        body = written.replace(SPACE, " ").strip(" ")
        while position < len(text) and text[position] == " ":
            position += 1
        start = text.find(body, position, position + len(body) + _LOOKAHEAD) if body else position
        start, end = (position, position) if start < 0 else (start, start + len(body))
        found += [(start, end)] * n_tokens
        position = end
    return found


def _join_bytes(tokens: Sequence[str]) -> list[tuple[str, int]]:
    """Return each token and 1, but neighbouring bytes as the characters that they make, each with its bytes' number."""
    joined: list[tuple[str, int]] = []
    pending = bytearray()
    for token in [*tokens, ""]:
        byte = _BYTE.fullmatch(token)
        if byte:
            pending.append(int(byte[1], 16))
            continue
        if pending:
            characters = pending.decode("utf-8", "surrogateescape")
            joined += [(char, 1 if "\udc80" <= char <= "\udcff" else len(char.encode())) for char in characters]
            pending.clear()
        joined.append((token, 1))
    return joined[:-1]


def find_units(source: str, translation: Translation) -> list[Unit]:
    """Return the units of a translation's best text; without an alignment their places are in proportion."""
    text = translation.text
    tokens = find_tokens(text, translation.tokens)
    bounds = _find_bounds(text, tokens)
    if not translation.alignment:
        scale = len(source) / max(1, len(text))
        return [_make_unit(text, start, end, (start + end) / 2 * scale) for start, end in bounds]
    origins = find_tokens(source, translation.source_tokens)
    aligned = {tgt: origins[src] for src, tgt in translation.alignment if src < len(origins)}
    units: list[Unit] = []
    index = 0
    before = 0.0
    for start, end in bounds:
        votes: dict[float, float] = {}
        while index < len(tokens) and tokens[index][0] < end:
            if index in aligned:
                origin = sum(aligned[index]) / 2
                votes[origin] = votes.get(origin, 0.0) + tokens[index][1] - tokens[index][0] + 0.01
            index += 1
        before = max(votes, key=votes.__getitem__) if votes else before
        units.append(_make_unit(text, start, end, before))
    return units


def _make_unit(text: str, start: int, end: int, source: float) -> Unit:
    has_letters = any(char.isalnum() for char in text[start:end])
    return Unit(start, end, source, 1.0 if has_letters else 0.5)


def _find_bounds(text: str, tokens: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Cut a text at spaces, at punctuation, and at tokens of scripts without spaces; white space is left out."""
    token_starts = {start for start, _ in tokens}
    bounds: list[tuple[int, int]] = []
    start = 0
    for index in range(1, len(text) + 1):
        if index == len(text) or _is_bound(text, index, token_starts):
            if not text[start:index].isspace():
                bounds.append((start, index))
            start = index
    return bounds


def _is_bound(text: str, index: int, token_starts: set[int]) -> bool:
    before, after = text[index - 1], text[index]
    if before.isspace() or after.isspace():
        return before.isspace() != after.isspace()
    if is_spaceless(before) and is_spaceless(after):
        return index in token_starts
    if _is_word(before) and _is_word(after):
        return is_spaceless(before) != is_spaceless(after) or (
            before.isdigit() != after.isdigit() and index in token_starts  # m<sup>2</sup>
        )
    return index in token_starts and not _IN_NUMBER.fullmatch(text, max(0, index - 2), index + 2)


def _is_word(char: str) -> bool:
    return unicodedata.category(char)[0] in "LMN"
