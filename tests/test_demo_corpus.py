"""The demo corpus: what its files promise, and the grammar that writes further pairs."""

import re
import subprocess
import sys
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

DATA = Path(__file__).parent.parent / "data"
sys.path.append(str(DATA))  # the grammar lies beside the corpus and is not installed

import generate  # noqa: E402
from generator import grammar, sentences, words  # noqa: E402

SIZES = {"train": 20_000, "valid": 500, "test": 500}


def read_lines(name: str) -> list[str]:
    """Read a file of the corpus."""
    text = (DATA / name).read_bytes().decode("utf-8")
    assert text.endswith("\n")
    assert "\r" not in text
    return text.split("\n")[:-1]


def split_words(sentence: str) -> list[str]:
    """Split a sentence into words without punctuation."""
    return [word.strip(".,?!") for word in sentence.split()]


# The files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("split", SIZES)
def test_both_sides_of_a_split_have_its_size(split: str) -> None:
    assert len(read_lines(f"{split}.en")) == len(read_lines(f"{split}.de")) == SIZES[split]


@pytest.mark.parametrize("language", ["en", "de"])
def test_no_sentence_occurs_twice_in_the_corpus(language: str) -> None:
    lines = [line for split in SIZES for line in read_lines(f"{split}.{language}")]
    assert len(lines) == len(set(lines))


@pytest.mark.parametrize("language", ["en", "de"])
def test_training_shows_every_word_of_the_other_splits_at_least_five_times(language: str) -> None:
    counts = Counter(word for line in read_lines(f"train.{language}") for word in split_words(line))
    for split in ("valid", "test"):
        for line in read_lines(f"{split}.{language}"):
            assert min(counts[word] for word in split_words(line)) >= 5, line


@pytest.mark.parametrize("language", ["en", "de"])
def test_lines_are_tidy(language: str) -> None:
    tidy = re.compile(r"[A-ZÄÖÜ][A-Za-zÄÖÜäöüß']*(,? [A-Za-zÄÖÜäöüß']+)+[.?!]")
    for split in SIZES:
        for line in read_lines(f"{split}.{language}"):
            assert tidy.fullmatch(line), line


def held_out_counts() -> dict[str, int]:
    """Count the sentences of each split that have both words of a combination that is held out."""
    combinations = []
    for line in read_lines("held-out.txt"):
        if not line.startswith("#"):
            first, nouns = line.split(": ")
            combinations += [[set(word.split("/")) for word in [*first.split(), noun]] for noun in nouns.split(", ")]
    assert f"lists {len(combinations)} combinations" in (DATA / "README.md").read_text(encoding="utf-8")
    counts = dict.fromkeys(SIZES, 0)
    for split in SIZES:
        for line in read_lines(f"{split}.en"):
            said = set(split_words(line.lower()))
            counts[split] += any(all(forms & said for forms in combination) for combination in combinations)
    return counts


def test_training_never_shows_a_combination_that_is_held_out_and_the_readme_counts_those_of_the_test() -> None:
    counts = held_out_counts()
    assert counts["train"] == 0
    readme = " ".join((DATA / "README.md").read_text(encoding="utf-8").split())
    assert f"{counts['test']} of the 500 test sentences ({counts['test'] / 5:.1f} %)" in readme
    assert f"and has {counts['valid']}." in readme


def test_alignments_point_to_words_of_their_sentences() -> None:
    rows = zip(read_lines("test.en"), read_lines("test.de"), read_lines("test.align"), strict=True)
    for source, target, alignment in rows:
        links = [tuple(map(int, link.split("-"))) for link in alignment.split()]
        assert links, source
        assert len(links) == len(set(links)), source
        assert all(0 <= i < len(source.split()) and 0 <= j < len(target.split()) for i, j in links), source


def test_a_name_is_aligned_with_itself() -> None:
    people = set(words.names("woman") + words.names("man"))
    rows = list(zip(read_lines("test.en"), read_lines("test.de"), read_lines("test.align"), strict=True))
    for source, target, alignment in rows:
        english, german = split_words(source), split_words(target)
        for name in people.intersection(english):
            assert f"{english.index(name)}-{german.index(name)}" in alignment.split(), source
    assert sum(not people.isdisjoint(split_words(source)) for source, _, _ in rows) > 50


@pytest.mark.parametrize(
    ("source", "aligned"),
    [
        ("Her four aunts may visit their nice son.", "four=vier aunts=Tanten visit=besuchen nice=netten son=Sohn"),
        ("When will she sing next to the factory?", "When=Wann sing=singen factory=Fabrik"),
        (
            "The old neighbour brings along a salad and a strawberry.",
            "old=alte neighbour=Nachbar brings=bringt brings=mit along=bringt along=mit "
            "salad=Salat strawberry=Erdbeere",
        ),
    ],
)
def test_content_words_are_aligned_with_their_translations(source: str, aligned: str) -> None:
    line = read_lines("test.en").index(source)
    english, german = split_words(source), split_words(read_lines("test.de")[line])
    links = [link.split("-") for link in read_lines("test.align")[line].split()]
    assert [f"{english[int(i)]}={german[int(j)]}" for i, j in links] == aligned.split()


# Further pairs --------------------------------------------------------------------------------------------------------


def test_further_pairs_are_new_and_training_knows_their_words() -> None:
    pairs = list(generate.more_pairs(300, seed=7))
    for position, language in enumerate(("en", "de")):
        lines = [pair[position] for pair in pairs]
        assert len(set(lines)) == 300
        assert set(lines).isdisjoint(line for split in SIZES for line in read_lines(f"{split}.{language}"))
        known = {word for line in read_lines(f"train.{language}") for word in split_words(line)}
        assert known.issuperset(word for line in lines for word in split_words(line))


@pytest.mark.parametrize("held_out", [False, True])
def test_further_pairs_have_a_held_out_combination_only_if_asked_for(held_out: bool) -> None:
    combinations = generate.read_held_out()
    pairs = generate.more_pairs(50, seed=3, held_out=held_out)
    assert {generate.is_held_out(pair.english, combinations) for pair in pairs} == {held_out}


def test_the_same_seed_writes_the_same_pairs_and_another_seed_others() -> None:
    first, again, other = (list(islice(generate.more_pairs(30, seed=seed), 30)) for seed in (1, 1, 2))
    assert first == again != other


def test_the_same_english_never_has_two_german_translations() -> None:
    choose = sentences.Chooser(11)
    pairs = [sentences.write_pair(choose)[:2] for _ in range(5_000)]
    pairs += [*zip(read_lines("train.en"), read_lines("train.de"), strict=True)]
    translations: dict[str, str] = {}
    for english, german in pairs:
        assert translations.setdefault(english, german) == german


def test_the_script_writes_three_files_of_the_same_length(tmp_path: Path) -> None:
    subprocess.run([sys.executable, DATA / "generate.py", "20", "--out", tmp_path], check=True)
    files = {path.name: path.read_text(encoding="utf-8").splitlines() for path in tmp_path.iterdir()}
    assert {name: len(lines) for name, lines in files.items()} == {"more.en": 20, "more.de": 20, "more.align": 20}


# Grammar --------------------------------------------------------------------------------------------------------------


def phrase(text: str, *, plural: bool = False, number: str = "") -> grammar.Phrase:
    """Make a noun phrase of a determiner (- for none), perhaps an adjective, and the English singular of a noun."""
    determiner, *adjective, noun = text.replace("- ", "| ").replace("not a", "not_a").split()
    determiner = determiner.replace("|", "").replace("_", " ")
    described = words.ADJECTIVES[adjective[0]] if adjective else None
    return grammar.noun_phrase(words.NOUNS[noun], determiner, described, is_plural=plural, number=number)


def plain(marked: str) -> str:
    """Take the names of the meanings off a text."""
    return " ".join(grammar.split_names(marked)[0])


@pytest.mark.parametrize(
    ("text", "case", "expected"),
    [
        ("the old man", "nominative", "der alte Mann"),
        ("the old man", "accusative", "den alten Mann"),
        ("the old man", "dative", "dem alten Mann"),
        ("a old man", "nominative", "ein alter Mann"),
        ("a old woman", "dative", "einer alten Frau"),
        ("a red car", "accusative", "ein rotes Auto"),
        ("our new teacher", "accusative", "unseren neuen Lehrer"),
        ("this expensive ring", "nominative", "dieser teure Ring"),
        ("a dark kitchen", "dative", "einer dunklen Küche"),
        ("not a cold water", "accusative", "kein kaltes Wasser"),
        ("- cold milk", "dative", "kalter Milch"),
        ("- strong coffee", "accusative", "starken Kaffee"),
        ("the student", "accusative", "den Studenten"),
        ("the strong boy", "dative", "dem starken Jungen"),
        ("which book", "accusative", "welches Buch"),
    ],
)
def test_articles_adjectives_and_nouns_agree(text: str, case: str, expected: str) -> None:
    assert plain(phrase(text).german[case]) == expected


@pytest.mark.parametrize(
    ("text", "case", "expected"),
    [
        ("the old house", "dative", "den alten Häusern"),
        ("- small child", "dative", "kleinen Kindern"),
        ("- red apple", "accusative", "rote Äpfel"),
        ("many new car", "nominative", "viele neue Autos"),
        ("my good friend", "accusative", "meine guten Freunde"),
        ("this boy", "dative", "diesen Jungen"),
    ],
)
def test_plurals_agree(text: str, case: str, expected: str) -> None:
    assert plain(phrase(text, plural=True).german[case]) == expected


def test_numbers_take_strong_adjectives() -> None:
    assert plain(phrase("- small dog", plural=True, number="three=drei").german["dative"]) == "drei kleinen Hunden"
    assert (
        plain(phrase("the small dog", plural=True, number="two=zwei").german["nominative"]) == "die zwei kleinen Hunde"
    )


@pytest.mark.parametrize(
    ("preposition", "case", "text", "expected"),
    [
        ("in", "dative", "the old garden", "im alten Garten"),
        ("in", "accusative", "the house", "ins Haus"),
        ("zu", "dative", "the school", "zur Schule"),
        ("von", "dative", "the doctor", "vom Arzt"),
        ("in", "dative", "a house", "in einem Haus"),
        ("auf", "accusative", "the sofa", "auf das Sofa"),
    ],
)
def test_prepositions_melt_with_the_article(preposition: str, case: str, text: str, expected: str) -> None:
    assert plain(grammar.prepositional("", preposition, case, phrase(text)).german) == expected


@pytest.mark.parametrize(
    ("infinitive", "person", "expected"),
    [
        ("kaufen", "1sg", "kaufe"),
        ("warten", "2sg", "wartest"),
        ("öffnen", "3sg", "öffnet"),
        ("tanzen", "2sg", "tanzt"),
        ("füttern", "3pl", "füttern"),
        ("können", "1sg", "kann"),
    ],
)
def test_verbs_are_conjugated(infinitive: str, person: str, expected: str) -> None:
    assert words.conjugate(infinitive, person) == expected


VERBS = {
    verb.name: verb
    for kind in ("thinking", "activity", "motion", "dative", "ditransitive", "transitive")
    for verb in words.VERBS[kind]
}
YESTERDAY = grammar.starred("*yesterday", "*gestern")
GARDEN = grammar.prepositional("in", "in", "dative", phrase("the garden"))
STATION = grammar.prepositional("to", "zu", "dative", phrase("the station"))


def clause(subject: str, verb: str, thing: str = "", **parts: object) -> grammar.Clause:
    """Make a clause with a subject and perhaps an object, which are pronouns or noun phrases."""
    subject_phrase, object_phrase = (
        grammar.PRONOUNS.get(text.split()[-1]) or phrase(text) if text else None for text in (subject, thing)
    )
    return grammar.Clause(subject=subject_phrase, verb=VERBS[verb], object=object_phrase, **parts)


@pytest.mark.parametrize(
    ("said", "order", "english", "german"),
    [
        # The verb stands second, and participles, infinitives and separable prefixes last.
        (clause("he", "turn_off", "the lamp"), "statement", "he turns off the lamp", "er schaltet die Lampe aus"),
        (clause("he", "pick_up", "she"), "statement", "he picks her up", "er holt sie ab"),
        (
            clause("she", "buy", "a dress", tense="past"),
            "statement",
            "she bought a dress",
            "sie hat ein Kleid gekauft",
        ),
        (
            clause("we", "go", tense="past", complement=STATION),
            "statement",
            "we went to the station",
            "wir sind zum Bahnhof gegangen",
        ),
        (clause("you", "ask", "he", tense="past"), "question", "did you ask him", "hast du ihn gefragt"),
        (clause("you", "turn_off", "the lamp"), "command", "turn off the lamp", "schalte die Lampe aus"),
        # It stands last in a subordinate clause.
        (clause("he", "turn_off", "the lamp"), "subordinate", "he turns off the lamp", "er die Lampe ausschaltet"),
        (clause("he", "turn_off", "the lamp"), "infinitive", "to turn off the lamp", "die Lampe auszuschalten"),
        (
            clause("she", "buy", "a dress", modal="can"),
            "subordinate",
            "she can buy a dress",
            "sie ein Kleid kaufen kann",
        ),
        # Known objects are negated by nicht, new ones by kein; "must not" forbids.
        (
            clause("he", "buy", "the car", is_negated=True),
            "statement",
            "he does not buy the car",
            "er kauft das Auto nicht",
        ),
        (clause("he", "buy", "not a car", is_negated=True), "statement", "he does not buy a car", "er kauft kein Auto"),
        (
            clause("she", "go", is_negated=True, complement=STATION),
            "statement",
            "she does not go to the station",
            "sie geht nicht zum Bahnhof",
        ),
        (
            clause("you", "open", "the door", modal="must", is_negated=True),
            "statement",
            "you must not open the door",
            "du darfst die Tür nicht öffnen",
        ),
        # Pronouns stand before the time and nouns after it; the place stands before new objects only.
        (
            clause("we", "visit", "he", time=YESTERDAY, tense="past"),
            "statement",
            "we visited him yesterday",
            "wir haben ihn gestern besucht",
        ),
        (
            clause("he", "read", "the book", place=GARDEN),
            "statement",
            "he reads the book in the garden",
            "er liest das Buch im Garten",
        ),
        (
            clause("he", "read", "a book", place=GARDEN),
            "statement",
            "he reads a book in the garden",
            "er liest im Garten ein Buch",
        ),
        # The recipient is dative and stands before the thing.
        (
            clause("she", "give", "a book", recipient=phrase("the child")),
            "statement",
            "she gives the child a book",
            "sie gibt dem Kind ein Buch",
        ),
        (clause("she", "help", recipient=grammar.PRONOUNS["they"]), "statement", "she helps them", "sie hilft ihnen"),
    ],
)
def test_clauses_have_the_word_order_of_either_language(
    said: grammar.Clause, order: str, english: str, german: str
) -> None:
    text = grammar.say(said, order)
    assert (plain(text.english), plain(text.german)) == (english, german)


def test_the_verb_stands_second_after_a_fronted_phrase_and_content_words_are_aligned() -> None:
    bought = clause("the old man", "throw_away", "a dirty bottle")
    pair = grammar.finish(grammar.say(bought, fronted=YESTERDAY))
    assert pair.english == "Yesterday the old man throws away a dirty bottle."
    assert pair.german == "Gestern wirft der alte Mann eine schmutzige Flasche weg."
    expected = {(0, 0), (2, 3), (3, 4), (4, 1), (4, 8), (5, 1), (5, 8), (7, 6), (8, 7)}
    assert set(pair.alignment) == expected
