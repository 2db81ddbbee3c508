"""The byte-pair tokenizer: text to token ids and back without loss, in an ordinary SentencePiece model file.

Spaces become U+2581 and nothing else is changed: no normalisation, no trimming. Characters without a token of their own
become byte tokens. A real U+2581 in a text would come back as a space, so it is always given as its three bytes.
"""

import functools
import io
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from seqtool.config.sections import TokenizerConfig
from seqtool.corpus.tokenizer.interface import SPACE, SpecialIds, Tokenizer
from seqtool.errors import SeqtoolError

SPECIAL = SpecialIds(pad=0, unk=1, bos=2, eos=3)

_UNKNOWN_TEXT = "⁇"
_SURROGATES = re.compile("[\ud800-\udfff]")
# What some program takes for the end of a line, and no text without control characters holds.
_LINE_BREAKS = re.compile("[\n\v\f\r\x1c\x1d\x1e\x85]")
_PROBE = "  a ﬁ\u00a0\u3000é  "

_MAX_CHARS = 10_000  # of one text; SentencePiece skips what is longer than the limit it is given
# The trainer's own marks (a space and an unknown) and what it cannot read; the text around them is still useful.
_UNUSABLE = re.compile(f"[{SPACE}\u2585\0\n\r\ud800-\udfff]")
_TOO_SMALL = re.compile(r"smaller than required_chars\. (\d+) vs (\d+)")
FEW = 32  # texts that are quicker one by one: for several at once SentencePiece starts a thread, even if it is one
_RESERVED = {"<pad>", "<unk>", "<s>", "</s>"}


class BpeTokenizer(Tokenizer):
    """Turns text into token ids and back; `decode(encode(text)) == text` for any text without control characters."""

    special = SPECIAL

    def __init__(self, model: bytes, name: str = "tokenizer") -> None:
        """Open the bytes of a model file; the name is for error messages."""
        try:
            self._processor = SentencePieceProcessor(model_proto=model)
            self.piece_list: list[str] = [
                self._processor.id_to_piece(index) for index in range(self._processor.get_piece_size())
            ]
        except (RuntimeError, OSError, UnicodeDecodeError):
            raise SeqtoolError(f"{name}: not a SentencePiece model; make one with 'seqtool tokenizer train'") from None
        self.model = model
        self.words_are_apart = not any(SPACE in piece[1:] for piece in self.piece_list)
        self._surfaces = self._read_surfaces()
        self._byte_ids = [self._ids.get(f"<0x{value:02X}>", -1) for value in range(256)]
        self._check(name)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text."""
        if SPACE in " ".join(texts):
            return [
                self._encode_with_meta_space(text) if SPACE in text else self._encode_plain([text])[0] for text in texts
            ]
        return self._encode_plain(list(texts))

    def decode(self, ids: Iterable[int]) -> str:
        """Return the one line of text that the ids stand for; any ids give some text.

        Bytes that are no UTF-8 become U+FFFD, an unknown token a visible mark, and a line break a space.
        """
        surfaces = self._surfaces
        text = b"".join(
            [surfaces[index] if 0 <= index < len(surfaces) else surfaces[self.special.unk] for index in ids]
        )
        line = _LINE_BREAKS.sub(" ", text.decode("utf-8", "replace"))
        return line[1:] if line.startswith(" ") else line

    def merge_scores(self) -> dict[int, float]:
        """Return the score of each token that was learned from text; of two possible merges the higher comes first."""
        scores = [self._processor.get_score(index) for index in range(self.vocab_size)]
        return {index: score for index, score in enumerate(scores) if index > self._byte_ids[-1]}

    def _encode_plain(self, texts: list[str]) -> list[list[int]]:
        try:
            return self._encode_strings(texts)
        except (RuntimeError, TypeError, UnicodeError):  # half a surrogate pair, which no UTF-8 can write
            return self._encode_strings([_SURROGATES.sub("\ufffd", text) for text in texts])

    def _encode_strings(self, texts: list[str]) -> list[list[int]]:
        if len(texts) <= FEW:
            return [self._processor.encode(text, out_type=int) for text in texts]
        return self._processor.encode(texts, out_type=int, num_threads=1)  # type: ignore[no-any-return]

    def _encode_with_meta_space(self, text: str) -> list[int]:
        """Encode a text that holds U+2581: through a stand-in that only bytes can write, then exchange the bytes."""
        candidates = map(chr, range(sys.maxunicode, 0xFFFF, -1))
        stand_in = next(char for char in candidates if char not in text and char not in self._characters)
        ids = self._encode_plain([text.replace(SPACE, stand_in)])[0]
        written = [self._byte_ids[value] for value in stand_in.encode()]
        wanted = [self._byte_ids[value] for value in SPACE.encode()]
        result: list[int] = []
        position = 0
        while position < len(ids):
            found = ids[position] == written[0] and ids[position : position + len(written)] == written
            result += wanted if found else ids[position : position + 1]
            position += len(written) if found else 1
        return result

    @functools.cached_property
    def _characters(self) -> frozenset[str]:
        """All characters that occur in a piece."""
        return frozenset("".join(self.piece_list))

    def _read_surfaces(self) -> list[bytes]:
        """Return the bytes that each token adds to a text."""
        surfaces = [piece.replace(SPACE, " ").encode() for piece in self.piece_list]
        for index, piece in enumerate(self.piece_list):
            if index >= len(_RESERVED) and not piece.startswith("<"):
                continue  # an ordinary piece: to ask for the kind of each takes longer than to load the model
            if self._processor.is_byte(index):
                surfaces[index] = bytes([int(piece[3:5], 16)])
            elif self._processor.is_control(index):
                surfaces[index] = b""
            elif self._processor.is_unknown(index):
                surfaces[index] = _UNKNOWN_TEXT.encode()
        return surfaces

    def _check(self, name: str) -> None:
        """Refuse a model of another make: one with other reserved ids, without bytes, or that changes the text."""
        processor = self._processor
        reserved = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
        cure = "make one with 'seqtool tokenizer train'"
        if reserved != SPECIAL:
            raise SeqtoolError(f"{name}: pad, unknown, begin and end must be tokens 0, 1, 2, 3, not {reserved}; {cure}")
        if -1 in self._byte_ids:
            raise SeqtoolError(f"{name}: has no byte fallback, so some text would be lost; {cure}")
        if self.decode(self.encode(_PROBE)) != _PROBE:
            raise SeqtoolError(f"{name}: changes the text it is given (normalisation or white space); {cure}")


def check_user_symbols(symbols: Iterable[str]) -> None:
    """Refuse user symbols that could be confused with text or with reserved tokens."""
    seen: set[str] = set()
    for symbol in symbols:
        if not symbol or re.search(rf"[\s{SPACE}\0-\x1f\x7f\ud800-\udfff]", symbol):
            problem = "is empty or has white space or control characters in it"
        elif symbol in _RESERVED or re.fullmatch("<0x[0-9A-F]{2}>", symbol):
            problem = "is a reserved token"
        elif symbol in seen:
            problem = "is given twice"
        else:
            seen.add(symbol)
            continue
        raise SeqtoolError(f"tokenizer.user_symbols: {symbol!r} {problem}; choose another, such as '<de>'")


def _usable(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        usable = _UNUSABLE.sub(" ", text[:_MAX_CHARS])
        if usable.strip():
            yield usable


def train_bpe(texts: Iterable[str], config: TokenizerConfig) -> bytes:
    """Train on all the texts and return the content of a model file."""
    check_user_symbols(config.user_symbols)
    usable = _usable(texts)
    first = next(usable, None)
    if first is None:
        raise SeqtoolError("there is no text to train a tokenizer on; check that the corpus is not empty")
    model = io.BytesIO()
    try:
        SentencePieceTrainer.train(
            sentence_iterator=chain([first], usable),
            model_writer=model,
            model_type="bpe",
            vocab_size=config.vocab_size,
            hard_vocab_limit=False,  # a small corpus gives a smaller vocabulary, not an error
            byte_fallback=True,
            character_coverage=config.character_coverage,
            user_defined_symbols=list(config.user_symbols),
            pad_id=SPECIAL.pad,
            unk_id=SPECIAL.unk,
            bos_id=SPECIAL.bos,
            eos_id=SPECIAL.eos,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            max_sentence_length=4 * _MAX_CHARS,
            num_threads=1,  # recorded in the file, which must not depend on the machine
            minloglevel=2,
        )
    except RuntimeError as error:
        found = _TOO_SMALL.search(str(error))
        if found is None:
            raise SeqtoolError(f"the tokenizer could not be trained: {error}") from None
        raise SeqtoolError(
            f"tokenizer.vocab_size is {config.vocab_size}, but the characters of this corpus alone need {found[2]} "
            f"tokens; raise it, or lower tokenizer.character_coverage (now {config.character_coverage})"
        ) from None
    return model.getvalue()
