"""Which segments are translated next, and that batches of many requests change nothing, lose nothing and end."""

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest
from fake_engine import ReversingEngine, make_tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tiny_run import make_lines

from seqtool.corpus.tokenizer.interface import TokenizerPair
from seqtool.errors import SeqtoolError
from seqtool.serving.batcher import PORTION, Batcher
from seqtool.serving.errors import ApiError
from seqtool.serving.metrics import Metrics
from seqtool.serving.waiting import LONG, LONG_EVERY, SHORT, Waiting, WaitingSegments
from seqtool.translation.engines.interface import SearchOptions, TokenHypothesis
from seqtool.translation.translator import Translator


def waiting(segment: str, client: str = "a", *, shape: int = 1, lane: int = SHORT, arrived: float = 0.0) -> Waiting:
    return Waiting(segment, shape, client, lane, None, arrived)


def take(queue: WaitingSegments, now: float = 1.0) -> list[str]:
    return [item.segment for item in queue.take(now)]


def test_clients_take_turns() -> None:
    queue = WaitingSegments(lambda shape: 2)
    queue.put([waiting(f"a{number}") for number in range(6)])
    queue.put([waiting("b0", "b"), waiting("c0", "c")])
    assert [take(queue) for _ in range(5)] == [["a0", "a1"], ["b0", "c0"], ["a2", "a3"], ["a4", "a5"], []]


def test_free_places_go_to_others_of_the_same_shape_but_not_beside_short_requests_to_long_ones() -> None:
    queue = WaitingSegments(lambda shape: 4)
    queue.put([waiting("a"), waiting("other", shape=2), waiting("b", "b"), waiting("long", "c", lane=LONG)])
    assert take(queue) == ["a", "b"]
    assert take(queue) == ["other"]
    queue.put([waiting("c", "b") for _ in range(4 * LONG_EVERY)])
    assert [take(queue) for _ in range(LONG_EVERY - 2)] == [["c"] * 4] * (LONG_EVERY - 3) + [["long", "c", "c", "c"]]


def test_short_requests_lead_most_batches_and_long_ones_are_not_starved() -> None:
    queue = WaitingSegments(lambda shape: 1)
    queue.put([waiting(f"long{number}", lane=LONG) for number in range(2 * LONG_EVERY)])
    queue.put([waiting(f"short{number}") for number in range(2 * LONG_EVERY)])
    first = [take(queue)[0][:4] for _ in range(2 * LONG_EVERY)]
    assert first == [*["shor"] * (LONG_EVERY - 1), "long"] * 2


def test_of_a_clients_segments_the_fuller_batch_and_the_longer_wait_go_first() -> None:
    queue = WaitingSegments(lambda shape: 8)
    queue.put([waiting("alone", shape=1, arrived=0.9), *(waiting(f"of4-{n}", shape=2, arrived=0.9) for n in range(4))])
    assert len(take(queue)) == 4
    queue.put([waiting(f"new{n}", shape=2, arrived=9.99) for n in range(4)])
    assert take(queue, now=10.0) == ["alone"]


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(1, 3), st.sampled_from([SHORT, LONG]), st.booleans()),
        max_size=60,
    ),
    st.integers(1, 5),
)
def test_whatever_is_put_is_taken_once_unless_it_was_removed(rows: list[Any], size: int) -> None:
    queue = WaitingSegments(lambda shape: size)
    items = [waiting(str(n), client, shape=shape, lane=lane) for n, (client, shape, lane, _) in enumerate(rows)]
    queue.put(items)
    gone = [item for item, row in zip(items, rows, strict=True) if row[3]]
    queue.remove(gone)
    queue.remove(gone)
    taken: list[Waiting] = []
    while batch := queue.take(1.0):
        assert len(batch) <= size
        assert len({item.shape for item in batch}) == 1
        taken += batch
        assert len(queue) == len(items) - len(gone) - len(taken)
    assert {item.segment for item in taken} == {item.segment for item in items} - {item.segment for item in gone}
    assert len(taken) == len(items) - len(gone)


class HeldEngine(ReversingEngine):
    """Waits in each call until it is released; can fail."""

    def __init__(self) -> None:
        super().__init__()
        self.released = threading.Event()
        self.begun = threading.Semaphore(0)
        self.error: Exception | None = None
        self.batches: list[list[tuple[int, ...]]] = []

    def translate(
        self, sources: Sequence[Sequence[int]], options: SearchOptions, *others: Any, **more: Any
    ) -> list[list[TokenHypothesis]]:
        self.batches.append([tuple(source) for source in sources])
        self.begun.release()
        assert self.released.wait(60)
        if self.error:
            raise self.error
        return super().translate(sources, options, *others, **more)


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> TokenizerPair:
    return make_tokenizers(tmp_path_factory.mktemp("tokenizer"))


class Bench:
    """A batcher with an engine that a test controls."""

    def __init__(self, tokenizers: TokenizerPair, max_queue: int = 10_000, wait: float = 0.0) -> None:
        self.engine = HeldEngine()
        self.translator = Translator(tokenizers, self.engine)
        self.metrics = Metrics()
        self.batcher = Batcher(self.translator, self.metrics, max_queue=max_queue, wait=wait)
        self.options = self.translator.make_options()

    async def ask(self, lines: Sequence[str], client: str = "") -> list[str]:
        return [line.text for line in await self.batcher.translate(lines, self.options, client)]

    def expected(self, lines: Sequence[str]) -> list[str]:
        plain = Translator(self.translator.tokenizers, ReversingEngine())
        return [line.text for line in plain.translate(lines)]

    async def until_busy(self) -> None:
        """Wait until each thread of the batcher holds a batch."""
        for _ in range(self.engine.batching.callers):
            await asyncio.to_thread(self.engine.begun.acquire)

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            asyncio.run(asyncio.wait_for(work, 60))
        finally:
            self.engine.released.set()
            self.batcher.close()


def test_requests_that_arrive_together_share_batches_and_get_their_own_translations(tokenizers: TokenizerPair) -> None:
    bench = Bench(tokenizers, wait=0.05)
    bench.engine.released.set()
    requests = [make_lines(3, longest=3, seed=seed) for seed in range(40)]

    async def work() -> None:
        found = await asyncio.gather(*(bench.ask(lines) for lines in requests))
        assert found == [bench.expected(lines) for lines in requests]

    bench.run(work())
    assert len(bench.engine.calls) < len(requests)
    assert max(bench.engine.calls) == bench.engine.batching.rows
    assert all(len(set(batch)) == len(batch) for batch in bench.engine.batches)


def test_a_request_past_the_queues_limit_is_refused_and_one_after_it_is_not(tokenizers: TokenizerPair) -> None:
    bench = Bench(tokenizers, max_queue=5)
    lines = [f"{'A ' * n}man." for n in range(1, 20)]  # each of another length, so in a batch of its own

    async def work() -> None:
        begun = [asyncio.create_task(bench.ask([line])) for line in lines[:2]]
        await bench.until_busy()
        begun += [asyncio.create_task(bench.ask([line])) for line in lines[2:7]]
        await asyncio.sleep(0)
        with pytest.raises(ApiError) as refused:
            await bench.ask([lines[7]])
        assert (refused.value.status, refused.value.headers) == (503, {"Retry-After": "1"})
        bench.engine.released.set()
        assert [text for task in begun for text in await task] == bench.expected(lines[:7])
        assert await bench.ask(lines) == bench.expected(lines)  # more than the limit, but nothing waits before it

    bench.run(work())


def test_a_cancelled_request_leaves_the_queue_and_holds_up_nobody(tokenizers: TokenizerPair) -> None:
    bench = Bench(tokenizers)
    document = [f"{'A ' * (n % 9)}man {n}." for n in range(3 * PORTION)]

    async def work() -> None:
        begun = asyncio.create_task(bench.ask(document))
        await bench.until_busy()
        begun.cancel()
        with pytest.raises(asyncio.CancelledError):
            await begun
        assert len(bench.batcher) == 0
        bench.engine.released.set()
        assert await bench.ask(["Who is she?"]) == bench.expected(["Who is she?"])

    bench.run(work())
    assert sum(bench.engine.calls) <= 2 * bench.engine.batching.rows + 1


def test_a_sentence_does_not_wait_for_a_document_that_came_before_it(tokenizers: TokenizerPair) -> None:
    bench = Bench(tokenizers)

    async def work() -> None:
        document = asyncio.create_task(bench.ask([f"man {n}" for n in range(500)], "one"))
        await bench.until_busy()
        sentence = asyncio.create_task(bench.ask(["Who is she?"], "one"))
        await asyncio.sleep(0)
        bench.engine.released.set()
        await sentence
        await document

    bench.run(work())
    ids = tuple(bench.translator.tokenizers.source.encode("Who is she?"))
    (place,) = [number for number, batch in enumerate(bench.engine.batches) if ids in batch]
    assert place < bench.engine.batching.callers + LONG_EVERY < len(bench.engine.batches) / 4


def test_many_documents_find_a_place_and_leave_room_for_sentences(tokenizers: TokenizerPair) -> None:
    bench = Bench(tokenizers, max_queue=400)
    documents = [[f"{'A ' * (n % 5)}man {n} {client}." for n in range(100)] for client in range(20)]
    sentences = [f"Who is {n}?" for n in range(90)]

    async def work() -> None:
        begun = [asyncio.create_task(bench.ask(lines, str(client))) for client, lines in enumerate(documents)]
        await bench.until_busy()
        begun += [asyncio.create_task(bench.ask([line])) for line in sentences]
        await asyncio.sleep(0)
        bench.engine.released.set()
        assert await asyncio.gather(*begun) == [bench.expected(lines) for lines in [*documents, *zip(sentences)]]

    bench.run(work())


def test_a_batch_that_fails_fails_its_requests_and_no_later_ones(tokenizers: TokenizerPair) -> None:
    bench = Bench(tokenizers)
    bench.engine.error = SeqtoolError("the model is gone")
    bench.engine.released.set()

    async def work() -> None:
        with pytest.raises(SeqtoolError, match="the model is gone"):
            await bench.ask(["A man."])
        bench.engine.error = None
        assert await bench.ask(["A man."]) == bench.expected(["A man."])

    bench.run(work())


def test_what_waits_when_a_batcher_is_closed_is_translated_and_what_comes_later_refused(
    tokenizers: TokenizerPair,
) -> None:
    bench = Bench(tokenizers)

    async def work() -> None:
        begun = asyncio.create_task(bench.ask(["A man.", "Who is she?"]))
        await asyncio.sleep(0)
        closing = asyncio.create_task(asyncio.to_thread(bench.batcher.close))
        bench.engine.released.set()
        assert await begun == bench.expected(["A man.", "Who is she?"])
        await closing
        with pytest.raises(ApiError, match="overloaded"):
            await bench.ask(["Two dogs."])

    bench.run(work())


def test_a_remembered_sentence_is_not_translated_again(tokenizers: TokenizerPair, tmp_path: Path) -> None:
    engine = ReversingEngine()
    translator = Translator(tokenizers, engine, cache_bytes=1_000_000)
    metrics = Metrics()
    batcher = Batcher(translator, metrics, max_queue=10)

    async def work() -> None:
        first = await batcher.translate(["A man."], translator.make_options())
        again = await batcher.translate(["A man.", "Who?"], translator.make_options())
        assert again[0] == first[0]

    asyncio.run(work())
    batcher.close()
    assert engine.calls == [1, 1]
    counted = metrics.text(lambda: 0)[0].decode()
    assert "seqtool_cache_hits_total 1.0" in counted
    assert "seqtool_cache_misses_total 2.0" in counted
