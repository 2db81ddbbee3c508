"""What a translation is: its texts, best first, with scores, tokens and alignment."""

from dataclasses import dataclass
from typing import Any

from seqtool.translation.engines.interface import SearchOptions
from seqtool.translation.search.penalties import length_penalty
from seqtool.translation.splitting import join_parts


@dataclass(frozen=True, kw_only=True)
class Hypothesis:
    """One translation of a line."""

    text: str
    score: float  # what hypotheses are ranked by: log_prob over the length penalty
    log_prob: float
    tokens: list[str]
    token_scores: list[float] | None = None  # a log-probability per token, and the end symbol's after those of a part
    alignment: list[tuple[int, int]] | None = None  # (source token, target token), a pair for each target token


@dataclass(frozen=True, kw_only=True)
class Translation:
    """A line's translations, best first; there is always at least one, and it is empty for a blank line."""

    source: str
    source_tokens: list[str]
    hypotheses: list[Hypothesis]
    n_parts: int = 1  # that were translated by themselves
    n_sentences: int = 1  # fewer than the parts if one of them was over-long
    n_replaced: int = 0  # parts whose best hypothesis was empty or looping and gave way to the next best
    n_doubtful: int = 0  # parts of which every hypothesis is empty or looping

    @property
    def text(self) -> str:
        return self.hypotheses[0].text

    @property
    def score(self) -> float:
        return self.hypotheses[0].score

    @property
    def tokens(self) -> list[str]:
        return self.hypotheses[0].tokens

    @property
    def alignment(self) -> list[tuple[int, int]] | None:
        return self.hypotheses[0].alignment

    def to_dict(self, n_best: int = 1) -> dict[str, Any]:
        """Return what `translate --json` prints for a line."""
        best = _hypothesis_to_dict(self.hypotheses[0])
        best["source_tokens"] = self.source_tokens
        if n_best > 1:
            best["hypotheses"] = [_hypothesis_to_dict(hypothesis) for hypothesis in self.hypotheses]
        return best


def _hypothesis_to_dict(hypothesis: Hypothesis) -> dict[str, Any]:
    values: dict[str, Any] = {
        "text": hypothesis.text,
        "score": hypothesis.score,
        "tokens": hypothesis.tokens,
        "alignment": hypothesis.alignment if hypothesis.alignment is not None else [],
    }
    if hypothesis.token_scores is not None:
        values["token_scores"] = hypothesis.token_scores
    return values


def join_hypotheses(
    ranked: list[list[Hypothesis]], source_lengths: list[int], breaks: list[str], search: SearchOptions
) -> list[Hypothesis]:
    """Put the hypotheses of a line's parts together, best with best; a part that has fewer repeats its last.

    `breaks` are the line breaks before each part.
    """
    if len(ranked) == 1:
        return ranked[0]
    if not ranked:
        scores: list[float] | None = [] if search.token_scores else None
        alignment: list[tuple[int, int]] | None = [] if search.alignment else None
        return [Hypothesis(text="", score=0.0, log_prob=0.0, tokens=[], token_scores=scores, alignment=alignment)]
    n_best = max(len(hypotheses) for hypotheses in ranked)
    rows = [[part[min(rank, len(part) - 1)] for part in ranked] for rank in range(n_best)]
    return [_join(row, source_lengths, breaks, search) for row in rows]


def _join(parts: list[Hypothesis], source_lengths: list[int], breaks: list[str], search: SearchOptions) -> Hypothesis:
    tokens = [token for part in parts for token in part.tokens]
    log_prob = sum(part.log_prob for part in parts)
    alignment: list[tuple[int, int]] | None = [] if all(part.alignment is not None for part in parts) else None
    source_start = target_start = 0
    for part, length in zip(parts, source_lengths, strict=True):
        if alignment is not None:
            alignment += [(src + source_start, tgt + target_start) for src, tgt in part.alignment or []]
        source_start += length
        target_start += len(part.tokens)
    with_scores = all(part.token_scores is not None for part in parts)
    return Hypothesis(
        text=join_parts([part.text for part in parts], breaks),
        score=log_prob / length_penalty(len(tokens) + 1, search.length_penalty),
        log_prob=log_prob,
        tokens=tokens,
        token_scores=[score for part in parts for score in part.token_scores or []] if with_scores else None,
        alignment=alignment,
    )
