"""Patterns with a conjunction, after which the German verb stands last."""

from generator import verbs
from generator.chooser import IN_PAIRS, Chooser
from generator.clauses import (
    WANT,
    WANTED,
    Clause,
    english_question,
    english_statement,
    german_question,
    german_statement,
    german_subordinate,
)
from generator.determiners import THE
from generator.drafts import Pair, finish, pattern
from generator.events import (
    TOO,
    VERY,
    WEATHER_WORDS,
    event,
    mood,
    motion,
    outing,
    suits_tense,
    tense_or_modal,
    transitive,
    weather,
)
from generator.modifiers import ADJECTIVES_BY_NAME, adjectives_for
from generator.nominals import IT, THEY, YOU, Nominal, NounPhrase
from generator.patterns.questions import question_word
from generator.phrases import adjective_predicate
from generator.words import COMMA, Word, to_words

KNOW = verbs.THINKING_VERBS[0]


def main_then_subordinate(main: Clause, english: str, german: str, subordinate: Clause) -> Pair:
    """Write a statement and after it a clause with a conjunction."""
    return finish(
        english_statement(main) + to_words(english) + english_statement(subordinate),
        [*german_statement(main), COMMA, *to_words(german), *german_subordinate(subordinate)],
        [main, subordinate],
    )


def subordinate_then_main(english: str, german: str, subordinate: Clause, main: Clause) -> Pair:
    """Write a clause with a conjunction and after it the main clause, whose German verb comes first."""
    return finish(
        [*to_words(english), *english_statement(subordinate), COMMA, *english_statement(main)],
        [*to_words(german), *german_subordinate(subordinate), COMMA, *german_question(main)],
        [subordinate, main],
    )


def with_reason(chooser: Chooser, english: str, german: str, tense: str) -> Pair:
    """Write what someone does, and a clause that has to do with it."""
    subject = chooser.subject()
    same = chooser.pronoun_for(subject) or chooser.third_person()
    kind = chooser.pick_weighted(((0.2, "mood"), (0.15, "weather"), (0.3, "want"), (0.35, "event")))
    if kind == "weather":
        # With a thing in the main clause, "it" could mean the thing.
        return main_then_subordinate(outing(chooser, subject, tense), english, german, weather(chooser, tense))
    main = event(chooser, subject, tense)
    if kind == "mood":
        other = mood(chooser, same, tense)
    elif kind == "want":
        other = event(chooser, same, modal=WANT if tense == "present" else WANTED)
    else:
        other = event(chooser, chooser.subject(), tense)
    return main_then_subordinate(main, english, german, other)


@pattern(11)
def because(chooser: Chooser) -> Pair:
    """She stays at home because she is tired."""
    return with_reason(chooser, "because", "weil", chooser.pick(("present", "past")))


@pattern(5)
def although(chooser: Chooser) -> Pair:
    """Although it rained, the children played in the garden."""
    tense = chooser.pick(("present", "past"))
    if chooser.chance(0.5):
        return with_reason(chooser, "although", "obwohl", tense)
    return subordinate_then_main("although", "obwohl", *background_and_event(chooser, tense))


def background_and_event(chooser: Chooser, tense: str) -> tuple[Clause, Clause]:
    """Say how the weather or someone's mood is, and what someone does."""
    if chooser.chance(0.4):
        return weather(chooser, tense), event(chooser, chooser.subject(), tense)
    subject = chooser.subject()
    same = chooser.pronoun_for(subject) or chooser.third_person()
    return mood(chooser, subject, tense), event(chooser, same, tense)


@pattern(4)
def when_present(chooser: Chooser) -> Pair:
    """When it rains, we read books."""
    if chooser.chance(0.7):
        return subordinate_then_main("when", "wenn", *background_and_event(chooser, "present"))
    subject = chooser.subject()
    same = chooser.pronoun_for(subject) or chooser.third_person()
    return subordinate_then_main("when", "wenn", motion(chooser, subject), event(chooser, same))


@pattern(4)
def when_past(chooser: Chooser) -> Pair:
    """When I was young, I visited my grandmother."""
    subject = chooser.subject()
    if chooser.chance(0.6):
        adjective = ADJECTIVES_BY_NAME[chooser.pick(("young", "sick", "small", "poor"))]
        background = Clause(subject=subject, verb=verbs.BE, tense="past", predicate=adjective_predicate(adjective))
    else:
        verb = verbs.INTRANSITIVE_VERBS[chooser.pick(("arrive", "wake up", "come back", "get up"))]
        background = Clause(subject=subject, verb=verb, tense="past")
    same = chooser.pronoun_for(subject) or chooser.third_person()
    return subordinate_then_main("when", "als", background, event(chooser, same, "past"))


@pattern(7)
def condition(chooser: Chooser) -> Pair:
    """If you help me, I will buy the book."""
    if chooser.chance(0.3):
        main = outing(chooser, chooser.subject(pronouns=0.5), "future")
        background = weather(chooser, "present")
    else:
        main = event(chooser, chooser.subject(pronouns=0.5), "future")
        background = event(chooser, chooser.subject(pronouns=0.5))
    if chooser.chance(0.5):
        return main_then_subordinate(main, "if", "wenn", background)
    return subordinate_then_main("if", "wenn", background, main)


@pattern(10)
def that(chooser: Chooser) -> Pair:
    """My father says that the neighbour sold his car."""
    verb = chooser.pick(verbs.THINKING_VERBS)
    tense = "past" if verb.base == "say" and chooser.chance(0.4) else "present"
    main = Clause(subject=chooser.subject(pronouns=0.5), verb=verb, tense=tense)
    subject = chooser.subject()
    if verb.base == "hope":
        return main_then_subordinate(main, "that", "dass", event(chooser, subject, chooser.pick(("present", "future"))))
    if chooser.chance(0.2):
        return main_then_subordinate(main, "that", "dass", mood(chooser, subject, tense))
    settings = {"tense": "past"} if tense == "past" else tense_or_modal(chooser)
    return main_then_subordinate(main, "that", "dass", event(chooser, subject, **settings))


@pattern(4)
def whether(chooser: Chooser) -> Pair:
    """I do not know whether Karl sold his car. Do you know whether she is sick?"""
    other = chooser.someone_else()
    asked = mood(chooser, other, "present") if chooser.chance(0.2) else event(chooser, other, **tense_or_modal(chooser))
    if chooser.chance(0.35):
        main = Clause(subject=YOU, verb=KNOW)
        english = english_question(main) + to_words("whether") + english_statement(asked)
        german = [*german_question(main), COMMA, Word("ob"), *german_subordinate(asked)]
        return finish(english, german, [main, asked], mark="?")
    main = Clause(subject=chooser.subject(pronouns=0.5), verb=KNOW, is_negated=True)
    return main_then_subordinate(main, "whether", "ob", asked)


@pattern(4)
def indirect_question(chooser: Chooser) -> Pair:
    """We do not know why the teacher closes the window."""
    main = Clause(subject=chooser.subject(pronouns=0.5), verb=KNOW, is_negated=True)
    english, german = chooser.pick((("why", "warum"), ("when", "wann"), ("where", "wo")))
    tense = chooser.pick(("present", "past")) if english == "why" else "past"
    asked = transitive(chooser, chooser.someone_else(), tense)
    source, target = question_word(english, german)
    return finish(
        english_statement(main) + source + english_statement(asked),
        [*german_statement(main), COMMA, *target, *german_subordinate(asked)],
        [main, asked],
    )


def pronoun_of(thing: NounPhrase) -> Nominal:
    """Refer back to a thing; German keeps its gender."""
    return THEY if thing.is_plural else IT[thing.noun.gender]


# Who buys something likes it, who sells it does not.
LIKING = "buy,wear,read,bring along,hang up,use,visit,order"
DISLIKING = "sell,throw away"
LIKED = "new beautiful cheap good interesting exciting modern fresh sweet famous important red blue green white"
DISLIKED = "old expensive heavy dirty broken bad boring loud difficult black yellow"


@pattern(5)
def because_it_is(chooser: Chooser) -> Pair:
    """He does not buy the coat because it is too expensive."""
    likes, is_negated = chooser.chance(0.75), chooser.chance(0.4)
    verb = verbs.TRANSITIVE_BY_NAME[chooser.pick((LIKING if likes else DISLIKING).split(","))]
    is_praise = likes != is_negated
    noun = chooser.pick([noun for noun in verb.objects if not noun.is_person])
    suitable = (LIKED if is_praise else DISLIKED).split()
    options = [(adjective, "") for adjective in adjectives_for(noun) if adjective.english in suitable]
    options += [(adjective, VERY) for adjective, _ in options if adjective.comparative]
    if not is_praise:
        # "It is too cold" would speak of the weather.
        excess = [a for a in adjectives_for(noun) if a.can_be_too_much and a.english not in WEATHER_WORDS]
        options += [(adjective, TOO) for adjective in excess]
    if not options:
        return because_it_is(chooser)
    is_plural = noun in IN_PAIRS or (not noun.is_mass and chooser.chance(0.2))
    thing = NounPhrase(noun=noun, determiner=THE, is_plural=is_plural)
    subject = chooser.subject()
    tense = chooser.pick(("present", "past"))
    if not suits_tense(verb, subject, tense):
        tense = "present"
    main = Clause(subject=subject, verb=verb, tense=tense, is_negated=is_negated, object=thing)
    predicate = adjective_predicate(*chooser.pick(options))
    explained = Clause(subject=pronoun_of(thing), verb=verbs.BE, tense=tense, predicate=predicate)
    return main_then_subordinate(main, "because", "weil", explained)
