"""Articles and the words in their place."""

from dataclasses import dataclass

from generator.german import DEFINITE_ARTICLE, DER_WORD_ENDING, EIN_WORD_ENDING


@dataclass(frozen=True)
class Determiner:
    """An article or a word in its place, with its German stem and the way it is declined.

    The kind is "definite" (der), "der" (dieser), "quantity" (viele), "ein" (kein, mein) or "fixed" (Annas, nothing).
    """

    english: str
    stem: str
    kind: str
    english_plural: str = ""
    is_definite: bool = True
    name: str = ""

    def german(self, case: str, gender: str) -> str:
        """Give the form before a noun of this case and gender."""
        if self.kind == "definite":
            return DEFINITE_ARTICLE[case, gender]
        if self.kind == "ein":
            return self.stem + EIN_WORD_ENDING[case, gender]
        if self.kind in ("der", "quantity"):
            return self.stem + DER_WORD_ENDING[case, gender]
        return self.stem

    @property
    def declension(self) -> str:
        """Name the endings that an adjective takes after this word."""
        return {"definite": "weak", "der": "weak", "ein": "mixed"}.get(self.kind, "strong")


THE = Determiner("the", "", "definite")
BY = Determiner("by", "", "definite")  # by train: mit dem Zug
A = Determiner("a", "ein", "ein", is_definite=False)
NO = Determiner("no", "kein", "ein", is_definite=False)
NOT_A = Determiner("a", "kein", "ein", english_plural="any", is_definite=False)
BARE = Determiner("", "", "fixed", is_definite=False)
MANY = Determiner("many", "viel", "quantity", is_definite=False)
SOME = Determiner("some", "einig", "quantity", is_definite=False)
THIS = Determiner("this", "dies", "der", english_plural="these")
EVERY = Determiner("every", "jed", "der")
WHICH = Determiner("which", "welch", "der")
MY = Determiner("my", "mein", "ein")
YOUR = Determiner("your", "dein", "ein")
HIS = Determiner("his", "sein", "ein")
HER = Determiner("her", "ihr", "ein")
OUR = Determiner("our", "unser", "ein")
THEIR = Determiner("their", "ihr", "ein")
POSSESSIVES = (MY, YOUR, HIS, HER, OUR, THEIR)


def possessive_of(name: str) -> Determiner:
    """Make the determiner of what belongs to a named person (Anna's, Annas)."""
    return Determiner(f"{name}'s", f"{name}s", "fixed", name=name)
