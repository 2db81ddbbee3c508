"""Patterns that end with an exclamation mark."""

from dataclasses import replace

from generator.chooser import Chooser
from generator.clauses import english_command, german_command
from generator.determiners import BARE, A
from generator.drafts import Pair, finish, pattern
from generator.events import dative, transitive
from generator.modifiers import ADJECTIVES
from generator.nominals import YOU, NounPhrase
from generator.phrases import fixed_phrase
from generator.words import to_words


@pattern(5)
def command(chooser: Chooser) -> Pair:
    """Please turn off the light! Do not open the door!"""
    is_negated = chooser.chance(0.3)
    if chooser.chance(0.75):
        clause = transitive(chooser, YOU, is_deliberate=True, is_negated=is_negated)
    else:
        clause = dative(chooser, YOU, is_negated=is_negated)
    if is_negated or chooser.chance(0.4):
        return finish(english_command(clause), german_command(clause), [clause], mark="!")
    please = fixed_phrase("*please = *bitte")
    german = german_command(replace(clause, frequency=please))
    return finish(please.english() + english_command(clause), german, [clause], mark="!")


@pattern(2)
def exclamation(chooser: Chooser) -> Pair:
    """What a beautiful house!"""
    adjective = chooser.pick([adjective for adjective in ADJECTIVES if adjective.is_striking])
    noun = chooser.pick([noun for noun in adjective.nouns if not noun.is_mass and noun.group != "kin"])
    is_plural = chooser.chance(0.4)
    phrase = NounPhrase(noun=noun, determiner=BARE if is_plural else A, is_plural=is_plural, adjective=adjective)
    english = to_words("what") + phrase.english()
    return finish(english, to_words("was für") + phrase.german("nominative"), [phrase], mark="!")
