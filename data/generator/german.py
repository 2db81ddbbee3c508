"""German inflection: endings of articles, adjectives and nouns, and the forms of verbs."""

CASES = ("nominative", "accusative", "dative")
GENDERS = ("m", "f", "n", "plural")


def table(*rows: str) -> dict[tuple[str, str], str]:
    """Read one row per case and one column per gender; a dash is the empty ending."""
    return {
        (case, gender): ending.replace("-", "")
        for case, row in zip(CASES, rows, strict=True)
        for gender, ending in zip(GENDERS, row.split(), strict=True)
    }


DEFINITE_ARTICLE = table("der die das die", "den die das die", "dem der dem den")
DER_WORD_ENDING = table("er e es e", "en e es e", "em er em en")  # dieser, jeder, welcher, viele
EIN_WORD_ENDING = table("- e - e", "en e - e", "em er em en")  # ein, kein, mein

ADJECTIVE_ENDING = {
    "strong": DER_WORD_ENDING,
    "weak": table("e e e en", "en e e en", "en en en en"),
    "mixed": table("er e es en", "en e es en", "en en en en"),
}

RELATIVE_PRONOUN = table("der die das die", "den die das die", "dem der dem denen")

CONTRACTIONS = {
    ("in", "dem"): "im",
    ("in", "das"): "ins",
    ("an", "dem"): "am",
    ("an", "das"): "ans",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
    ("von", "dem"): "vom",
    ("bei", "dem"): "beim",
}

# First and second person singular, third person singular, then the form of all plurals.
PRESENT = {
    "sein": "bin bist ist sind",
    "haben": "habe hast hat haben",
    "werden": "werde wirst wird werden",
    "wissen": "weiß weißt weiß wissen",
    "mögen": "mag magst mag mögen",
    "können": "kann kannst kann können",
    "müssen": "muss musst muss müssen",
    "wollen": "will willst will wollen",
    "dürfen": "darf darfst darf dürfen",
    "sollten": "sollte solltest sollte sollten",
    "möchten": "möchte möchtest möchte möchten",
}
PRETERITE = {
    "sein": "war warst war waren",
    "haben": "hatte hattest hatte hatten",
    "werden": "wurde wurdest wurde wurden",
    "können": "konnte konntest konnte konnten",
    "müssen": "musste musstest musste mussten",
    "wollen": "wollte wolltest wollte wollten",
}
PERSONS = {"1sg": 0, "2sg": 1, "3sg": 2, "1pl": 3, "3pl": 3}


def decline_noun(singular: str, plural: str, case: str, *, is_plural: bool, is_weak: bool) -> str:
    """Give the form of a noun; weak nouns take their plural form in the oblique cases."""
    if is_plural:
        return plural + "n" if case == "dative" and plural[-1] not in "ns" else plural
    return plural if is_weak and case != "nominative" else singular


def takes_linking_e(stem: str) -> bool:
    """Tell whether endings such as -t need an e before them (du wartest, er öffnet)."""
    return stem.endswith(("t", "d", "ffn", "chn", "gn"))


def stem_of(infinitive: str) -> str:
    """Cut the ending off an infinitive."""
    return infinitive.removesuffix("n").removesuffix("e")


def conjugate_present(infinitive: str, person: str, irregular: tuple[str, str] | None = None) -> str:
    """Give a present form; irregular holds the forms for du and er where the vowel changes."""
    if infinitive in PRESENT:
        return PRESENT[infinitive].split()[PERSONS[person]]
    stem = stem_of(infinitive)
    if person == "1sg":
        return stem + "e"
    if person in ("1pl", "3pl"):
        return infinitive
    if irregular:
        return irregular[0] if person == "2sg" else irregular[1]
    if takes_linking_e(stem):
        return stem + ("est" if person == "2sg" else "et")
    if person == "2sg":
        return stem + ("t" if stem[-1] in "sßzx" else "st")
    return stem + "t"


def conjugate_preterite(infinitive: str, person: str) -> str:
    """Give the simple past of an auxiliary or modal; all other verbs use the perfect."""
    return PRETERITE[infinitive].split()[PERSONS[person]]
