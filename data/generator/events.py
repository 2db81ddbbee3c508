"""Random clauses: something that someone does."""

from dataclasses import replace
from typing import Any

from generator import verbs
from generator.chooser import EVERYONE, PEOPLE, Chooser
from generator.clauses import PAST_MODALS, PRESENT_MODALS, Clause
from generator.determiners import BARE
from generator.modifiers import ADJECTIVES_BY_NAME, PLACES, Adjective
from generator.nominals import IT, SHE, Nominal, NounPhrase, definite
from generator.nouns import NOUNS, select_nouns
from generator.phrases import Adverbial, PrepositionalPhrase, adjective_predicate, fixed_phrase
from generator.verbs import Verb

WORKING_PLACES = select_nouns("office garden kitchen hospital factory school library hotel restaurant museum shop city")
# "To laugh at the beach" could be misunderstood.
LAUGHING_PLACES = [place.noun for place in PLACES if place.english_at != "at"]
ACTIVITIES = ("sleep", "work", "laugh", "cry", "sing", "dance", "play", "wait", "swim")
WOMENS_CLOTHES = select_nouns("dress skirt")
# What someone makes is not old yet.
MAKING = ("build", "bake", "cook", "write", "paint", "prepare")
NOT_YET_MADE = ("old", "dirty", "broken", "empty", "cold", "famous", "quiet", "loud", "dark", "expensive", "cheap")
WEATHER_WORDS = ("cold", "warm", "hot", "dark", "bright")
VERY, TOO = "*very = *sehr", "*too = *zu"


def suits_tense(verb: Verb, subject: Nominal, tense: str) -> bool:
    """Leave out "they read", which could be present or past."""
    return not (verb.has_ambiguous_past and tense == "past" and subject.person != "3sg")


def transitive(
    chooser: Chooser, subject: Nominal, tense: str = "present", *, is_deliberate: bool = False, **extra: Any
) -> Clause:
    """Make a clause with an object."""
    is_deliberate = is_deliberate or tense == "progressive" or "modal" in extra
    table = verbs.DELIBERATE_VERBS if is_deliberate else verbs.TRANSITIVE_VERBS
    verb = chooser.pick(table)
    while not suits_tense(verb, subject, tense):
        verb = chooser.pick(table)
    thing = object_of(chooser, verb, subject, is_negated=extra.get("is_negated", False))
    return Clause(subject=subject, verb=verb, tense=tense, object=thing, **extra)


def object_of(chooser: Chooser, verb: Verb, subject: Nominal, *, is_negated: bool = False) -> Nominal:
    """Pick an object that makes sense with the verb."""
    if all(noun.is_person for noun in verb.objects):
        return chooser.someone(verb.objects, subject, is_negated=is_negated)
    nouns = [noun for noun in verb.objects if subject.gender != "m" or noun not in WOMENS_CLOTHES]
    return as_made(verb, chooser.noun_phrase(chooser.pick(nouns), owner=subject, is_negated=is_negated))


def as_made(verb: Verb, thing: NounPhrase) -> NounPhrase:
    """Take away an adjective that does not suit a thing while it is made."""
    if verb.name in MAKING and thing.adjective and thing.adjective.english in NOT_YET_MADE:
        return replace(thing, adjective=None)
    return thing


def dative(chooser: Chooser, subject: Nominal, tense: str = "present", **extra: Any) -> Clause:
    """Make a clause with a verb such as help, whose German object is dative."""
    verb = chooser.pick(verbs.DATIVE_VERBS)
    recipient = chooser.someone(verb.objects, subject, is_negated=extra.get("is_negated", False))
    return Clause(subject=subject, verb=verb, tense=tense, recipient=recipient, **extra)


def ditransitive(chooser: Chooser, subject: Nominal, tense: str = "present", **extra: Any) -> Clause:
    """Make a clause in which someone gives something to someone."""
    has_to = chooser.chance(0.35)
    table = verbs.DITRANSITIVE_VERBS_WITH_TO if has_to else verbs.DITRANSITIVE_VERBS
    verb = chooser.pick([verb for verb in table if suits_tense(verb, subject, tense)])
    thing = chooser.noun_phrase(chooser.pick(verb.objects), owner=subject, adjectives=0.35)
    recipient = chooser.someone(EVERYONE, subject)
    while thing.determiner.name or (recipient is SHE and thing.determiner is BARE):
        # "Sells her books" could also mean that the books are hers, "sends my friend Anna's letter" likewise.
        thing = chooser.noun_phrase(chooser.pick(verb.objects), owner=subject, adjectives=0.35)
    return Clause(
        subject=subject,
        verb=verb,
        tense=tense,
        recipient=recipient,
        recipient_after_to=has_to,
        object=thing,
        **extra,
    )


def prepositional(chooser: Chooser, subject: Nominal, tense: str = "present", **extra: Any) -> Clause:
    """Make a clause with a verb such as wait for."""
    verb = chooser.pick(verbs.PREPOSITIONAL_VERBS)
    inner: Nominal = chooser.noun_phrase(chooser.pick(verb.objects), owner=subject)
    if verb.english_preposition in ("for", "to", "of") and chooser.chance(0.2):
        inner = chooser.someone(PEOPLE, subject)
    if extra.get("is_negated") and isinstance(inner, NounPhrase):
        inner = definite(inner)
    phrase = PrepositionalPhrase(verb.english_preposition, verb.german_preposition, verb.preposition_case, inner)
    return Clause(subject=subject, verb=verb, tense=tense, prepositional_object=phrase, **extra)


def motion(chooser: Chooser, subject: Nominal, tense: str = "present", **extra: Any) -> Clause:
    """Make a clause in which someone goes somewhere."""
    name = chooser.pick_weighted(((0.5, "go"), (0.2, "run"), (0.2, "drive"), (0.1, "fly")))
    goal = chooser.city("to", "nach") if name == "fly" else chooser.goal(by_car=name == "drive")
    return Clause(subject=subject, verb=verbs.MOTION_VERBS[name], tense=tense, direction=goal, **extra)


def activity(chooser: Chooser, subject: Nominal, tense: str = "present", **extra: Any) -> Clause:
    """Make a clause without an object, in a place."""
    verb = verbs.INTRANSITIVE_VERBS[chooser.pick(ACTIVITIES)]
    if verb.base == "swim":
        water = chooser.definite_phrase(NOUNS[chooser.pick(("lake", "river"))])
        place: Adverbial = PrepositionalPhrase("in", "in", "dative", water)
    else:
        place = chooser.place({"work": WORKING_PLACES, "laugh": LAUGHING_PLACES}.get(verb.base, ()))
    return Clause(subject=subject, verb=verb, tense=tense, place=place, **extra)


def event(chooser: Chooser, subject: Nominal, tense: str = "present", **extra: Any) -> Clause:
    """Make any of these clauses."""
    make = chooser.pick_weighted(
        (
            (0.58, transitive),
            (0.09, dative),
            (0.08, ditransitive),
            (0.09, prepositional),
            (0.09, motion),
            (0.07, activity),
        )
    )
    return make(chooser, subject, tense, **extra)


def outing(chooser: Chooser, subject: Nominal, tense: str = "present") -> Clause:
    """Make a clause in which someone goes out or stays, as one does when the weather allows."""
    if chooser.chance(0.3):
        stay = verbs.INTRANSITIVE_VERBS["stay"]
        return Clause(subject=subject, verb=stay, tense=tense, place=fixed_phrase("at *home = zu *Hause"))
    return chooser.pick((motion, motion, activity))(chooser, subject, tense)


def tense_or_modal(chooser: Chooser) -> dict[str, Any]:
    """Pick the present, the past, the future or a modal verb."""
    kind = chooser.pick_weighted(((0.35, "present"), (0.35, "past"), (0.1, "future"), (0.2, "modal")))
    if kind == "modal":
        return {"modal": chooser.pick(PRESENT_MODALS + PAST_MODALS)}
    return {"tense": kind}


def weather(chooser: Chooser, tense: str) -> Clause:
    """It rains. It was cold."""
    if chooser.chance(0.4):
        return Clause(subject=IT["n"], verb=verbs.INTRANSITIVE_VERBS[chooser.pick(("rain", "snow"))], tense=tense)
    adjective = ADJECTIVES_BY_NAME[chooser.pick(("cold", "warm", "dark"))]
    predicate = adjective_predicate(adjective, chooser.pick(("", VERY, TOO)))
    return Clause(subject=IT["n"], verb=verbs.BE, tense=tense, predicate=predicate)


def mood(chooser: Chooser, subject: Nominal, tense: str) -> Clause:
    """She is tired."""
    adjective = ADJECTIVES_BY_NAME[chooser.pick(("tired", "happy", "sad", "sick", "hungry", "angry"))]
    predicate = adjective_predicate(adjective, chooser.pick(("", VERY)))
    return Clause(subject=subject, verb=verbs.BE, tense=tense, predicate=predicate)


def degree_of(chooser: Chooser, adjective: Adjective) -> str:
    """Pick very or too or nothing, as the adjective allows."""
    degrees = ["", ""]
    if adjective.comparative:
        degrees.append(VERY)
    if adjective.can_be_too_much:
        degrees.append(TOO)
    return chooser.pick(degrees)
