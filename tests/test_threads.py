"""A translator called from many threads, and several at once, give what one call after the other gives."""

import gc
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from fake_engine import ReversingEngine, make_tokenizers
from tiny_run import make_lines, make_run

from seqtool.run_directory import RunDir
from seqtool.translation.engines.interface import Engine, SearchOptions
from seqtool.translation.engines.worker_threads import AHEAD, WorkerThreads
from seqtool.translation.export.ctranslate2 import export_ctranslate2
from seqtool.translation.translator import Translation, Translator

N_CALLERS = 16
OPTIONS: list[dict[str, Any]] = [
    {},
    {"beam": 1},
    {"beam": 5, "n_best": 5, "length_penalty": 0.3},
    {"beam": 2, "alignment": True, "token_scores": True},
    {"beam": 4, "no_repeat_ngram": 2},
    {"sample": True, "n_best": 2, "seed": 3},  # only torch can: with ctranslate2 the second engine is made for it
    {"beam": 4, "diverse_groups": 2, "diversity": 0.5},
    {"max_length_ratio": 0.5, "banned": [300, 301]},
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    run = make_run(tmp_path_factory.mktemp("run"), trained=True)
    if pytest.importorskip("ctranslate2"):
        export_ctranslate2(run, "int8")
    return run


def lines_of(caller: int) -> list[str]:
    """Return a caller's lines; some of them are those of other callers too, one is over-long, and one blank."""
    return [*make_lines(8, seed=caller), *make_lines(6, seed=100), " and ".join(make_lines(20, seed=caller)), ""]


def call_together(work: Callable[[int], Any], n: int = N_CALLERS) -> list[Any]:
    """Return the results of work(0), work(1), ..., each begun in a thread of its own at the same moment."""
    ready = threading.Barrier(n)

    def begin(number: int) -> Any:
        ready.wait()
        return work(number)

    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(begin, range(n)))


def ask(translator: Translator, caller: int) -> tuple[list[Translation], list[list[float]]]:
    lines = lines_of(caller)
    prefixes = ["zwei" if row % 5 == caller % 5 and line else "" for row, line in enumerate(lines)]
    found = translator.translate(lines, prefixes=prefixes, **OPTIONS[caller % len(OPTIONS)])
    return found, translator.score(lines[:8], [one.text for one in found[:8]])


@pytest.mark.parametrize("engine", ["torch", "auto"])
def test_sixteen_threads_get_what_one_after_the_other_gets(run: RunDir, engine: str) -> None:
    alone = Translator.load(run.path, engine=engine)
    expected = [ask(alone, caller) for caller in range(N_CALLERS)]
    notes: list[str] = []
    with Translator.load(run.path, engine=engine, notify=notes.append) as shared:
        assert shared.engine.name == ("torch" if engine == "torch" else "ctranslate2")
        for _ in range(2):
            assert call_together(lambda caller: ask(shared, caller)) == expected
    assert len(notes) == (engine == "auto")  # the second engine was made once


def test_translators_made_and_used_at_once_do_not_disturb_each_other(run: RunDir) -> None:
    kinds = [("torch", 1), ("torch", 3), ("ctranslate2", 2), ("torch", 2)]
    expected = [ask(Translator.load(run.path, engine="torch"), 1), ask(Translator.load(run.path, engine="auto"), 1)]

    def work(number: int) -> Any:
        engine, threads = kinds[number]
        with Translator.load(run.path, engine=engine, threads=threads) as translator:
            return ask(translator, 1)

    for (engine, _), found in zip(kinds, call_together(work, len(kinds)), strict=True):
        assert found == expected[engine == "ctranslate2"]


def test_the_second_engine_is_made_once(tmp_path: Path) -> None:
    class Unable(ReversingEngine):
        def unsupported(self, options: SearchOptions, n_source: int) -> list[str]:
            return ["sampling"] if options.sample else []

    made: list[Engine] = []

    def make() -> Engine:
        time.sleep(0.05)
        made.append(ReversingEngine())
        return made[-1]

    translator = Translator(make_tokenizers(tmp_path), Unable(), fallback=make)
    call_together(lambda number: translator.translate(["she"], sample=True))
    assert len(made) == 1


def test_workers_compute_with_one_thread_and_the_others_keep_their_number() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    workers = WorkerThreads(2)
    try:
        assert set(workers.map(lambda _: torch.get_num_threads(), range(20))) == {1}
        later: list[int] = []
        thread = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
        thread.start()
        thread.join()
        assert (torch.get_num_threads(), later) == (3, [3])
    finally:
        workers.close()
        torch.set_num_threads(before)


def test_a_caller_with_many_batches_does_not_hold_up_another() -> None:
    workers = WorkerThreads(1)
    done: list[str] = []

    def work(name: str) -> str:
        time.sleep(0.001)
        done.append(name)
        return name

    def call(number: int) -> list[str]:
        if number:
            while len(done) < 10:  # the long one has begun
                time.sleep(0.001)
        return list(workers.map(work, ["short"] if number else ["long"] * 200))

    assert [len(found) for found in call_together(call, 2)] == [200, 1]
    assert done.index("short") < 200 - 10 * AHEAD
    workers.close()


def test_what_nobody_waits_for_is_not_begun() -> None:
    workers = WorkerThreads(1)
    begun: list[int] = []

    def work(number: int) -> None:
        begun.append(number)
        if number == 3:
            raise ValueError("as planned")

    with pytest.raises(ValueError, match="as planned"):
        list(workers.map(work, range(1000)))
    workers.close()
    assert len(begun) <= 4 + AHEAD


def test_a_forgotten_pool_ends_its_threads() -> None:
    before = threading.active_count()
    workers = WorkerThreads(3)
    assert threading.active_count() == before + 3
    del workers
    gc.collect()
    end = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < end:
        time.sleep(0.01)
    assert threading.active_count() == before
