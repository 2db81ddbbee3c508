"""The pairs of a corpus scored by a model: the log-probability of each given translation."""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from seqtool.corpus.reading.blocks import read_pairs
from seqtool.corpus.reading.corpus import Corpus
from seqtool.corpus.text import clean_text
from seqtool.durations import name_lines
from seqtool.errors import SeqtoolError
from seqtool.translation.lines.reading import decode_line
from seqtool.translation.translator import Translator

BLOCK = 4096  # pairs scored at once; batches are made of those of like length


@dataclass(frozen=True, kw_only=True)
class PairScore:
    """How probable a translation is: the log-probability of each of its tokens and, last, of its end."""

    tokens: list[str]
    token_scores: list[float]

    def score(self, normalized: bool = False) -> float:
        """Return the sum of the log-probabilities, or their mean."""
        total = math.fsum(self.token_scores)
        return total / len(self.token_scores) if normalized else total

    def to_dict(self, normalized: bool = False) -> dict[str, Any]:
        """Return what `score --json` prints for a pair."""
        values = {"log_prob": self.score(), "tokens": self.tokens, "token_scores": self.token_scores}
        return {**values, "log_prob_per_token": self.score(True)} if normalized else values


def score_corpus(translator: Translator, corpus: Corpus, notify: Callable[[str], None]) -> Iterator[PairScore]:
    """Yield the score of each pair in order; `notify` is called for lines that are not valid UTF-8."""
    tokenizer = translator.tokenizers.target
    first = 1
    for pairs in read_blocks(corpus, notify):
        targets = [tgt for _, tgt in pairs]
        scores = translator.score([src for src, _ in pairs], targets, first)
        for target, token_scores in zip(targets, scores, strict=True):
            tokens = tokenizer.pieces(tokenizer.encode(clean_text(target)))
            yield PairScore(tokens=tokens, token_scores=token_scores)
        first += len(pairs)


def read_blocks(corpus: Corpus, notify: Callable[[str], None]) -> Iterator[list[tuple[str, str]]]:
    """Yield blocks of pairs; invalid UTF-8 is read as the replacement character, and reported by line number."""
    pairs = read_pairs(corpus)
    while block := list(itertools.islice(pairs, BLOCK)):
        missing = [pair.number for pair in block if pair.tgt is None]
        if missing:
            raise SeqtoolError(f"{corpus}: {name_lines(missing)}: no target to score; each pair needs both sides")
        decoded = [[decode_line(pair.src) for pair in block], [decode_line(pair.tgt or b"") for pair in block]]
        for path, side in zip(corpus.paths * 2, decoded, strict=False):
            if invalid := [pair.number for pair, (_, is_valid) in zip(block, side, strict=True) if not is_valid]:
                notify(f"{path}: {name_lines(invalid)}: not valid UTF-8; the bad bytes were read as U+FFFD")
        yield [(src, tgt) for (src, _), (tgt, _) in zip(*decoded, strict=True)]
