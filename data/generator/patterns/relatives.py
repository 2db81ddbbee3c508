"""Patterns with a relative clause, which German puts between commas with the verb last."""

from dataclasses import replace

from generator import verbs
from generator.chooser import PEOPLE, Chooser
from generator.clauses import Clause, english_statement, german_statement, german_subordinate
from generator.drafts import Pair, finish, pattern
from generator.events import VERY, degree_of, event, suits_tense
from generator.modifiers import adjectives_for, go_together, predicates_for
from generator.nominals import DescribedPhrase, NounPhrase, RelativePronoun
from generator.phrases import adjective_predicate


@pattern(7)
def who_does(chooser: Chooser) -> Pair:
    """The woman who bought the house is very rich. I know the man who repairs the car."""
    noun = chooser.pick([noun for noun in PEOPLE if adjectives_for(noun)])
    phrase = chooser.definite_phrase(noun, is_plural=chooser.chance(0.25), adjectives=0.2)
    pronoun = RelativePronoun("who", phrase.gender, phrase.person)
    clause = event(chooser, pronoun, chooser.pick(("present", "past")))
    person = DescribedPhrase(phrase, english_statement(clause), german_subordinate(clause))
    kind = chooser.pick(("object", "object", "quality", "residence"))
    if kind == "object":
        # Separable verbs are left out: their prefix would have to jump over the clause.
        names = ("see", "ask", "greet")
        verb = chooser.pick([verbs.KNOW_SOMEONE, *(verbs.TRANSITIVE_BY_NAME[name] for name in names)])
        main = Clause(subject=chooser.subject(pronouns=0.5), verb=verb, object=person)
    elif kind == "quality":
        adjective = chooser.pick(predicates_for(noun))
        main = Clause(
            subject=person, verb=verbs.BE, predicate=adjective_predicate(adjective, degree_of(chooser, adjective))
        )
    else:
        main = Clause(subject=person, verb=verbs.INTRANSITIVE_VERBS["live"], place=chooser.city("in", "in"))
    return finish(english_statement(main), german_statement(main), [main, clause])


@pattern(7)
def that_someone_does(chooser: Chooser) -> Pair:
    """The book that Anna bought was very interesting."""
    verb = chooser.pick(verbs.TRANSITIVE_VERBS)
    nouns = [noun for noun in verb.objects if not noun.is_person and len(adjectives_for(noun)) > 1]
    if not nouns:
        return that_someone_does(chooser)
    noun = chooser.pick(nouns)
    phrase = chooser.definite_phrase(noun, is_plural=not noun.is_mass and chooser.chance(0.2), adjectives=0.2)
    subject = chooser.subject()
    tense = chooser.pick(("present", "past"))
    if not suits_tense(verb, subject, tense):
        tense = "present"
    clause = Clause(subject=subject, verb=verb, tense=tense)
    thing = describe(phrase, "that", "accusative", clause)
    options = [a for a in adjectives_for(noun) if not phrase.adjective or go_together(a, phrase.adjective)]
    if not options:
        return that_someone_does(chooser)
    adjective = chooser.pick(options)
    predicate = adjective_predicate(adjective, degree_of(chooser, adjective))
    main = Clause(subject=thing, verb=verbs.BE, tense=tense, predicate=predicate)
    found = replace(clause, object=NounPhrase(noun=noun))
    return finish(english_statement(main), german_statement(main), [phrase, found])


@pattern(3)
def whom_someone_helps(chooser: Chooser) -> Pair:
    """The boy whom the teacher helps is very sad."""
    noun = chooser.pick([noun for noun in PEOPLE if adjectives_for(noun)])
    phrase = chooser.definite_phrase(noun, is_plural=chooser.chance(0.3), adjectives=0)
    tense = chooser.pick(("present", "past"))
    clause = Clause(subject=chooser.subject(), verb=chooser.pick(verbs.DATIVE_VERBS[:4]), tense=tense)
    person = describe(phrase, "whom", "dative", clause)
    predicate = adjective_predicate(chooser.pick(predicates_for(noun)), chooser.pick(("", VERY)))
    main = Clause(subject=person, verb=verbs.BE, predicate=predicate)
    return finish(english_statement(main), german_statement(main), [phrase, clause])


def describe(phrase: NounPhrase, english: str, case: str, clause: Clause) -> DescribedPhrase:
    """Describe someone or something by what is done to it."""
    pronoun = RelativePronoun(english, phrase.gender, phrase.person)
    return DescribedPhrase(
        phrase, pronoun.english() + english_statement(clause), pronoun.german(case) + german_subordinate(clause)
    )
