"""Words of both languages, and how they become lines of text with a known alignment."""

from collections.abc import Iterable
from typing import NamedTuple

# A content word as (kind, English dictionary form), and two of them that belong together.
Key = tuple[str, str]
Combination = tuple[Key, Key]


class Mark:
    """Tells the words of one phrase from those of another; equal only to itself."""


class Concept(NamedTuple):
    """One content word of a sentence, shared by the English and the German words that express it.

    The mark belongs to the phrase that holds the word: two uses of the same noun are two concepts.
    """

    kind: str
    name: str
    mark: Mark

    @property
    def key(self) -> Key:
        """What is the same for every use of this content word."""
        return self.kind, self.name


class Word(NamedTuple):
    """A word as it is written, with the concept it expresses, if it is a content word."""

    text: str
    concept: Concept | None = None


COMMA = Word(",")


def to_words(text: str, concept: Concept | None = None) -> list[Word]:
    """Split a text at its spaces into words that all express one concept."""
    return [Word(part, concept) for part in text.split()]


def attach_punctuation(words: Iterable[Word], mark: str) -> list[Word]:
    """Glue commas and the final mark to the words before them, and begin with a capital letter."""
    glued: list[Word] = []
    for word in words:
        if word is not COMMA:
            glued.append(word)
        elif not glued[-1].text.endswith(","):
            glued[-1] = Word(glued[-1].text + ",", glued[-1].concept)
    last = glued[-1]
    glued[-1] = Word(last.text.rstrip(",") + mark, last.concept)
    first = glued[0]
    glued[0] = Word(first.text[0].upper() + first.text[1:], first.concept)
    return glued


def join_words(words: Iterable[Word]) -> str:
    """Write the words as a line of text."""
    return " ".join(word.text for word in words)


def align_words(english: list[Word], german: list[Word]) -> list[tuple[int, int]]:
    """Pair the positions of all words that express the same concept."""
    places: dict[Concept, list[int]] = {}
    for j, word in enumerate(german):
        if word.concept:
            places.setdefault(word.concept, []).append(j)
    return [(i, j) for i, word in enumerate(english) if word.concept for j in places.get(word.concept, [])]
