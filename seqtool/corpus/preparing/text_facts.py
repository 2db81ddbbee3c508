"""What the text of a corpus is like: what scoring and translating depend on, and the noise that cleaning has left.

All is measured on a sample of the pairs.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from seqtool.corpus.cleaning.hashing import hash_pairs
from seqtool.corpus.cleaning.languages import Languages
from seqtool.corpus.cleaning.noise import KINDS, find_noise
from seqtool.corpus.cleaning.rules import LANGUAGE, Verdicts
from seqtool.corpus.reading.lines import PairBlock
from seqtool.corpus.scripts import share_scripts
from seqtool.corpus.sentences import count_sentences
from seqtool.corpus.text import clean_text

SAMPLE_PAIRS = 5000
MOST_CHARS = 1000  # of a line that are looked at
_HIGHEST = 0xFFFFFFFFFFFFFFFF


class TextSample:
    """Measures about SAMPLE_PAIRS of the pairs that cleaning keeps, chosen by their content alone."""

    def __init__(self, pairs: int) -> None:
        """`pairs` is the number of pairs in the corpora."""
        self._limit = np.uint64(min(_HIGHEST, (_HIGHEST + 1) * SAMPLE_PAIRS // max(1, pairs)))
        self._texts: tuple[list[str], list[str]] = ([], [])
        self._pairs: list[tuple[bytes, bytes]] = []
        self._single = 0

    def add(self, block: PairBlock, verdicts: Verdicts) -> None:
        """Look at the chosen ones among the pairs of a block that are kept."""
        chosen = hash_pairs(verdicts.hashes, np.zeros(len(block), np.uint64)) <= self._limit
        for i in np.flatnonzero(verdicts.kept & chosen).tolist():
            lines = block.src.line(i), block.tgt.line(i)
            source, target = (
                clean_text(line[: 4 * MOST_CHARS].decode("utf-8", "ignore"))[:MOST_CHARS] for line in lines
            )
            self._texts[0].append(source)
            self._texts[1].append(target)
            self._single += count_sentences(source) == 1
            if max(map(len, lines)) <= 4 * MOST_CHARS:
                self._pairs.append(lines)

    def describe(self) -> dict[str, Any]:
        """Return the share of the letters that each script has, and of the sources that are a single sentence; and how
        many of the pairs have noise of each kind."""
        n_lines = len(self._texts[0])
        return {
            "scripts": dict(zip(("source", "target"), map(share_scripts, self._texts), strict=True)),
            "single_sentences": round(self._single / n_lines, 4) if n_lines else None,
            "lines": n_lines,
            "noise": count_noise(self._pairs),
        }


def count_noise(pairs: Sequence[tuple[bytes, bytes]]) -> dict[str, int]:
    """Return how many of some pairs have noise of each kind that `check` knows pair by pair; kinds of none are out."""
    if not pairs:
        return {}
    block = PairBlock.from_pairs(pairs)
    found = find_noise(block, KINDS)
    if languages := Languages.learn([block]):
        found |= dict(zip(LANGUAGE, languages.find(block), strict=True))
    return {kind: int(mask.sum()) for kind, mask in found.items() if mask.any()}
