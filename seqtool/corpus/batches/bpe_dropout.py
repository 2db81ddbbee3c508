"""BPE-dropout (Provilkov et al., 2020): words are segmented anew in training, with some of their merges left out.

SentencePiece can do this too, but its random numbers cannot be set to a place, and a resumed run must see the same
segmentations. Here they follow from (seed, epoch, batch) alone. Each word has a few segmentations an epoch, made when
they are first needed and then kept, so that the price is a look-up for most words.
"""

import hashlib
import itertools
from dataclasses import dataclass, field

import numpy as np

from seqtool.corpus.batches.ordering import Ints
from seqtool.corpus.batches.planning import random_bits
from seqtool.corpus.tokenizer.bpe import BpeTokenizer
from seqtool.corpus.tokenizer.interface import SPACE, Tokenizer, TokenizerPair
from seqtool.errors import SeqtoolError

VARIANTS = 16  # different segmentations of one word in one epoch, at most
_KEPT_WORDS = 60_000
_DRAWS = 1 << 16


class MergeTable:
    """The merges of a tokenizer, in a form that can be carried out with some left out."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        if not isinstance(tokenizer, BpeTokenizer):
            raise SeqtoolError("tokenizer.bpe_dropout needs a BPE tokenizer, which knows its merges; set it to 0")
        scores = tokenizer.merge_scores()
        self.starts_word = np.array([piece.startswith(SPACE) for piece in tokenizer.piece_list])
        self._pieces = {index: tokenizer.piece_list[index] for index in scores}
        self._ids = {piece: index for index, piece in self._pieces.items()}
        self._scores = {self._pieces[index]: score for index, score in scores.items()}

    def segment(self, word: list[int], threshold: int, draws: memoryview | None) -> list[int]:
        """Segment a word anew from its characters; bytes and user symbols in it stay as they are."""
        result: list[int] = []
        for is_text, run in itertools.groupby(word, self._pieces.__contains__):
            if is_text:
                symbols = self._merge(list("".join(self._pieces[index] for index in run)), threshold, draws)
                result += [self._ids[symbol] for symbol in symbols]
            else:
                result += run
        return result

    def _merge(self, symbols: list[str], threshold: int, draws: memoryview | None) -> list[str]:
        """Carry out the best merge again and again; each time, each possible one is left out if its draw is low."""
        scores = self._scores
        drawn = 0
        while len(symbols) > 1:
            best, place = -np.inf, -1
            for i in range(len(symbols) - 1):
                score = scores.get(symbols[i] + symbols[i + 1])
                if score is None:
                    continue
                if draws is not None:
                    drawn += 1
                    if draws[drawn % len(draws)] < threshold:
                        continue
                if score > best:
                    best, place = score, i
            if place < 0:
                break
            symbols[place : place + 2] = [symbols[place] + symbols[place + 1]]
        return symbols


@dataclass
class SideDropout:
    """BPE-dropout on one side of the corpus."""

    table: MergeTable
    probability: float
    seed: int
    side: int
    longest: int = 2**31  # a row that would get longer stays as it is
    _epoch: int = -1
    _kept: dict[bytes, list[bytes | None]] = field(default_factory=dict)

    def apply(self, tokens: Ints, lengths: Ints, epoch: int, index: int) -> tuple[Ints, Ints]:
        """Segment the rows of a batch anew: tokens one after the other and the length of each row, in and out."""
        if not len(tokens):
            return tokens, lengths
        if epoch != self._epoch or len(self._kept) > _KEPT_WORDS:
            self._kept, self._epoch = {}, epoch
        row_starts = np.cumsum(lengths) - lengths
        is_start = self.table.starts_word[tokens]
        is_start[row_starts[lengths > 0]] = True
        starts = np.flatnonzero(is_start)
        picks = random_bits(len(starts), self.seed, epoch, index, self.side) % np.uint64(VARIANTS)
        words = self._pick_variants(tokens.astype("<u4").tobytes(), (starts * 4).tolist(), picks.tolist())
        bounds = np.searchsorted(starts, np.append(row_starts, len(tokens)))
        new_lengths = _row_lengths(words, bounds)
        if new_lengths.max() > self.longest:
            for row in np.flatnonzero(new_lengths > self.longest):
                first, end = bounds[row], bounds[row + 1]
                whole = tokens[row_starts[row] : row_starts[row] + lengths[row]].astype("<u4").tobytes()
                words[first:end] = [whole, *[b""] * (end - first - 1)]
            new_lengths = _row_lengths(words, bounds)
        return np.frombuffer(b"".join(words), "<u4").astype(np.int64), new_lengths

    def _pick_variants(self, raw: bytes, starts: list[int], picks: list[int]) -> list[bytes]:
        kept = self._kept
        words: list[bytes] = []
        for start, end, pick in zip(starts, [*starts[1:], len(raw)], picks, strict=True):
            word = raw[start:end]
            variants = kept.get(word)
            if variants is None:
                variants = kept[word] = [None] * VARIANTS
            found = variants[pick]
            if found is None:
                found = variants[pick] = self._make_variant(word, pick)
            words.append(found)
        return words

    def _make_variant(self, word: bytes, pick: int) -> bytes:
        name = f"{self.seed} {self._epoch} {self.side} {pick} ".encode()
        draws = memoryview(hashlib.shake_128(name + word).digest(512)).cast("H")
        ids = self.table.segment(np.frombuffer(word, "<u4").tolist(), round(self.probability * _DRAWS), draws)
        return np.array(ids, "<u4").tobytes()


def _row_lengths(words: list[bytes], bounds: Ints) -> Ints:
    """Return the number of tokens of each row; row i is made of the words from bounds[i] on."""
    ends = np.cumsum([0, *(len(word) // 4 for word in words)])
    return np.diff(ends[bounds])


@dataclass
class BpeDropout:
    """BPE-dropout on both sides."""

    source: SideDropout
    target: SideDropout

    @classmethod
    def of(cls, tokenizers: TokenizerPair, probability: float, seed: int, longest: int = 2**31) -> "BpeDropout | None":
        """Return the dropout for these tokenizers, None if the probability is 0."""
        if probability == 0:
            return None
        source = MergeTable(tokenizers.source)
        target = source if tokenizers.is_one else MergeTable(tokenizers.target)
        return cls(
            SideDropout(source, probability, seed, 0, longest), SideDropout(target, probability, seed, 1, longest)
        )
