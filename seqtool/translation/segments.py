"""Segments into outcomes: an engine's search, the hypothesis guard's choice, and the texts of what was chosen."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from seqtool.corpus.text import clean_text
from seqtool.corpus.tokenizer.interface import Tokenizer
from seqtool.translation.engines.interface import Engine, SearchOptions, TokenHypothesis
from seqtool.translation.guard import choose
from seqtool.translation.outcomes import Outcome, Segment
from seqtool.translation.results import Hypothesis


def search_segments(
    engine: Engine,
    target: Tokenizer,
    segments: list[Segment],
    search: SearchOptions,
    progress: Callable[[float], None] | None = None,
) -> dict[Segment, Outcome]:
    """Translate segments that are all different; the engine makes batches of them."""
    total, done = sum(len(segment.ids) + 1 for segment in segments), 0

    def count(rows: Sequence[int]) -> None:
        nonlocal done
        done += sum(len(segments[row].ids) + 1 for row in rows)
        if progress:
            progress(done / total)

    def is_empty(ids: Sequence[int]) -> bool:
        return not clean_text(target.decode(ids))

    outcomes: dict[Segment, Outcome] = {}
    retry: list[Segment] = []
    for segment, ranked in zip(segments, ask(engine, segments, search, count), strict=True):
        best = choose(segment.ids, [hypothesis.ids for hypothesis in ranked], is_empty)
        # If the best is empty or looping there must be a choice: the whole beam.
        if best != 0 and len(ranked) < search.beam and search.n_best < search.beam and not search.sample:
            retry.append(segment)
        else:
            outcomes[segment] = make_outcome(ranked, best, search, target)
    for segment, ranked in zip(retry, ask(engine, retry, replace(search, n_best=search.beam)), strict=True):
        best = choose(segment.ids, [hypothesis.ids for hypothesis in ranked], is_empty)
        outcomes[segment] = make_outcome(ranked, best, search, target)
    return outcomes


def ask(
    engine: Engine, segments: list[Segment], search: SearchOptions, done: Callable[[Sequence[int]], None] | None = None
) -> list[list[TokenHypothesis]]:
    """Return what an engine finds for each segment."""
    if not segments:
        return []
    prefixes = [segment.prefix for segment in segments] if any(segment.prefix for segment in segments) else None
    return engine.translate([segment.ids for segment in segments], search, prefixes, done)


def make_outcome(ranked: list[TokenHypothesis], best: int | None, search: SearchOptions, target: Tokenizer) -> Outcome:
    """Put the hypothesis that was chosen first (None: all are empty or looping), and turn those wanted into text."""
    if best:
        ranked = [ranked[best], *ranked[:best], *ranked[best + 1 :]]
    texts = [to_text(hypothesis, target) for hypothesis in ranked[: search.n_best]]
    return Outcome(texts, replaced=bool(best), doubtful=best is None)


def to_text(found: TokenHypothesis, target: Tokenizer) -> Hypothesis:
    """Turn a hypothesis of token ids into text."""
    return Hypothesis(
        text=clean_text(target.decode(found.ids)),
        score=found.score,
        log_prob=found.log_prob,
        tokens=target.pieces(found.ids),
        token_scores=found.token_scores,
        alignment=None if found.alignment is None else [(src, tgt) for tgt, src in enumerate(found.alignment)],
    )
