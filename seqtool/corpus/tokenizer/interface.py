"""What the rest of seqtool knows of a tokenizer: text to ids and back, its pieces, and its special ids.

A tokenizer owns its vocabulary. Which numbers stand for padding, the unknown token, the begin and the end are values of
it, so that a vocabulary made elsewhere serves as well as our own.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from seqtool.errors import SeqtoolError
from seqtool.files import write_whole

SPACE = "\u2581"  # what a piece has in place of a space


class SpecialIds(NamedTuple):
    """The ids that stand for no text."""

    pad: int
    unk: int
    bos: int  # what the decoder begins with; some vocabularies use the padding for it
    eos: int


class Vocabulary(NamedTuple):
    """What a model must know of one side's tokenizer."""

    size: int
    special: SpecialIds


class Vocabularies(NamedTuple):
    """What a model must know of the tokenizers of both sides."""

    source: Vocabulary
    target: Vocabulary


class Tokenizer(ABC):
    """Turns text into token ids and back."""

    model: bytes  # the content of its file
    piece_list: list[str]  # the written form of each id, with SPACE for a space
    special: SpecialIds
    words_are_apart = False  # True if no token reaches over a space, so that a line's ids are those of its words

    @abstractmethod
    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text, without begin and end."""

    @abstractmethod
    def decode(self, ids: Iterable[int]) -> str:
        """Return the one line of text that the ids stand for; any ids give some text."""

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without begin and end."""
        return self.encode_batch([text])[0]

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Return the written form of each token."""
        return [self.piece_list[index] for index in ids]

    def ids_of(self, pieces: Iterable[str]) -> list[int]:
        """Return the id of each piece; one that is not in the vocabulary is unknown."""
        return [self._ids.get(piece, self.special.unk) for piece in pieces]

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {piece: index for index, piece in enumerate(self.piece_list)}

    @property
    def vocab_size(self) -> int:
        """Tokens in the vocabulary, the special ones included."""
        return len(self.piece_list)

    @property
    def vocabulary(self) -> Vocabulary:
        """Return what a model must know of this tokenizer."""
        return Vocabulary(self.vocab_size, self.special)

    @property
    def sha256(self) -> str:
        """The checksum of the tokenizer's file."""
        return hashlib.sha256(self.model).hexdigest()

    def save(self, path: Path) -> None:
        """Write the tokenizer's file."""
        try:
            write_whole(path, self.model)
        except OSError as error:
            raise SeqtoolError(
                f"{path}: cannot be written ({error.strerror}); make room, or give another place"
            ) from None


@dataclass(frozen=True)
class TokenizerPair:
    """The tokenizers of both sides; they may be one and the same, or two over one vocabulary, or over two."""

    source: Tokenizer
    target: Tokenizer

    @property
    def is_one(self) -> bool:
        """True if one tokenizer serves both sides."""
        return self.source is self.target

    @property
    def joint(self) -> bool:
        """True if both sides share a vocabulary."""
        same = self.source.special == self.target.special and self.source.piece_list == self.target.piece_list
        return self.is_one or same

    @property
    def special(self) -> tuple[SpecialIds, SpecialIds]:
        """The special ids of source and target."""
        return self.source.special, self.target.special

    @property
    def vocabularies(self) -> Vocabularies:
        """Return what a model must know of both tokenizers."""
        return Vocabularies(self.source.vocabulary, self.target.vocabulary)
