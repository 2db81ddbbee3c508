"""Patterns with an infinitive clause, which German closes with zu."""

from generator import verbs
from generator.chooser import Chooser
from generator.clauses import Clause, english_infinitive, english_statement, german_infinitive, german_statement
from generator.drafts import Pair, finish, pattern
from generator.events import VERY, dative, ditransitive, motion, object_of, tense_or_modal, transitive
from generator.modifiers import ADJECTIVES_BY_NAME
from generator.nominals import IT, THEY
from generator.phrases import adjective_predicate
from generator.words import COMMA, Word

# What one goes somewhere for.
ERRANDS = (
    "buy,sell,look for,eat,drink,read,write,repair,photograph,draw,learn,pick up,clean,greet,ask,hide,build,cook,feed,"
    "order,receive,translate,use"
)


def with_infinitive(main: Clause, task: Clause, *, conjunction: str = "") -> Pair:
    """Write a statement and after it an infinitive clause."""
    return finish(
        english_statement(main) + english_infinitive(task),
        [*german_statement(main), COMMA, *([Word(conjunction)] if conjunction else []), *german_infinitive(task)],
        [main, task],
    )


@pattern(5)
def trying(chooser: Chooser) -> Pair:
    """He tries to repair the radio. She forgot to turn off the light."""
    subject = chooser.subject()
    main = Clause(subject=subject, verb=chooser.pick(verbs.TRYING_VERBS), tense=chooser.pick(("present", "past")))
    if chooser.chance(0.7):
        return with_infinitive(main, transitive(chooser, subject, is_deliberate=True))
    return with_infinitive(main, chooser.pick((dative, ditransitive, motion))(chooser, subject))


@pattern(2)
def judgement(chooser: Chooser) -> Pair:
    """It is important to learn new words."""
    adjective = ADJECTIVES_BY_NAME[chooser.pick(("important", "interesting", "exciting", "boring", "difficult"))]
    predicate = adjective_predicate(adjective, chooser.pick(("", VERY)))
    main = Clause(subject=IT["n"], verb=verbs.BE, is_negated=chooser.chance(0.2), predicate=predicate)
    return with_infinitive(main, transitive(chooser, THEY, is_deliberate=True))


@pattern(5)
def purpose(chooser: Chooser) -> Pair:
    """My aunt goes to the market to buy fresh eggs."""
    subject = chooser.subject()
    main = motion(chooser, subject, **tense_or_modal(chooser))
    verb = verbs.TRANSITIVE_BY_NAME[chooser.pick(ERRANDS.split(","))]
    task = Clause(subject=subject, verb=verb, object=object_of(chooser, verb, subject))
    return with_infinitive(main, task, conjunction="um")
