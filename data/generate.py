"""Write further sentence pairs of the kind of the demo corpus: python data/generate.py 1000 --out FOLDER."""

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from generator.grammar import Pair
from generator.sentences import Chooser, write_pair

FOLDER = Path(__file__).parent
LANGUAGES = ("en", "de")
MIN_WORD_COUNT = 5  # how often train.en and train.de must show each word
Combination = list[set[str]]


def read_lines(name: str) -> list[str]:
    """Read a file of the demo corpus."""
    return (FOLDER / name).read_text(encoding="utf-8").split("\n")[:-1]


def split_words(sentence: str) -> list[str]:
    """Split a sentence into words without punctuation."""
    return [word.strip(".,?!") for word in sentence.split()]


def read_held_out() -> list[Combination]:
    """Read the combinations that training never shows: of each word of a combination, all its forms."""
    combinations = []
    for line in read_lines("held-out.txt"):
        if not line.startswith("#"):
            first, _, nouns = line.partition(": ")
            combinations += [[set(word.split("/")) for word in f"{first} {noun}".split()] for noun in nouns.split(", ")]
    return combinations


def is_held_out(english: str, combinations: list[Combination]) -> bool:
    """Tell whether a sentence has all the words of a combination."""
    words = {word.lower() for word in split_words(english)}
    return any(all(words & forms for forms in combination) for combination in combinations)


def more_pairs(count: int, *, seed: int, held_out: bool = False) -> Iterator[Pair]:
    """Write pairs that the demo corpus lacks, in words that its training pairs show often enough.

    Each of them has a held-out combination, as in the test set, or none of them has, as in training.
    """
    seen = {
        line for split in ("train", "valid", "test") for side in LANGUAGES for line in read_lines(f"{split}.{side}")
    }
    counts = Counter(word for side in LANGUAGES for line in read_lines(f"train.{side}") for word in split_words(line))
    combinations = read_held_out()
    choose = Chooser(seed)
    while count:
        pair = write_pair(choose)
        is_new = seen.isdisjoint((pair.english, pair.german))
        is_known = min(counts[word] for word in split_words(f"{pair.english} {pair.german}")) >= MIN_WORD_COUNT
        if is_new and is_known and is_held_out(pair.english, combinations) == held_out:
            seen.update((pair.english, pair.german))
            count -= 1
            yield pair


def main() -> None:
    """Read the command line; write files or print the pairs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, help="number of pairs")
    parser.add_argument(
        "--out", type=Path, help="folder for more.en, more.de and more.align; without it print the pairs"
    )
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    parser.add_argument("--held-out", action="store_true", help="only pairs with a combination that training lacks")
    arguments = parser.parse_args()
    pairs = list(more_pairs(arguments.count, seed=arguments.seed, held_out=arguments.held_out))
    if not arguments.out:
        print("\n".join(f"{pair.english}\n    {pair.german}" for pair in pairs))
        return
    arguments.out.mkdir(parents=True, exist_ok=True)
    links = [" ".join(f"{i}-{j}" for i, j in pair.alignment) for pair in pairs]
    columns = {"en": [pair.english for pair in pairs], "de": [pair.german for pair in pairs], "align": links}
    for suffix, lines in columns.items():
        text = "".join(f"{line}\n" for line in lines)
        (arguments.out / f"more.{suffix}").write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
