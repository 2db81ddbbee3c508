"""The torch engine with real Transformers: batches change no bit, scores are the model's, all else is left alone."""

import random
import shutil
from typing import Any

import pytest
import torch
from special_ids import EOS, vocabularies
from table_model import TableModel
from tiny_run import make_run
from torch import Tensor
from torch._dynamo.utils import counters

from seqtool.config import TransformerConfig
from seqtool.corpus.tokenizer.registry import load_pair
from seqtool.errors import SeqtoolError
from seqtool.model.interface import Memory
from seqtool.model.transformer import Transformer
from seqtool.translation.engines import torch_engine
from seqtool.translation.engines.batching import LEAST_TOKENS, LENGTH_STEP, padded_length, plan_batches
from seqtool.translation.engines.interface import SearchOptions, TokenHypothesis
from seqtool.translation.engines.settings import EngineSettings
from seqtool.translation.engines.torch_engine import TorchEngine, choose_dtype, work_or_halve
from seqtool.translation.search.decoding import OpenSentences
from seqtool.translation.translator import Translator

VOCAB = 250


class Ending(Transformer):
    """A random Transformer whose translations end at about the length of their source."""

    def decode(self, tgt: Tensor, memory: Memory, cache: Any = None) -> Tensor:
        logits = super().decode(tgt, memory, cache)
        start = cache.length - tgt.shape[1] if cache is not None else 0
        positions = torch.arange(start, start + tgt.shape[1])
        lengths = memory.mask.sum(1).repeat_interleave(tgt.shape[0] // memory.mask.shape[0])
        logits[..., EOS] += 6.0 + 3.0 * (positions - lengths[:, None]).clamp(-9, 9)
        return logits


def make_model(**shape: Any) -> Ending:
    torch.manual_seed(3)
    values = {"d_model": 32, "d_ff": 64, "n_heads": 4, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.1}
    model = Ending(TransformerConfig(**(values | shape)), vocabularies(VOCAB)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(2.0).add_(torch.randn_like(weight), alpha=0.05)
    return model


def make_sources(n: int, longest: int = 20, seed: int = 0) -> list[list[int]]:
    draw = random.Random(seed)
    return [[draw.randrange(4, VOCAB) for _ in range(draw.randint(0, longest))] for _ in range(n)]


def translate_in_pieces(
    engine: TorchEngine,
    sources: list[list[int]],
    options: SearchOptions,
    prefixes: list[list[int]],
    size: int,
) -> list[list[TokenHypothesis]]:
    """Translate in random order, `size` sentences in each call, and give the results in the order of the sources."""
    order = list(range(len(sources)))
    random.Random(size).shuffle(order)
    found: dict[int, list[TokenHypothesis]] = {}
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        results = engine.translate([sources[row] for row in rows], options, [prefixes[row] for row in rows])
        found.update(zip(rows, results, strict=True))
    return [found[row] for row in range(len(sources))]


@pytest.mark.parametrize(
    ("shape", "options", "n"),
    [
        ({}, {"beam": 5, "n_best": 5}, 120),
        ({}, {"beam": 1}, 70),
        ({}, {"sample": True, "n_best": 2, "top_p": 0.9}, 30),
        ({"positions": "rotary", "norm_kind": "rms", "activation": "swiglu"}, {"beam": 4, "n_best": 2}, 30),
        ({"positions": "relative"}, {"beam": 3, "n_best": 3}, 30),
        ({"positions": "learned", "norm": "post"}, {"beam": 6, "diverse_groups": 2, "n_best": 2}, 30),
    ],
)
def test_batches_change_no_bit(shape, options, n):
    """Not only the tokens but their scores are the same, to the last bit: so no tie can ever be decided otherwise."""
    model, draw = make_model(**shape), random.Random(5)
    sources = make_sources(n)
    prefixes = [[draw.randrange(4, VOCAB) for _ in range(draw.choice([0, 0, 0, 1, 3]))] for _ in sources]
    search = SearchOptions(max_length_ratio=0.5, **options)
    wide, narrow = TorchEngine([model], batch_tokens=10**6, threads=1), TorchEngine([model], threads=2)
    wide.batch_tokens = 10**6  # more than a CPU would take at once
    together = wide.translate(sources, search, prefixes)
    assert narrow.translate(sources, search, prefixes) == together
    for size in (1, 7, 64):
        part = n if size > 1 else 10
        pieces = translate_in_pieces(narrow, sources[:part], search, prefixes[:part], size)
        assert pieces == together[:part]
    lengths = [len(hypotheses[0].ids) for hypotheses in together]
    assert len(set(lengths)) > 8  # sentences did leave the batch at different times


def test_scores_of_the_search_are_those_of_scoring():
    engine, sources = TorchEngine([make_model()]), make_sources(40)
    found = engine.translate(sources, SearchOptions(beam=4, n_best=4, token_scores=True))
    pairs = [(source, one) for source, hypotheses in zip(sources, found, strict=True) for one in hypotheses]
    scores = engine.score([source for source, _ in pairs], [one.ids for _, one in pairs])
    for (_, one), token_scores in zip(pairs, scores, strict=True):
        assert one.log_prob == pytest.approx(sum(token_scores), abs=1e-3)
        assert one.token_scores == token_scores
        assert len(token_scores) == len(one.ids) + 1


def test_scoring_does_not_depend_on_company_or_on_slices(monkeypatch):
    engine, sources = TorchEngine([make_model()]), make_sources(60)
    targets = make_sources(60, longest=70, seed=1)
    together = engine.score(sources, targets)
    assert [engine.score([source], [target])[0] for source, target in zip(sources, targets, strict=True)] == together
    monkeypatch.setattr(torch_engine, "SCORED_AT_ONCE", 32)
    sliced = engine.score(sources, targets)
    for one, other in zip(sliced, together, strict=True):
        assert one == pytest.approx(other, abs=1e-4)


def test_scoring_equals_the_model_without_padding_and_cache():
    model, sources, targets = make_model(), make_sources(5), make_sources(5, seed=1)
    for source, target, scores in zip(sources, targets, TorchEngine([model]).score(sources, targets), strict=True):
        memory = model.encode(torch.tensor([[*source, EOS]]))
        log_probs = model.decode(torch.tensor([[2, *target]]), memory)[0].log_softmax(-1)
        assert scores == pytest.approx(log_probs[range(len(target) + 1), [*target, EOS]].tolist(), abs=1e-4)


def test_attention_is_that_of_the_model_alone():
    # In float64, so that only a real difference of the two ways to compute it can show.
    model, sources = make_model().double(), make_sources(12)
    engine = TorchEngine([model])
    found = engine.translate(sources, SearchOptions(beam=2, alignment=True))
    attention = engine.attend(sources, [best.ids for best, *_ in found])
    for source, (best, *_), (strongest, received) in zip(sources, found, attention, strict=True):
        src, tgt_in = torch.tensor([[*source, EOS]]), torch.tensor([[2, *best.ids]])
        expected = model.attention_weights(src, tgt_in)[-1][0].mean(0)[: len(best.ids), : len(source)]
        assert best.alignment == strongest == expected.argmax(1).tolist()
        assert received == pytest.approx(expected.sum(0).tolist(), abs=1e-6)


def test_an_empty_source_and_no_source_at_all():
    engine = TorchEngine([make_model()])
    assert engine.translate([], SearchOptions()) == []
    assert engine.score([], []) == []
    assert len(engine.translate([[]], SearchOptions(beam=2, alignment=True))[0]) == 1
    assert len(engine.score([[]], [[]])[0]) == 1


def test_an_ensemble_has_the_limits_of_its_shortest_model(tmp_path):
    free = make_run(tmp_path / "free")
    short = make_run(tmp_path / "short", positions="learned", max_positions=60, max_tokens=50)
    line = "a man walks in the blue shirt " * 8
    for folders in ([free.path, short.path], [short.path, free.path]):
        translator = Translator.load(folders, engine="torch")
        assert translator.translate([line])[0].n_parts > 1
        with pytest.raises(SeqtoolError, match=r"a prefix has \d+ tokens, but this model has positions for 59"):
            translator.translate([line], prefixes=["zwei Hunde " * 40])


def test_learned_positions_limit_the_length():
    engine = TorchEngine([make_model(positions="learned", max_positions=12)])
    found = engine.translate([[5] * 10], SearchOptions(beam=2, max_length_ratio=9.0))
    assert len(found[0][0].ids) <= 11
    with pytest.raises(SeqtoolError, match="longer than the 12 learned positions"):
        engine.translate([[5] * 40], SearchOptions(beam=2))


def test_an_engine_drops_nothing_out():
    model = make_model().train()
    engine = TorchEngine([model])
    assert engine.translate([[5, 6]], SearchOptions()) == engine.translate([[5, 6]], SearchOptions())
    assert not any(module.training for module in model.modules())


def test_models_with_other_tokenizers_are_no_ensemble(tmp_path):
    runs = [make_run(tmp_path / "a"), make_run(tmp_path / "b", vocab=330)]
    with pytest.raises(SeqtoolError, match="different tokenizers"):
        TorchEngine.load(runs, load_pair(runs[0]).vocabularies)
    same = [make_run(tmp_path / "c", seed=1), make_run(tmp_path / "d", seed=2)]
    single, both = (
        TorchEngine.load(same[:1], load_pair(same[0]).vocabularies),
        TorchEngine.load(same, load_pair(same[0]).vocabularies),
    )
    assert single.score([[5]], [[6]]) != both.score([[5]], [[6]])


def test_a_batch_that_does_not_fit_is_halved():
    seen: list[list[int]] = []

    def work(batch: list[int]) -> list[int]:
        if len(batch) > 4:
            raise torch.OutOfMemoryError
        if len(batch) > 2:
            raise RuntimeError("[enforce fail at alloc_cpu.cpp:1] DefaultCPUAllocator: can't allocate memory")
        seen.append(batch)
        return [10 * row for row in batch]

    assert work_or_halve(work, [1, 2, 3, 4, 5]) == [10, 20, 30, 40, 50]
    assert seen == [[1, 2], [3], [4, 5]]

    def never(batch: list[int]) -> list[int]:
        raise torch.OutOfMemoryError

    with pytest.raises(SeqtoolError, match="narrower beam, a lower max_length_ratio or device='cpu'"):
        work_or_halve(never, [1, 2])

    def wrong(batch: list[int]) -> list[int]:
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes do not match"):
        work_or_halve(wrong, [1, 2])


def test_batches_hold_every_row_once_and_stay_small():
    lengths = [len(source) + 1 for source in make_sources(300, longest=90)]
    batches = plan_batches(lengths, 512, 2)
    assert sorted(row for batch in batches for row in batch) == list(range(300))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * padded_length(max(lengths[row] for row in batch)) <= 512
    assert padded_length(1) == padded_length(LENGTH_STEP) == LENGTH_STEP
    assert len(plan_batches([5] * 8, 10**6, 2)) == 2  # few sentences are still shared out to all workers


def test_batches_shrink_so_that_workers_end_together():
    sizes = [len(batch) for batch in plan_batches([16] * 1000, 4096, 2)]
    assert sizes[0] == 250  # a quarter of all: each of two workers could take another as large
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-2] == LEAST_TOKENS // 16  # but small matrices would compute slowly
    alone = plan_batches([16] * 1000, 4096)  # one worker waits for no other
    assert [len(batch) for batch in alone] == [256, 256, 256, 232]


def test_finished_sentences_leave_and_ballast_stays():
    sentences = OpenSentences(5, beams=2, min_rows=4)
    assert sentences.close([False, True, False, True, False]) == ([1, 3], [1, 3])
    assert sentences.close([False, True, False, True, False]) == ([], [])
    assert sentences.drop(0.125) == [0, 4, 2]  # the last takes the place of the first that goes
    assert sentences.places == [0, 4, 2]
    assert sentences.close([True, True, False]) == ([0, 1], [0, 4])
    assert sentences.drop(0.125) == [0, 2]  # two sentences of two beams make four rows
    assert sentences.places == [None, 2]
    assert sentences.close([True, True]) == ([1], [2])
    assert not sentences.any
    assert OpenSentences(1, beams=5, min_rows=4).places == [0, None, None, None]


def test_an_error_in_a_worker_reaches_the_caller():
    class Broken(TableModel):
        def encode(self, src: Tensor) -> Memory:
            raise SeqtoolError("as planned")

    with pytest.raises(SeqtoolError, match="as planned"):
        TorchEngine([Broken(9)]).translate([[4]] * 50, SearchOptions())


@pytest.mark.parametrize("compute_type", ["bfloat16", "float16"])
def test_half_precision_works_on_the_cpu_too(tmp_path, compute_type):
    run = make_run(tmp_path / "run")
    engine = TorchEngine.load([run], load_pair(run).vocabularies, EngineSettings(compute_type=compute_type))
    assert engine.compute_type == compute_type
    (found,) = engine.translate([[5, 6, 7]], SearchOptions(beam=3, n_best=3))
    (scores,) = engine.score([[5, 6, 7]], [found[0].ids])
    assert sum(scores) == pytest.approx(found[0].log_prob, rel=0.05)
    exact = TorchEngine.load([run], load_pair(run).vocabularies)
    assert exact.compute_type == "float32"
    (expected,) = exact.score([[5, 6, 7]], [found[0].ids])
    assert scores != expected  # the numbers are others, but near
    assert scores == pytest.approx(expected, abs=0.2)


def test_the_type_of_numbers_is_chosen_by_name(monkeypatch):
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    assert [choose_dtype("default", device) for device in (cpu, gpu)] == [torch.float32] * 2
    assert choose_dtype("auto", cpu) == torch.float32
    for has_bfloat16, expected in ((True, torch.bfloat16), (False, torch.float16)):
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation, has=has_bfloat16: has)
        assert choose_dtype("auto", gpu) == expected
    with pytest.raises(SeqtoolError, match="torch engine has no compute_type='int8'; it has float32, bfloat16"):
        choose_dtype("int8", cpu)


@pytest.mark.skipif(not any(map(shutil.which, ("c++", "g++", "clang++"))), reason="torch.compile needs a C++ compiler")
def test_a_compiled_model_translates_the_same(tmp_path):
    torch._dynamo.reset()
    counters.clear()
    run = make_run(tmp_path / "run", decoder_layers=3)
    plain, compiled = (
        TorchEngine.load([run], load_pair(run).vocabularies),
        TorchEngine.load([run], load_pair(run).vocabularies, EngineSettings(compile=True)),
    )
    sources = make_sources(24, longest=40)
    options = SearchOptions(beam=2, max_length_ratio=0.1)
    for part in (sources[:6], sources[6:]):  # sizes that vary
        for ours, theirs in zip(plain.translate(part, options), compiled.translate(part, options), strict=True):
            assert ours[0].score == pytest.approx(theirs[0].score, abs=1e-4)
    assert 2 <= counters["stats"]["unique_graphs"] <= 6  # encoder and feed-forward, each for few sizes
    assert not counters["graph_break"]
    torch._dynamo.reset()
