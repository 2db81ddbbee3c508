"""Phrases and clauses of English and German, said side by side.

A phrase is plain text in which each content word carries the name of its meaning: "an old^old house^house" and
"einem alten^old Haus^house". Words with the same name translate each other; `finish` takes the names off again and
notes the alignment. A comma is a word of its own until then.
"""

from dataclasses import dataclass
from typing import NamedTuple

from generator.words import (
    ADJECTIVE_ENDING,
    ARTICLE,
    BE,
    CASES,
    DER_ENDING,
    EIN_ENDING,
    RELATIVE,
    VOWELS,
    Adjective,
    Noun,
    Verb,
    conjugate,
    mark,
)


def join(*parts: str) -> str:
    """Join texts with spaces, without the empty ones."""
    return " ".join(part for part in parts if part)


class Pair(NamedTuple):
    """A finished sentence pair, its alignment, and the names of the meanings in it."""

    english: str
    german: str
    alignment: tuple[tuple[int, int], ...]
    meanings: tuple[str, ...]


@dataclass(frozen=True)
class Text:
    """The same in English and German, still with the names of the meanings."""

    english: str
    german: str

    def __add__(self, other: "Text") -> "Text":
        """Put one text after the other."""
        return Text(join(self.english, other.english), join(self.german, other.german))


NOTHING = Text("", "")


def starred(english: str, german: str) -> Text:
    """Read a text in which the starred words of both sides translate each other in turn."""
    meanings = [word[1:].lower() for word in english.split() if word.startswith("*")]
    sides = []
    for side in (english, german):
        waiting = iter(meanings)
        sides.append(" ".join(mark(word[1:], next(waiting)) if word[0] == "*" else word for word in side.split()))
    return Text(*sides)


def finish(text: Text, final: str = ".") -> Pair:
    """Take the names off, attach commas and the final mark, begin with a capital and align."""
    (source, meanings), (target, german_meanings) = split_names(text.english), split_names(text.german)
    sentences = (" ".join(words).rstrip(",") + final for words in (source, target))
    english, german = (sentence[0].upper() + sentence[1:] for sentence in sentences)
    links = [(i, j) for i, one in enumerate(meanings) for j, other in enumerate(german_meanings) if one == other != ""]
    return Pair(english, german, tuple(links), tuple(filter(None, meanings)))


def split_names(text: str) -> tuple[list[str], list[str]]:
    """Split a text into its words, with their commas, and the names of what they mean."""
    words: list[str] = []
    meanings: list[str] = []
    for marked in text.split():
        word, _, meaning = marked.partition("^")
        if word != ",":
            words.append(word)
            meanings.append(meaning)
        elif not words[-1].endswith(","):
            words[-1] += ","
    return words, meanings


# Who or what ----------------------------------------------------------------------------------------------------------

GERMAN_STEMS = "a=ein this=dies which=welch many=viel some=einig my=mein your=dein his=sein her=ihr our=unser their=ihr"
STEMS = {**dict(pair.split("=") for pair in GERMAN_STEMS.split()), "not a": "kein"}
POSSESSIVES = ("my", "your", "his", "her", "our", "their")
INDEFINITE = ("a", "not a", "many", "some", "")


@dataclass(frozen=True, kw_only=True)
class Phrase:
    """Someone or something, in English and in three German cases."""

    english: str
    german: dict[str, str]
    english_object: str = ""  # of pronouns: me, him
    person: str = "3sg"
    gender: str = "m"
    is_known: bool = True  # whether the listener knows which one is meant
    is_negative: bool = False  # whether it says "kein"

    @property
    def possessive(self) -> str:
        """The English word for what belongs to it."""
        third = {"m": "his", "f": "her", "n": ""}.get(self.gender, "")
        return {"1sg": "my", "2sg": "your", "1pl": "our", "3pl": "their"}.get(self.person, third)

    @property
    def is_pronoun(self) -> bool:
        """Tell whether it is a pronoun."""
        return self.english_object != ""


def noun_phrase(
    noun: Noun,
    determiner: str = "the",
    adjective: Adjective | None = None,
    *,
    is_plural: bool = False,
    number: str = "",
) -> Phrase:
    """Put a determiner, perhaps a number ("two=zwei") and perhaps an adjective before a noun."""
    gender = "plural" if is_plural else noun.gender
    count, _, german_count = number.partition("=")
    described = mark(adjective.english, adjective.english) if adjective else ""
    words = join(mark(count, count), described, mark(noun.english_plural if is_plural else noun.english, noun.english))
    german = {}
    for case in CASES:
        article, declension = decline_determiner(determiner, case, gender)
        ending = ADJECTIVE_ENDING[declension][case, gender]
        german[case] = join(
            article,
            mark(german_count, count),
            mark(adjective.stem + ending, adjective.english) if adjective else "",
            mark(noun.inflect(case, is_plural=is_plural), noun.english),
        )
    english = join(english_determiner(determiner, words, is_many=is_plural or noun.kind == "~"), words)
    return Phrase(
        english=english,
        german=german,
        person="3pl" if is_plural else "3sg",
        gender=gender,
        is_known=determiner not in INDEFINITE,
        is_negative=determiner == "not a",
    )


def decline_determiner(determiner: str, case: str, gender: str) -> tuple[str, str]:
    """Return the German determiner and the declension of an adjective after it."""
    if determiner == "the":
        return ARTICLE[case, gender], "weak"
    if determiner in ("this", "which"):
        return STEMS[determiner] + DER_ENDING[case, gender], "weak"
    if determiner in ("many", "some"):
        return STEMS[determiner] + DER_ENDING[case, gender], "strong"
    if determiner:
        return STEMS[determiner] + EIN_ENDING[case, gender], "mixed"
    return "", "strong"


def english_determiner(determiner: str, following: str, *, is_many: bool) -> str:
    """Return the English determiner; the lexicon has no word whose first letter misleads."""
    if determiner == "this":
        return "these" if is_many else "this"
    if determiner == "not a" and is_many:
        return "any"
    if determiner in ("a", "not a"):
        return "an" if following[0] in VOWELS else "a"
    return determiner


def pronoun(forms: str, person: str, gender: str) -> Phrase:
    """Make a pronoun of its English forms and its German cases."""
    english, english_object, *german = forms.split()
    cases = dict(zip(CASES, german, strict=True))
    return Phrase(english=english, english_object=english_object, german=cases, person=person, gender=gender)


PRONOUNS = {
    "I": pronoun("I me ich mich mir", "1sg", "m"),
    "you": pronoun("you you du dich dir", "2sg", "m"),
    "he": pronoun("he him er ihn ihm", "3sg", "m"),
    "she": pronoun("she her sie sie ihr", "3sg", "f"),
    "we": pronoun("we us wir uns uns", "1pl", "plural"),
    "they": pronoun("they them sie sie ihnen", "3pl", "plural"),
}
WHO = pronoun("who whom wer wen wem", "3sg", "m")
IT = {"m": pronoun("it it er ihn ihm", "3sg", "m"), "f": pronoun("it it sie sie ihr", "3sg", "f")}
IT["n"] = pronoun("it it es es ihm", "3sg", "n")


def relative_pronoun(noun: Phrase, english: str) -> Phrase:
    """Make the pronoun that begins a relative clause about a noun."""
    german = " ".join(RELATIVE[case, noun.gender] for case in CASES)
    return pronoun(f"{english} {english} {german}", noun.person, noun.gender)


def named(*people: str, gender: str) -> Phrase:
    """Call one or two people by their names."""
    english, german = (f" {word} ".join(mark(name, name) for name in people) for word in ("and", "und"))
    person = "3pl" if len(people) > 1 else "3sg"
    return Phrase(english=english, german=dict.fromkeys(CASES, german), person=person, gender=gender)


CONTRACTIONS = {"in dem": "im", "in das": "ins", "an dem": "am", "an das": "ans"}
CONTRACTIONS |= {"zu dem": "zum", "zu der": "zur", "von dem": "vom"}


def prepositional(english: str, german: str, case: str, inner: Phrase) -> Text:
    """Put a preposition before a phrase; German melts it with the article where it can."""
    preposition, *words = [german, *inner.german[case].split()]
    melted = CONTRACTIONS.get(f"{preposition} {words[0]}")
    words = [melted, *words[1:]] if melted else [preposition, *words]
    return Text(join(english, inner.english_object or inner.english), " ".join(words))


# Clauses --------------------------------------------------------------------------------------------------------------


MODALS = {"can": "können", "must": "müssen", "should": "sollten", "may": "dürfen", "would like to": "möchten"}


@dataclass(frozen=True, kw_only=True)
class Clause:
    """Who does what to whom; the tense is present, past, perfect, progressive or future."""

    subject: Phrase
    verb: Verb
    tense: str = "present"
    modal: str = ""  # as in MODALS
    is_negated: bool = False
    recipient: Phrase | None = None  # dative
    object: Phrase | None = None  # accusative
    complement: Text = NOTHING  # a goal, a predicate, what one waits for
    place: Text = NOTHING
    time: Text = NOTHING
    adverb: Text = NOTHING  # often, already: before the English verb


def say(clause: Clause, order: str = "statement", *, fronted: Text = NOTHING) -> Text:
    """Say a clause as a statement, question, command, infinitive or subordinate, perhaps after a first phrase."""
    return Text(join(fronted.english, english(clause, order)), german(clause, order, fronted.german))


def english(clause: Clause, order: str) -> str:
    """Say a clause in English; subordinate clauses have the order of statements."""
    verb = clause.verb
    if order == "infinitive":
        return join("to", verb.say(verb.base), english_complements(clause))
    if order == "command":
        return join("do not" if clause.is_negated else "", verb.say(verb.base), english_complements(clause))
    first, rest = english_verbs(clause, is_question=order == "question")
    if clause.is_negated:
        first = "cannot" if first == "can" else f"{first} not"
    start = (first, clause.subject.english) if order == "question" else (clause.subject.english, first)
    return join(*start, clause.adverb.english, rest, english_complements(clause))


def english_verbs(clause: Clause, *, is_question: bool) -> tuple[str, str]:
    """Split the verbs into what stands before "not" (and before the subject of a question) and the rest."""
    verb, is_third = clause.verb, clause.subject.person == "3sg"
    is_past = clause.tense == "past"
    if clause.modal or clause.tense == "future":
        first, _, to = (clause.modal or "will").partition(" ")
        return first, join(to, verb.say(verb.base))
    if clause.tense == "perfect":
        return "has" if is_third else "have", verb.say(verb.participle)
    if clause.tense == "progressive":
        return to_be(clause.subject.person), verb.say(verb.ing_form)
    if verb is BE:
        return verb.say(to_be(clause.subject.person, is_past=is_past)), ""
    if is_question or clause.is_negated:
        return "did" if is_past else "does" if is_third else "do", verb.say(verb.base)
    return "", verb.say(verb.past if is_past else verb.third_person if is_third else verb.base)


def to_be(person: str, *, is_past: bool = False) -> str:
    """Return the finite form of to be."""
    if is_past:
        return "was" if person in ("1sg", "3sg") else "were"
    return {"1sg": "am", "3sg": "is"}.get(person, "are")


def english_complements(clause: Clause) -> str:
    """Say everything after the verb; only a pronoun stands before a particle (picks him up)."""
    particle = clause.verb.say(clause.verb.particle)
    recipient, thing = (
        part.english_object or part.english if part else "" for part in (clause.recipient, clause.object)
    )
    if clause.object and clause.object.is_pronoun and clause.verb.particle != "for":
        thing, particle = particle, thing
    rest = (clause.complement.english, clause.place.english, clause.time.english)
    return join(particle, recipient, thing, *rest)


def german(clause: Clause, order: str, fronted: str) -> str:
    """Say a clause in German, with the verb second, first or last."""
    verb, subject, middle = clause.verb, clause.subject.german["nominative"], german_middle(clause)
    if order == "infinitive":
        zu = verb.say(f"{verb.prefix}zu{verb.infinitive}") if verb.prefix else f"zu {verb.say(verb.infinitive)}"
        return join(middle, zu)
    if order == "command":
        return join(verb.say(verb.imperative), middle, verb.say(verb.prefix))
    finite, last = german_verbs(clause)
    if order == "subordinate":
        if last and last == verb.say(verb.prefix):
            return join(subject, middle, verb.prefix + finite)
        return join(subject, middle, last, finite)
    if order == "question" or fronted:
        return join(fronted, finite, subject, middle, last)
    return join(subject, finite, middle, last)


def german_verbs(clause: Clause) -> tuple[str, str]:
    """Split the verbs into the finite one and what stands at the end of the clause."""
    verb, person = clause.verb, clause.subject.person
    infinitive, participle = verb.say(verb.prefix + verb.infinitive), verb.say(verb.german_participle)
    if clause.modal:
        must_not = clause.modal == "must" and clause.is_negated
        return conjugate("dürfen" if must_not else MODALS[clause.modal], person), infinitive
    if clause.tense == "future":
        return conjugate("werden", person), infinitive
    if clause.tense == "past" and verb is BE:
        return verb.say(conjugate("war", person)), ""
    if clause.tense in ("past", "perfect"):
        return conjugate(verb.auxiliary, person), participle
    return verb.say(verb.present(person)), verb.say(verb.prefix)


def german_middle(clause: Clause) -> str:
    """Say everything between the finite verb and the end, except the subject.

    Pronouns stand first. What is known stands before nicht and schon, and what is new after them; otherwise
    adverbs stand before the objects. The place stands before new objects only.
    """
    objects = [(clause.recipient, "dative"), (clause.object, "accusative")]
    said = [(phrase, phrase.german[case]) for phrase, case in objects if phrase]
    has_new_recipient = clause.recipient is not None and not clause.recipient.is_known
    pronouns = [text for phrase, text in said if phrase.is_pronoun]
    known = [text for phrase, text in said if not phrase.is_pronoun and phrase.is_known and not has_new_recipient]
    new = [text for _, text in said if text not in pronouns + known]
    has_nicht = clause.is_negated and not any(phrase.is_negative for phrase, _ in said)
    adverbs = [clause.time.german, clause.adverb.german] + ["nicht"] * has_nicht
    first = known + adverbs if has_nicht or clause.tense == "perfect" else adverbs + known
    return join(*pronouns, *first, clause.place.german, *new, clause.complement.german)
