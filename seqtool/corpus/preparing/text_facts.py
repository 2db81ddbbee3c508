"""What the text of a corpus is like, as far as scoring and translating depend on it: measured on a sample of pairs."""

from typing import Any

import numpy as np

from seqtool.corpus.cleaning.hashing import hash_pairs
from seqtool.corpus.cleaning.rules import Verdicts
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
        self._single = 0

    def add(self, block: PairBlock, verdicts: Verdicts) -> None:
        """Look at the chosen ones among the pairs of a block that are kept."""
        chosen = hash_pairs(verdicts.hashes, np.zeros(len(block), np.uint64)) <= self._limit
        for i in np.flatnonzero(verdicts.kept & chosen).tolist():
            source, target = (
                clean_text(side.line(i)[: 4 * MOST_CHARS].decode("utf-8", "ignore"))[:MOST_CHARS]
                for side in (block.src, block.tgt)
            )
            self._texts[0].append(source)
            self._texts[1].append(target)
            self._single += count_sentences(source) == 1

    def describe(self) -> dict[str, Any]:
        """Return the share of the letters that each script has, and of the sources that are a single sentence."""
        n_lines = len(self._texts[0])
        return {
            "scripts": dict(zip(("source", "target"), map(share_scripts, self._texts), strict=True)),
            "single_sentences": round(self._single / n_lines, 4) if n_lines else None,
            "lines": n_lines,
        }
