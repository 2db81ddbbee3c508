"""Patterns of tense, mood and negation."""

from dataclasses import replace

from generator import verbs
from generator.chooser import PEOPLE, Chooser
from generator.clauses import PAST_MODALS, PRESENT_MODALS, Clause
from generator.determiners import BARE, EVERY, MANY, NO, SOME, THE, A
from generator.drafts import Pair, pattern, say
from generator.events import dative, event, motion, object_of, prepositional, tense_or_modal, transitive
from generator.nominals import NounPhrase
from generator.phrases import fixed_phrase

FREQUENCIES = ("*often = *oft", "*always = *immer", "*sometimes = *manchmal")


def is_full(clause: Clause) -> bool:
    """Tell whether a clause has so many parts that the order of one more would be a matter of taste."""
    return bool(clause.recipient and clause.object)


def can_have_place(clause: Clause) -> bool:
    """Tell whether a place would belong to the verb."""
    return not (clause.place or clause.recipient or clause.direction or clause.verb.name == "visit")


@pattern(9)
def present(chooser: Chooser) -> Pair:
    """Anna reads an old book in the garden."""
    clause = event(chooser, chooser.subject())
    if chooser.chance(0.25) and not is_full(clause):
        return say(replace(clause, frequency=fixed_phrase(chooser.pick(FREQUENCIES))))
    if chooser.chance(0.5) and can_have_place(clause):
        return say(replace(clause, place=chooser.place()))
    if chooser.chance(0.6) and not is_full(clause):
        return say(replace(clause, time=chooser.time("present")))
    return say(clause)


@pattern(4)
def stative(chooser: Chooser) -> Pair:
    """We know this city. My aunt has two dogs."""
    verb = chooser.pick(verbs.STATIVE_VERBS)
    subject = chooser.subject()
    thing = object_of(chooser, verb, subject)
    if verb is verbs.HAVE and isinstance(thing, NounPhrase):
        is_plural = chooser.chance(0.4)
        number = chooser.number(thing.noun) if is_plural and chooser.chance(0.7) else ""
        thing = replace(thing, determiner=BARE if is_plural else A, is_plural=is_plural, number=number)
    elif isinstance(thing, NounPhrase) and not thing.is_definite and not thing.noun.is_mass:
        thing = replace(thing, determiner=THE, number="")
    return say(Clause(subject=subject, verb=verb, object=thing))


@pattern(9)
def past(chooser: Chooser) -> Pair:
    """The boy ate two apples yesterday."""
    clause = event(chooser, chooser.subject(), "past")
    if chooser.chance(0.45) and not is_full(clause):
        return say(replace(clause, time=chooser.time("past")))
    if chooser.chance(0.5) and can_have_place(clause):
        return say(replace(clause, place=chooser.place()))
    return say(clause)


@pattern(12)
def fronted_time(chooser: Chooser) -> Pair:
    """Yesterday the old man bought a red car."""
    tense = chooser.pick_weighted(((0.3, "present"), (0.45, "past"), (0.25, "future")))
    clause = event(chooser, chooser.subject(), tense)
    if chooser.chance(0.25) and can_have_place(clause):
        clause = replace(clause, place=chooser.place())
    return say(clause, fronted=chooser.time(tense))


@pattern(3)
def fronted_place(chooser: Chooser) -> Pair:
    """In the garden the children play with a ball."""
    make = chooser.pick((transitive, transitive, prepositional))
    return say(make(chooser, chooser.subject(), chooser.pick(("present", "past"))), fronted=chooser.place())


@pattern(5)
def future(chooser: Chooser) -> Pair:
    """My sister will visit her aunt tomorrow."""
    clause = event(chooser, chooser.subject(), "future")
    return say(clause if is_full(clause) else replace(clause, time=chooser.time("future")))


@pattern(8)
def modal(chooser: Chooser) -> Pair:
    """You must tidy up the kitchen today."""
    clause = event(chooser, chooser.subject(), modal=chooser.pick(PRESENT_MODALS))
    if chooser.chance(0.5) and not is_full(clause):
        clause = replace(clause, time=chooser.time("future"))
    return say(clause)


@pattern(3)
def past_modal(chooser: Chooser) -> Pair:
    """Last year they had to sell the house."""
    clause = event(chooser, chooser.subject(), modal=chooser.pick(PAST_MODALS))
    return say(clause, fronted=chooser.time("past") if chooser.chance(0.5) else None)


@pattern(4)
def progressive(chooser: Chooser) -> Pair:
    """The baker is baking a cake."""
    make = chooser.pick((transitive, transitive, transitive, prepositional))
    return say(make(chooser, chooser.subject(), "progressive"))


@pattern(5)
def perfect(chooser: Chooser) -> Pair:
    """I have already read this book."""
    name = chooser.pick(("*never = noch *nie", "*already = *schon"))
    make = chooser.pick((transitive, transitive, transitive, dative))
    clause = make(chooser, chooser.subject(), "perfect", limit=fixed_phrase(name))
    if isinstance(clause.object, NounPhrase) and clause.object.determiner in (MANY, SOME):
        clause = replace(clause, object=replace(clause.object, determiner=BARE))
    return say(clause)


@pattern(2)
def every(chooser: Chooser) -> Pair:
    """Every student must read this book."""
    subject = NounPhrase(noun=chooser.pick(PEOPLE), determiner=EVERY)
    return say(transitive(chooser, subject, modal=chooser.pick(PRESENT_MODALS)))


@pattern(7)
def negated(chooser: Chooser) -> Pair:
    """She does not buy a car. The man did not open the door."""
    settings = tense_or_modal(chooser)
    clause = transitive(chooser, chooser.subject(), is_negated=True, **settings)
    if "tense" in settings and chooser.chance(0.4):
        clause = replace(clause, time=chooser.time(settings["tense"], is_negated=True))
    return say(clause)


@pattern(4)
def negated_without_object(chooser: Chooser) -> Pair:
    """He does not wait for the bus. Anna did not go to the office."""
    make = chooser.pick((dative, prepositional, motion))
    settings = tense_or_modal(chooser)
    clause = make(chooser, chooser.subject(), is_negated=True, **settings)
    if "tense" in settings and chooser.chance(0.4):
        clause = replace(clause, time=chooser.time(settings["tense"], is_negated=True))
    return say(clause)


@pattern(2)
def has_no(chooser: Chooser) -> Pair:
    """My neighbour has no new bicycle."""
    verb = verbs.HAVE if chooser.chance(0.6) else verbs.TRANSITIVE_BY_NAME["find"]
    noun = chooser.pick(verb.objects)
    adjective = chooser.adjective(noun, 0.0 if noun.group == "kin" else 0.5)
    thing = NounPhrase(noun=noun, determiner=NO, is_plural=chooser.chance(0.4), adjective=adjective)
    return say(Clause(subject=chooser.subject(), verb=verb, tense=chooser.pick(("present", "past")), object=thing))
