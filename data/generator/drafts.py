"""Finished sentence pairs, and the list of patterns that make them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from generator.chooser import Chooser
from generator.clauses import Clause, english_statement, german_statement
from generator.nominals import Nominal
from generator.phrases import Adverbial
from generator.words import Combination, Key, Word, align_words, attach_punctuation, join_words


@dataclass(frozen=True)
class Pair:
    """A finished sentence pair."""

    english: str
    german: str
    alignment: tuple[tuple[int, int], ...]
    concepts: tuple[Key, ...]  # all content words
    combinations: tuple[Combination, ...]  # verb with object, adjective with noun


def finish(
    english: list[Word], german: list[Word], parts: Sequence[Clause | Nominal | Adverbial], *, mark: str = "."
) -> Pair:
    """Punctuate both sentences and note what they are made of."""
    source = attach_punctuation(english, mark)
    target = attach_punctuation(german, mark)
    return Pair(
        english=join_words(source),
        german=join_words(target),
        alignment=tuple(align_words(source, target)),
        concepts=tuple(concept.key for concept in dict.fromkeys(word.concept for word in source) if concept),
        combinations=tuple(combination for part in parts for combination in part.combinations),
    )


def say(clause: Clause, *, fronted: Adverbial | None = None) -> Pair:
    """Write a clause as a statement, perhaps with a phrase before it."""
    english = (fronted.english() if fronted else []) + english_statement(clause)
    return finish(english, german_statement(clause, fronted), [clause, fronted] if fronted else [clause])


@dataclass(frozen=True)
class Pattern:
    """A kind of sentence and how often it is used."""

    name: str
    weight: int
    write: Callable[[Chooser], Pair]


PATTERNS: list[Pattern] = []


def pattern(weight: int) -> Callable[[Callable[[Chooser], Pair]], Callable[[Chooser], Pair]]:
    """Register a function that writes one kind of sentence."""

    def register(write: Callable[[Chooser], Pair]) -> Callable[[Chooser], Pair]:
        PATTERNS.append(Pattern(write.__name__, weight, write))
        return write

    return register
