"""Patterns of going, being and putting somewhere."""

from dataclasses import replace

from generator import verbs
from generator.chooser import Chooser
from generator.clauses import Clause, english_verb_group, german_statement
from generator.determiners import BARE, BY, NO, THE, A
from generator.drafts import Pair, finish, pattern, say
from generator.events import activity, motion, suits_tense, tense_or_modal
from generator.nominals import NounPhrase
from generator.nouns import NOUNS, Noun, select_nouns
from generator.phrases import Adverbial, FixedPhrase, PrepositionalPhrase, fixed_phrase
from generator.words import Concept, Mark, to_words

COMPANIONS = select_nouns("friend dog sister brother son daughter mother father child")
SMALL_STANDING = select_nouns("cup glass bottle plate vase pot bowl radio")
BIG_STANDING = select_nouns("chair lamp suitcase basket box")
LYING = select_nouns(
    "book newspaper letter magazine key knife spoon fork pen umbrella ticket map photo scarf glove shirt"
)
HANGING = select_nouns("picture mirror clock map photo lamp")


def daytime(chooser: Chooser, tense: str) -> FixedPhrase:
    """Pick a time for what happens at a certain hour."""
    if chooser.chance(0.5):
        return chooser.clock_time()
    lines = {
        "present": ("every *morning = jeden *Morgen", "*today = *heute", "in the *evening = am *Abend"),
        "past": ("*yesterday = *gestern", "this *morning = heute *Morgen", "on *Sunday = am *Sonntag"),
        "future": ("*tomorrow = *morgen", "*soon = *bald", "this *evening = heute *Abend", "on *Monday = am *Montag"),
    }
    return fixed_phrase(chooser.pick(lines[tense]))


def say_when(chooser: Chooser, clause: Clause, time: FixedPhrase) -> Pair:
    """Say when something happens, at the beginning or at the end of the English sentence."""
    if chooser.chance(0.4):
        return say(clause, fronted=time)
    return say(replace(clause, time=time))


@pattern(4)
def separable_without_object(chooser: Chooser) -> Pair:
    """The children get up at seven o'clock."""
    name = chooser.pick(("get up", "wake up", "fall asleep", "arrive", "come back", "go out"))
    tense = chooser.pick(("present", "past", "future"))
    clause = Clause(subject=chooser.subject(), verb=verbs.INTRANSITIVE_VERBS[name], tense=tense)
    if name == "arrive":
        places = select_nouns("station airport")
        clause = replace(clause, place=chooser.place(places) if chooser.chance(0.5) else chooser.city("in", "in"))
    return say_when(chooser, clause, daytime(chooser, tense))


@pattern(2)
def timetable(chooser: Chooser) -> Pair:
    """The old train leaves at eight o'clock."""
    noun = NOUNS[chooser.pick(("bus", "train", "ship", "tram"))]
    verb = verbs.INTRANSITIVE_VERBS[chooser.pick(("leave", "arrive"))]
    tense = chooser.pick(("present", "past", "future"))
    subject = chooser.definite_phrase(noun, is_plural=chooser.chance(0.15))
    return say_when(chooser, Clause(subject=subject, verb=verb, tense=tense), daytime(chooser, tense))


@pattern(5)
def going(chooser: Chooser) -> Pair:
    """The girl runs into the garden with her dog."""
    settings = tense_or_modal(chooser)
    subject = chooser.subject()
    clause = motion(chooser, subject, **settings)
    if chooser.chance(0.4):
        companion = NounPhrase(noun=chooser.pick(COMPANIONS), determiner=chooser.possessive(subject))
        clause = replace(clause, manner=PrepositionalPhrase("with", "mit", "dative", companion))
    elif "tense" in settings and chooser.chance(0.6):
        clause = replace(clause, time=chooser.time(settings["tense"]))
    return say(clause)


@pattern(3)
def travelling(chooser: Chooser) -> Pair:
    """Paul travelled to Vienna by train."""
    vehicle = NounPhrase(noun=chooser.pick(select_nouns("train bus car plane")), determiner=BY)
    settings = tense_or_modal(chooser)
    clause = Clause(
        subject=chooser.subject(),
        verb=verbs.MOTION_VERBS["travel"],
        direction=chooser.city("to", "nach"),
        manner=PrepositionalPhrase("", "mit", "dative", vehicle),
        **settings,
    )
    if "tense" in settings and chooser.chance(0.3):
        return say(clause, fronted=chooser.time(settings["tense"]))
    return say(clause)


@pattern(2)
def origin(chooser: Chooser) -> Pair:
    """The tourists come from Italy. The woman came out of the house."""
    come = verbs.MOTION_VERBS["come"]
    subject = chooser.subject()
    if chooser.chance(0.3):
        return say(Clause(subject=subject, verb=come, direction=chooser.city("from", "aus")))
    inside = select_nouns("house kitchen room office garden park museum theatre library restaurant church shop forest")
    source = PrepositionalPhrase("out of", "aus", "dative", chooser.definite_phrase(chooser.pick(inside)))
    clause = Clause(subject=subject, verb=come, tense="past", direction=source)
    return say_when(chooser, clause, daytime(chooser, "past"))


@pattern(2)
def residence(chooser: Chooser) -> Pair:
    """Our teacher lives in a small house."""
    homes = select_nouns("house village city castle hotel island")
    place = chooser.city("in", "in") if chooser.chance(0.4) else chooser.place(homes)
    settings = tense_or_modal(chooser)
    return say(Clause(subject=chooser.subject(), verb=verbs.INTRANSITIVE_VERBS["live"], place=place, **settings))


@pattern(4)
def doing(chooser: Chooser) -> Pair:
    """In the evening the students danced in the park."""
    settings = tense_or_modal(chooser)
    clause = activity(chooser, chooser.subject(), **settings)
    if "tense" in settings and chooser.chance(0.5):
        return say(clause, fronted=chooser.time(settings["tense"]))
    return say(clause)


def spot(chooser: Chooser, verb_name: str, case: str) -> tuple[NounPhrase, PrepositionalPhrase]:
    """Pick a thing and where it lies, stands or hangs (dative) or is put (accusative)."""
    if verb_name == "lie":
        thing = chooser.pick(LYING)
        english, german, nouns = chooser.pick(
            (
                ("on", "auf", "table desk chair bed sofa shelf carpet"),
                ("under", "unter", "table bed sofa chair desk"),
                ("in" if case == "dative" else "into", "in", "bag suitcase box basket wardrobe"),
            )
        )
    elif verb_name == "stand" and chooser.chance(0.5):
        thing = chooser.pick(SMALL_STANDING)
        english, german, nouns = "on", "auf", "table desk shelf wardrobe"
    elif verb_name == "stand":
        thing = chooser.pick(BIG_STANDING)
        english, german = chooser.pick((("next to", "neben"), ("behind", "hinter"), ("in front of", "vor")))
        nouns = "bed sofa desk wardrobe mirror table window door"
    else:
        thing = chooser.pick(HANGING)
        english, german, nouns = chooser.pick((("on", "an", "wall"), ("over", "über", "table bed sofa desk door")))
    return chooser.noun_phrase(thing), PrepositionalPhrase(english, german, case, spot_phrase(chooser, nouns, thing))


def spot_phrase(chooser: Chooser, nouns: str, thing: Noun) -> NounPhrase:
    """Name what a thing lies on or stands beside."""
    noun = chooser.pick([noun for noun in select_nouns(nouns) if noun is not thing])
    determiner = chooser.pick_weighted(((0.8, THE), (0.1, chooser.possessive()), (0.1, A)))
    return NounPhrase(noun=noun, determiner=determiner, adjective=chooser.adjective(noun, 0.3))


@pattern(4)
def position(chooser: Chooser) -> Pair:
    """The key lies on the table. On the wall hangs an old clock."""
    verb = chooser.pick((verbs.LIE, verbs.STAND, verbs.HANG))
    thing, where = spot(chooser, verb.base, "dative")
    if not thing.is_definite and chooser.chance(0.6):
        clause = Clause(subject=thing, verb=verb)
        _, stands = english_verb_group(clause, is_inverted=False)
        return finish(where.english() + stands + thing.english(), german_statement(clause, where), [clause, where])
    return say(Clause(subject=thing, verb=verb, place=where))


@pattern(4)
def putting(chooser: Chooser) -> Pair:
    """Emma puts the key on the table."""
    verb, name = chooser.pick(((verbs.LAY_DOWN, "lie"), (verbs.SET_DOWN, "stand"), (verbs.HANG_ON, "hang")))
    thing, where = spot(chooser, name, "accusative")
    settings = tense_or_modal(chooser)
    subject = chooser.subject()
    while not suits_tense(verb, subject, settings.get("tense", "")):
        subject = chooser.subject()
    return say(Clause(subject=subject, verb=verb, object=thing, direction=where, **settings))


@pattern(3)
def there_is(chooser: Chooser) -> Pair:
    """There is a big tree behind the house."""
    if chooser.chance(0.25):
        noun = chooser.pick(select_nouns("tree lake river flower"))
        place: Adverbial = chooser.place(select_nouns("park forest island"))
    else:
        noun = chooser.pick(select_nouns("restaurant hotel museum library school church shop theatre hospital market"))
        place = chooser.near() if chooser.chance(0.4) else chooser.place(select_nouns("city village island"))
        if isinstance(place, PrepositionalPhrase) and place.inner.english()[-1].text == noun.english:
            return there_is(chooser)
    number = chooser.pick(("two", "three", "four", "five"))
    determiner, is_plural, number = chooser.pick(((A, False, ""), (BARE, True, number), (NO, False, "")))
    adjective = chooser.adjective(noun, 0.6)
    thing = NounPhrase(noun=noun, determiner=determiner, is_plural=is_plural, number=number, adjective=adjective)
    concept = Concept("verb", "there is", Mark())
    be, gibt = to_words("are" if is_plural else "is", concept), to_words("gibt", concept)
    if chooser.chance(0.4):
        english = place.english() + to_words("there") + be + thing.english()
        german = place.german() + gibt + to_words("es") + thing.german("accusative")
    else:
        english = to_words("there") + be + thing.english() + place.english()
        german = to_words("es") + gibt + thing.german("accusative") + place.german()
    return finish(english, german, [thing, place])
