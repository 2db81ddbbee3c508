"""Patterns of what someone or something is."""

from dataclasses import replace

from generator import verbs
from generator.chooser import KIN, Chooser
from generator.clauses import Clause
from generator.determiners import BARE, MY, THE, THIS, YOUR, A
from generator.drafts import Pair, pattern, say
from generator.events import VERY, degree_of
from generator.modifiers import ADJECTIVES_BY_NAME, adjectives_for, go_together, predicates_for
from generator.nominals import HE, SHE, Nominal, NounPhrase, definite
from generator.nouns import FEMININE_PROFESSION, NOUNS
from generator.phrases import FixedPhrase, adjective_predicate, fixed_phrase
from generator.words import Concept, Mark, Word, to_words

LASTING = "good young famous friendly clever nice rich poor old"
PARENTS_AND_CHILDREN = [noun for noun in KIN if not noun.is_plural_only and not noun.english.startswith("grand")]


@pattern(6)
def quality(chooser: Chooser) -> Pair:
    """The old houses are very beautiful."""
    noun = chooser.pick([noun for noun in NOUNS.values() if len(adjectives_for(noun)) > 1])
    if noun.is_mass:
        subject = NounPhrase(noun=noun, determiner=chooser.pick((THE, THIS, chooser.possessive())))
    else:
        subject = definite(chooser.noun_phrase(noun, as_subject=True, adjectives=0.3))
    options = [a for a in predicates_for(noun) if not subject.adjective or go_together(a, subject.adjective)]
    if not options:
        return quality(chooser)
    adjective = chooser.pick(options)
    clause = Clause(
        subject=subject,
        verb=verbs.BE,
        tense=chooser.pick(("present", "present", "past")),
        is_negated=chooser.chance(0.2),
        predicate=adjective_predicate(adjective, degree_of(chooser, adjective)),
    )
    return say(clause)


@pattern(2)
def feeling(chooser: Chooser) -> Pair:
    """Today she is very tired."""
    times = {
        "present": ("*today = *heute", "*now = *jetzt", "in the *morning = am *Morgen"),
        "past": ("*yesterday = *gestern", "*last *week = *letzte *Woche", "this *morning = heute *Morgen"),
    }
    name = chooser.pick(("tired", "happy", "sad", "sick", "friendly", "hungry", "angry"))
    tense = chooser.pick(("present", "past"))
    time = fixed_phrase(chooser.pick(times[tense]))
    subject = chooser.subject(pronouns=0.4)
    clause = Clause(
        subject=subject if subject.is_definite else chooser.name(),
        verb=verbs.BE,
        tense=tense,
        is_negated=chooser.chance(0.2),
        predicate=adjective_predicate(ADJECTIVES_BY_NAME[name], chooser.pick(("", VERY))),
    )
    if chooser.chance(0.5):
        return say(clause, fronted=time)
    return say(replace(clause, time=time))


@pattern(4)
def comparison(chooser: Chooser) -> Pair:
    """My brother is older than your sister."""
    adjective = chooser.pick([adjective for adjective in ADJECTIVES_BY_NAME.values() if adjective.comparative])
    nouns = [noun for noun in adjective.nouns if not noun.is_mass]
    if adjective.english in ("long", "short"):
        nouns = [noun for noun in nouns if noun.group != "abstract"]  # a trip is not compared with a word
    noun = chooser.pick(nouns)
    subject: Nominal = definite(chooser.noun_phrase(noun, as_subject=True, adjectives=0.2))
    if noun.is_person and chooser.chance(0.3):
        subject = chooser.subject(pronouns=0.5)
    similar = [other for other in nouns if other.group == noun.group and other is not noun]
    other_noun = chooser.pick(similar or [noun])
    if noun.group == "kin":
        determiner = chooser.possessive()
    elif noun.group in ("person", "profession", "building", "place", "animal", "abstract"):
        determiner = THE
    else:
        determiner = chooser.pick((THE, THIS, YOUR, MY))
    other = NounPhrase(noun=other_noun, determiner=determiner, is_plural=other_noun.is_plural_only)
    concept = Concept("adjective", adjective.english, Mark())
    predicate = FixedPhrase(
        [*to_words(adjective.english_comparative, concept), Word("than"), *other.english()],
        [Word(adjective.comparative, concept), Word("als"), *other.german("nominative")],
    )
    return say(Clause(subject=subject, verb=verbs.BE, tense=chooser.pick(("present", "past")), predicate=predicate))


@pattern(3)
def profession(chooser: Chooser) -> Pair:
    """Her mother is a doctor. My brother was a good student."""
    kind = chooser.pick(("pronoun", "name", "kin", "kin"))
    if kind == "pronoun":
        subject: Nominal = chooser.pick((HE, SHE))
    elif kind == "name":
        subject = chooser.name()
    else:
        subject = NounPhrase(noun=chooser.pick(PARENTS_AND_CHILDREN), determiner=chooser.possessive())
    job = NOUNS[chooser.pick(tuple(FEMININE_PROFESSION))]
    lasting = [adjective for adjective in adjectives_for(job) if adjective.english in LASTING.split()]
    adjective = chooser.pick(lasting) if chooser.chance(0.6) else None
    phrase = NounPhrase(noun=job, determiner=A, adjective=adjective)
    spoken = phrase
    if subject.gender == "f":
        spoken = replace(phrase, noun=replace(job, german=FEMININE_PROFESSION[job.english], gender="f"))
    if not phrase.adjective:
        spoken = replace(spoken, determiner=BARE)
    predicate = FixedPhrase(phrase.english(), spoken.german("nominative"), tuple(phrase.combinations))
    return say(Clause(subject=subject, verb=verbs.BE, tense=chooser.pick(("present", "past")), predicate=predicate))
