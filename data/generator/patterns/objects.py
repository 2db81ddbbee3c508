"""Patterns of what a verb governs: dative and prepositional objects, recipients, tools, agents."""

from dataclasses import replace

from generator import verbs
from generator.chooser import EVERYONE, Chooser
from generator.clauses import CAN, PRESENT_MODALS, Clause, english_infinitive, german_statement
from generator.determiners import BARE, THE, THIS, A
from generator.drafts import Pair, finish, pattern, say
from generator.events import as_made, dative, ditransitive, prepositional, suits_tense, tense_or_modal
from generator.nominals import ListedPhrase, NounPhrase, definite
from generator.nouns import NOUNS, select_nouns
from generator.patterns.statements import FREQUENCIES
from generator.phrases import FixedPhrase, JoinedPhrase, PrepositionalPhrase, fixed_phrase
from generator.words import Concept, Mark, Word

# What one does with a tool, and to what.
TOOLS = {
    "knife": ("cut", "bread cake cheese meat tomato apple sausage carrot potato"),
    "spoon": ("eat", "soup salad cake rice honey egg"),
    "fork": ("eat", "salad cake potato meat rice sausage"),
    "pen": ("write", "letter novel poem report story message"),
    "key": ("open", "door wardrobe box suitcase"),
    "camera": ("photograph", "person animal building mountain lake island garden flower rose tree ship"),
}
OWNED_THINGS = select_nouns("tool container clothing car bicycle boat house dog cat horse book ring camera instrument")
FRIGHTENING = select_nouns("animal exam teacher judge doctor policeman forest river -rabbit -duck")


@pattern(5)
def dative_verb(chooser: Chooser) -> Pair:
    """The nurse helps the old man."""
    settings = tense_or_modal(chooser)
    clause = dative(chooser, chooser.subject(), **settings)
    if "tense" in settings and chooser.chance(0.5):
        clause = replace(clause, time=chooser.time(settings["tense"]))
    return say(clause)


@pattern(8)
def recipient(chooser: Chooser) -> Pair:
    """My uncle gives the child a book."""
    return say(ditransitive(chooser, chooser.subject(), **tense_or_modal(chooser)))


@pattern(5)
def prepositional_verb(chooser: Chooser) -> Pair:
    """We wait for the bus at the station."""
    clause = prepositional(chooser, chooser.subject(), **tense_or_modal(chooser))
    return say(replace(clause, place=chooser.place()) if chooser.chance(0.4) else clause)


@pattern(3)
def belonging(chooser: Chooser) -> Pair:
    """This red bicycle belongs to my brother."""
    noun = chooser.pick(OWNED_THINGS)
    thing = NounPhrase(
        noun=noun,
        determiner=chooser.pick((THE, THIS)),
        is_plural=chooser.chance(0.25),
        adjective=chooser.adjective(noun, 0.6),
    )
    owner = chooser.someone([noun for noun in EVERYONE if noun.english != "tourist"], thing)
    is_negated = owner.is_definite and chooser.chance(0.2)
    return say(Clause(subject=thing, verb=verbs.BELONG, recipient=owner, is_negated=is_negated))


@pattern(2)
def music(chooser: Chooser) -> Pair:
    """Clara can play the piano. My son plays the flute every day."""
    noun = chooser.pick(select_nouns("instrument"))
    concept = Concept("noun", noun.english, Mark())
    # German names the instrument without an article.
    instrument = FixedPhrase([Word("the"), Word(noun.english, concept)], [Word(noun.german, concept)])
    clause = Clause(subject=chooser.subject(), verb=verbs.INTRANSITIVE_VERBS["play"], predicate=instrument)
    if chooser.chance(0.3):
        return say(replace(clause, modal=chooser.pick((CAN, *PRESENT_MODALS))))
    if chooser.chance(0.3):
        return say(replace(clause, frequency=fixed_phrase(chooser.pick(FREQUENCIES))))
    tense = chooser.pick(("present", "past"))
    return say(replace(clause, tense=tense, time=chooser.time(tense)))


@pattern(2)
def fear(chooser: Chooser) -> Pair:
    """The girl is afraid of the big dog."""
    thing = chooser.noun_phrase(chooser.pick(FRIGHTENING))
    phrase = JoinedPhrase(fixed_phrase("*afraid = *Angst"), PrepositionalPhrase("of", "vor", "dative", thing))
    tense = chooser.pick(("present", "present", "past"))
    return say(Clause(subject=chooser.subject(), verb=verbs.BE_AFRAID, tense=tense, predicate=phrase))


@pattern(3)
def tool(chooser: Chooser) -> Pair:
    """He cuts the bread with a knife."""
    name = chooser.pick(tuple(TOOLS))
    verb_name, objects = TOOLS[name]
    verb = verbs.TRANSITIVE_BY_NAME[verb_name]
    subject = chooser.subject()
    settings = tense_or_modal(chooser)
    while not suits_tense(verb, subject, settings.get("tense", "")):
        subject = chooser.subject()
    thing = as_made(verb, chooser.noun_phrase(chooser.pick(select_nouns(objects)), owner=subject))
    determiner = chooser.pick((A, THE, chooser.possessive(subject)))
    adjective = chooser.adjective(NOUNS[name], 0.3)
    used = NounPhrase(noun=NOUNS[name], determiner=determiner, adjective=adjective)
    phrase = PrepositionalPhrase("with", "mit", "dative", used)
    return say(Clause(subject=subject, verb=verb, object=thing, manner=phrase, **settings))


@pattern(4)
def for_whom(chooser: Chooser) -> Pair:
    """She buys a gift for her mother. He visits the museum without his brother."""
    subject = chooser.subject()
    is_for = chooser.chance(0.65)
    names = (
        ("buy", "cook", "bake", "order", "write", "find") if is_for else ("visit", "repair", "build", "cook", "carry")
    )
    verb = verbs.TRANSITIVE_BY_NAME[chooser.pick(names)]
    english, german = ("for", "für") if is_for else ("without", "ohne")
    other = chooser.someone(EVERYONE, subject)
    noun = chooser.pick([noun for noun in verb.objects if not noun.is_person])
    thing = as_made(verb, chooser.noun_phrase(noun, owner=subject))
    if not is_for:
        thing = definite(thing)
        other = definite(other) if isinstance(other, NounPhrase) else other
    phrase = PrepositionalPhrase(english, german, "accusative", other)
    return say(Clause(subject=subject, verb=verb, object=thing, manner=phrase, **tense_or_modal(chooser)))


@pattern(3)
def passive(chooser: Chooser) -> Pair:
    """The bridge was built by a famous engineer."""
    names = "write build repair paint translate find photograph bake draw describe sell hide"
    verb = verbs.TRANSITIVE_BY_NAME[chooser.pick(names.split())]
    thing = as_made(verb, chooser.noun_phrase(chooser.pick(verb.objects), as_subject=True))
    agent = PrepositionalPhrase("by", "von", "dative", chooser.third_person())
    return say(Clause(subject=thing, verb=verb, tense="passive", prepositional_object=agent))


@pattern(4)
def two_objects(chooser: Chooser) -> Pair:
    """We buy bread and cheese. He reads the letter and the newspaper."""
    names = ("buy", "eat", "drink", "read", "bring along", "order", "draw", "find", "look for", "wash", "sell", "write")
    verb = verbs.TRANSITIVE_BY_NAME[chooser.pick(names)]
    subject = chooser.subject()
    settings = tense_or_modal(chooser)
    while not suits_tense(verb, subject, settings.get("tense", "")):
        subject = chooser.subject()
    first = chooser.pick(verb.objects)
    others = [noun for noun in verb.objects if noun.is_mass == first.is_mass and noun is not first]
    second = chooser.pick([noun for noun in others if noun.group == first.group] or others)
    kinds = ((BARE, False), (THE, False)) if first.is_mass else ((A, False), (THE, False), (BARE, True), (THE, True))
    determiner, is_plural = chooser.pick(kinds)
    phrases = [NounPhrase(noun=noun, determiner=determiner, is_plural=is_plural) for noun in (first, second)]
    return say(Clause(subject=subject, verb=verb, object=ListedPhrase(*phrases), **settings))


@pattern(3)
def likes_to(chooser: Chooser) -> Pair:
    """Lisa likes to drink black tea."""
    names = "eat drink read bake clean sing learn photograph wear visit cook write"
    verb = verbs.TRANSITIVE_BY_NAME[chooser.pick(names.split())]
    noun = chooser.pick(verb.objects)
    subject = chooser.subject()
    thing = NounPhrase(
        noun=noun,
        determiner=chooser.possessive(subject) if noun.group == "kin" else BARE,
        is_plural=noun.is_plural_only or not (noun.is_mass or noun.group == "kin"),
        adjective=chooser.adjective(noun, 0.6),
    )
    clause = Clause(subject=subject, verb=verb, object=thing)
    gladly = Concept("adverb", "like", Mark())
    likes = Word("likes" if subject.person == "3sg" else "like", gladly)
    english = [*subject.english(as_subject=True), likes, *english_infinitive(clause)]
    german = german_statement(replace(clause, frequency=FixedPhrase([], [Word("gern", gladly)])))
    return finish(english, german, [clause])
