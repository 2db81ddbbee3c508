"""Where sentences end: rules for the marks of many scripts, without knowing the language.

    split_sentences("Dr. Smith paid 3.50. He left.")  # ["Dr. Smith paid 3.50. ", "He left."]

In doubt there is no end: two sentences in one piece may lose a word, but half a sentence is always translated badly.
A splitter that depends on a language's own statistics needs to know the language, which seqtool never does.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Any

from seqtool.corpus.abbreviations import ALWAYS, BEFORE_NUMBERS, BEFORE_ORDINALS, BEGINNINGS, MONTHS, PERHAPS

SINGLE_SHARE = 0.95  # of the lines; a model that saw fewer with several sentences leaves some of them out

_CLOSERS = "\"'”’»›)\\]』」）】》〉"
_OPENERS = "\"'“”‘’„‚«‹»›(\\[{¿¡「『（【《〈–—\\-"
# Marks that need white space after them (3.14, example.org), and those that need none. A match begins at the first of
# several marks and gives none of them back, so that fifty thousand full stops take no longer than other text.
_LATIN = ".!?…‼⁇⁈⁉։"
_OTHERS = "。！？｡．؟۔।॥።။។"
_END = re.compile(rf"(?<![{_LATIN}])[{_LATIN}]++[{_CLOSERS}]*+\s+|[{_OTHERS}]++[{_OTHERS}{_LATIN}]*+[{_CLOSERS}]*+\s*")
_FOLLOWING = re.compile(rf"[{_OPENERS}\s]*+(\w+)?")
_BEFORE = re.compile(r"[^\s()\[\]\"'„“”«»‚‘’]*\Z")
_WORD_BEFORE = re.compile(r"(\w+)\W+\Z")
_DOTTED = re.compile(r"(?:\w\.)+\w\Z")  # such as e.g, z.B, U.S
_BRACKETS = {"(": ")", "（": "）", "「": "」", "『": "』", "【": "】", "《": "》"}
_ANY_BRACKET = re.compile("[()（）「」『』【】《》]")
_GOES_ON = "とって、，"  # what follows a quotation in the same Japanese or Chinese sentence
_LOOK_BACK = 40  # characters; no abbreviation is longer


def split_sentences(text: str) -> list[str]:
    """Cut a text into its sentences, each with the white space that follows it; joined, they are the text."""
    pieces, start = [], 0
    brackets = _Brackets(text)
    for match in _END.finditer(text):
        if match.end() < len(text) and not brackets.hold(text, start, match) and _is_end(text, start, match):
            pieces.append(text[start : match.end()])
            start = match.end()
    return [*pieces, text[start:]] if start < len(text) else pieces


def has_single_sentences(text: Mapping[str, Any] | None) -> bool:
    """Return whether a corpus whose text was measured (None: it was not) has hardly a line with several sentences."""
    share = (text or {}).get("single_sentences")
    return isinstance(share, int | float) and share >= SINGLE_SHARE


def count_sentences(text: str) -> int:
    """Return the number of sentences in a text."""
    return len(split_sentences(text))


class _Brackets:
    """The places of a text that lie between a bracket and its counterpart."""

    def __init__(self, text: str) -> None:
        spans = sorted(_outer_brackets(text)) if _ANY_BRACKET.search(text) else []
        self._starts = [start for start, _ in spans]
        self._ends = [end for _, end in spans]

    def hold(self, text: str, start: int, match: re.Match[str]) -> bool:
        """Return whether a mark is in brackets that end later, or that are inside the sentence from `start`."""
        index = bisect_right(self._starts, match.start()) - 1
        if index < 0 or match.start() > self._ends[index]:
            return False
        is_last = self._ends[index] < match.end()
        is_amid = text[self._starts[index]] in "(（" and text[start : self._starts[index]].strip() != ""
        return not is_last or is_amid


def _outer_brackets(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each outermost pair of brackets begins and ends; those without a counterpart are passed over."""
    open_: list[tuple[str, int]] = []
    for match in _ANY_BRACKET.finditer(text):
        char = match.group()
        if char in _BRACKETS:
            open_.append((_BRACKETS[char], match.start()))
        elif open_ and open_[-1][0] == char:
            _, start = open_.pop()
            if not open_:
                yield start, match.start()


def _is_end(text: str, start: int, match: re.Match[str]) -> bool:
    """Return whether a mark, with white space and more text after it, ends the sentence that began at `start`."""
    marks = match.group().rstrip()
    following = _FOLLOWING.match(text, match.end())
    assert following is not None
    word = following.group(1) or ""
    if marks[0] in _OTHERS:
        is_number = marks == "．" and text[max(0, match.start() - 1)].isdigit() and word[:1].isdigit()
        return not is_number and not (marks[-1] in _CLOSERS and text[match.end()] in _GOES_ON)
    if not word or word[0].islower():
        return False
    if marks.rstrip(_CLOSERS.replace("\\", "")) != ".":
        return True
    place = match.start()
    return _full_stop_ends(text[max(start, place - _LOOK_BACK) : place], word, is_whole=place - start <= _LOOK_BACK)


def _full_stop_ends(text: str, following: str, *, is_whole: bool) -> bool:
    """Tell a full stop from the one of an abbreviation, an initial or an ordinal by the words around it.

    `text` is what the sentence says before it; all of that, or the end.
    """
    found = _BEFORE.search(text)
    before = found.group() if found else ""
    word, rest = before.lower(), text[: len(text) - len(before)]
    if not before:
        return True
    if before.isdigit() and len(before) <= 2:
        return not _is_ordinal(rest, following, is_first=is_whole and not rest.strip())
    if word in ALWAYS or (word in BEFORE_NUMBERS and following[0].isdigit()):
        return False
    if word in PERHAPS or (_DOTTED.match(word) and before.isupper()):
        return following.lower() in BEGINNINGS
    if _DOTTED.match(word):
        return word in ("a.m", "p.m")
    return not (len(before) == 1 and before.isalpha())


def _is_ordinal(text: str, following: str, *, is_first: bool) -> bool:
    """Return whether a short number with a full stop is an ordinal, or the number of a paragraph."""
    before = _WORD_BEFORE.search(text)
    lead = before.group(1).lower() if before else ""
    return is_first or lead in BEFORE_ORDINALS or following.lower() in MONTHS
