"""Random choices that keep phrases plausible: who, what, when and where."""

import random
from collections.abc import Sequence
from typing import TypeVar

from generator.determiners import BARE, MANY, NOT_A, POSSESSIVES, SOME, THE, THIS, A, Determiner, possessive_of
from generator.modifiers import CITIES, GOALS, MEN, NUMBERS, PLACES, TIMES, WOMEN, Adjective, Place, adjectives_for
from generator.nominals import HE, PRONOUNS, SHE, THEY, WE, YOU, I, Name, Nominal, NounPhrase, Pronoun
from generator.nouns import Noun, select_nouns
from generator.phrases import Adverbial, FixedPhrase, PrepositionalPhrase, fixed_phrase

T = TypeVar("T")

PEOPLE = select_nouns("person profession")
KIN = select_nouns("kin")
EVERYONE = PEOPLE + KIN
# People one can have: my friend, but not my tourist.
OWNED_PEOPLE = select_nouns("friend neighbour colleague teacher doctor child guest customer")
OWNED_PLACES = select_nouns("house garden kitchen room bedroom office city village cellar shop")
SEVERAL_KIN = select_nouns("brother sister son daughter uncle aunt")
UNOWNED = select_nouns(
    "building place bus train tram ship plane bear mouse language -house -shop -garden -village -city"
)
IN_PAIRS = select_nouns("shoe glove")
COUNTLESS_GROUPS = ("food", "text", "plant", "tool", "vessel")
INDOORS = select_nouns("house kitchen room bedroom cellar garden forest shop")
ISLANDS = select_nouns("island")
LANDMARKS = select_nouns("house school church museum hospital station hotel theatre library factory")


class Chooser:
    """Draws all random choices from one seed.

    Only Random.random is used: its sequence is the same in every version of Python.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed).random

    def chance(self, probability: float) -> bool:
        """Say yes with this probability."""
        return self.random() < probability

    def pick(self, options: Sequence[T]) -> T:
        """Pick one of the options."""
        return options[int(self.random() * len(options))]

    def pick_weighted(self, options: Sequence[tuple[float, T]]) -> T:
        """Pick one of the options according to its weight."""
        rest = self.random() * sum(weight for weight, _ in options)
        for weight, option in options:
            rest -= weight
            if rest < 0:
                return option
        return options[-1][1]

    # People

    def name(self) -> Name:
        """Pick one person by name."""
        return Name((self.pick(WOMEN),), "f") if self.chance(0.5) else Name((self.pick(MEN),), "m")

    def subject(self, *, pronouns: float = 0.24) -> Nominal:
        """Pick who does something."""
        kinds = (pronouns, "pronoun"), (0.17, "name"), (0.04, "two names"), (0.19, "kin"), (0.36, "person")
        kind = self.pick_weighted(kinds)
        if kind == "pronoun":
            return self.pick(PRONOUNS)
        if kind == "name":
            return self.name()
        if kind == "two names":
            return Name((self.pick(WOMEN), self.pick(MEN)), "plural")
        return self.noun_phrase(self.pick(KIN if kind == "kin" else PEOPLE), as_subject=True)

    def third_person(self) -> Nominal:
        """Pick who does something, without pronouns."""
        return self.subject(pronouns=0)

    def someone_else(self) -> Nominal:
        """Pick who does something, but neither the speaker nor the listener."""
        return self.pick((HE, SHE, THEY)) if self.chance(0.4) else self.third_person()

    def pronoun_for(self, nominal: Nominal) -> Pronoun | None:
        """Find the pronoun that refers back to someone, if both languages agree on it."""
        if isinstance(nominal, Pronoun):
            return nominal
        return {"m": HE, "f": SHE, "plural": THEY}.get(nominal.gender)

    def other_pronoun(self, subject: Nominal) -> Pronoun:
        """Pick a pronoun for someone else than the subject."""
        clashes = {"1sg": (I, WE), "1pl": (I, WE), "2sg": (YOU,)}.get(subject.person, ())
        return self.pick([pronoun for pronoun in PRONOUNS if pronoun not in clashes])

    def someone(self, nouns: Sequence[Noun], subject: Nominal, *, is_negated: bool = False) -> Nominal:
        """Pick whom something is done to."""
        kind = self.pick_weighted(((0.12, "name"), (0.2, "pronoun"), (0.68, "noun")))
        if kind == "name":
            return self.name()
        if kind == "pronoun":
            return self.other_pronoun(subject)
        return self.noun_phrase(self.pick(nouns), owner=subject, is_negated=is_negated)

    # Noun phrases

    def possessive(self, owner: Nominal | None = None) -> Determiner:
        """Pick my, your, his, and so on; most often the one that refers to the owner."""
        referring = self.pronoun_for(owner) if owner else None
        if referring and self.chance(0.75):
            return referring.possessive
        return self.pick(POSSESSIVES)

    def determiner(self, noun: Noun, owner: Nominal | None, *, as_subject: bool) -> tuple[Determiner, bool, bool]:
        """Pick a determiner, whether the noun is plural, and whether a number stands before it."""
        mine = self.possessive(owner)
        named = possessive_of(self.pick(WOMEN + MEN))
        if noun.is_plural_only:
            return mine, True, False
        if noun.is_mass:
            return self.pick_weighted(((0.6, BARE), (0.3, THE), (0.1, mine))), False, False
        if noun.group == "kin":
            several = 0.1 if noun in SEVERAL_KIN else 0.0
            return self.pick_weighted(
                (
                    (0.8, (mine, False, False)),
                    (0.06, (THE, False, False)),
                    (0.06, (named, False, False)),
                    (several, (mine, True, False)),
                    (several / 2, (mine, True, True)),
                )
            )
        owned = 0.0 if noun in UNOWNED or (noun in PEOPLE and noun not in OWNED_PEOPLE) else 1.0
        single = 0.2 if noun in IN_PAIRS else 1.0
        return self.pick_weighted(
            (
                (0.34 * single, (THE, False, False)),
                (0.12 if as_subject else 0.25 * single, (A, False, False)),
                (0.06 * single, (THIS, False, False)),
                (0.1, (THE, True, False)),
                (0.03, (THIS, True, False)),
                (0.01 if as_subject else 0.04, (BARE, True, False)),
                (0.06 * single, (BARE, True, True)),
                (0.02, (SOME, True, False)),
                (0.02, (MANY, True, False)),
                (0.02 * single, (THE, True, True)),
                (0.14 * owned * single, (mine, False, False)),
                (0.04 * owned, (mine, True, False)),
                (0.03 * owned * single, (named, False, False)),
            )
        )

    def noun_phrase(
        self,
        noun: Noun,
        *,
        owner: Nominal | None = None,
        as_subject: bool = False,
        is_negated: bool = False,
        adjectives: float = 0.42,
    ) -> NounPhrase:
        """Put a determiner, perhaps a number and perhaps an adjective before a noun."""
        determiner, is_plural, has_number = self.determiner(noun, owner, as_subject=as_subject)
        if is_negated and not determiner.is_definite:
            # "Not three apples" would only be said in contrast.
            determiner, has_number = NOT_A, False
        return NounPhrase(
            noun=noun,
            determiner=determiner,
            is_plural=is_plural,
            number=self.number(noun) if has_number else "",
            adjective=self.adjective(noun, adjectives),
        )

    def definite_phrase(self, noun: Noun, *, is_plural: bool = False, adjectives: float = 0.3) -> NounPhrase:
        """Put the definite article and perhaps an adjective before a noun."""
        return NounPhrase(noun=noun, adjective=self.adjective(noun, adjectives), is_plural=is_plural)

    def number(self, noun: Noun) -> str:
        """Pick a number; only of small things are there many."""
        numbers = tuple(NUMBERS)
        return self.pick(numbers if noun.group in COUNTLESS_GROUPS else numbers[:4])

    def adjective(self, noun: Noun, probability: float) -> Adjective | None:
        """Pick an adjective that makes sense with the noun, or none."""
        adjectives = adjectives_for(noun)
        return self.pick(adjectives) if adjectives and self.chance(probability) else None

    # Time and place

    def time(self, tense: str, *, is_negated: bool = False) -> FixedPhrase:
        """Pick a time that suits the tense; "not soon" and "not every day" would need another German order."""
        number, german_number = self.pick(tuple(NUMBERS.items()))
        unit, german_unit = self.pick(
            (("days", "Tagen"), ("weeks", "Wochen"), ("months", "Monaten"), ("years", "Jahren"))
        )
        lines = TIMES[tense].strip().splitlines() * 2 + TIMES["any"].strip().splitlines()
        if tense == "past":
            lines += [f"*{number} *{unit} ago = vor *{german_number} *{german_unit}"] * 2
        if tense == "future":
            lines += [f"in *{number} *{unit} = in *{german_number} *{german_unit}"] * 2
        if is_negated:
            lines = [line for line in lines if not line.startswith(("every", "*soon"))]
        return fixed_phrase(self.pick(lines))

    def clock_time(self) -> FixedPhrase:
        """Pick an hour of the day."""
        number, german_number = self.pick(tuple(NUMBERS.items()))
        return fixed_phrase(f"at *{number} *o'clock = um *{german_number} *Uhr")

    def place_phrase(self, place: Place) -> NounPhrase:
        """Name a place."""
        if place.noun in OWNED_PLACES and self.chance(0.2):
            determiner = self.possessive()
        else:
            determiner = self.pick_weighted(((0.85, THE), (0.15, A)))
        adjective = self.adjective(place.noun, 1.0 if determiner is A else 0.2)
        return NounPhrase(noun=place.noun, determiner=determiner, adjective=adjective)

    def place(self, nouns: Sequence[Noun] = ()) -> Adverbial:
        """Pick where something happens."""
        if not nouns:
            kind = self.pick_weighted(((0.08, "fixed"), (0.1, "city"), (0.14, "near"), (0.68, "place")))
            if kind == "fixed":
                return fixed_phrase(self.pick(("*here = *hier", "*there = *dort", "at *home = zu *Hause")))
            if kind == "city":
                return self.city("in", "in")
            if kind == "near":
                return self.near()
        place = self.pick([place for place in PLACES if not nouns or place.noun in nouns])
        return PrepositionalPhrase(place.english_at, place.german_at, "dative", self.place_phrase(place))

    def near(self) -> PrepositionalPhrase:
        """Pick a place beside a building."""
        english, german = self.pick((("in front of", "vor"), ("behind", "hinter"), ("next to", "neben")))
        return PrepositionalPhrase(english, german, "dative", self.definite_phrase(self.pick(LANDMARKS)))

    def city(self, english: str, german: str) -> FixedPhrase:
        """Pick a city or country after a preposition."""
        name = self.pick(tuple(CITIES))
        return fixed_phrase(f"{english} *{name} = {german} *{CITIES[name]}")

    def goal(self, *, by_car: bool) -> Adverbial:
        """Pick where someone goes."""
        kind = self.pick_weighted(((0.1, "home"), (0.12, "person"), (0.78, "place")))
        if kind == "home":
            return fixed_phrase("*home = nach *Hause")
        if kind == "person":
            noun = self.pick(KIN + select_nouns("doctor baker neighbour teacher"))
            determiner = self.possessive() if noun.group == "kin" else THE
            inner = NounPhrase(noun=noun, determiner=determiner, is_plural=noun.is_plural_only)
            return PrepositionalPhrase("to", "zu", "dative", inner)
        unreachable = INDOORS if by_car else ISLANDS
        place = self.pick([place for place in GOALS if place.noun not in unreachable])
        case = "dative" if place.german_to == "zu" else "accusative"
        return PrepositionalPhrase(place.english_to, place.german_to, case, self.place_phrase(place))
