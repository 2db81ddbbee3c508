"""English inflection: plurals, verb forms, and the choice between a and an."""

DOUBLED_CONSONANT = ("cut", "put", "get", "forget", "swim", "run", "sit", "begin", "travel")
VOWELS = "aeiou"


def add_s(word: str) -> str:
    """Add the -s of a plural noun or of a third person verb."""
    if word.endswith("y") and word[-2] not in VOWELS:
        return word[:-1] + "ies"
    if word.endswith(("s", "x", "z", "ch", "sh")) or word in ("go", "do", "tomato", "potato"):
        return word + "es"
    return word + "s"


def third_person(base: str) -> str:
    """Give the form for he, she and it."""
    return {"have": "has", "be": "is"}.get(base) or add_s(base)


def regular_past(base: str) -> str:
    """Add -ed."""
    if base in DOUBLED_CONSONANT:
        return base + base[-1] + "ed"
    if base.endswith("e"):
        return base + "d"
    if base.endswith("y") and base[-2] not in VOWELS:
        return base[:-1] + "ied"
    return base + "ed"


def ing_form(base: str) -> str:
    """Add -ing."""
    if base in DOUBLED_CONSONANT:
        return base + base[-1] + "ing"
    if base.endswith("ie"):
        return base[:-2] + "ying"
    if base.endswith("e") and not base.endswith(("ee", "be")):
        return base[:-1] + "ing"
    return base + "ing"


def indefinite_article(next_word: str) -> str:
    """Choose between a and an; the lexicon has no word whose first letter misleads."""
    return "an" if next_word[0].lower() in VOWELS else "a"


def be_form(person: str, *, is_past: bool) -> str:
    """Give the form of to be."""
    if is_past:
        return "was" if person in ("1sg", "3sg") else "were"
    return {"1sg": "am", "3sg": "is"}.get(person, "are")
