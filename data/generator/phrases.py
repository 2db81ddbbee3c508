"""When, where, how and with whom: phrases whose form does not depend on the clause."""

from dataclasses import dataclass

from generator.determiners import THE
from generator.german import CONTRACTIONS
from generator.modifiers import Adjective
from generator.nominals import Nominal, NounPhrase
from generator.words import Combination, Concept, Mark, Word, to_words


@dataclass(frozen=True)
class FixedPhrase:
    """A phrase whose words never change, such as "in the morning" and "am Morgen"."""

    english_words: list[Word]
    german_words: list[Word]
    combinations: tuple[Combination, ...] = ()

    def english(self) -> list[Word]:
        """Say it in English."""
        return self.english_words

    def german(self) -> list[Word]:
        """Say it in German."""
        return self.german_words


def fixed_phrase(text: str) -> FixedPhrase:
    """Read a line "English = German", where the starred words of both sides mean each other in turn."""
    source, target = text.split(" = ")
    mark = Mark()
    concepts = [Concept("adverb", word[1:], mark) for word in source.split() if word.startswith("*")]

    def read(side: str) -> list[Word]:
        waiting = iter(concepts)
        return [Word(w[1:], next(waiting)) if w.startswith("*") else Word(w) for w in side.split()]

    return FixedPhrase(read(source), read(target))


def adjective_predicate(adjective: Adjective, degree: str = "") -> FixedPhrase:
    """Say that something is so, perhaps very or too much so."""
    before = fixed_phrase(degree or " = ")
    concept = Concept("adjective", adjective.english, Mark())
    return FixedPhrase(
        [*before.english_words, Word(adjective.english, concept)],
        [*before.german_words, Word(adjective.german, concept)],
    )


@dataclass(frozen=True)
class PrepositionalPhrase:
    """A preposition with what it governs."""

    english_preposition: str
    german_preposition: str
    case: str
    inner: Nominal

    @property
    def combinations(self) -> list[Combination]:
        """The combinations inside."""
        return list(self.inner.combinations)

    def english(self) -> list[Word]:
        """Say it in English."""
        return to_words(self.english_preposition) + self.inner.english()

    def german(self) -> list[Word]:
        """Say it in German, where preposition and article may melt into one word."""
        words = self.inner.german(self.case)
        has_article = isinstance(self.inner, NounPhrase) and self.inner.determiner is THE
        melted = CONTRACTIONS.get((self.german_preposition, words[0].text)) if has_article else None
        if melted:
            return [Word(melted), *words[1:]]
        return [Word(self.german_preposition), *words]


@dataclass(frozen=True)
class JoinedPhrase:
    """Two phrases in a row, in both languages."""

    first: FixedPhrase
    second: PrepositionalPhrase

    @property
    def combinations(self) -> list[Combination]:
        """The combinations inside."""
        return self.second.combinations

    def english(self) -> list[Word]:
        """Say it in English."""
        return self.first.english() + self.second.english()

    def german(self) -> list[Word]:
        """Say it in German."""
        return self.first.german() + self.second.german()


Adverbial = FixedPhrase | PrepositionalPhrase | JoinedPhrase
