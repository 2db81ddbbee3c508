"""A corpus of sentences with nothing wrong, and one with a defect of each kind at a known line."""

import random
from pathlib import Path

from seqtool.corpus.reading.corpus import Corpus

NOUNS = {"dog": "Hund", "cat": "Kater", "man": "Mann", "horse": "Gaul", "clown": "Clown", "child": "Junge"}
VERBS = {"sees": "sieht", "follows": "verfolgt", "remembers": "kennt", "hears": "hört", "loves": "liebt"}
PLACES = {"": "", " in the garden": " im Garten", " at the old railway station": " am alten Bahnhof"}


def make_pairs(n: int, seed: int = 0) -> list[tuple[bytes, bytes]]:
    """Return different pairs of sentences with nothing wrong."""
    rng = random.Random(seed)
    pairs: dict[tuple[bytes, bytes], None] = {}
    while len(pairs) < n:
        (a, x), (b, y) = rng.choice(list(NOUNS.items())), rng.choice(list(NOUNS.items()))
        (verb, wort), (place, ort) = rng.choice(list(VERBS.items())), rng.choice(list(PLACES.items()))
        number = rng.randrange(1000)
        src = f"The {a} number {number} {verb} the {b}{place}."
        pairs[src.encode(), f"Der {x} Nummer {number} {wort} den {y}{ort}.".encode()] = None
    return list(pairs)


def write_corpus(folder: Path, pairs) -> Corpus:
    corpus = Corpus(folder / "a.en", folder / "a.de")
    corpus.source.write_bytes(b"".join(src + b"\n" for src, _ in pairs))
    corpus.target.write_bytes(b"".join(tgt + b"\n" for _, tgt in pairs))
    return corpus


PLANTED = {
    # line: (finding, source, target); None stands for the sound text of that line
    11: ("undecodable", b"The caf\xe9 is closed.", None),
    22: ("undecodable", None, b"\xff\xfe"),
    33: ("control", b"The dog\x00 barks at the other dog.", None),
    44: ("control", None, "Der Hund bellt\u2028den anderen Hund an.".encode()),
    55: ("control", "The dog\x85barks at the other dog.".encode(), None),
    66: ("empty", b"", None),
    77: ("empty", None, b" \xc2\xa0 "),
    88: ("identical", b"The dog barks at night.", b"The dog barks at night."),
    99: ("too_long", b"The dog barks. " * 90, b"Der Hund bellt. " * 90),
    111: ("ratio", b"The dog barks at night and nobody hears it in the house.", b"Ja."),
    122: ("other_script", None, "Собака лает по ночам в саду.".encode()),
    133: ("damaged", None, "Der Hund hÃ¶rt den Gaul.".encode()),
    144: (
        "unusually_lopsided",
        b"The dog.",
        b"Der Hund bellt in der Nacht, und niemand im Haus kann ihn h\xc3\xb6ren.",
    ),
    155: ("unusually_long", b"The dog barks, " * 30, b"Der Hund bellt, " * 30),
}


def write_planted(folder: Path) -> Corpus:
    """Write a corpus of 2,000 pairs with the defects, and line 1500 a repetition of line 500."""
    pairs = make_pairs(2000)
    for line, (_, src, tgt) in PLANTED.items():
        pairs[line - 1] = (pairs[line - 1][0] if src is None else src, pairs[line - 1][1] if tgt is None else tgt)
    pairs[1499] = pairs[499]
    return write_corpus(folder, pairs)
