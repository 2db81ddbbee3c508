"""Translations made by rule, with tokens and alignments, for tests of what is done with a translation."""

import re
from collections.abc import Sequence

from seqtool.corpus.tokenizer.interface import SPACE
from seqtool.translation.results import Hypothesis, Translation


def cut(text: str) -> list[str]:
    """Return tokens as a tokenizer writes them: up to four letters of a word, a digit or a mark."""
    spaced = SPACE + text.replace(" ", SPACE)
    return re.findall(rf"{SPACE}?[^\W\d]{{1,4}}|{SPACE}?[^{SPACE}]|{SPACE}", spaced)


def translate(source: str, order: Sequence[int] | None = None, *, aligned: bool = True) -> Translation:
    """Write a text's words in capitals, in another order; words that the order leaves out are lost."""
    words: list[list[int]] = []
    tokens = cut(source)
    for index, token in enumerate(tokens):
        if token.startswith(SPACE) or not words:
            words.append([])
        words[-1].append(index)
    chosen = [index for word in (range(len(words)) if order is None else order) for index in words[word % len(words)]]
    written = [tokens[index].upper() for index in chosen]
    pairs = [(index, position) for position, index in enumerate(chosen)]
    best = Hypothesis(
        text="".join(written).replace(SPACE, " ").strip(" "),
        score=-1.0,
        log_prob=-1.0,
        tokens=written,
        alignment=pairs if aligned else None,
    )
    return Translation(source=source, source_tokens=tokens, hypotheses=[best])


def reverse(source: str, *, aligned: bool = True) -> Translation:
    """Write a text's words from last to first."""
    return translate(source, range(len(source.split(" ")) - 1, -1, -1), aligned=aligned)
