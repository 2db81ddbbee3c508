"""Patterns that end with a question mark."""

from dataclasses import replace
from typing import Any

from generator import verbs
from generator.chooser import Chooser
from generator.clauses import (
    CAN,
    HAVE_TO,
    MUST,
    SHOULD,
    WANT,
    WOULD_LIKE,
    Clause,
    english_question,
    english_statement,
    german_question,
    german_statement,
)
from generator.determiners import BARE, WHICH
from generator.drafts import Pair, finish, pattern
from generator.events import event, object_of
from generator.nominals import HE, SHE, THEY, WE, WHO, YOU, Nominal, NounPhrase
from generator.words import Concept, Mark, Word, to_words

WHOM_DATIVE = ("help", "thank", "follow", "congratulate")
# Verbs with which "where" does not ask for a direction.
LOCAL_VERBS = (
    "buy,sell,see,find,eat,drink,read,write,hear,cook,bake,clean,repair,lose,draw,wash,use,build,meet,photograph,feed,"
    "order,learn,hide,pick up,greet,try on,paint,sing"
)


def asked_subject(chooser: Chooser) -> Nominal:
    """Pick about whom to ask."""
    return chooser.pick((YOU, HE, SHE, THEY, WE)) if chooser.chance(0.5) else chooser.third_person()


def asked_tense(chooser: Chooser) -> dict[str, Any]:
    """Pick a tense or a modal verb that suits a question."""
    kind = chooser.pick_weighted(((0.4, "present"), (0.4, "past"), (0.2, "modal")))
    if kind == "modal":
        return {"modal": chooser.pick((CAN, MUST, SHOULD, WOULD_LIKE, WANT, HAVE_TO))}
    return {"tense": kind}


def circumstances(chooser: Chooser, settings: dict[str, Any]) -> dict[str, Any]:
    """Pick a place or a time for a clause that would be too short."""
    if chooser.chance(0.5):
        return {"place": chooser.place()}
    return {"time": chooser.time(settings.get("tense", "future"))}


def ask(clause: Clause, english_start: list[Word] | None = None, german_start: list[Word] | None = None) -> Pair:
    """Write a clause as a question, perhaps after a question word."""
    english = (english_start or []) + english_question(clause)
    german = (german_start or []) + german_question(clause)
    return finish(english, german, [clause], mark="?")


def question_word(english: str, german: str) -> tuple[list[Word], list[Word]]:
    """Begin a question with an adverb, which is a content word."""
    concept = Concept("adverb", english, Mark())
    return to_words(english, concept), to_words(german, concept)


@pattern(7)
def yes_or_no(chooser: Chooser) -> Pair:
    """Did your sister call the doctor yesterday?"""
    settings = asked_tense(chooser)
    clause = event(chooser, asked_subject(chooser), **settings)
    if chooser.chance(0.3) and not (clause.recipient and clause.object):
        clause = replace(clause, time=chooser.time(settings.get("tense", "future")))
    return ask(clause)


@pattern(3)
def what(chooser: Chooser) -> Pair:
    """What does the boy eat in the kitchen?"""
    names = "buy,sell,find,look for,eat,drink,read,write,cook,draw,repair,use,learn,order,receive"
    settings = asked_tense(chooser)
    verb = verbs.TRANSITIVE_BY_NAME[chooser.pick(names.split(","))]
    clause = Clause(subject=asked_subject(chooser), verb=verb, **settings, **circumstances(chooser, settings))
    return ask(clause, to_words("what"), to_words("was"))


@pattern(4)
def who(chooser: Chooser) -> Pair:
    """Who repaired the old bicycle?"""
    tense = chooser.pick(("present", "past", "past", "future"))
    clause = event(chooser, WHO, tense)
    if chooser.chance(0.3) and not (clause.recipient and clause.object):
        clause = replace(clause, time=chooser.time(tense))
    return finish(english_statement(clause), german_statement(clause), [clause], mark="?")


@pattern(3)
def whom(chooser: Chooser) -> Pair:
    """Whom did she meet at the station? Whom does he help?"""
    settings = asked_tense(chooser)
    if chooser.chance(0.5):
        verb, german = chooser.pick([verb for verb in verbs.DATIVE_VERBS if verb.name in WHOM_DATIVE]), "wem"
    else:
        names = ("see", "visit", "ask", "greet", "meet", "call", "pick up", "invite", "photograph")
        verb, german = verbs.TRANSITIVE_BY_NAME[chooser.pick(names)], "wen"
    clause = Clause(subject=asked_subject(chooser), verb=verb, **settings, **circumstances(chooser, settings))
    return ask(clause, to_words("whom"), to_words(german))


@pattern(2)
def where(chooser: Chooser) -> Pair:
    """Where did you buy this coat?"""
    settings = asked_tense(chooser)
    if chooser.chance(0.2):
        verb = verbs.INTRANSITIVE_VERBS[chooser.pick(("live", "work", "sleep", "wait", "swim"))]
        clause = Clause(subject=asked_subject(chooser), verb=verb, **settings)
    else:
        subject = asked_subject(chooser)
        verb = verbs.TRANSITIVE_BY_NAME[chooser.pick(LOCAL_VERBS.split(","))]
        clause = Clause(subject=subject, verb=verb, object=object_of(chooser, verb, subject), **settings)
    return ask(clause, *question_word("where", "wo"))


@pattern(1)
def where_to(chooser: Chooser) -> Pair:
    """Where does your brother drive every morning?"""
    settings = asked_tense(chooser)
    verb = verbs.MOTION_VERBS[chooser.pick(("go", "run", "drive", "fly"))]
    time = chooser.time(settings.get("tense", "future"))
    clause = Clause(subject=asked_subject(chooser), verb=verb, time=time, **settings)
    return ask(clause, *question_word("where", "wohin"))


@pattern(1)
def where_is(chooser: Chooser) -> Pair:
    """Where is my black umbrella?"""
    noun = chooser.pick(verbs.TRANSITIVE_BY_NAME["look for"].objects)
    if noun.group in ("building", "profession"):
        thing = chooser.definite_phrase(noun, adjectives=0.7)
    else:
        thing = NounPhrase(
            noun=noun,
            determiner=chooser.possessive(),
            is_plural=chooser.chance(0.25),
            adjective=chooser.adjective(noun, 0.8),
        )
    return ask(Clause(subject=thing, verb=verbs.BE), *question_word("where", "wo"))


@pattern(3)
def when(chooser: Chooser) -> Pair:
    """When will your parents come back?"""
    tense = chooser.pick(("past", "future"))
    subject = asked_subject(chooser)
    if chooser.chance(0.2):
        name = chooser.pick(("get up", "arrive", "come back", "wake up", "fall asleep", "go out"))
        clause = Clause(subject=subject, verb=verbs.INTRANSITIVE_VERBS[name], tense=tense)
    else:
        clause = event(chooser, subject, tense)
    return ask(clause, *question_word("when", "wann"))


@pattern(3)
def why(chooser: Chooser) -> Pair:
    """Why did the man sell his boat?"""
    return ask(event(chooser, asked_subject(chooser), **asked_tense(chooser)), *question_word("why", "warum"))


def ask_for_object(chooser: Chooser, verb: verbs.Verb, phrase: NounPhrase, english: str, german: str) -> Pair:
    """Ask for the object of a verb, which stands first."""
    settings = asked_tense(chooser)
    if verb in verbs.STATIVE_VERBS:
        settings = {"tense": "present"}
    elif verb not in verbs.DELIBERATE_VERBS:
        settings = {"tense": "past"}
    clause = Clause(subject=asked_subject(chooser), verb=verb, **settings)
    pair = ask(clause, to_words(english) + phrase.english(), to_words(german) + phrase.german("accusative"))
    return replace(pair, combinations=(*pair.combinations, *replace(clause, object=phrase).combinations))


@pattern(3)
def which(chooser: Chooser) -> Pair:
    """Which dress did Laura buy?"""
    verb = chooser.pick(verbs.TRANSITIVE_VERBS + verbs.STATIVE_VERBS[1:])
    noun = chooser.pick([noun for noun in verb.objects if noun.group != "kin"])
    phrase = NounPhrase(
        noun=noun,
        determiner=WHICH,
        is_plural=not noun.is_mass and chooser.chance(0.3),
        adjective=chooser.adjective(noun, 0.3),
    )
    return ask_for_object(chooser, verb, phrase, "", "")


@pattern(3)
def how_many(chooser: Chooser) -> Pair:
    """How many eggs does the baker cook?"""
    verb = chooser.pick([verb for verb in verbs.TRANSITIVE_VERBS if verb.name != "drink"] + [verbs.HAVE])
    noun = chooser.pick([noun for noun in verb.objects if not noun.is_plural_only and not noun.is_mass])
    phrase = NounPhrase(noun=noun, determiner=BARE, is_plural=True, adjective=chooser.adjective(noun, 0.3))
    return ask_for_object(chooser, verb, phrase, "how many", "wie viele")
