"""Patterns that join two main clauses."""

from generator import verbs
from generator.chooser import UNOWNED, Chooser
from generator.clauses import Clause, english_statement, german_statement
from generator.determiners import THE
from generator.drafts import Pair, finish, pattern
from generator.events import VERY, degree_of, event
from generator.modifiers import adjectives_for, go_together
from generator.nominals import NounPhrase
from generator.nouns import NOUNS
from generator.patterns.subordinates import pronoun_of
from generator.phrases import adjective_predicate
from generator.words import COMMA, Word

# "But" joins something welcome with something that is not.
WELCOME = "new beautiful cheap good interesting exciting modern fresh sweet famous important warm quiet bright"


def join_statements(left: Clause, right: Clause, *, is_contrast: bool) -> Pair:
    """Join two statements by but, with a comma, or by and, without."""
    english, german = ([COMMA, Word("but")], [COMMA, Word("aber")]) if is_contrast else ([Word("and")], [Word("und")])
    return finish(
        [*english_statement(left), *english, *english_statement(right)],
        [*german_statement(left), *german, *german_statement(right)],
        [left, right],
    )


@pattern(7)
def two_events(chooser: Chooser) -> Pair:
    """Anna cooks the soup and Peter reads the newspaper."""
    tense = chooser.pick(("present", "past"))
    left, right = (event(chooser, chooser.subject(), tense) for _ in range(2))
    return join_statements(left, right, is_contrast=chooser.chance(0.4))


@pattern(4)
def two_qualities(chooser: Chooser) -> Pair:
    """The lamp is beautiful, but it is too expensive."""
    noun = chooser.pick([noun for noun in NOUNS.values() if not noun.is_person and noun.group != "animal"])
    gradable = [adjective for adjective in adjectives_for(noun) if adjective.comparative]
    pairs = [
        (first, second)
        for first in gradable
        for second in gradable
        if go_together(first, second) and (first.english in WELCOME.split()) != (second.english in WELCOME.split())
    ]
    if not pairs:
        return two_qualities(chooser)
    first, second = chooser.pick(pairs)
    thing = NounPhrase(
        noun=noun,
        determiner=THE if noun.is_mass or noun in UNOWNED else chooser.pick((THE, chooser.possessive())),
        is_plural=not noun.is_mass and chooser.chance(0.25),
    )
    left = Clause(subject=thing, verb=verbs.BE, predicate=adjective_predicate(first))
    degree = chooser.pick(("", VERY)) if second.english in WELCOME.split() else degree_of(chooser, second)
    right_predicate = adjective_predicate(second, degree)
    right = Clause(subject=pronoun_of(thing), verb=verbs.BE, predicate=right_predicate)
    return join_statements(left, right, is_contrast=True)
