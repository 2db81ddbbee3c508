"""An engine without a model: it says the source backwards, so that tests can tell which line an output belongs to."""

from collections.abc import Sequence
from pathlib import Path

from seqtool.config import TokenizerConfig
from seqtool.corpus.tokenizer.interface import Tokenizer, TokenizerPair
from seqtool.corpus.tokenizer.registry import load_tokenizer, train_tokenizer
from seqtool.translation.engines.interface import Batching, OnDone, SearchOptions, TokenHypothesis

TEXTS = ["A man walks in the park.", "Zwei Hunde spielen im Schnee!", "Who is she? She waves, and laughs."]


class ReversingEngine:
    """Translates by reversing the token ids, and remembers the sizes of the calls it got."""

    name = "reversing"
    compute_type = "float32"
    max_tokens = 0
    batch_tokens = 8192
    batching = Batching(callers=2, rows=8, step=1)

    def __init__(self) -> None:
        self.calls: list[int] = []

    def unsupported(self, options: SearchOptions, n_source: int) -> list[str]:
        return []

    def translate(
        self,
        sources: Sequence[Sequence[int]],
        options: SearchOptions,
        prefixes: Sequence[Sequence[int]] | None = None,
        on_done: OnDone | None = None,
    ) -> list[list[TokenHypothesis]]:
        self.calls.append(len(sources))
        starts = prefixes or [()] * len(sources)
        found = []
        for source, start in zip(sources, starts, strict=True):
            ids = [*start, *reversed(source)]
            alignment = [max(0, len(source) - 1 - place) for place in range(len(ids))] if options.alignment else None
            one = TokenHypothesis(ids=ids, score=-1.0, log_prob=-2.0, alignment=alignment)
            found.append([one] * options.n_best)
        if on_done:
            on_done(range(len(sources)))
        return found

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[float]]:
        return [[-1.0] * (len(target) + 1) for target in targets]

    def close(self) -> None:
        pass


class ListedEngine(ReversingEngine):
    """Gives the same hypotheses, best first, for every source."""

    def __init__(self, tokenizer: Tokenizer, texts: list[str]) -> None:
        super().__init__()
        self.hypotheses = [
            TokenHypothesis(ids=tokenizer.encode(text), score=-float(rank), log_prob=-float(rank))
            for rank, text in enumerate(texts)
        ]

    def translate(
        self,
        sources: Sequence[Sequence[int]],
        options: SearchOptions,
        prefixes: Sequence[Sequence[int]] | None = None,
        on_done: OnDone | None = None,
    ) -> list[list[TokenHypothesis]]:
        self.calls.append(len(sources))
        return [self.hypotheses[: options.n_best] for _ in sources]


def make_tokenizers(folder: Path) -> TokenizerPair:
    """Train a small tokenizer for both sides."""
    path = folder / "tokenizer.model"
    train_tokenizer(TEXTS, TokenizerConfig(vocab_size=320), path)
    tokenizer = load_tokenizer(path)
    return TokenizerPair(tokenizer, tokenizer)
