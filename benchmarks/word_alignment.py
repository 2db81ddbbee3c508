"""Word alignment read from cross-attention: tokens are gathered into words, each target word takes one source word.

Legend: L layers, H heads, T target tokens, S source tokens (both with the end symbol last), I source words, J target
words. Words are what stands between spaces, so punctuation belongs to the word before it.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from seqtool.corpus.tokenizer.interface import SPACE
from seqtool.evaluation.report.attention_reading import AttentionMap

Floats = NDArray[np.float32]


def token_words(tokens: Sequence[str]) -> list[int]:
    """Return the number of the word that each token belongs to; a token that starts with a space begins a word."""
    words, current = [], -1
    for token in tokens:
        if token.startswith(SPACE) or current < 0:
            current += 1
        words.append(current)
    return words


def gather_words(tokens: Sequence[str]) -> Floats:
    """Return the (words, tokens) matrix that is 1 where a token speaks for a word.

    Punctuation at the end of a word does not: it looks at the other side's punctuation, wherever that stands.
    """
    words = token_words(tokens)
    member = np.zeros((words[-1] + 1, len(tokens)), np.float32)
    member[words, range(len(tokens))] = 1
    is_mark = np.array([not any(char.isalnum() for char in token) for token in tokens])
    has_letters = member @ ~is_mark > 0
    member[np.ix_(has_letters, is_mark)] = 0
    return member


def word_weights(found: AttentionMap, layer: int, ahead: int = 0) -> Floats:
    """Return how much each target word looks at each source word, (J, I), in one layer (-1: the last).

    With `ahead` 1 the rows are those in which a token is read rather than predicted: the decoder then knows the word
    that it is to align.
    """
    weights = found.weights[layer].mean(axis=0)  # (T, S)
    n_tgt, n_src = len(found.tgt_tokens) - 1, len(found.src_tokens) - 1
    rows = weights[ahead : ahead + n_tgt, :n_src]
    target, source = gather_words(found.tgt_tokens[:-1]), gather_words(found.src_tokens[:-1])
    gathered: Floats = target @ rows @ source.T  # (J, I)
    return gathered


def align_words(found: AttentionMap, layer: int, ahead: int = 0) -> list[int]:
    """Return for each target word the source word that it looks at most."""
    aligned: list[int] = word_weights(found, layer, ahead).argmax(axis=1).tolist()
    return aligned
