"""The kinds of tokenizers: which one opens a file, and which one is trained for a setting of tokenizer.kind.

A file says of what kind it is: it begins with "seqtool tokenizer KIND" in a line of its own, or else is an ordinary
SentencePiece model.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from seqtool.config.sections import TOKENIZER_KINDS, TokenizerConfig
from seqtool.corpus.tokenizer.interface import Tokenizer, TokenizerPair
from seqtool.corpus.tokenizer.sampling import sample_stream
from seqtool.errors import SeqtoolError, suggest
from seqtool.run_directory import RunDir
from seqtool.verification import MIB, read_limited

MARK = b"seqtool tokenizer "
MAX_BYTES = 256 * MIB  # of a tokenizer's file


@dataclass(frozen=True)
class TokenizerKind:
    """How a kind of tokenizer is opened and trained."""

    open: Callable[[bytes, str], Tokenizer]  # the content of a file, and its name for messages
    train: Callable[[Iterable[str], TokenizerConfig], bytes]  # texts to the content of a file


def _bpe() -> TokenizerKind:
    from seqtool.corpus.tokenizer.bpe import BpeTokenizer, train_bpe

    return TokenizerKind(BpeTokenizer, train_bpe)


def _marian() -> TokenizerKind:
    from seqtool.corpus.tokenizer.marian import MarianTokenizer, refuse_training

    return TokenizerKind(MarianTokenizer, refuse_training)


_KINDS: dict[str, Callable[[], TokenizerKind]] = {"bpe": _bpe, "marian": _marian}


def register_tokenizer(name: str, load: Callable[[], TokenizerKind]) -> None:
    """Add a kind of tokenizer; `load` imports what it needs when the first one is opened or trained."""
    _KINDS[name] = load
    TOKENIZER_KINDS[name] = None


def open_tokenizer(model: bytes, name: str = "tokenizer") -> Tokenizer:
    """Open the content of a tokenizer's file; the name is for error messages."""
    if not model.startswith(MARK):
        return _KINDS["bpe"]().open(model, name)
    kind = model[len(MARK) : 200].partition(b"\n")[0].decode("ascii", "replace")
    if kind not in _KINDS:
        raise SeqtoolError(f"{name}: there is no kind of tokenizer {kind!r}{suggest(kind, _KINDS)}")
    return _KINDS[kind]().open(model, name)


def load_tokenizer(path: Path) -> Tokenizer:
    """Open a tokenizer's file."""
    try:
        return open_tokenizer(read_limited(path, MAX_BYTES), str(path))
    except OSError as error:
        raise SeqtoolError(
            f"{path}: cannot read this tokenizer ({error.strerror}); make one with 'seqtool tokenizer train'"
        ) from None


def load_pair(run: RunDir) -> TokenizerPair:
    """Open the tokenizer or tokenizers of a run directory."""
    source = load_tokenizer(run.tokenizer)
    return TokenizerPair(source, load_tokenizer(run.target_tokenizer) if run.target_tokenizer.is_file() else source)


def train_model(texts: Iterable[str], config: TokenizerConfig) -> bytes:
    """Train on all the texts and return the content of a tokenizer's file."""
    return _KINDS[config.kind]().train(texts, config)


def train_tokenizer(texts: Iterable[str], config: TokenizerConfig, path: Path, seed: int = 1) -> list[str]:
    """Train on a sample of the texts, write the tokenizer's file, and return notes for the user."""
    return write_model(train_model(sample_stream(texts, 2 * config.sample_pairs, seed), config), config, path)


def write_model(model: bytes, config: TokenizerConfig, path: Path) -> list[str]:
    """Write a newly trained tokenizer and return notes for the user."""
    tokenizer = open_tokenizer(model, str(path))
    tokenizer.save(path)
    if tokenizer.vocab_size >= config.vocab_size:
        return []
    return [
        f"the vocabulary has {tokenizer.vocab_size:,} tokens, not {config.vocab_size:,}: "
        "the corpus is too small to fill a larger one"
    ]
