"""The sentences with which every export is checked: made up of the model's own tokens, the same each time."""

import numpy as np

from seqtool.corpus.tokenizer.interface import Tokenizer

LENGTHS = (3, 5, 8, 12, 17, 23)


def make_up_sentences(tokenizer: Tokenizer, longest: int) -> list[list[int]]:
    """Return random token ids without special ones, at most `longest` (0: no limit) in a sentence."""
    draw = np.random.default_rng(0)
    ordinary = sorted(set(range(tokenizer.vocab_size)) - set(tokenizer.special))
    return [draw.choice(ordinary, min(length, longest or length)).tolist() for length in LENGTHS]
