"""The demo corpus: its files, what its test holds out, and the grammar that writes it."""

import importlib
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).parent.parent / "data"
FILES = ("train.en", "train.de", "valid.en", "valid.de", "test.en", "test.de", "test.align")
SIZES = {"train": 20_000, "valid": 500, "test": 500}


def load(name: str) -> Any:
    """Import a module of the generator, which lives beside the corpus and is not installed."""
    if str(DATA) not in sys.path:
        sys.path.insert(0, str(DATA))
    return importlib.import_module(f"generator.{name}")


chooser = load("chooser")
clauses = load("clauses")
corpus_module = load("corpus")
determiners = load("determiners")
drafts = load("drafts")
german = load("german")
modifiers = load("modifiers")
nominals = load("nominals")
nouns = load("nouns")
phrases = load("phrases")
verbs = load("verbs")
words = load("words")


def read_lines(name: str) -> list[str]:
    """Read a file of the corpus."""
    text = (DATA / name).read_bytes().decode("utf-8")
    assert text.endswith("\n")
    assert "\r" not in text
    return text.split("\n")[:-1]


def split_words(sentence: str) -> list[str]:
    """Split a sentence into words without punctuation."""
    return [word.strip(".,?!") for word in sentence.split()]


@pytest.fixture(scope="module")
def corpus() -> Any:
    """The corpus, written again in memory."""
    return corpus_module.build_corpus()


# The files ------------------------------------------------------------------------------------------------------------


def test_the_generator_writes_the_committed_files_byte_for_byte(corpus: Any, tmp_path: Path) -> None:
    corpus_module.write_corpus(corpus, tmp_path)
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (DATA / name).read_bytes(), name


def test_the_script_explains_itself() -> None:
    run = subprocess.run([sys.executable, DATA / "generate.py", "--help"], capture_output=True, text=True, check=True)
    assert "--out" in run.stdout


@pytest.mark.parametrize("split", SIZES)
def test_both_sides_of_a_split_have_its_size(split: str) -> None:
    assert len(read_lines(f"{split}.en")) == len(read_lines(f"{split}.de")) == SIZES[split]


def test_the_whole_folder_is_small() -> None:
    files = [*DATA.glob("*.*"), *(DATA / "generator").rglob("*.py")]
    assert sum(path.stat().st_size for path in files if path.is_file()) < 3_000_000


@pytest.mark.parametrize("language", ["en", "de"])
def test_no_sentence_occurs_twice_in_the_corpus(language: str) -> None:
    lines = [line for split in SIZES for line in read_lines(f"{split}.{language}")]
    assert len(lines) == len(set(lines))


def test_sentences_have_4_to_16_words_and_8_to_10_on_average() -> None:
    lengths = [len(line.split()) for split in SIZES for line in read_lines(f"{split}.en")]
    assert min(lengths) >= 4
    assert max(lengths) <= 16
    assert 8 <= sum(lengths) / len(lengths) <= 10


@pytest.mark.parametrize("language", ["en", "de"])
def test_training_shows_every_word_of_the_other_splits_at_least_five_times(language: str) -> None:
    counts = Counter(word for line in read_lines(f"train.{language}") for word in split_words(line))
    for split in ("valid", "test"):
        for line in read_lines(f"{split}.{language}"):
            assert min(counts[word] for word in split_words(line)) >= 5, line


@pytest.mark.parametrize("language", ["en", "de"])
def test_lines_are_tidy(language: str) -> None:
    tidy = re.compile(r"[A-ZÄÖÜ][A-Za-zÄÖÜäöüß', ]+[.?!]")
    for split in SIZES:
        for line in read_lines(f"{split}.{language}"):
            assert tidy.fullmatch(line), line
            assert "  " not in line
            assert " ," not in line


def test_alignments_point_to_words_of_their_sentences() -> None:
    rows = zip(read_lines("test.en"), read_lines("test.de"), read_lines("test.align"), strict=True)
    for source, target, alignment in rows:
        links = [tuple(map(int, link.split("-"))) for link in alignment.split()]
        assert links, source
        assert len(links) == len(set(links)), source
        assert all(0 <= i < len(source.split()) and 0 <= j < len(target.split()) for i, j in links), source


def test_a_name_is_aligned_with_itself() -> None:
    rows = zip(read_lines("test.en"), read_lines("test.de"), read_lines("test.align"), strict=True)
    for source, target, alignment in rows:
        english, german_words = split_words(source), split_words(target)
        for name in modifiers.WOMEN + modifiers.MEN:
            if name in english:
                assert f"{english.index(name)}-{german_words.index(name)}" in alignment.split(), source


# One translation for each sentence ------------------------------------------------------------------------------------


def test_the_same_english_never_has_two_german_translations(corpus: Any) -> None:
    random_pairs = chooser.Chooser(1)
    pairs = [*corpus.train, *corpus.valid, *corpus.test]
    pairs += [corpus_module.write_pair(random_pairs) for _ in range(2_000)]
    translations: dict[str, str] = {}
    for pair in pairs:
        assert translations.setdefault(pair.english, pair.german) == pair.german


def test_a_past_that_looks_like_the_present_is_left_out() -> None:
    for english, translation in zip(read_lines("train.en"), read_lines("train.de"), strict=True):
        # "They read" is always the present; the perfect would end in "gelesen".
        if re.match(r"(I|You|We|They) read ", english) and "," not in english and " and " not in english:
            assert "gelesen" not in translation


# What the test holds out ----------------------------------------------------------------------------------------------


def english_forms(kind: str, name: str) -> list[set[str]]:
    """All forms of a dictionary word; of several sets, a sentence with the word has one form of each."""
    if kind == "noun":
        noun = nouns.NOUNS[name]
        return [{noun.english, noun.english_plural}]
    if kind == "adjective":
        adjective = modifiers.ADJECTIVES_BY_NAME[name]
        return [{adjective.english, adjective.english_comparative}]
    base, *particle = name.split()
    english = load("english")
    tables = (verbs.TRANSITIVE_VERBS, verbs.STATIVE_VERBS, verbs.DITRANSITIVE_VERBS, verbs.DITRANSITIVE_VERBS_WITH_TO)
    verb = next(verb for verb in (*[v for table in tables for v in table], verbs.LAY_DOWN) if verb.base == base)
    forms = {base, verb.past, verb.participle, english.third_person(base), english.ing_form(base)}
    return [forms, *({word} for word in particle)]


def count_held_out(corpus: Any) -> int:
    """Count test sentences with a combination whose words meet in no line of train.en."""
    lines_with: defaultdict[str, set[int]] = defaultdict(set)
    for number, line in enumerate(read_lines("train.en")):
        for word in split_words(line):
            lines_with[word.lower()].add(number)

    def meet(combination: Any) -> bool:
        slots = [forms for key in combination for forms in english_forms(*key)]
        return bool(set.intersection(*(set.union(*(lines_with[form] for form in forms)) for forms in slots)))

    return sum(not all(meet(combination) for combination in pair.combinations) for pair in corpus.test)


def test_the_readme_states_how_many_test_sentences_have_a_held_out_combination(corpus: Any) -> None:
    count = count_held_out(corpus)
    assert count >= SIZES["test"] / 2
    assert f"{count} of the 500 test sentences ({count / 5:.1f} %)" in (DATA / "README.md").read_text(encoding="utf-8")


# Grammar --------------------------------------------------------------------------------------------------------------


def phrase(text: str, *, plural: bool = False, number: str = "") -> Any:
    """Make a noun phrase from a determiner, perhaps an adjective, and the English singular of a noun."""
    determiner, *adjective, noun = text.split()
    known = {d.english: d for d in vars(determiners).values() if isinstance(d, determiners.Determiner)}
    known |= {"a": determiners.A, "-": determiners.BARE, "not": determiners.NOT_A}
    return nominals.NounPhrase(
        noun=nouns.NOUNS[noun],
        determiner=known[determiner],
        adjective=modifiers.ADJECTIVES_BY_NAME[adjective[0]] if adjective else None,
        is_plural=plural,
        number=number,
    )


def in_german(text: str, case: str, *, plural: bool = False, number: str = "") -> str:
    """Say a noun phrase in German."""
    return words.join_words(phrase(text, plural=plural, number=number).german(case))


@pytest.mark.parametrize(
    ("text", "case", "expected"),
    [
        ("the old man", "nominative", "der alte Mann"),
        ("the old man", "accusative", "den alten Mann"),
        ("the old man", "dative", "dem alten Mann"),
        ("a old man", "nominative", "ein alter Mann"),
        ("a old woman", "dative", "einer alten Frau"),
        ("a red car", "accusative", "ein rotes Auto"),
        ("my small child", "nominative", "mein kleines Kind"),
        ("our new teacher", "accusative", "unseren neuen Lehrer"),
        ("this expensive ring", "nominative", "dieser teure Ring"),
        ("a dark room", "dative", "einem dunklen Zimmer"),
        ("a high mountain", "accusative", "einen hohen Berg"),
        ("the tired nurse", "dative", "der müden Krankenschwester"),
        ("not cold water", "accusative", "kein kaltes Wasser"),
        ("- cold milk", "dative", "kalter Milch"),
        ("- strong coffee", "accusative", "starken Kaffee"),
        ("every student", "nominative", "jeder Student"),
        ("the student", "accusative", "den Studenten"),
        ("the young boy", "dative", "dem jungen Jungen"),
        ("her neighbour", "accusative", "ihren Nachbarn"),
        ("which book", "accusative", "welches Buch"),
    ],
)
def test_articles_adjectives_and_nouns_agree(text: str, case: str, expected: str) -> None:
    assert in_german(text, case) == expected


@pytest.mark.parametrize(
    ("text", "case", "expected"),
    [
        ("the old house", "nominative", "die alten Häuser"),
        ("the old house", "dative", "den alten Häusern"),
        ("- small child", "dative", "kleinen Kindern"),
        ("- red apple", "accusative", "rote Äpfel"),
        ("many new car", "dative", "vielen neuen Autos"),
        ("many new car", "nominative", "viele neue Autos"),
        ("my good friend", "accusative", "meine guten Freunde"),
        ("this boy", "dative", "diesen Jungen"),
    ],
)
def test_plurals_agree(text: str, case: str, expected: str) -> None:
    assert in_german(text, case, plural=True) == expected


def test_numbers_take_strong_adjectives() -> None:
    assert in_german("- small dog", "dative", plural=True, number="three") == "drei kleinen Hunden"
    assert in_german("the small dog", "nominative", plural=True, number="two") == "die zwei kleinen Hunde"


@pytest.mark.parametrize(
    ("preposition", "case", "text", "expected"),
    [
        ("in", "dative", "the old garden", "im alten Garten"),
        ("in", "accusative", "the house", "ins Haus"),
        ("in", "accusative", "the school", "in die Schule"),
        ("zu", "dative", "the station", "zum Bahnhof"),
        ("zu", "dative", "the school", "zur Schule"),
        ("an", "dative", "the lake", "am See"),
        ("von", "dative", "the doctor", "vom Arzt"),
        ("in", "dative", "a house", "in einem Haus"),
        ("auf", "accusative", "the sofa", "auf das Sofa"),
    ],
)
def test_prepositions_melt_with_the_article(preposition: str, case: str, text: str, expected: str) -> None:
    prepositional = phrases.PrepositionalPhrase("", preposition, case, phrase(text))
    assert words.join_words(prepositional.german()) == expected


@pytest.mark.parametrize(
    ("infinitive", "person", "expected"),
    [
        ("kaufen", "1sg", "kaufe"),
        ("warten", "2sg", "wartest"),
        ("öffnen", "3sg", "öffnet"),
        ("tanzen", "2sg", "tanzt"),
        ("schließen", "2sg", "schließt"),
        ("füttern", "3pl", "füttern"),
        ("regnen", "3sg", "regnet"),
        ("können", "1sg", "kann"),
        ("sein", "3pl", "sind"),
    ],
)
def test_verbs_are_conjugated(infinitive: str, person: str, expected: str) -> None:
    assert german.conjugate_present(infinitive, person) == expected


def clause(subject: Any, verb: str, **parts: Any) -> Any:
    """Make a clause with a verb by its English name."""
    tables = (verbs.TRANSITIVE_VERBS, verbs.STATIVE_VERBS, verbs.DATIVE_VERBS, verbs.DITRANSITIVE_VERBS)
    known = {v.name: v for table in tables for v in table} | verbs.INTRANSITIVE_VERBS | verbs.MOTION_VERBS
    return clauses.Clause(subject=subject, verb=known[verb], **parts)


def say(made: Any, fronted: Any = None) -> tuple[str, str]:
    """Write a clause as an English and a German statement."""
    pair = drafts.say(made, fronted=fronted)
    return pair.english, pair.german


def after(conjunction: str, made: Any) -> str:
    """Write a clause after a German conjunction."""
    return f"{conjunction} {words.join_words(clauses.german_subordinate(made))}"


def test_the_verb_stands_second_after_a_fronted_phrase() -> None:
    bought = clause(phrase("the old man"), "buy", tense="past", object=phrase("a red car"))
    assert say(bought, phrases.fixed_phrase("*yesterday = *gestern")) == (
        "Yesterday the old man bought a red car.",
        "Gestern hat der alte Mann ein rotes Auto gekauft.",
    )


def test_a_separable_prefix_stands_last_and_joins_its_verb_in_a_subordinate_clause() -> None:
    turns_off = clause(nominals.HE, "turn off", object=phrase("the light"))
    assert say(turns_off) == ("He turns off the light.", "Er schaltet das Licht aus.")
    assert after("weil", turns_off) == "weil er das Licht ausschaltet"
    assert words.join_words(clauses.german_infinitive(turns_off)) == "das Licht auszuschalten"
    assert words.join_words(clauses.german_command(turns_off)) == "schalte das Licht aus"


def test_the_finite_verb_stands_last_in_a_subordinate_clause() -> None:
    bought = clause(nominals.SHE, "buy", tense="past", object=phrase("a dress"))
    assert after("weil", bought) == "weil sie ein Kleid gekauft hat"
    wants = clause(nominals.SHE, "buy", modal=clauses.WANT, object=phrase("a dress"))
    assert after("dass", wants) == "dass sie ein Kleid kaufen will"


def test_verbs_of_motion_form_the_perfect_with_sein() -> None:
    goal = phrases.PrepositionalPhrase("to", "in", "accusative", phrase("the city"))
    assert say(clause(nominals.WE, "go", tense="past", direction=goal)) == (
        "We went to the city.",
        "Wir sind in die Stadt gegangen.",
    )


def test_known_objects_are_negated_by_nicht_and_new_ones_by_kein() -> None:
    known = clause(nominals.HE, "buy", is_negated=True, object=phrase("the car"))
    assert say(known) == ("He does not buy the car.", "Er kauft das Auto nicht.")
    new = clause(nominals.HE, "buy", is_negated=True, object=phrase("not red car"))
    assert say(new) == ("He does not buy a red car.", "Er kauft kein rotes Auto.")
    several = clause(nominals.I, "eat", tense="past", is_negated=True, object=phrase("not apple", plural=True))
    assert say(several) == ("I did not eat any apples.", "Ich habe keine Äpfel gegessen.")


def test_nicht_stands_before_a_direction() -> None:
    goal = phrases.PrepositionalPhrase("to", "zu", "dative", phrase("the station"))
    assert say(clause(nominals.SHE, "go", is_negated=True, direction=goal))[1] == "Sie geht nicht zum Bahnhof."


def test_must_not_forbids_and_does_not_have_to_allows() -> None:
    door = phrase("the door")
    assert say(clause(nominals.YOU, "open", modal=clauses.MUST, is_negated=True, object=door)) == (
        "You must not open the door.",
        "Du darfst die Tür nicht öffnen.",
    )
    assert say(clause(nominals.YOU, "open", modal=clauses.HAVE_TO, is_negated=True, object=door)) == (
        "You do not have to open the door.",
        "Du musst die Tür nicht öffnen.",
    )


def test_the_recipient_is_dative_and_stands_before_the_thing() -> None:
    gives = clause(nominals.SHE, "give", recipient=phrase("the child"), object=phrase("a book"))
    assert say(gives) == ("She gives the child a book.", "Sie gibt dem Kind ein Buch.")
    helps = clause(phrase("the boy"), "help", recipient=nominals.THEY)
    assert say(helps) == ("The boy helps them.", "Der Junge hilft ihnen.")


def test_pronouns_stand_before_the_time_and_nouns_after_it() -> None:
    today = phrases.fixed_phrase("*today = *heute")
    assert say(clause(nominals.WE, "visit", object=nominals.HE, time=today)) == (
        "We visit him today.",
        "Wir besuchen ihn heute.",
    )
    assert say(clause(nominals.WE, "visit", object=phrase("our aunt"), time=today))[1] == (
        "Wir besuchen heute unsere Tante."
    )


def test_a_place_stands_after_a_known_object_and_before_a_new_one() -> None:
    garden = phrases.PrepositionalPhrase("in", "in", "dative", phrase("the garden"))
    assert (
        say(clause(nominals.HE, "read", object=phrase("the book"), place=garden))[1] == "Er liest das Buch im Garten."
    )
    assert say(clause(nominals.HE, "read", object=phrase("a book"), place=garden))[1] == "Er liest im Garten ein Buch."


def test_questions_begin_with_the_verb() -> None:
    called = clause(nominals.YOU, "call", tense="past", object=phrase("the doctor"))
    assert words.join_words(clauses.english_question(called)) == "did you call the doctor"
    assert words.join_words(clauses.german_question(called)) == "hast du den Arzt angerufen"


def test_the_english_particle_follows_a_pronoun() -> None:
    picks_up = clause(nominals.SHE, "pick up", object=nominals.HE)
    assert say(picks_up) == ("She picks him up.", "Sie holt ihn ab.")


def test_both_parts_of_a_separable_verb_are_aligned_with_the_english_verb() -> None:
    pair = drafts.say(clause(nominals.HE, "turn off", object=phrase("the light")))
    # He turns off the light. / Er schaltet das Licht aus.
    assert set(pair.alignment) == {(1, 1), (1, 4), (2, 1), (2, 4), (4, 3)}


def test_english_verbs_and_nouns_are_inflected() -> None:
    english = load("english")
    assert english.third_person("carry") == "carries"
    assert english.third_person("wash") == "washes"
    assert english.regular_past("travel") == "travelled"
    assert english.ing_form("put") == "putting"
    assert english.add_s("strawberry") == "strawberries"
    assert [word.text for word in phrase("a old umbrella").english()] == ["an", "old", "umbrella"]
    assert [word.text for word in phrase("a child", plural=True).english()][-1] == "children"
