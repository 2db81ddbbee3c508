"""The splits of the corpus: which combinations are held out, and the files that are written."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from generator import patterns, verbs  # noqa: F401  (importing the patterns registers them)
from generator.chooser import Chooser
from generator.drafts import PATTERNS, Pair
from generator.modifiers import ADJECTIVES
from generator.words import Combination

SEED = 20240
N_TRAIN, N_VALID, N_TEST = 20_000, 500, 500
N_TEST_WITH_HELD_OUT = 320
HELD_OUT_SHARE = 0.1
MIN_WORD_COUNT = 5  # how often training must show each word of the other splits
PUNCTUATION = ".,?!"


@dataclass(frozen=True)
class Corpus:
    """The three splits."""

    train: list[Pair]
    valid: list[Pair]
    test: list[Pair]


# Each pattern as often as its weight says.
WHEEL = [pattern for pattern in PATTERNS for _ in range(pattern.weight)]


def write_pair(chooser: Chooser) -> Pair:
    """Write one random pair of a random pattern."""
    return chooser.pick(WHEEL).write(chooser)


def split_words(sentence: str) -> list[str]:
    """Split a sentence into words without punctuation."""
    return [word.strip(PUNCTUATION) for word in sentence.split()]


def is_acceptable(pair: Pair) -> bool:
    """Keep sentences of 4 to 16 words that say no content word twice and are not a matter of dispute."""
    english, german = split_words(pair.english), split_words(pair.german)
    if min(len(english), len(german)) < 4 or max(len(english), len(german)) > 16:
        return False
    # Whether "das Mädchen" takes "sein" or "ihr" is disputed, and a child can be both.
    if ("girl" in english or "child" in english) and ("her" in english or "his" in english):
        return False
    said = [key for key in pair.concepts if key[0] != "adverb" and key != ("verb", "be")]
    return len(set(said)) == len(said)


def choose_held_out(chooser: Chooser) -> frozenset[Combination]:
    """Choose adjectives with nouns and verbs with objects that training must not show together."""
    chosen: list[Combination] = []
    rows = [(("adjective", adjective.english), adjective.nouns) for adjective in ADJECTIVES]
    rows += [(("verb", verb.name), verb.objects) for verb in verbs.TRANSITIVE_VERBS + verbs.DITRANSITIVE_VERBS]
    for key, nouns in rows:
        if len(nouns) > 5:
            chosen += [(key, ("noun", noun.english)) for noun in nouns if chooser.chance(HELD_OUT_SHARE)]
    return frozenset(chosen)


def shows_together(pair: Pair, held_out: frozenset[Combination]) -> bool:
    """Tell whether a held-out combination occurs anywhere in the sentence, even in different phrases."""
    return any((first, second) in held_out for first in pair.concepts for second in pair.concepts)


def count_words(pairs: Iterable[Pair]) -> Counter[tuple[str, str]]:
    """Count the words of both languages."""
    counts: Counter[tuple[str, str]] = Counter()
    for pair in pairs:
        counts.update(("en", word) for word in split_words(pair.english))
        counts.update(("de", word) for word in split_words(pair.german))
    return counts


class Collector:
    """Collects pairs of which neither side has been seen before."""

    def __init__(self, chooser: Chooser) -> None:
        self.chooser = chooser
        self.seen: set[str] = set()

    def next_pair(self) -> Pair:
        """Write pairs until one is new; it counts as seen only when it is kept."""
        while True:
            pair = write_pair(self.chooser)
            if is_acceptable(pair) and pair.english not in self.seen and pair.german not in self.seen:
                return pair

    def keep(self, pair: Pair, split: list[Pair]) -> None:
        """Put a pair into a split."""
        self.seen.update((pair.english, pair.german))
        split.append(pair)


def build_corpus() -> Corpus:
    """Write the whole corpus, always the same."""
    chooser = Chooser(SEED)
    held_out = choose_held_out(chooser)
    collector = Collector(chooser)
    corpus = Corpus([], [], [])
    while len(corpus.train) < N_TRAIN:
        pair = collector.next_pair()
        if not shows_together(pair, held_out):
            collector.keep(pair, corpus.train)
    counts = count_words(corpus.train)

    def is_covered(pair: Pair) -> bool:
        return all(counts[key] >= MIN_WORD_COUNT for key in count_words([pair]))

    while len(corpus.valid) < N_VALID:
        pair = collector.next_pair()
        if is_covered(pair):
            collector.keep(pair, corpus.valid)
    wanted = {True: N_TEST_WITH_HELD_OUT, False: N_TEST - N_TEST_WITH_HELD_OUT}
    while len(corpus.test) < N_TEST:
        pair = collector.next_pair()
        is_held_out = any(combination in held_out for combination in pair.combinations)
        if wanted[is_held_out] and is_covered(pair):
            wanted[is_held_out] -= 1
            collector.keep(pair, corpus.test)
    return corpus


def write_corpus(corpus: Corpus, folder: Path) -> None:
    """Write the files of the corpus."""
    for name in ("train", "valid", "test"):
        pairs: list[Pair] = getattr(corpus, name)
        write_lines(folder / f"{name}.en", (pair.english for pair in pairs))
        write_lines(folder / f"{name}.de", (pair.german for pair in pairs))
    write_lines(folder / "test.align", (" ".join(f"{i}-{j}" for i, j in pair.alignment) for pair in corpus.test))


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines as UTF-8 with the same line ends on every system."""
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8", newline="\n")
