"""Small parallel corpora, and what tests of preparation ask about the outcome."""

from dataclasses import replace
from pathlib import Path

from seqtool.config.sections import CleanConfig, DataConfig, TokenizerConfig
from seqtool.corpus.preparing.prepared import PreparedCorpus, PrepareRequest
from seqtool.corpus.reading.corpus import Corpus, parse_corpus
from seqtool.corpus.tokenizer.interface import TokenizerPair
from seqtool.corpus.tokenizer.registry import load_tokenizer, train_tokenizer

TOKENIZER = TokenizerConfig(vocab_size=400)
NAMES = ["Anna", "Boris", "Clara", "Dora", "Emil", "Frida", "Gustav", "Hanna"]
VERBS = [("sees", "sieht"), ("buys", "kauft"), ("paints", "malt"), ("sells", "verkauft")]
THINGS = [("a house", "ein Haus"), ("two trees", "zwei Bäume"), ("the river", "den Fluß"), ("a bridge", "eine Brücke")]


def make_pairs(n: int) -> list[tuple[str, str]]:
    """Different pairs without defects."""
    pairs = []
    for i in range(n):
        verb, thing = VERBS[i % 4], THINGS[i // 4 % 4]
        name = NAMES[i // 16 % 8]
        pairs.append((f"{name} {verb[0]} {thing[0]} at {i}.", f"{name} {verb[1]} {thing[1]} um {i}."))
    return pairs


def write_tsv(path: Path, pairs: list[tuple[str, str]]) -> Corpus:
    path.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in pairs), encoding="utf-8", newline="")
    return parse_corpus([path])


def make_request(*corpora: Corpus, **changes: object) -> PrepareRequest:
    return replace(PrepareRequest(corpora=corpora, clean=CleanConfig(), data=DataConfig()), **changes)  # type: ignore[arg-type]


def texts_of(prepared: PreparedCorpus, tokenizers: TokenizerPair) -> list[tuple[str, str]]:
    return [
        (tokenizers.source.decode(prepared.source[i]), tokenizers.target.decode(prepared.target[i]))
        for i in range(len(prepared))
    ]


def content_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def make_tokenizers(folder: Path) -> TokenizerPair:
    """A joint tokenizer for these pairs."""
    path = folder / "t.model"
    train_tokenizer([text for pair in make_pairs(300) for text in pair], TOKENIZER, path)
    tokenizer = load_tokenizer(path)
    return TokenizerPair(tokenizer, tokenizer)
