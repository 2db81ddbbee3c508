"""A paragraph with markup in it: its sentences are translated, and the markup is put back around the same words."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from seqtool.corpus.sentences import split_sentences
from seqtool.corpus.text import clean_text
from seqtool.translation.documents.placing import Markup, Origins, place
from seqtool.translation.documents.word_units import find_units
from seqtool.translation.results import Translation
from seqtool.translation.splitting import separator

# What a reader sees as one space, and what may not be in a line that is translated. Not the no-break space.
_SPACES = re.compile("[\0\t\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029 ]+")
_BREAKS = frozenset({"br"})  # objects that divide words as a space does
_LONGEST_OBJECT = 2000  # characters; a longer element without text stays a pair of tags


class _Open(NamedTuple):
    """An opening tag, and how much there was of everything before it."""

    name: str
    at: int
    raw: int
    markup: int
    space: str


class InlineText:
    """Text and markup that belong together; texts and tags are added in order, then it is finished and written."""

    def __init__(self, escape: Callable[[str], str] = str) -> None:
        """Begin a text; `escape` writes text in the document's format."""
        self.sentences: list[str] = []  # to translate; none if there is nothing that has letters
        self._escape = escape
        self._raw: list[str] = []
        self._words: list[str] = []  # with a space as an item of its own between two of them
        self._length = 0
        self._space = ""  # what has been read since the last word
        self._lead = ""
        self._trail = ""
        self._has_objects = False
        self._markup: list[Markup] = []
        self._open: list[_Open] = []
        self._text = ""
        self._starts: list[int] = []  # of the sentences

    def add_text(self, raw: str, text: str) -> None:
        """Add text as it is written, and as it reads."""
        self._raw.append(raw)
        done = 0
        for space in _SPACES.finditer(text):
            self._add_word(text[done : space.start()])
            self._add_space(space.group())
            done = space.end()
        self._add_word(text[done:])

    def add_tag(self, raw: str, name: str, *, closing: bool = False) -> None:
        """Add the opening or closing tag of an element; one without text in it becomes an object."""
        if not closing:
            self._open.append(_Open(name, self._length, len(self._raw), len(self._markup), self._trail))
        self._raw.append(raw)
        self._markup.append(Markup("close" if closing else "open", raw, name, self._length))
        if not closing or not self._open:
            return
        opened = self._open.pop()
        if opened.name != name:
            self._open.clear()
        elif opened.at == self._length and sum(map(len, self._raw[opened.raw :])) <= _LONGEST_OBJECT:
            del self._markup[opened.markup :]
            self._add_object("".join(self._raw[opened.raw :]), name, opened.space)

    def add_object(self, raw: str, name: str = "") -> None:
        """Add what has no text to translate and stands in the text like a word, or like nothing."""
        self._raw.append(raw)
        self._add_object(raw, name, self._trail)
        if name in _BREAKS:
            self._space = self._space or " "

    def _add_object(self, raw: str, name: str, space: str) -> None:
        self._markup.append(Markup("object", raw, name, self._length, space_before=space))
        self._has_objects = True
        self._trail = ""

    def _add_word(self, word: str) -> None:
        if not self._words or word.isspace():  # no-break spaces, for instance
            text = word.lstrip()
            if len(text) < len(word):
                self._add_object(self._escape(word[: len(word) - len(text)]), "", self._trail)
            word = text
        if not word:
            return
        if self._space and self._words:
            self._words.append(" ")
            self._length += 1
        self._space = self._trail = ""
        self._words.append(word)
        self._length += len(word)

    def _add_space(self, space: str) -> None:
        last = self._markup[-1] if self._markup else None
        if last and last.kind == "object" and last.at == self._length and not last.space_after:
            last.space_after = space
        if self._words:
            self._space = self._trail = space
        elif not self._has_objects:
            self._lead = self._lead or space

    @property
    def raw(self) -> str:
        """All as it was written."""
        return "".join(self._raw)

    @property
    def is_empty(self) -> bool:
        """True if nothing visible has been added so far."""
        return not self._words

    def finish(self) -> "InlineText":
        """Find the sentences; nothing is added after that."""
        self._text = "".join(self._words)
        start = 0
        for sentence in split_sentences(self._text) if any(map(str.isalpha, self._text)) else []:
            if clean_text(sentence):
                self.sentences.append(sentence.strip())
                self._starts.append(start + len(sentence) - len(sentence.lstrip()))
            start += len(sentence)
        return self

    def write(self, translations: Sequence[Translation]) -> str:
        """Return the translations of the sentences with the markup in them, or all as it was if there are none."""
        if not self.sentences:
            return self.raw
        units: list[tuple[str, str]] = []  # each with what separates it from the one before
        origins = Origins([], [], [])
        before = ""
        for sentence, start, translation in zip(self.sentences, self._starts, translations, strict=True):
            text = translation.text
            scale = len(sentence) / max(1, len(text))
            done = -1
            for unit in find_units(sentence, translation):
                word = text[unit.start : unit.end]
                units.append((separator(before, word) if done < 0 else text[done : unit.start], word))
                origins.places.append(start + unit.source)
                origins.weights.append(unit.weight)
                origins.in_proportion.append(start + (unit.start + unit.end) / 2 * scale)
                before, done = word, unit.end
        writer = _Writer(units, self._escape, self._lead)
        for event in place(self._text, self._markup, origins):
            writer.write(event)
        return "".join(writer.parts) + self._trail


class _Writer:
    """Writes units and markup, with the space between units before opening tags and after closing ones."""

    def __init__(self, units: list[tuple[str, str]], escape: Callable[[str], str], lead: str) -> None:
        self.parts = [lead]
        self._units = units
        self._escape = escape
        self._next = 0
        self._spaced = True  # nothing is before it, or a space
        self._separated = False  # the space between the last unit and the next one is written
        self._owed = ""  # the space that an object needs after it

    def write(self, event: int | Markup) -> None:
        """Write the next unit or the next markup."""
        if isinstance(event, int):
            self._separate()
            self.parts.append(self._escape(self._units[event][1]))
            self._next, self._spaced, self._separated = event + 1, False, False
        elif event.kind == "object":
            self._write_object(event)
        else:
            if event.kind == "open":
                self._separate()
            self.parts.append(event.raw)

    def _separate(self) -> None:
        space = "" if self._separated or self._next == len(self._units) else self._units[self._next][0]
        self._put_space(self._owed or space)
        self._owed, self._separated = "", True

    def _put_space(self, space: str) -> None:
        if space and not self._spaced:
            self.parts.append(self._escape(space))
            self._spaced = True

    def _write_object(self, event: Markup) -> None:
        if event.space_before:
            self._put_space(event.space_before)
            self._owed, self._separated = "", True
        elif event.name in _BREAKS:
            self._separated = True
        elif not event.space_after:
            self._separate()
        self.parts.append(event.raw)
        self._spaced = False
        if event.space_after:
            self._owed, self._separated = event.space_after, True
