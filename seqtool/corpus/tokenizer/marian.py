"""One side of a MarianMT (OPUS-MT) model's text: a SentencePiece model that cuts, and a vocabulary that numbers.

The two were made apart. The SentencePiece model knows the pieces of one language, and often normalises the text; the
vocabulary is common to both languages and gives each piece its id. A piece that it does not have is unknown.
The file: the line of the registry, a line of JSON with the vocabulary and the special ids, and the SentencePiece model.
"""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from sentencepiece import SentencePieceProcessor

from seqtool.config.sections import TokenizerConfig
from seqtool.corpus.tokenizer.interface import SPACE, SpecialIds, Tokenizer
from seqtool.errors import SeqtoolError

HEADER = b"seqtool tokenizer marian\n"

_LINE_BREAKS = re.compile("[\n\v\f\r\x1c\x1d\x1e\x85]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_LANGUAGE = re.compile(">>.*?<<")  # the wanted target language, as multilingual models have it before the text


class MarianTokenizer(Tokenizer):
    """Gives the ids that MarianTokenizer of the library transformers gives; the text it gives back is normalised."""

    def __init__(self, model: bytes, name: str = "tokenizer") -> None:
        """Open the content of a file; the name is for error messages."""
        self.model = model
        cure = "import the model again with 'seqtool import'"
        try:
            header, facts, self.segmenter = model.split(b"\n", 2)
            assert header + b"\n" == HEADER
            values = json.loads(facts)
            self.piece_list = check_pieces(values["pieces"])
            self.special = check_special(values["special"], len(self.piece_list))
        except (ValueError, KeyError, TypeError, AssertionError):
            raise SeqtoolError(f"{name}: damaged, or not a tokenizer of kind marian; {cure}") from None
        self._processor = open_segmenter(self.segmenter, name)
        self._silent = {self.special.pad, self.special.bos, self.special.eos}

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text."""
        codes = [_LANGUAGE.match(text) for text in texts]
        rests = [text[code.end() :] if code else text for text, code in zip(texts, codes, strict=True)]
        found = self._cut(rests)
        return [self.ids_of([code[0], *pieces] if code else pieces) for pieces, code in zip(found, codes, strict=True)]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the one line of text that the ids stand for; any ids give some text."""
        known = [index if 0 <= index < len(self.piece_list) else self.special.unk for index in ids]
        pieces = self.pieces(index for index in known if index not in self._silent)
        text = self._processor.decode_pieces(pieces).replace(SPACE, " ")
        return _LINE_BREAKS.sub(" ", text).strip()

    @property
    def known_share(self) -> float:
        """How much of what the SentencePiece model cuts text into has an id."""
        pieces = [self._processor.id_to_piece(index) for index in range(self._processor.get_piece_size())]
        return sum(piece in self._ids for piece in pieces) / len(pieces)

    def _cut(self, texts: list[str]) -> list[list[str]]:
        try:
            return self._processor.encode(texts, out_type=str, num_threads=1)  # type: ignore[no-any-return]
        except (RuntimeError, TypeError, UnicodeError):  # half a surrogate pair, which no UTF-8 can write
            repaired = [_SURROGATES.sub("\ufffd", text) for text in texts]
            return self._processor.encode(repaired, out_type=str, num_threads=1)  # type: ignore[no-any-return]


def make_marian(segmenter: bytes, pieces: Sequence[str], special: SpecialIds) -> bytes:
    """Return the content of a tokenizer's file."""
    facts = json.dumps({"pieces": list(pieces), "special": special._asdict()}, ensure_ascii=True)
    return HEADER + facts.encode() + b"\n" + segmenter


def open_segmenter(model: bytes, name: str) -> SentencePieceProcessor:
    """Open the bytes of a SentencePiece model; the name is for error messages."""
    try:
        processor = SentencePieceProcessor(model_proto=model)
        assert processor.get_piece_size()
        return processor
    except (RuntimeError, OSError, AssertionError):
        raise SeqtoolError(f"{name}: not a SentencePiece model; take it from the place of the model again") from None


def check_pieces(pieces: Any) -> list[str]:
    """Return the vocabulary, or raise ValueError if it is none: different texts in the order of their ids."""
    if not isinstance(pieces, list) or not pieces or not all(isinstance(piece, str) and piece for piece in pieces):
        raise ValueError("not a list of texts")
    if len(set(pieces)) != len(pieces):
        raise ValueError("a piece is there twice")
    "".join(pieces).encode()  # raises one for half a surrogate pair
    return pieces


def check_special(values: Any, size: int) -> SpecialIds:
    """Return the special ids, or raise ValueError if one is no id of the vocabulary."""
    special = SpecialIds(**values)
    if not all(type(index) is int and 0 <= index < size for index in special):
        raise ValueError("a special id is outside the vocabulary")
    return special


def refuse_training(texts: Iterable[str], config: TokenizerConfig) -> bytes:
    """Raise: such tokenizers come with a model from elsewhere."""
    raise SeqtoolError(
        "tokenizer.kind = 'marian' comes with an imported model and is not trained; leave it out, or start from such a "
        "model with `start_from`"
    )
