"""How well the attention of a model trained on the demo corpus knows which word translates which.

    python benchmarks/alignment.py checkpoints/demo

Each reference is read by the model, each of its words is aligned with the source word that it looks at most, and that
is compared with the known alignment (content words only). The layer, and whether to look when a token is predicted or
when it is read, are chosen on 500 further pairs that data/generate.py writes; the printed figure is of the test set.
"""

import argparse
import sys
from pathlib import Path

from word_alignment import align_words

from seqtool.evaluation.report.attention_reading import AttentionMap, AttentionReader

DATA = Path(__file__).resolve().parent.parent / "data"
Links = list[tuple[int, int]]


def read_test(folder: Path) -> list[tuple[str, str, Links]]:
    """Return source, reference and known links of the test set."""
    names = ("test.en", "test.de", "test.align")
    sides = [(folder / name).read_text(encoding="utf-8").split("\n")[:-1] for name in names]
    return [(src, tgt, parse_links(links)) for src, tgt, links in zip(*sides, strict=True)]


def parse_links(text: str) -> Links:
    """Read "0-1 2-2" (Pharaoh form: source word, target word)."""
    return [(int(i), int(j)) for i, _, j in (link.partition("-") for link in text.split())]


def further_pairs(folder: Path) -> list[tuple[str, str, Links]]:
    """Return 500 further pairs with their links; those of the validation set are not known."""
    sys.path.insert(0, str(folder))
    from generate import more_pairs  # type: ignore[import-not-found]

    return [(pair.english, pair.german, list(pair.alignment)) for pair in more_pairs(500, seed=1)]


def agreement(maps: list[AttentionMap], known: list[Links], layer: int, ahead: int) -> tuple[int, int]:
    """Return how many known links the attention finds, and how many there are."""
    found = n_links = 0
    for one, links in zip(maps, known, strict=True):
        aligned = align_words(one, layer, ahead)
        found += sum(aligned[j] == i for i, j in links)
        n_links += len(links)
    return found, n_links


def main() -> None:
    """Choose the way on further pairs and print the figure on test data."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="a run directory trained on the demo corpus")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the demo corpus")
    arguments = parser.parse_args()
    reader = AttentionReader(arguments.model)
    further, test = further_pairs(arguments.data), read_test(arguments.data)
    maps, known = [reader.read(src, tgt) for src, tgt, _ in further], [links for _, _, links in further]
    shares = {}
    for layer in range(maps[0].weights.shape[0]):
        for ahead, way in ((0, "predicted"), (1, "read")):
            found, n_links = agreement(maps, known, layer, ahead)
            shares[layer, ahead] = found / n_links
            print(f"further pairs: layer {layer + 1}, when a token is {way}: {found / n_links:6.1%} of {n_links:,}")
    layer, ahead = max(shares, key=lambda way: shares[way])
    maps, known = [reader.read(src, tgt) for src, tgt, _ in test], [links for _, _, links in test]
    found, n_links = agreement(maps, known, layer, ahead)
    way = "read" if ahead else "predicted"
    print(
        f"test: layer {layer + 1}, when a token is {way}: "
        f"{found:,} of {n_links:,} content words agree, {found / n_links:.1%}"
    )


if __name__ == "__main__":
    main()
