"""Clauses: who does what to whom, and the order in which English and German say it."""

from dataclasses import dataclass, field

from generator import english, german
from generator.determiners import NOT_A
from generator.nominals import ListedPhrase, Nominal, NounPhrase
from generator.phrases import Adverbial, FixedPhrase
from generator.verbs import Verb
from generator.words import Combination, Concept, Mark, Word, to_words


@dataclass(frozen=True)
class Modal:
    """A modal verb; English conjugates it as an auxiliary ("can") or as a verb with "to" ("want to")."""

    english: str
    german: str
    is_auxiliary: bool = True
    is_past: bool = False
    german_negated: str = ""


CAN = Modal("can", "können")
MUST = Modal("must", "müssen", german_negated="dürfen")  # "must not" forbids
SHOULD = Modal("should", "sollten")
MAY = Modal("may", "dürfen")
WOULD_LIKE = Modal("would like to", "möchten")
WANT = Modal("want to", "wollen", is_auxiliary=False)
HAVE_TO = Modal("have to", "müssen", is_auxiliary=False)
COULD = Modal("could", "können", is_past=True)
WANTED = Modal("want to", "wollen", is_auxiliary=False, is_past=True)
HAD_TO = Modal("have to", "müssen", is_auxiliary=False, is_past=True)
PRESENT_MODALS = (CAN, MUST, SHOULD, MAY, WOULD_LIKE, WANT, HAVE_TO)
PAST_MODALS = (COULD, WANTED, HAD_TO)


@dataclass(frozen=True, kw_only=True)
class Clause:
    """A statement about a subject, from which main clauses, questions and subordinate clauses are made.

    The tense is "present", "past", "perfect", "future", "progressive" or "passive" (in the past).
    """

    subject: Nominal
    verb: Verb
    tense: str = "present"
    modal: Modal | None = None
    is_negated: bool = False
    recipient: Nominal | None = None  # dative; follows "to" in English if the thing stands first
    recipient_after_to: bool = False
    object: Nominal | None = None  # accusative
    prepositional_object: Adverbial | None = None
    predicate: Adverbial | None = None  # what the subject is
    time: Adverbial | None = None
    frequency: FixedPhrase | None = None  # often, gern: before the English verb
    limit: FixedPhrase | None = None  # never, already: where German has nicht
    place: Adverbial | None = None
    direction: Adverbial | None = None
    manner: Adverbial | None = None
    mark: Mark = field(default_factory=Mark)

    @property
    def verb_concept(self) -> Concept:
        """What the verb says."""
        return Concept("verb", self.verb.name, self.mark)

    @property
    def combinations(self) -> list[Combination]:
        """The verb with its object noun, and the adjectives with their nouns."""
        parts = (
            self.subject,
            self.recipient,
            self.object,
            self.prepositional_object,
            self.predicate,
            self.time,
            self.place,
            self.direction,
            self.manner,
        )
        found = [pair for part in parts if part is not None for pair in part.combinations]
        things = [self.object]
        if isinstance(self.object, ListedPhrase):
            things = [self.object.first, self.object.second]
        found += [(self.verb_concept.key, t.noun_concept.key) for t in things if isinstance(t, NounPhrase)]
        return found


# English ------------------------------------------------------------------------------------------------------------


def english_verb_group(clause: Clause, *, is_inverted: bool) -> tuple[list[Word], list[Word]]:
    """Split the verbs into what stands before "not" (and before the subject of a question) and the rest."""
    verb, person, concept = clause.verb, clause.subject.person, clause.verb_concept
    is_past = clause.tense == "past"

    def main(form: str) -> list[Word]:
        return to_words(form, concept)

    if clause.modal:
        return english_modal_group(clause, is_inverted=is_inverted)
    if clause.tense == "future":
        return [Word("will")], main(verb.base)
    if clause.tense == "perfect":
        return [Word("has" if person == "3sg" else "have")], main(verb.participle)
    if clause.tense == "progressive":
        return [Word(english.be_form(person, is_past=False))], main(english.ing_form(verb.base))
    if clause.tense == "passive":
        return [Word(english.be_form(person, is_past=True))], main(verb.participle)
    if verb.base == "be":
        return main(english.be_form(person, is_past=is_past)), []
    if is_inverted or clause.is_negated:
        return [do_form(person, is_past=is_past)], main(verb.base)
    if is_past:
        return [], main(verb.past)
    return [], main(english.third_person(verb.base) if person == "3sg" else verb.base)


def do_form(person: str, *, is_past: bool) -> Word:
    """Give the form of to do that supports questions and negations."""
    if is_past:
        return Word("did")
    return Word("does" if person == "3sg" else "do")


def english_modal_group(clause: Clause, *, is_inverted: bool) -> tuple[list[Word], list[Word]]:
    """Say the modal verb and the infinitive after it."""
    modal, person = clause.modal, clause.subject.person
    assert modal is not None
    infinitive = to_words(clause.verb.base, clause.verb_concept)
    first, *rest = modal.english.split()
    after = to_words(" ".join(rest)) + infinitive
    if modal.is_auxiliary:
        return [Word(first)], after
    if is_inverted or clause.is_negated:
        return [do_form(person, is_past=modal.is_past)], [Word(first), *after]
    if modal.is_past:
        form = {"want": "wanted", "have": "had"}[first]
    else:
        form = english.third_person(first) if person == "3sg" else first
    return [], [Word(form), *after]


def english_complements(clause: Clause) -> list[Word]:
    """Say everything after the verb, except a fronted phrase."""
    particle = to_words(clause.verb.particle, clause.verb_concept)
    recipient = clause.recipient.english() if clause.recipient else []
    thing = clause.object.english() if clause.object else []
    if clause.recipient_after_to:
        words = [*thing, Word("to"), *recipient]
    else:
        words = recipient + thing
    is_movable = clause.verb.particle not in ("for", "after", "to")
    if clause.object and clause.object.is_pronoun and is_movable:
        words = words + particle
    else:
        words = particle + words
    if clause.prepositional_object:
        words += clause.prepositional_object.english()
    for part in (clause.predicate, clause.direction, clause.manner, clause.place, clause.time):
        words += part.english() if part else []
    return words


def english_statement(clause: Clause) -> list[Word]:
    """Say the clause in the order of a statement; subordinate clauses have the same order."""
    first, rest = english_verb_group(clause, is_inverted=False)
    if clause.is_negated:
        first = [Word("cannot")] if first == [Word("can")] else [*first, Word("not")]
    return (
        clause.subject.english(as_subject=True) + first + english_adverbs(clause) + rest + english_complements(clause)
    )


def english_adverbs(clause: Clause) -> list[Word]:
    """Say the adverbs that stand before the main verb."""
    return [word for adverb in (clause.limit, clause.frequency) if adverb for word in adverb.english()]


def english_question(clause: Clause) -> list[Word]:
    """Say the clause in the order of a question."""
    first, rest = english_verb_group(clause, is_inverted=True)
    subject = clause.subject.english(as_subject=True)
    return first + subject + english_adverbs(clause) + rest + english_complements(clause)


def english_command(clause: Clause) -> list[Word]:
    """Tell someone to do it."""
    verb = to_words(clause.verb.base, clause.verb_concept)
    return (to_words("do not") if clause.is_negated else []) + verb + english_complements(clause)


def english_infinitive(clause: Clause) -> list[Word]:
    """Say the clause as an infinitive with to."""
    return [Word("to"), *to_words(clause.verb.base, clause.verb_concept), *english_complements(clause)]


# German -------------------------------------------------------------------------------------------------------------


def german_verb_group(clause: Clause) -> tuple[list[Word], list[Word]]:
    """Split the verbs into the finite one and those that stand at the end of the clause."""
    verb, person, concept = clause.verb, clause.subject.person, clause.verb_concept
    at_end = to_words(verb.full_infinitive, concept)
    if clause.modal:
        modal = clause.modal
        name = modal.german_negated if clause.is_negated and modal.german_negated else modal.german
        conjugate = german.conjugate_preterite if modal.is_past else german.conjugate_present
        return [Word(conjugate(name, person))], at_end
    if clause.tense == "future":
        return [Word(german.conjugate_present("werden", person))], at_end
    if clause.tense == "passive":
        return [Word(german.conjugate_preterite("werden", person))], to_words(verb.german_participle, concept)
    if clause.tense == "past" and verb.infinitive in ("sein", "haben"):
        return [Word(german.conjugate_preterite(verb.infinitive, person), concept)], []
    if clause.tense in ("past", "perfect"):
        return [Word(german.conjugate_present(verb.auxiliary, person))], to_words(verb.german_participle, concept)
    return [Word(verb.german_present(person), concept)], to_words(verb.prefix, concept)


def uses_nicht(clause: Clause) -> bool:
    """Tell whether the clause is negated by nicht; otherwise its object has kein."""
    return clause.is_negated and not any(
        isinstance(nominal, NounPhrase) and nominal.determiner is NOT_A for nominal in (clause.recipient, clause.object)
    )


def german_middle(clause: Clause) -> list[Word]:
    """Say everything between the finite verb and the verbs at the end, except the subject.

    Pronouns stand first. What is known stands before nicht (and before never and already), what is new after it;
    otherwise the time stands before the objects, and the place before a new object only. A recipient stands before
    the thing, whether new or known.
    """
    known: list[list[Word]] = []
    new: list[list[Word]] = []
    pronouns: list[list[Word]] = []
    has_new_recipient = clause.recipient is not None and not clause.recipient.is_definite
    for nominal, case in ((clause.recipient, "dative"), (clause.object, "accusative")):
        if nominal is not None:
            is_known = nominal.is_definite and not has_new_recipient
            home = pronouns if nominal.is_pronoun else known if is_known else new
            home.append(nominal.german(case))
    adverbs = [part.german() for part in (clause.time, clause.frequency) if part]
    limit = [clause.limit.german()] if clause.limit else []
    if clause.tense == "progressive":
        limit.append([Word("gerade")])
    if uses_nicht(clause):
        limit.append([Word("nicht")])
    place = [clause.place.german()] if clause.place else []
    rest = (clause.manner, clause.prepositional_object, clause.direction, clause.predicate)
    after = [part.german() for part in rest if part]
    if uses_nicht(clause) or clause.limit:
        groups = pronouns + known + adverbs + limit + place + new + after
    else:
        groups = pronouns + adverbs + limit + known + place + new + after
    return [word for group in groups for word in group]


def german_statement(clause: Clause, fronted: Adverbial | None = None) -> list[Word]:
    """Say the clause with the verb second, after the subject or after a fronted phrase."""
    finite, at_end = german_verb_group(clause)
    subject = clause.subject.german("nominative")
    start = fronted.german() + finite + subject if fronted else subject + finite
    return start + german_middle(clause) + at_end


def german_question(clause: Clause) -> list[Word]:
    """Say the clause with the verb first."""
    finite, at_end = german_verb_group(clause)
    return finite + clause.subject.german("nominative") + german_middle(clause) + at_end


def german_subordinate(clause: Clause) -> list[Word]:
    """Say the clause with the verb last."""
    finite, at_end = german_verb_group(clause)
    if at_end and at_end[0].text == clause.verb.prefix:
        finite, at_end = [Word(at_end[0].text + finite[0].text, clause.verb_concept)], []
    return clause.subject.german("nominative") + german_middle(clause) + at_end + finite


def german_infinitive(clause: Clause) -> list[Word]:
    """Say the clause as an infinitive with zu."""
    zu = [] if clause.verb.prefix else [Word("zu")]
    infinitive = f"{clause.verb.prefix}zu{clause.verb.infinitive}" if clause.verb.prefix else clause.verb.infinitive
    return [*german_middle(clause), *zu, Word(infinitive, clause.verb_concept)]


def german_command(clause: Clause) -> list[Word]:
    """Tell a friend to do it."""
    verb = clause.verb
    return [
        Word(verb.imperative, clause.verb_concept),
        *german_middle(clause),
        *to_words(verb.prefix, clause.verb_concept),
    ]
