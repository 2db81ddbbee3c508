"""Who or what: noun phrases, pronouns and names, which English and German say in a case."""

from dataclasses import dataclass, field, replace

from generator.determiners import HER, HIS, MY, NOT_A, OUR, THE, THEIR, YOUR, Determiner
from generator.english import indefinite_article
from generator.german import ADJECTIVE_ENDING, RELATIVE_PRONOUN, decline_noun
from generator.modifiers import NUMBERS, Adjective
from generator.nouns import Noun
from generator.words import COMMA, Combination, Concept, Mark, Word, to_words


@dataclass(frozen=True, kw_only=True)
class NounPhrase:
    """A noun with its determiner, perhaps a number, perhaps an adjective."""

    noun: Noun
    determiner: Determiner = THE
    adjective: Adjective | None = None
    is_plural: bool = False
    number: str = ""
    mark: Mark = field(default_factory=Mark)

    is_pronoun = False

    @property
    def is_definite(self) -> bool:
        """Tell whether the listener knows which one is meant."""
        return self.determiner.is_definite

    @property
    def person(self) -> str:
        """The grammatical person of a verb with this subject."""
        return "3pl" if self.is_plural else "3sg"

    @property
    def gender(self) -> str:
        """The German gender, or plural."""
        return "plural" if self.is_plural else self.noun.gender

    @property
    def noun_concept(self) -> Concept:
        """What the noun says."""
        return Concept("noun", self.noun.english, self.mark)

    @property
    def combinations(self) -> list[Combination]:
        """The adjective and its noun."""
        return [(("adjective", self.adjective.english), self.noun_concept.key)] if self.adjective else []

    def english(self, *, as_subject: bool = False) -> list[Word]:
        """Say it in English."""
        words = to_words(self.number, Concept("number", self.number, self.mark))
        if self.adjective:
            words.append(Word(self.adjective.english, Concept("adjective", self.adjective.english, self.mark)))
        words.append(Word(self.noun.english_plural if self.is_plural else self.noun.english, self.noun_concept))
        return self.english_determiner(words[0].text) + words

    def english_determiner(self, next_word: str) -> list[Word]:
        """Say the English determiner, if there is one."""
        text = self.determiner.english
        if self.is_plural or (self.determiner is NOT_A and self.noun.is_mass):
            text = self.determiner.english_plural or text
        if text == "a":
            text = indefinite_article(next_word)
        return to_words(text, self.name_concept)

    @property
    def name_concept(self) -> Concept | None:
        """Whose it is, if that is said by a name."""
        return Concept("name", self.determiner.name, self.mark) if self.determiner.name else None

    def german(self, case: str) -> list[Word]:
        """Say it in German."""
        words = to_words(self.determiner.german(case, self.gender), self.name_concept)
        words += to_words(NUMBERS.get(self.number, ""), Concept("number", self.number, self.mark))
        if self.adjective:
            ending = ADJECTIVE_ENDING[self.determiner.declension][case, self.gender]
            concept = Concept("adjective", self.adjective.english, self.mark)
            words.append(Word(self.adjective.stem + ending, concept))
        noun = decline_noun(
            self.noun.german, self.noun.german_plural, case, is_plural=self.is_plural, is_weak=self.noun.is_weak
        )
        return [*words, Word(noun, self.noun_concept)]


def definite(phrase: NounPhrase) -> NounPhrase:
    """Make sure that the listener knows what is spoken of."""
    return phrase if phrase.is_definite else replace(phrase, determiner=THE)


@dataclass(frozen=True)
class Pronoun:
    """A personal pronoun with all its forms."""

    subject: str
    object: str
    person: str
    nominative: str
    accusative: str
    dative: str
    gender: str
    possessive: Determiner

    is_pronoun = True
    is_definite = True
    combinations: tuple[Combination, ...] = ()

    def english(self, *, as_subject: bool = False) -> list[Word]:
        """Say it in English."""
        return [Word(self.subject if as_subject else self.object)]

    def german(self, case: str) -> list[Word]:
        """Say it in German."""
        return [Word({"nominative": self.nominative, "accusative": self.accusative, "dative": self.dative}[case])]


I = Pronoun("I", "me", "1sg", "ich", "mich", "mir", "m", MY)  # noqa: E741
YOU = Pronoun("you", "you", "2sg", "du", "dich", "dir", "m", YOUR)
HE = Pronoun("he", "him", "3sg", "er", "ihn", "ihm", "m", HIS)
SHE = Pronoun("she", "her", "3sg", "sie", "sie", "ihr", "f", HER)
WE = Pronoun("we", "us", "1pl", "wir", "uns", "uns", "plural", OUR)
THEY = Pronoun("they", "them", "3pl", "sie", "sie", "ihnen", "plural", THEIR)
WHO = Pronoun("who", "whom", "3sg", "wer", "wen", "wem", "m", HIS)
PRONOUNS = (I, YOU, HE, SHE, WE, THEY)
# English "it" takes its German gender from the noun it stands for; "es" is also the subject of the weather.
IT = {
    "m": Pronoun("it", "it", "3sg", "er", "ihn", "ihm", "m", HIS),
    "f": Pronoun("it", "it", "3sg", "sie", "sie", "ihr", "f", HER),
    "n": Pronoun("it", "it", "3sg", "es", "es", "ihm", "n", HIS),
}


@dataclass(frozen=True)
class Name:
    """One or two people called by their names."""

    names: tuple[str, ...]
    gender: str
    mark: Mark = field(default_factory=Mark)

    is_pronoun = False
    is_definite = True
    combinations: tuple[Combination, ...] = ()

    @property
    def person(self) -> str:
        """The grammatical person of a verb with this subject."""
        return "3pl" if len(self.names) > 1 else "3sg"

    def join(self, conjunction: str) -> list[Word]:
        """Write the names with a conjunction between them."""
        words: list[Word] = []
        for name in self.names:
            words += [Word(conjunction)] if words else []
            words.append(Word(name, Concept("name", name, self.mark)))
        return words

    def english(self, *, as_subject: bool = False) -> list[Word]:
        """Say it in English."""
        return self.join("and")

    def german(self, case: str) -> list[Word]:
        """Say it in German."""
        return self.join("und")


@dataclass(frozen=True)
class ListedPhrase:
    """Two noun phrases joined by and."""

    first: NounPhrase
    second: NounPhrase

    is_pronoun = False
    person = "3pl"
    gender = "plural"

    @property
    def is_definite(self) -> bool:
        """Tell whether the listener knows which ones are meant."""
        return self.first.is_definite

    @property
    def combinations(self) -> list[Combination]:
        """The combinations inside."""
        return self.first.combinations + self.second.combinations

    def english(self, *, as_subject: bool = False) -> list[Word]:
        """Say it in English."""
        return [*self.first.english(), Word("and"), *self.second.english()]

    def german(self, case: str) -> list[Word]:
        """Say it in German."""
        return [*self.first.german(case), Word("und"), *self.second.german(case)]


@dataclass(frozen=True)
class RelativePronoun:
    """The pronoun that begins a relative clause, with the gender of what it describes."""

    english_word: str
    gender: str
    person: str

    is_pronoun = False
    is_definite = True
    combinations: tuple[Combination, ...] = ()

    def english(self, *, as_subject: bool = False) -> list[Word]:
        """Say it in English."""
        return [Word(self.english_word)]

    def german(self, case: str) -> list[Word]:
        """Say it in German."""
        return [Word(RELATIVE_PRONOUN[case, self.gender])]


@dataclass(frozen=True)
class DescribedPhrase:
    """A noun phrase with a relative clause after it, which German puts between commas."""

    phrase: NounPhrase
    english_clause: list[Word]
    german_clause: list[Word]

    is_pronoun = False
    is_definite = True

    @property
    def combinations(self) -> list[Combination]:
        """The combinations of the noun phrase; the clause counts its own."""
        return self.phrase.combinations

    @property
    def person(self) -> str:
        """The grammatical person of a verb with this subject."""
        return self.phrase.person

    @property
    def gender(self) -> str:
        """The German gender, or plural."""
        return self.phrase.gender

    def english(self, *, as_subject: bool = False) -> list[Word]:
        """Say it in English."""
        return self.phrase.english() + self.english_clause

    def german(self, case: str) -> list[Word]:
        """Say it in German."""
        return [*self.phrase.german(case), COMMA, *self.german_clause, COMMA]


Nominal = NounPhrase | Pronoun | Name | ListedPhrase | RelativePronoun | DescribedPhrase
