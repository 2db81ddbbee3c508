"""The special ids of the tokenizers that tests use, and vocabularies that have them."""

from seqtool.corpus.tokenizer.bpe import SPECIAL
from seqtool.corpus.tokenizer.interface import Vocabularies, Vocabulary

PAD, UNK, BOS, EOS = SPECIAL
BOTH = (SPECIAL, SPECIAL)  # of source and target


def vocabularies(source: int, target: int | None = None) -> Vocabularies:
    """Return vocabularies of these sizes."""
    return Vocabularies(Vocabulary(source, SPECIAL), Vocabulary(target or source, SPECIAL))
