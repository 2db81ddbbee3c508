"""The words of both languages: read from lexicon.txt, and inflected."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

CASES = ("nominative", "accusative", "dative")
PERSONS = ("1sg", "2sg", "3sg", "1pl", "3pl")
VOWELS = "aeiou"
LEXICON = (Path(__file__).parent / "lexicon.txt").read_text(encoding="utf-8")


def table(*rows: str) -> dict[tuple[str, str], str]:
    """Read one row per case and one column per gender; a dash is the empty ending."""
    genders = ("m", "f", "n", "plural")
    return {
        (case, gender): ending.replace("-", "")
        for case, row in zip(CASES, rows, strict=True)
        for gender, ending in zip(genders, row.split(), strict=True)
    }


ARTICLE = table("der die das die", "den die das die", "dem der dem den")
RELATIVE = table("der die das die", "den die das die", "dem der dem denen")
DER_ENDING = table("er e es e", "en e es e", "em er em en")  # dieser, jeder, welcher, viele
EIN_ENDING = table("- e - e", "en e - e", "em er em en")  # ein, kein, mein
ADJECTIVE_ENDING = {
    "strong": DER_ENDING,
    "weak": table("e e e en", "en e e en", "en en en en"),
    "mixed": table("er e es en", "en e es en", "en en en en"),
}

# Forms for ich, du, er, wir, sie. All other verbs say the past with an auxiliary.
IRREGULAR = {
    "sein": "bin bist ist sind sind",
    "haben": "habe hast hat haben haben",
    "werden": "werde wirst wird werden werden",
    "wissen": "weiß weißt weiß wissen wissen",
    "mögen": "mag magst mag mögen mögen",
    "können": "kann kannst kann können können",
    "müssen": "muss musst muss müssen müssen",
    "dürfen": "darf darfst darf dürfen dürfen",
    "sollten": "sollte solltest sollte sollten sollten",
    "möchten": "möchte möchtest möchte möchten möchten",
    "war": "war warst war waren waren",
}


def mark(text: str, meaning: str) -> str:
    """Write the name of their meaning after the words of a text."""
    return " ".join(f"{word}^{meaning}" for word in text.split())


@dataclass(frozen=True)
class Noun:
    """A noun; its kind is * (weak), ~ (without plural) or empty."""

    english: str
    english_plural: str
    german: str
    german_plural: str
    gender: str
    group: str
    kind: str

    def inflect(self, case: str, *, is_plural: bool) -> str:
        """Return a German form; the singular of weak nouns is their plural except in the nominative."""
        if is_plural:
            return self.german_plural + ("n" if case == "dative" and self.german_plural[-1] not in "ns" else "")
        return self.german_plural if self.kind == "*" and case != "nominative" else self.german


@dataclass(frozen=True)
class Adjective:
    """An adjective and the nouns it suits; the stem is what German endings are added to."""

    english: str
    german: str
    stem: str
    nouns: tuple[Noun, ...]


@dataclass(frozen=True)
class Verb:
    """A verb and the nouns that can be its object, perhaps after a preposition."""

    base: str
    particle: str
    past: str
    participle: str
    infinitive: str  # without the separable prefix
    prefix: str
    irregular: tuple[str, ...]  # the forms for du and er
    german_participle: str
    auxiliary: str
    irregular_imperative: str
    preposition: tuple[str, ...]  # English, German and its case
    objects: tuple[Noun, ...]

    @property
    def name(self) -> str:
        """The English base form, with the particle."""
        return f"{self.base}_{self.particle}" if self.particle else self.base

    def say(self, form: str) -> str:
        """Mark words as this verb."""
        return mark(form, self.name)

    @property
    def third_person(self) -> str:
        """The English form for he, she and it."""
        return {"have": "has", "be": "is"}.get(self.base) or add_s(self.base)

    @property
    def ing_form(self) -> str:
        """The English form in -ing."""
        if self.base in ("put", "get", "forget", "run"):
            return self.base + self.base[-1] + "ing"
        return (self.base[:-1] if self.base[-1] == "e" and self.base[-2:] != "ee" else self.base) + "ing"

    @property
    def imperative(self) -> str:
        """What one says to a friend, without the separable prefix."""
        return self.irregular_imperative or stem_of(self.infinitive) + "e"

    def present(self, person: str) -> str:
        """Return the finite German form, without the separable prefix."""
        if self.irregular and person in ("2sg", "3sg"):
            return self.irregular[PERSONS.index(person) - 1]
        return conjugate(self.infinitive, person)


def add_s(word: str) -> str:
    """Add the -s of a plural noun or of a third person verb."""
    if word[-1] == "y" and word[-2] not in VOWELS:
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "ch", "sh")) or word in ("go", "tomato", "potato") else "s")


def add_ed(base: str) -> str:
    """Form the regular past."""
    if base[-1] == "y" and base[-2] not in VOWELS:
        return base[:-1] + "ied"
    return base + ("d" if base[-1] == "e" else "ed")


def stem_of(infinitive: str) -> str:
    """Cut the ending off a German infinitive."""
    return infinitive.removesuffix("n").removesuffix("e")


def conjugate(infinitive: str, person: str) -> str:
    """Return a German finite form."""
    if infinitive in IRREGULAR:
        return IRREGULAR[infinitive].split()[PERSONS.index(person)]
    stem = stem_of(infinitive)
    linking = "e" if stem.endswith(("t", "d", "ffn", "chn")) else ""  # du wartest, er öffnet
    second = linking + ("t" if stem[-1] in "sßz" else "st")
    return {"1sg": stem + "e", "2sg": stem + second, "3sg": stem + linking + "t"}.get(person, infinitive)


# Reading the lexicon -------------------------------------------------------------------------------------------------


def entries(section: str) -> list[tuple[str, str]]:
    """Return the entries of a section of the lexicon, each as what stands before and after the equals sign."""
    found = re.search(rf"^\[{section}\]\n(.*?)(?=\n\n|\Z)", LEXICON, re.MULTILINE | re.DOTALL)
    assert found, section
    lines = found[1].replace(" | ", "\n").splitlines()
    return [(left, right) for left, _, right in (line.partition(" = ") for line in lines)]


def names(section: str) -> list[str]:
    """Return the words of a section that is a plain list."""
    return entries(section)[0][0].split()


def read_nouns() -> dict[str, Noun]:
    """Read all nouns, by their English singular."""
    nouns = {}
    for group in re.findall(r"^\[noun (\w+)\]", LEXICON, re.MULTILINE):
        for left, right in entries(f"noun {group}"):
            english, _, plural = left.partition("/")
            article, german, german_plural = f"{right} -".split()[:3]
            gender = {"der": "m", "die": "f", "das": "n"}[article[:3]]
            nouns[english] = Noun(
                english, plural or add_s(english), german, german_plural, gender, group, kind=article[3:]
            )
    return nouns


NOUNS = read_nouns()
GROUPS = dict(entries("group"))


@cache
def select(description: str) -> tuple[Noun, ...]:
    """Return the nouns of a list of groups and nouns, where a minus sign takes a noun out again."""
    chosen: dict[str, Noun] = {}
    for word in description.split():
        if word.startswith("-"):
            chosen.pop(word[1:])
        elif word in GROUPS:
            chosen.update((noun.english, noun) for noun in select(GROUPS[word]))
        elif word in NOUNS:
            chosen[word] = NOUNS[word]
        else:
            members = {name: noun for name, noun in NOUNS.items() if noun.group == word}
            assert members, f"no noun and no group of nouns is called {word!r}"
            chosen.update(members)
    return tuple(chosen.values())


def read_verb(left: str, right: str) -> Verb:
    """Read a verb of the lexicon."""
    base, *past = left.split()
    particle = past.pop(0) if len(past) % 2 else ""
    forms, _, objects = right.rpartition(" : ") if " : " in right else (right, "", "")
    forms, _, preposition = forms.partition(" : ")
    forms, _, imperative = forms.partition(" !")
    first, *others = forms.split()
    auxiliary = others.pop() if others[-1] == "sein" else "haben"
    prefix, _, infinitive = first.rpartition("|")
    return Verb(
        base=base,
        particle=particle,
        past=past[0] if past else add_ed(base),
        participle=past[1] if past else add_ed(base),
        infinitive=infinitive,
        prefix=prefix,
        irregular=tuple(others[:-1]),
        german_participle=others[-1],
        auxiliary=auxiliary,
        irregular_imperative=imperative,
        preposition=tuple(preposition.split()),
        objects=select(objects),
    )


def read_adjective(english: str, right: str) -> Adjective:
    """Read an adjective of the lexicon."""
    forms, _, nouns = right.partition(" : ")
    german, _, stem = forms.partition("/")
    return Adjective(english, german, stem or german, select(nouns))


VERBS = {
    kind: tuple(read_verb(*entry) for entry in entries(f"verb {kind}"))
    for kind in re.findall(r"^\[verb (\w+)\]", LEXICON, re.MULTILINE)
}
ADJECTIVES = {left: read_adjective(left, right) for left, right in entries("adjective")}
BE = read_verb("be was been", "sein gewesen sein")
