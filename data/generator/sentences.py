"""Random sentences: who does what, where and when, in several kinds of sentences."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from generator.grammar import (
    INDEFINITE,
    IT,
    MODALS,
    NOTHING,
    POSSESSIVES,
    PRONOUNS,
    WHO,
    Clause,
    Pair,
    Phrase,
    Text,
    finish,
    join,
    named,
    noun_phrase,
    prepositional,
    relative_pronoun,
    say,
    starred,
)
from generator.words import ADJECTIVES, BE, NOUNS, VERBS, Adjective, Noun, Verb, entries, names, select

T = TypeVar("T")

PEOPLE = select("people")
OWNED = select("owned")
SUITABLE = {name: [a for a in ADJECTIVES.values() if noun in a.nouns] for name, noun in NOUNS.items()}
HAPPENING = ("see", "find", "lose", "understand", "receive", "meet")  # nobody is told to do these
MAKING = ("write", "build", "draw", "prepare")  # the object is not old or broken yet
NEVER_VERY = ("red", "blue", "green", "black", "white", "broken", "empty")
CAN_BE_TOO = ("old", "young", "tall", "big", "small", "expensive", "heavy", "long", "dark", "dirty", "sweet", "quiet")


class Chooser:
    """Draws all choices from one seed, by Random.random only: its sequence is the same in every version of Python."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed).random

    def chance(self, probability: float) -> bool:
        """Say yes with this probability."""
        return self.random() < probability

    def pick(self, options: Sequence[T]) -> T:
        """Pick one of the options."""
        return options[int(self.random() * len(options))]

    def adjective(self, noun: Noun, probability: float) -> Adjective | None:
        """Pick an adjective that suits a noun, or none."""
        return self.pick(SUITABLE[noun.english]) if SUITABLE[noun.english] and self.chance(probability) else None

    def thing(
        self, noun: Noun, owner: Phrase | None = None, *, is_negated: bool = False, adjectives: float = 0.45
    ) -> Phrase:
        """Put a determiner, perhaps a number and perhaps an adjective before a noun."""
        mine = owner.possessive if owner and owner.possessive and self.chance(0.75) else self.pick(POSSESSIVES)
        if noun.kind == "~":
            determiner = self.pick(("", "", "the", mine))
        elif noun.group == "kin":
            determiner = mine
        else:
            owned = [mine] * 2 if noun in OWNED else []
            determiner = self.pick(["the"] * 4 + ["a"] * 3 + ["this", "", "many", "some", *owned])
        is_plural = determiner in ("", "many", "some") or (determiner in ("the", "this", mine) and self.chance(0.2))
        is_plural = is_plural and noun.kind != "~" and noun.group != "kin"
        has_number = is_plural and determiner in ("", "the") and self.chance(0.5)
        if is_negated and determiner in INDEFINITE:
            determiner, has_number = "not a", False  # "not three apples" would only be said in contrast
        number = "=".join(self.pick(entries("number"))) if has_number else ""
        return noun_phrase(noun, determiner, self.adjective(noun, adjectives), is_plural=is_plural, number=number)

    def someone(
        self, nouns: Sequence[Noun] = PEOPLE, other: Phrase | None = None, *, is_negated: bool = False
    ) -> Phrase:
        """Pick a pronoun, one or two names or a noun, for someone else than the other."""
        kind = self.random()
        if kind < 0.22:
            taken = {"1sg": ("I", "we"), "1pl": ("I", "we"), "2sg": ("you",)}.get(other.person if other else "", ())
            return self.pick([phrase for name, phrase in PRONOUNS.items() if name not in taken])
        if kind < 0.26:
            return named(self.pick(names("woman")), self.pick(names("man")), gender="plural")
        if kind < 0.4:
            section, gender = self.pick((("woman", "f"), ("man", "m")))
            return named(self.pick(names(section)), gender=gender)
        return self.thing(self.pick(nouns), other, is_negated=is_negated, adjectives=0.3)

    def time(self, tense: str) -> Text:
        """Pick a time that suits a tense."""
        return starred(*self.pick(entries(f"time {tense}") * 2 + entries("time any")))

    def place(self, *, is_goal: bool = False) -> Text:
        """Pick where something happens, or where someone goes."""
        if self.chance(0.15):
            before = Text("to", "nach") if is_goal else Text("in", "in")
            return before + starred(*self.pick(entries("city")))
        name, prepositions = self.pick(entries("place"))
        at, german_at, to, german_to = prepositions.split()
        phrase = noun_phrase(NOUNS[name], "the", self.adjective(NOUNS[name], 0.25))
        if is_goal:
            return prepositional(to, german_to, "dative" if german_to == "zu" else "accusative", phrase)
        return prepositional(at, german_at, "dative", phrase)

    def object_of(self, verb: Verb, subject: Phrase, *, is_negated: bool) -> Phrase:
        """Pick an object that makes sense with a verb."""
        if all(noun in PEOPLE for noun in verb.objects):
            return self.someone(verb.objects, subject, is_negated=is_negated)
        share = 0.0 if verb.name in MAKING else 0.45
        return self.thing(self.pick(verb.objects), subject, is_negated=is_negated, adjectives=share)

    def event(self, subject: Phrase, *, is_deliberate: bool = False, is_negated: bool = False, **form: Any) -> Clause:
        """Make a clause: someone does something, in a tense or with a modal verb."""
        is_deliberate = is_deliberate or "modal" in form
        tense = form.get("tense", "present")
        kinds = ["transitive"] * 6 + ["dative", "ditransitive", "prepositional", "motion"]
        if is_negated:
            kinds.remove("ditransitive")  # where "nicht" stands would be a matter of taste
        if not is_deliberate:
            kinds += ["activity"] * (not is_negated) + ["stative"] * (tense == "present")
        kind = self.pick(kinds)
        verb = self.pick(VERBS[kind])
        # "They put on the coat" may be present or past.
        is_ambiguous = verb.past == verb.base and tense == "past" and subject.person != "3sg"
        if is_ambiguous or (is_deliberate and verb.name in HAPPENING):
            return self.event(subject, is_deliberate=is_deliberate, is_negated=is_negated, **form)
        clause = Clause(subject=subject, verb=verb, is_negated=is_negated, **form)
        if kind == "motion":
            return replace(clause, complement=self.place(is_goal=True))
        if kind == "activity":
            return replace(clause, time=self.time(tense)) if verb.particle else replace(clause, place=self.place())
        if kind == "prepositional":
            english, german, case = verb.preposition
            thing = self.thing(self.pick(verb.objects), subject)
            thing = noun_phrase(self.pick(verb.objects)) if is_negated else thing
            return replace(clause, complement=prepositional(english, german, case, thing))
        if kind == "dative":
            return replace(clause, recipient=self.someone(verb.objects, subject, is_negated=is_negated))
        if kind == "ditransitive":
            # With "the": "she sends her books" may also mean that the books are hers.
            thing = noun_phrase(self.pick(verb.objects), "the", is_plural=self.chance(0.2))
            return replace(clause, recipient=self.someone(other=subject), object=thing)
        return replace(clause, object=self.object_of(verb, subject, is_negated=is_negated))

    def form(self) -> dict[str, Any]:
        """Pick the present, the past, the future or a modal verb."""
        kind = self.pick(("present", "present", "past", "past", "future", "modal"))
        return {"modal": self.pick(tuple(MODALS))} if kind == "modal" else {"tense": kind}

    def quality(self, subject: Phrase, noun: Noun, tense: str, *, is_too_much: bool = False) -> Clause:
        """Say that something is so, perhaps very much or too much so."""
        excessive = [adjective for adjective in SUITABLE[noun.english] if adjective.english in CAN_BE_TOO]
        adjective = self.pick(excessive if is_too_much and excessive else SUITABLE[noun.english])
        very = [] if adjective.english in NEVER_VERY else [Text("*very", "*sehr")]
        degree = Text("*too", "*zu") if is_too_much and excessive else self.pick([NOTHING, NOTHING, *very])
        predicate = degree + Text(f"*{adjective.english}", f"*{adjective.german}")
        return Clause(subject=subject, verb=BE, tense=tense, complement=starred(predicate.english, predicate.german))

    def same(self, subject: Phrase) -> Phrase:
        """Refer back to someone by a pronoun, if both languages agree on it."""
        name = {"m": "he", "f": "she", "plural": "they"}.get(subject.gender, "")
        return subject if subject.is_pronoun else PRONOUNS.get(name) or self.someone()


# Kinds of sentences ---------------------------------------------------------------------------------------------------


def statement(choose: Chooser) -> Pair:
    """Yesterday the old man bought a red car. He did not buy a house in Vienna."""
    form = choose.form()
    clause = choose.event(choose.someone(), is_negated=choose.chance(0.2), **form)
    when = choose.time(form.get("tense", "future"))
    is_full = clause.time.english or clause.place.english or (clause.recipient and clause.object)
    if (
        is_full
        or clause.verb in VERBS["stative"]
        or choose.chance(0.2)
        or (clause.is_negated and when.english.startswith("every"))
    ):
        return finish(say(clause))
    if clause.is_negated or choose.chance(0.4):
        return finish(say(replace(clause, time=when)))
    if clause.object and clause.verb.name != "visit" and choose.chance(0.4):
        return finish(say(replace(clause, place=choose.place())))
    return finish(say(clause, fronted=when))


def with_adverb(choose: Chooser) -> Pair:
    """I have already read this book. The baker is baking a cake. She often visits us."""
    adverbs = [("perfect", "*already", "*schon"), ("progressive", "", "gerade"), ("present", "*often", "*oft")]
    adverbs += [("present", "*always", "*immer"), ("present", "*sometimes", "*manchmal")]
    tense, english, german = choose.pick(adverbs)
    clause = choose.event(choose.someone(), is_deliberate=True, tense=tense)
    return finish(say(replace(clause, adverb=starred(english, german))))


def question(choose: Chooser) -> Pair:
    """Will you visit your aunt? Why did the teacher open the window?"""
    word = choose.pick((NOTHING, NOTHING, starred("*why", "*warum"), starred("*when", "*wann")))
    clause = choose.event(choose.someone(), is_deliberate=True, **choose.form())
    return finish(word + say(clause, "question"), "?")


def who(choose: Chooser) -> Pair:
    """Who repaired the old bicycle?"""
    return finish(say(choose.event(WHO, tense=choose.pick(("present", "past", "future")))), "?")


def which(choose: Chooser) -> Pair:
    """Which dress did Laura buy?"""
    verb = choose.pick(VERBS["transitive"])
    noun = choose.pick([noun for noun in verb.objects if noun.group != "kin"])
    thing = noun_phrase(noun, "which", choose.adjective(noun, 0.4))
    clause = Clause(subject=choose.someone(), verb=verb, tense="past")
    return finish(Text(thing.english, thing.german["accusative"]) + say(clause, "question"), "?")


def command(choose: Chooser) -> Pair:
    """Please turn off the light! Do not open the door!"""
    clause = choose.event(PRONOUNS["you"], is_deliberate=True, is_negated=choose.chance(0.3))
    if clause.is_negated:
        return finish(say(clause, "command"), "!")
    please = starred("*please", "*bitte")
    said = say(replace(clause, adverb=please), "command")
    return finish(Text(join(please.english, said.english), said.german), "!")


def quality(choose: Chooser) -> Pair:
    """The old houses are very beautiful. This coat was not too expensive."""
    noun = choose.pick([noun for noun in NOUNS.values() if SUITABLE[noun.english]])
    subject, tense = choose.thing(noun, adjectives=0.0), choose.pick(("present", "past"))
    clause = choose.quality(subject, noun, tense, is_too_much=choose.chance(0.2))
    return finish(say(replace(clause, is_negated=choose.chance(0.2))))


def because_it_is(choose: Chooser) -> Pair:
    """He does not buy the coat because it is too expensive."""
    verb = choose.pick([verb for verb in VERBS["transitive"] if verb.base in ("buy", "sell", "read", "clean", "wash")])
    noun = choose.pick([noun for noun in verb.objects if SUITABLE[noun.english]])
    is_plural = noun.kind != "~" and choose.chance(0.3)
    thing = noun_phrase(noun, is_plural=is_plural)
    main = Clause(subject=choose.someone(), verb=verb, object=thing, is_negated=choose.chance(0.4))
    it = PRONOUNS["they"] if is_plural else IT[noun.gender]
    reason = choose.quality(it, noun, "present", is_too_much=main.is_negated)
    return finish(say(main) + Text("because", ", weil") + say(reason, "subordinate"))


def two_clauses(choose: Chooser) -> Pair:
    """If you help me, I will buy the book. She waits for him because she wants to thank him."""
    conjunctions = (
        ("because", "weil", "present", "present"),
        ("because", "weil", "past", "past"),
        ("although", "obwohl", "past", "past"),
        ("if", "wenn", "present", "future"),
        ("when", "als", "past", "past"),
    )
    english, german, tense, main_tense = choose.pick(conjunctions)
    first = choose.someone()
    second = choose.same(first) if choose.chance(0.6) else choose.someone()
    if english == "because" or choose.chance(0.4):
        main, other = choose.event(first, tense=main_tense), choose.event(second, tense=tense)
        return finish(say(main) + Text(english, f", {german}") + say(other, "subordinate"))
    other, main = choose.event(first, tense=tense), choose.event(second, tense=main_tense)
    inverted = Text(say(main).english, say(main, "question").german)  # the German verb follows the clause at once
    return finish(Text(english, german) + say(other, "subordinate") + Text(",", ",") + inverted)


def that_or_whether(choose: Chooser) -> Pair:
    """My father says that the neighbour sold his car. I do not know whether she reads this book."""
    verb = choose.pick(VERBS["thinking"])
    is_whether = verb.base == "know"
    main = Clause(subject=choose.someone(), verb=verb, is_negated=is_whether)
    form = {"tense": "future"} if verb.base == "hope" else choose.form()
    conjunction = Text("whether", ", ob") if is_whether else Text("that", ", dass")
    return finish(say(main) + conjunction + say(choose.event(choose.someone(), **form), "subordinate"))


def infinitive(choose: Chooser) -> Pair:
    """He tries to repair the radio. My aunt goes to the market to buy fresh eggs."""
    subject = choose.someone()
    task = choose.event(subject, is_deliberate=True)
    if task.object and choose.chance(0.4):
        goal = choose.place(is_goal=True)
        main = Clause(subject=subject, verb=VERBS["motion"][0], complement=goal, **choose.form())
        return finish(say(main) + Text("", ", um") + say(task, "infinitive"))
    main = Clause(subject=subject, verb=choose.pick(VERBS["trying"]), tense=choose.pick(("present", "past")))
    return finish(say(main) + Text("", ",") + say(task, "infinitive"))


def relative(choose: Chooser) -> Pair:
    """The woman who bought the house is happy. The book that Anna read was very interesting."""
    tense = choose.pick(("present", "past"))
    if choose.chance(0.4):
        noun = choose.pick([noun for noun in PEOPLE if noun.group != "kin"])
        head = noun_phrase(noun)
        clause = say(choose.event(relative_pronoun(head, "who"), tense=tense), "subordinate")
    else:
        verb = choose.pick([verb for verb in VERBS["transitive"] if verb.past != verb.base])
        noun = choose.pick([noun for noun in verb.objects if SUITABLE[noun.english]])
        head = noun_phrase(noun, is_plural=noun.kind != "~" and choose.chance(0.3))
        pronoun = relative_pronoun(head, "whom" if noun in PEOPLE else "that")
        clause = say(Clause(subject=choose.someone(), verb=verb, tense="past"), "subordinate")
        clause = Text(pronoun.english, pronoun.german["accusative"]) + clause
    german = join(head.german["nominative"], ",", clause.german, ",")
    subject = replace(head, english=join(head.english, clause.english), german={"nominative": german})
    return finish(say(choose.quality(subject, noun, tense)))


WEIGHTS = {statement: 8, with_adverb: 3, question: 3, who: 1, which: 1, command: 1, quality: 2, because_it_is: 1}
WEIGHTS |= {two_clauses: 3, that_or_whether: 2, infinitive: 2, relative: 2}
WHEEL = [pattern for pattern, weight in WEIGHTS.items() for _ in range(weight)]


def write_pair(choose: Chooser) -> Pair:
    """Write a random sentence pair."""
    while True:
        pair = choose.pick(WHEEL)(choose)
        if is_acceptable(pair):
            return pair


def is_acceptable(pair: Pair) -> bool:
    """Keep sentences of 4 to 16 words that say no content word twice and are not a matter of dispute."""
    lengths = [len(side.split()) for side in (pair.english, pair.german)]
    # A verb with a particle is two words with one name.
    is_said_once = all(pair.meanings.count(meaning) == 1 + meaning.count("_") for meaning in pair.meanings)
    # A child may be both "he" and "she".
    words = pair.english.lower().split()
    is_disputed = "child" in words and ("her" in words or "his" in words)
    return min(lengths) >= 4 and max(lengths) <= 16 and is_said_once and not is_disputed
