"""Translations that are remembered: the latest ones, in bounded memory, apart by their search options."""

import random

import pytest
from fake_engine import ReversingEngine, make_tokenizers

from seqtool.corpus.tokenizer.interface import TokenizerPair
from seqtool.translation.engines.interface import SearchOptions
from seqtool.translation.outcomes import Outcome, OutcomeCache, Segment, count_bytes
from seqtool.translation.results import Hypothesis
from seqtool.translation.translator import Translator

SEARCH = SearchOptions()


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> TokenizerPair:
    return make_tokenizers(tmp_path_factory.mktemp("tokenizer"))


def make_outcome(number: int, length: int = 3) -> tuple[Segment, Outcome]:
    hypothesis = Hypothesis(text="x" * length, score=-1.0, log_prob=-1.0, tokens=["x"] * length)
    return Segment((number,) * length, ()), Outcome([hypothesis], replaced=False, doubtful=False)


def test_what_was_not_used_for_longest_is_forgotten_first() -> None:
    size = count_bytes(*make_outcome(0))
    cache = OutcomeCache(1000 * size)
    cache.keep(SEARCH, dict(make_outcome(number) for number in range(1000)))
    assert cache.n_bytes == 1000 * size
    assert len(cache.find(SEARCH, [make_outcome(0)[0]])) == 1  # used again: now 1 is the oldest
    cache.keep(SEARCH, dict([make_outcome(1000)]))
    found = cache.find(SEARCH, [make_outcome(number)[0] for number in (0, 1, 2, 1000)])
    assert [segment.ids[0] for segment in found] == [0, 2, 1000]


def test_the_memory_is_never_more_than_was_allowed() -> None:
    draw = random.Random(1)
    cache = OutcomeCache(100 * count_bytes(*make_outcome(0, 60)))  # what is longer is not kept
    for _ in range(1000):
        cache.keep(SEARCH, dict([make_outcome(draw.randrange(30), draw.randrange(30, 70))]))
        assert cache.n_bytes <= cache.max_bytes
    kept = [(segment, outcome) for (_, segment), outcome in cache._entries.items()]
    assert cache.n_bytes == sum(count_bytes(*entry) for entry in kept)
    assert 100 < len(kept) < 30 * 31
    assert max(len(segment.ids) for segment, _ in kept) == 60


def test_a_translator_asks_its_engine_for_each_segment_once(tokenizers: TokenizerPair) -> None:
    engine = ReversingEngine()
    translator = Translator(tokenizers, engine, cache_bytes=10**6)
    lines = ["she", "A man", "she", "", "Hunde"]
    first = translator.translate(lines)
    assert engine.calls == [3]
    assert translator.translate(lines[::-1]) == first[::-1]
    assert engine.calls == [3]
    translator.translate(["she", "in the park"])
    translator.translate(["she"], beam=2)  # other options are another search
    translator.translate(["she"], prefixes=["A"])
    assert engine.calls == [3, 1, 1, 1]


def test_without_a_cache_nothing_is_kept_from_call_to_call(tokenizers: TokenizerPair) -> None:
    engine = ReversingEngine()
    translator = Translator(tokenizers, engine)
    assert translator.translate(["she"]) == translator.translate(["she"])
    assert engine.calls == [1, 1]
