"""Batches are a pure function of seed, epoch and corpus: complete, alike for any workers, and found from any place."""

import gzip
import itertools
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from special_ids import BOS, BOTH, EOS, PAD

from seqtool.config.sections import TokenizerConfig
from seqtool.corpus.batches.batches import Batch, BatchPlan, iterate_batches, make_batch
from seqtool.corpus.batches.bpe_dropout import BpeDropout, MergeTable
from seqtool.corpus.batches.prefetch import Prefetched
from seqtool.corpus.preparing.token_array import PairRange, TokenArray
from seqtool.corpus.tokenizer.interface import Tokenizer, TokenizerPair
from seqtool.corpus.tokenizer.registry import load_tokenizer, train_tokenizer
from seqtool.errors import SeqtoolError

DEMO = Path(__file__).parents[1] / "data"
MULTI30K = Path(os.environ.get("SEQTOOL_MULTI30K", DEMO.parents[1] / "shared" / "data" / "multi30k"))


@dataclass(frozen=True)
class Arrays:
    source: TokenArray
    target: TokenArray


def make_corpus(lengths: list[tuple[int, int]]) -> Arrays:
    """A corpus whose tokens tell the pair, the place and the side."""
    sides = [
        [[4 + (7 * i + j + side) % 90 for j in range(pair[side])] for i, pair in enumerate(lengths)] for side in (0, 1)
    ]
    return Arrays(TokenArray.from_rows(sides[0]), TokenArray.from_rows(sides[1]))


def make_plan(
    corpus: Arrays, batch_tokens: int = 60, seed: int = 1, ranges: list[PairRange] | None = None
) -> BatchPlan:
    return BatchPlan(corpus.source.lengths, corpus.target.lengths, batch_tokens, seed, ranges)


def varied_corpus(n: int, seed: int = 0) -> Arrays:
    draw = np.random.default_rng(seed)
    return make_corpus([(int(a), int(b)) for a, b in draw.integers(1, 12, (n, 2))])


def same(a: Batch, b: Batch) -> bool:
    arrays = ("src", "tgt_in", "tgt_out", "pairs")
    facts = ("epoch", "index", "n_src_tokens", "n_tgt_tokens", "last_in_epoch")
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in arrays) and all(
        getattr(a, name) == getattr(b, name) for name in facts
    )


lengths_of_pairs = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=80)


@settings(max_examples=150, deadline=None)
@given(lengths_of_pairs, st.integers(1, 200), st.integers(0, 2**31 - 1), st.integers(0, 5))
def test_every_pair_is_in_an_epoch_exactly_once_and_batches_fit(
    lengths: list[tuple[int, int]], batch_tokens: int, seed: int, epoch: int
) -> None:
    corpus = make_corpus(lengths)
    plan = make_plan(corpus, batch_tokens, seed).epoch(epoch)
    assert sorted(pair for batch in plan for pair in batch.tolist()) == list(range(len(lengths)))
    for batch in plan:
        longest = max(max(lengths[pair]) + 1 for pair in batch)
        assert len(batch) == 1 or len(batch) * longest <= batch_tokens


@settings(max_examples=60, deadline=None)
@given(lengths_of_pairs, st.integers(30, 200), st.integers(0, 1000), st.sampled_from([2, 3, 8]))
def test_the_global_batches_are_the_same_for_any_number_of_workers(
    lengths: list[tuple[int, int]], batch_tokens: int, seed: int, n_workers: int
) -> None:
    corpus = make_corpus(lengths)
    n_batches = len(make_plan(corpus, batch_tokens, seed).epoch(0)) + 2
    alone = list(
        itertools.islice(iterate_batches(corpus, make_plan(corpus, batch_tokens, seed), BOTH, prefetch=0), n_batches)
    )
    for rank in range(n_workers):
        plan = make_plan(corpus, batch_tokens, seed)
        mine = iterate_batches(corpus, plan, BOTH, rank=rank, n_workers=n_workers, prefetch=0)
        for whole, part in zip(alone, mine, strict=False):
            assert part.pairs.tolist() == whole.pairs[rank::n_workers].tolist()
            assert (part.n_src_tokens, part.n_tgt_tokens) == (whole.n_src_tokens, whole.n_tgt_tokens)
            assert (part.epoch, part.index, part.last_in_epoch) == (whole.epoch, whole.index, whole.last_in_epoch)
            assert part.src.tolist() == whole.src[rank::n_workers, : part.src.shape[1]].tolist()
            assert (whole.src[rank::n_workers, part.src.shape[1] :] == PAD).all()


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 60), st.integers(12, 100), st.integers(0, 40), st.sampled_from([0, 3]))
def test_seeking_equals_iterating(n_pairs: int, batch_tokens: int, n_skipped: int, prefetch: int) -> None:
    corpus = varied_corpus(n_pairs)
    whole = iterate_batches(corpus, make_plan(corpus, batch_tokens), BOTH, prefetch=0)
    place = next(itertools.islice(whole, n_skipped, None))
    sought = iterate_batches(
        corpus, make_plan(corpus, batch_tokens), BOTH, (place.epoch, place.index), prefetch=prefetch
    )
    assert same(next(sought), place)
    for expected, found in zip(itertools.islice(whole, 5), sought, strict=False):
        assert same(expected, found)
    sought.close()  # type: ignore[attr-defined]


def test_a_start_behind_the_last_batch_of_an_epoch_is_the_next_epoch() -> None:
    corpus = varied_corpus(30)
    plan = make_plan(corpus)
    batch = next(iterate_batches(corpus, plan, BOTH, (2, len(plan.epoch(2))), prefetch=0))
    assert (batch.epoch, batch.index) == (3, 0)


def test_rows_have_their_begin_and_end_and_padding() -> None:
    corpus = make_corpus([(2, 3), (1, 1)])
    batch = make_batch(corpus, make_plan(corpus, 1000).epoch(0), BOTH, 0, 0)
    by_pair = dict(zip(batch.pairs.tolist(), range(2), strict=True))
    a, b = by_pair[0], by_pair[1]
    assert batch.src[a].tolist() == [4, 5, EOS]
    assert batch.tgt_in[a].tolist() == [BOS, 5, 6, 7]
    assert batch.tgt_out[a].tolist() == [5, 6, 7, EOS]
    assert batch.src[b].tolist() == [11, EOS, PAD]
    assert batch.tgt_in[b].tolist() == [BOS, 12, PAD, PAD]
    assert batch.tgt_out[b].tolist() == [12, EOS, PAD, PAD]
    assert (batch.n_src_tokens, batch.n_tgt_tokens) == (3 + 2, 4 + 2)
    assert batch.last_in_epoch


def test_a_worker_without_rows_gets_a_well_formed_batch() -> None:
    corpus = make_corpus([(2, 3)])
    batch = make_batch(corpus, make_plan(corpus).epoch(0), BOTH, 0, 0, rank=5, n_workers=8)
    for one in (batch, batch.turned()):
        assert len(one) == 0
        assert one.src.shape == one.tgt_in.shape == one.tgt_out.shape == (0, 1)
    assert (batch.n_src_tokens, batch.n_tgt_tokens) == (3, 4)


@settings(max_examples=60, deadline=None)
@given(lengths_of_pairs, st.integers(30, 200), st.sampled_from([1, 2, 3]))
def test_a_turned_batch_is_the_batch_of_the_corpus_turned_round(
    lengths: list[tuple[int, int]], batch_tokens: int, n_workers: int
) -> None:
    corpus = make_corpus(lengths)
    turned = Arrays(corpus.target, corpus.source)
    epoch = make_plan(corpus, batch_tokens).epoch(0)
    for index, rank in itertools.product(range(len(epoch)), range(n_workers)):
        batch = make_batch(corpus, epoch, BOTH, 0, index, rank, n_workers)
        assert same(batch.turned(), make_batch(turned, epoch, BOTH, 0, index, rank, n_workers))
        assert same(batch.turned().turned(), batch)


def test_epochs_and_seeds_differ_and_repeat() -> None:
    corpus = varied_corpus(300)
    orders = [
        [batch.tolist() for batch in make_plan(corpus, seed=seed).epoch(epoch)] for seed in (1, 2) for epoch in (0, 1)
    ]
    assert all(a != b for a, b in itertools.combinations(orders, 2))
    assert orders[1] == [batch.tolist() for batch in make_plan(corpus, seed=1).epoch(1)]
    assert {frozenset(batch) for batch in orders[0]} != {frozenset(batch) for batch in orders[1]}


def test_the_order_is_the_one_of_earlier_versions() -> None:
    """A resumed run must find its place after an upgrade too; numpy promises to keep these random bits."""
    corpus = make_corpus([(3, 3), (1, 2), (5, 4), (2, 2), (3, 2), (1, 1)])
    found = [sorted(batch.tolist()) for batch in make_plan(corpus, 12, seed=7).epoch(2)]
    assert found == [[0, 4], [1, 3, 5], [2]]


@pytest.mark.parametrize("weight", [2.0, 3.0])
def test_a_whole_weight_repeats_each_pair(weight: float) -> None:
    corpus = varied_corpus(40)
    plan = make_plan(corpus, ranges=[PairRange(0, 10), PairRange(10, 40, weight)])
    for epoch in range(3):
        counts = Counter(pair for batch in plan.epoch(epoch) for pair in batch.tolist())
        assert all(counts[pair] == (1 if pair < 10 else weight) for pair in range(40))


@settings(max_examples=30, deadline=None)
@given(st.floats(0.05, 2.9), st.integers(0, 100))
def test_a_fractional_weight_is_met_over_the_epochs(weight: float, seed: int) -> None:
    corpus = varied_corpus(200)
    plan = make_plan(corpus, seed=seed, ranges=[PairRange(0, 20), PairRange(20, 200, weight)])
    totals: Counter[int] = Counter()
    for epoch in range(8):
        counts = Counter(pair for batch in plan.epoch(epoch) for pair in batch.tolist())
        assert all(counts[pair] == 1 for pair in range(20))
        assert all(int(weight) <= counts[pair] <= int(weight) + 1 for pair in range(20, 200))
        totals.update(counts)
    assert all(abs(totals[pair] - 8 * weight) <= 1 for pair in range(20, 200))


def test_a_fractional_weight_takes_a_random_subset() -> None:
    corpus = varied_corpus(2000)
    plan = make_plan(corpus, 500, ranges=[PairRange(0, 2000, 0.3)])
    sizes = [sum(len(batch) for batch in plan.epoch(epoch)) for epoch in range(3)]
    assert all(500 < size < 700 for size in sizes)


def test_a_corpus_without_pairs_is_an_error() -> None:
    empty = TokenArray.from_rows([])
    with pytest.raises(SeqtoolError, match="no pairs left"):
        BatchPlan(empty.lengths, empty.lengths, 100, 1)


@pytest.mark.parametrize("corpus", ["demo", "multi30k"])
def test_batches_are_at_least_95_percent_tokens(tmp_path: Path, corpus: str) -> None:
    if corpus == "demo":
        texts = [(DEMO / f"train.{side}").read_text(encoding="utf-8").split("\n")[:-1] for side in ("en", "de")]
    elif not MULTI30K.is_dir():
        pytest.skip("SEQTOOL_MULTI30K names no folder with Multi30k")
    else:
        files = [(MULTI30K / f"train.{side}.gz").read_bytes() for side in ("en", "de")]
        texts = [gzip.decompress(file).decode().split("\n")[:-1] for file in files]
    train_tokenizer(texts[0] + texts[1], TokenizerConfig(), tmp_path / "t.model")
    tokenizer = load_tokenizer(tmp_path / "t.model")
    arrays = Arrays(*(TokenArray.from_rows(tokenizer.encode_batch(side)) for side in texts))
    plan = make_plan(arrays, 4096).epoch(0)
    real = total = 0
    for index in range(len(plan)):
        batch = make_batch(arrays, plan, BOTH, 0, index)
        for side in (batch.src, batch.tgt_out):
            real += int((side != PAD).sum())
            total += side.size
            assert side.size <= 4096
    assert real == sum(len(side.tokens) + len(side) for side in (arrays.source, arrays.target))
    assert real / total >= 0.95


# Prefetching


def test_errors_in_the_background_are_raised_where_batches_are_used() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise OSError("disk gone")

    found = Prefetched(items(), 2)
    assert next(found) == 1
    for _ in range(2):
        with pytest.raises(OSError, match="disk gone"):
            next(found)


def test_the_end_of_the_items_is_the_end() -> None:
    assert list(Prefetched(iter(range(20)), 3)) == list(range(20))


def test_closing_ends_the_thread() -> None:
    before = threading.active_count()
    with Prefetched(itertools.count(), 2) as found:
        assert next(found) == 0
    assert threading.active_count() == before
    assert next(found, None) is None
    found = Prefetched(itertools.count(), 2)
    del found
    assert threading.active_count() == before


def test_a_program_that_forgets_to_close_ends_at_once() -> None:
    code = "from itertools import count; from seqtool.corpus.batches.prefetch import Prefetched"
    code += "; next(Prefetched(count(), 2))"
    code += "; a = Prefetched(count(), 2); next(a)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")


# BPE-dropout

SENTENCES = [
    "the smaller houses are standing near the greener river",
    "children were walking slowly over the widest bridges",
    "größere Häuser stehen näher am grünen Fluß als die kleineren 日本 <de>",
    "  spaces  and\u2581marks aaaaaaa bananarama ",
]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    path = tmp_path_factory.mktemp("tokenizer") / "t.model"
    train_tokenizer(SENTENCES[:3] * 4, TokenizerConfig(vocab_size=420, user_symbols=("<de>",)), path)
    return load_tokenizer(path)


def text_corpus(tokenizer: Tokenizer) -> Arrays:
    rows = tokenizer.encode_batch(SENTENCES * 5)
    return Arrays(TokenArray.from_rows(rows), TokenArray.from_rows(rows[::-1]))


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from("abdeghilnorstuwä <de>\u2581日")) | st.text())
def test_without_dropout_the_merges_are_those_of_sentencepiece(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    assert MergeTable(tokenizer).segment(ids, 0, None) == ids


def test_dropout_changes_segmentations_but_not_the_text(tokenizer: Tokenizer) -> None:
    corpus = text_corpus(tokenizer)
    dropout = BpeDropout.of(TokenizerPair(tokenizer, tokenizer), 0.3, seed=1)
    plan = make_plan(corpus, 200)
    epoch = plan.epoch(0)
    seen = Counter()
    for index in range(len(epoch)):
        plain = make_batch(corpus, epoch, BOTH, 0, index)
        varied = make_batch(corpus, epoch, BOTH, 0, index, dropout=dropout)
        assert varied.pairs.tolist() == plain.pairs.tolist()
        for a, b in ((plain.src, varied.src), (plain.tgt_out, varied.tgt_out)):
            assert [tokenizer.decode(row) for row in a] == [tokenizer.decode(row) for row in b]
        assert varied.n_tgt_tokens == int((varied.tgt_out != PAD).sum())
        seen.update(tuple(row) for row in varied.src.tolist())
    assert len(seen) > len(SENTENCES)


def test_dropout_depends_on_seed_epoch_and_batch_alone(tokenizer: Tokenizer) -> None:
    corpus = text_corpus(tokenizer)
    pair = TokenizerPair(tokenizer, tokenizer)
    first = itertools.islice(
        iterate_batches(corpus, make_plan(corpus, 200), BOTH, dropout=BpeDropout.of(pair, 0.2, 1)), 20
    )
    for expected in list(first)[::-1]:
        fresh = BpeDropout.of(pair, 0.2, 1)
        start = (expected.epoch, expected.index)
        sought = next(iterate_batches(corpus, make_plan(corpus, 200), BOTH, start, prefetch=0, dropout=fresh))
        assert same(sought, expected)
        mine = next(
            iterate_batches(corpus, make_plan(corpus, 200), BOTH, start, rank=1, n_workers=2, prefetch=0, dropout=fresh)
        )
        assert mine.n_tgt_tokens == expected.n_tgt_tokens
        assert mine.src.tolist() == expected.src[1::2, : mine.src.shape[1]].tolist()


def test_a_row_that_would_get_too_long_stays_as_it_is(tokenizer: Tokenizer) -> None:
    corpus, pair = text_corpus(tokenizer), TokenizerPair(tokenizer, tokenizer)
    longest = max(len(tokenizer.encode(sentence)) for sentence in SENTENCES)
    epoch = make_plan(corpus, 10_000).epoch(0)
    plain = make_batch(corpus, epoch, BOTH, 0, 0)
    batches = [
        make_batch(corpus, epoch, BOTH, 0, 0, dropout=BpeDropout.of(pair, 0.9, 1, limit)) for limit in (longest, 2**31)
    ]
    lengths = [(batch.tgt_out != PAD).sum(1) - 1 for batch in batches]  # without the end symbol
    assert lengths[1].max() > longest >= lengths[0].max()
    long = lengths[1] > longest
    width = plain.tgt_out.shape[1]
    assert batches[0].tgt_out[long][:, :width].tolist() == plain.tgt_out[long].tolist()
    assert lengths[0][~long].tolist() == lengths[1][~long].tolist()


def test_more_dropout_gives_more_tokens(tokenizer: Tokenizer) -> None:
    corpus = text_corpus(tokenizer)
    pair = TokenizerPair(tokenizer, tokenizer)
    assert BpeDropout.of(pair, 0.0, 1) is None
    epoch = make_plan(corpus, 10_000).epoch(0)
    counts = [
        make_batch(corpus, epoch, BOTH, 0, 0, dropout=BpeDropout.of(pair, probability, 1)).n_tgt_tokens
        for probability in (0.0, 0.1, 0.4, 0.9)
    ]
    assert counts == sorted(counts)
    assert counts[0] < counts[1] < counts[3]
