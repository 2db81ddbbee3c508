"""Beam search against every possible translation, against a plain beam search, and under all its constraints."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from special_ids import BOS, EOS, PAD, vocabularies
from table_model import TableModel, all_targets, best_of_all, log_prob

from seqtool.config import TransformerConfig
from seqtool.corpus.tokenizer.bpe import SPECIAL
from seqtool.errors import SeqtoolError
from seqtool.model.transformer import Transformer
from seqtool.translation.engines.interface import SearchOptions, TokenHypothesis
from seqtool.translation.engines.torch_engine import TorchEngine, read_finished
from seqtool.translation.search.beam_search import beam_search
from seqtool.translation.search.beam_step import NOTHING, best_continuations, grid_width
from seqtool.translation.search.constraints import Constraints, forbid_omissions
from seqtool.translation.search.decoding import OpenSentences
from seqtool.translation.search.penalties import coverage_penalty, length_penalty

VOCAB = 7  # unknown, end, three words; padding and begin are never said
LIMIT = 4
ALL = 400  # more than the 341 translations of up to four tokens
quickly = partial(settings, deadline=None, derandomize=True, database=None)
tables = st.builds(
    TableModel, st.just(VOCAB), st.integers(0, 10**6), st.sampled_from([0.5, 2.0]), st.sampled_from([-2.0, 0.0, 1.0])
)
sources = st.lists(st.integers(4, 9), max_size=5)
penalties = st.sampled_from([0.0, 0.6, 1.0, 2.0])


@dataclass(frozen=True, kw_only=True)
class Short(SearchOptions):
    """Options with a low limit of length."""

    def max_length(self, source_length: int) -> int:
        return LIMIT


def search(
    model: TableModel,
    batch: Sequence[Sequence[int]],
    options: SearchOptions,
    prefixes: Sequence[Sequence[int]] | None = None,
) -> list[list[TokenHypothesis]]:
    """Return the n best of each sentence; an engine may give more of the beam than that."""
    found = TorchEngine([model], threads=1).translate(batch, options, prefixes)
    return [hypotheses[: options.n_best] for hypotheses in found]


def search_directly(model: TableModel, batch: Sequence[Sequence[int]], options: SearchOptions, **settings: object):
    """Search without the engine, so that its inner settings can be changed."""
    src = torch.tensor([[*source, EOS, *[PAD] * (9 - len(source))] for source in batch])
    limits = [options.max_length(len(source)) for source in batch]
    constraints = Constraints(options, SPECIAL, limits, [()] * len(batch), src.device)
    found: list[list[TokenHypothesis]] = [[] for _ in batch]
    sentences = OpenSentences(len(batch), options.beam)
    for rows, finished in beam_search([model], src, constraints, options, sentences, **settings):
        for row, hypotheses in zip(rows, read_finished(finished, options.n_best), strict=True):
            found[row] = hypotheses
    return found


def plain_beam_search(model: TableModel, source: Sequence[int], options: SearchOptions) -> list[tuple[int, ...]]:
    """Beam search as one would write it down: lists, one sentence, every continuation, and no early stop."""
    memory = model.encode(torch.tensor([[*source, EOS]]))
    beams: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    finished: list[tuple[float, tuple[int, ...]]] = []
    for length in range(options.max_length(len(source)) + 1):
        candidates = []
        for total, ids in beams:
            log_probs = model.decode(torch.tensor([[BOS, *ids]]), memory)[0, -1].log_softmax(-1).tolist()
            for token in range(len(log_probs)):
                if token not in (PAD, BOS) and (length < options.max_length(len(source)) or token == EOS):
                    candidates.append((total + log_probs[token], (*ids, token)))
        candidates.sort(key=lambda candidate: -candidate[0])
        for total, ids in candidates[: options.beam]:
            if ids[-1] == EOS:
                finished.append((total / math.pow((5 + len(ids)) / 6, options.length_penalty), ids[:-1]))
        beams = [candidate for candidate in candidates if candidate[1][-1] != EOS][: options.beam]
        if len(finished) >= options.beam * options.patience:
            break
    return [ids for _, ids in sorted(finished, reverse=True)[: options.n_best]]


@quickly(max_examples=40)
@given(tables, st.lists(sources, min_size=1, max_size=3), penalties)
def test_a_wide_beam_finds_what_trying_everything_finds(model, batch, penalty):
    options = Short(beam=ALL, n_best=5, length_penalty=penalty)
    for source, found in zip(batch, search(model, batch, options), strict=True):
        expected = best_of_all(model, source, options, LIMIT)[:5]
        assert [tuple(one.ids) for one in found] == [ids for _, ids in expected]
        assert [one.score for one in found] == pytest.approx([score for score, _ in expected], abs=1e-5)


@quickly(max_examples=60)
@given(tables, st.lists(sources, min_size=1, max_size=4), penalties, st.integers(1, 6), st.data())
def test_the_search_equals_a_plain_one(model, batch, penalty, beam, data):
    options = SearchOptions(
        beam=beam,
        n_best=data.draw(st.integers(1, beam)),
        length_penalty=penalty,
        max_length_ratio=0.5,
        patience=data.draw(st.sampled_from([1.0, 2.0, math.inf])),
    )
    found = [[tuple(one.ids) for one in hypotheses] for hypotheses in search(model, batch, options)]
    assert found == [plain_beam_search(model, source, options) for source in batch]


@quickly(max_examples=30)
@given(tables, sources)
def test_a_beam_of_one_is_greedy(model, source):
    memory = model.encode(torch.tensor([[*source, EOS]]))
    ids: list[int] = []
    while len(ids) < LIMIT:
        logits = model.decode(torch.tensor([[BOS, *ids]]), memory)[0, -1]
        logits[[PAD, BOS]] = NOTHING
        if int(logits.argmax()) == EOS:
            break
        ids.append(int(logits.argmax()))
    assert search(model, [source], Short(beam=1))[0][0].ids == ids


@quickly(max_examples=80)
@given(
    st.builds(TableModel, st.just(VOCAB), st.integers(0, 10**6), st.sampled_from([0.5, 2.0]), st.just(0.0)),
    st.lists(sources, min_size=1, max_size=4),
    penalties,
    st.integers(1, 5),
    st.data(),
)
def test_stopping_early_and_looking_seldom_change_nothing(model, batch, penalty, beam, data):
    groups = data.draw(st.sampled_from([1, 2]))
    options = SearchOptions(
        beam=beam * groups,
        n_best=data.draw(st.integers(1, beam)),
        length_penalty=penalty,
        max_length_ratio=1.0,
        patience=data.draw(st.sampled_from([0.5, 1.0, math.inf])),
        diverse_groups=groups,
    )
    to_the_end = search_directly(model, batch, options, stop_early=False)
    assert search_directly(model, batch, options) == to_the_end
    assert search_directly(model, batch, options, look_every=data.draw(st.integers(2, 30))) == to_the_end


def test_what_ends_before_the_host_looks_again_does_not_count():
    """A heavy length penalty lets later translations score better; a GPU, where looks are rare, must not take them."""
    for seed in range(30):
        model = TableModel(VOCAB, seed, spread=2.0, end_bias=1.0)
        options = SearchOptions(beam=3, length_penalty=2.0)
        (found,) = search_directly(model, [[4, 5]], options, look_every=4)
        assert [tuple(one.ids) for one in found] == plain_beam_search(model, [4, 5], options)


def test_late_winners_are_waited_for():
    """Flat probabilities and a heavy length penalty let long translations win, long after others have ended."""
    late = 0
    for seed in range(30):
        model = TableModel(VOCAB, seed, spread=0.7, end_bias=-0.5)
        options = SearchOptions(beam=3, length_penalty=1.5, patience=math.inf)
        to_the_end = search_directly(model, [[4, 5], [6]], options, stop_early=False)
        assert search_directly(model, [[4, 5], [6]], options) == to_the_end
        late += sum(len(hypotheses[0].ids) >= 12 for hypotheses in to_the_end)
    assert late >= 10


def test_the_search_does_stop_early():
    """Else the test before would prove nothing: the end is so likely that nothing else can win."""
    model, steps = TableModel(VOCAB, end_bias=20.0), []
    decode = model.decode
    model.decode = lambda *args, **kwargs: steps.append(1) or decode(*args, **kwargs)
    search_directly(model, [[4, 5]], SearchOptions(beam=3, patience=math.inf))
    assert len(steps) == 1
    steps.clear()
    search_directly(model, [[4, 5]], SearchOptions(beam=3, patience=math.inf), stop_early=False)
    assert len(steps) == SearchOptions().max_length(2) + 1


@quickly(max_examples=20)
@given(tables, st.lists(sources, min_size=1, max_size=4), penalties)
def test_scores_equal_those_of_scoring(model, batch, penalty):
    options = Short(beam=4, n_best=4, length_penalty=penalty, token_scores=True)
    engine = TorchEngine([model], threads=1)
    for source, hypotheses in zip(batch, engine.translate(batch, options), strict=True):
        for one in hypotheses:
            (scores,) = engine.score([source], [one.ids])
            assert one.log_prob == pytest.approx(sum(scores), abs=1e-5)
            assert one.log_prob == pytest.approx(log_prob(model, source, one.ids), abs=1e-5)
            assert one.score == pytest.approx(one.log_prob / length_penalty(len(one.ids) + 1, penalty), abs=1e-6)
            assert one.token_scores == scores


@quickly(max_examples=25)
@given(tables, st.lists(st.tuples(sources, st.lists(st.integers(4, 6), max_size=3)), min_size=1, max_size=5))
def test_prefixes_of_differing_length_are_kept(model, pairs):
    options = Short(beam=ALL, n_best=3)
    batch, prefixes = [source for source, _ in pairs], [prefix for _, prefix in pairs]
    for (source, prefix), found in zip(pairs, search(model, batch, options, prefixes), strict=True):
        expected = [ids for _, ids in best_of_all(model, source, options, LIMIT) if ids[: len(prefix)] == tuple(prefix)]
        assert [tuple(one.ids) for one in found] == expected[: min(3, len(expected))]


def test_a_prefix_may_be_longer_than_the_limit():
    found = search(TableModel(VOCAB), [[4]], Short(beam=2), [[5, 6, 5, 6, 5, 6]])
    assert found[0][0].ids == [5, 6, 5, 6, 5, 6]


@quickly(max_examples=25)
@given(
    tables,
    sources,
    st.sets(st.sampled_from([1, 4, 5, 6]), max_size=2),
    st.sets(st.sampled_from([1, 4, 5, 6]), max_size=2),
)
def test_banned_and_required_tokens(model, source, banned, required):
    required -= banned
    options = Short(beam=ALL, n_best=3, banned=tuple(banned), required=tuple(required))
    (found,) = search(model, [source], options)
    expected = [
        ids for _, ids in best_of_all(model, source, options, LIMIT) if not banned & set(ids) and required <= set(ids)
    ]
    assert [tuple(one.ids) for one in found] == expected[:3]


@quickly(max_examples=25)
@given(tables, st.lists(sources, min_size=1, max_size=4), st.integers(1, 5), st.booleans())
def test_required_tokens_are_there_with_narrow_beams_too(model, batch, beam, repeat):
    options = Short(beam=beam, required=(4, 6), n_best=1, no_repeat_ngram=0 if repeat else 2)
    for hypotheses in search(model, batch, options):
        assert {4, 6} <= set(hypotheses[0].ids)


def test_required_tokens_find_their_place():
    """They are not only pressed in at the limit: the result is as good as the best of all with them, or near it."""
    better, total = 0, 40
    for seed in range(total):
        model = TableModel(VOCAB, seed)
        options = Short(beam=12, required=(5,))
        (found,) = search(model, [[4, 4]], options)
        best = next(ids for _, ids in best_of_all(model, [4, 4], options, LIMIT) if 5 in ids)
        better += tuple(found[0].ids) == best
    assert better >= 0.9 * total


def test_missing_tokens_are_pressed_in_where_the_room_ends():
    log_probs, ids = torch.zeros(4, VOCAB), torch.tensor([[4, 1], [4, 1], [4, 6], [1, 1]])
    forbid_omissions(
        log_probs, log_probs[:, [4, 6]].clone(), torch.tensor([4, 6]), ids, torch.tensor([2, 1, 1, 2]), EOS
    )
    allowed = [[token for token in range(VOCAB) if row[token] == 0] for row in log_probs]
    everything = list(range(VOCAB))
    assert allowed == [[0, 1, 2, 4, 5, 6], [6], everything, [4, 6]]


@pytest.mark.parametrize("n", [1, 2, 3])
@quickly(max_examples=15)
@given(tables, sources)
def test_no_ngram_is_said_twice(n, model, source):
    def repeats(ids: Sequence[int]) -> bool:
        grams = [tuple(ids[i : i + n]) for i in range(len(ids) - n + 1)]
        return len(set(grams)) < len(grams)

    options = Short(beam=ALL, n_best=4, no_repeat_ngram=n)
    (found,) = search(model, [source], options)
    expected = [ids for _, ids in best_of_all(model, source, options, LIMIT) if not repeats(ids)]
    assert [tuple(one.ids) for one in found] == expected[:4]


@quickly(max_examples=20)
@given(tables, st.lists(sources, min_size=1, max_size=3))
def test_groups_without_diversity_are_searches_of_their_own(model, batch):
    found = search(model, batch, Short(beam=6, n_best=3, diverse_groups=3, diversity=0.0))
    alone = search(model, batch, Short(beam=2, n_best=1))
    assert [hypotheses[0] for hypotheses in found] == [hypotheses[0] for hypotheses in alone]


def test_groups_that_find_the_same_give_as_many_as_are_wanted():
    model = TableModel(VOCAB, seed=3)
    (found,) = search(model, [[4, 5]], Short(beam=4, n_best=2, diverse_groups=2, diversity=0.0))
    assert len({tuple(one.ids) for one in found}) == 2


def test_diverse_groups_begin_differently():
    model = TableModel(VOCAB, seed=3, end_bias=-8.0)
    (plain,) = search(model, [[4, 5]], Short(beam=3, n_best=3))
    (diverse,) = search(model, [[4, 5]], Short(beam=3, n_best=3, diverse_groups=3, diversity=50.0))
    assert len({one.ids[0] for one in diverse}) == 3
    assert len({one.ids[0] for one in plain}) < 3
    assert plain[0].ids == diverse[0].ids


@quickly(max_examples=20)
@given(tables, sources, st.integers(1, 6))
def test_diverse_groups_give_the_best_of_all_first(model, source, n_best):
    (found,) = search(model, [source], Short(beam=6, n_best=n_best, diverse_groups=3, diversity=2.0))
    (everything,) = search(model, [source], Short(beam=6, n_best=6, diverse_groups=3, diversity=2.0))
    assert found[0] == everything[0]
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


@quickly(max_examples=25)
@given(tables, st.lists(st.tuples(sources, st.lists(st.integers(4, 6), max_size=3)), min_size=2, max_size=9), st.data())
def test_company_changes_nothing(model, pairs, data):
    options = SearchOptions(
        beam=4,
        n_best=4,
        max_length_ratio=1.0,
        diverse_groups=data.draw(st.sampled_from([1, 2])),
        no_repeat_ngram=data.draw(st.sampled_from([0, 3])),
        required=data.draw(st.sampled_from([(), (5,)])),
    )
    order = data.draw(st.permutations(range(len(pairs))))
    together = search(model, [pairs[i][0] for i in order], options, [pairs[i][1] for i in order])
    for place, i in enumerate(order):
        assert search(model, [pairs[i][0]], options, [pairs[i][1]])[0] == together[place]


def test_an_ensemble_is_the_mean_of_probabilities():
    first, second = TableModel(VOCAB, seed=1), TableModel(VOCAB, seed=2)
    engine = TorchEngine([first, second], threads=1)
    options = Short(beam=ALL, n_best=10)
    (scores,) = engine.score([[4, 5]], [[6, 4]])
    parts = [TorchEngine([model], threads=1).score([[4, 5]], [[6, 4]])[0] for model in (first, second)]
    assert scores == pytest.approx([math.log((math.exp(a) + math.exp(b)) / 2) for a, b in zip(*parts, strict=True)])
    targets = list(all_targets(VOCAB, LIMIT))
    totals = [sum(token_scores) for token_scores in engine.score([[4, 5]] * len(targets), targets)]
    ranked = sorted(zip(totals, targets, strict=True), key=lambda one: -one[0] / length_penalty(len(one[1]) + 1, 1.0))
    found = engine.translate([[4, 5]], options)[0][:10]
    assert [tuple(one.ids) for one in found] == [ids for _, ids in ranked[:10]]


def test_the_coverage_penalty_counts_what_the_source_received():
    # By hand: the first source token received 0.5 + 0.25, the second 0.5 + 0.75, which counts as 1.
    assert coverage_penalty([0.5 + 0.25, 0.5 + 0.75], 0.2) == pytest.approx(0.2 * math.log(0.75))
    # An empty translation gives nothing to any of three source tokens.
    assert coverage_penalty([0.0, 0.0, 0.0], 0.2) == pytest.approx(0.2 * 3 * math.log(1e-3))


def test_the_coverage_penalty_does_not_favour_the_empty_translation():
    model = TableModel(VOCAB, seed=5, end_bias=2.0)
    options = Short(beam=8, n_best=8, coverage_penalty=9.0)
    (found,) = search(model, [[4, 5, 6, 4]], options)
    assert not found[-1].ids
    assert found[0].ids


def test_the_coverage_penalty_ranks_the_beam_again():
    """The table model attends evenly, so that longer translations cover more; a heavy penalty prefers them."""
    model, plain, heavy = (
        TableModel(VOCAB, seed=5),
        Short(beam=8, n_best=8),
        Short(beam=8, n_best=8, coverage_penalty=9.0),
    )
    (without,), (covered,) = search(model, [[4, 5, 6, 4]], plain), search(model, [[4, 5, 6, 4]], heavy)
    assert sorted(one.ids for one in without) == sorted(one.ids for one in covered)
    assert [one.score for one in covered] == sorted((one.score for one in covered), reverse=True)
    assert len(covered[0].ids) == max(len(one.ids) for one in without)


@quickly(max_examples=20)
@given(tables, sources)
def test_the_coverage_penalty_ranks_all_groups_again(model, source):
    one, all_ = (Short(beam=6, n_best=n, diverse_groups=3, diversity=2.0, coverage_penalty=9.0) for n in (1, 6))
    assert search(model, [source], one)[0][0] == search(model, [source], all_)[0][0]


@quickly(max_examples=60)
@given(
    st.integers(1, 3),
    st.integers(1, 5),
    st.integers(1, 20),
    st.integers(0, 10**6),
    st.sampled_from([0, 3, 70]),
    st.booleans(),
)
@example(2, 3, 10, 0, 0, True)
def test_the_search_by_blocks_finds_the_best(n_sentences, n_beams, n, seed, rest, ties):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(n_sentences, n_beams, 5 * grid_width(1) + rest, generator=generator)
    totals = torch.randn(n_sentences, n_beams, generator=generator)
    if ties:
        scores, totals = scores.mul(2).round(), totals.round()
    found = best_continuations(totals, scores, n)
    everything = (totals[:, :, None] + scores).flatten(1)
    assert torch.equal(found.log_probs, everything.sort(dim=1, descending=True).values[:, :n])
    places = found.parents * scores.shape[2] + found.tokens
    assert torch.equal(everything.gather(1, places), found.log_probs)
    assert all(len(set(row)) == n for row in places.tolist())
    equal_or_ordered = (found.log_probs[:, 1:] < found.log_probs[:, :-1]) | (places[:, 1:] > places[:, :-1])
    assert equal_or_ordered.all()


def test_the_search_runs_on_the_meta_device():
    """No step needs a value from the device; only looks for what is done do, and the reading of results."""
    config = TransformerConfig(d_model=16, d_ff=32, n_heads=4, encoder_layers=1, decoder_layers=2)
    with torch.device("meta"):
        model = Transformer(config, vocabularies(200)).eval()
        options = SearchOptions(beam=4, n_best=2, no_repeat_ngram=3, banned=(7,), required=(9,), diverse_groups=2)
        constraints = Constraints(options, SPECIAL, [5, 9, 7], [[5], [], [6, 7]], torch.device("meta"))
        with torch.inference_mode():
            src = torch.ones(3, 16, dtype=torch.long)
            results = beam_search([model], src, constraints, options, OpenSentences(3, 4), look_every=1000)
    ((rows, finished),) = results
    assert rows == [0, 1, 2]
    assert (finished.ids.shape, finished.ids.device.type) == ((3, 2, 2, 10), "meta")


@pytest.mark.parametrize(
    ("options", "prefix", "message"),
    [
        ({"banned": (EOS,)}, [], "cannot be banned"),
        ({"banned": (5,), "required": (5,)}, [], "both banned and required"),
        ({"required": (PAD,)}, [], "cannot be required"),
        ({}, [BOS], "cannot be required or stand in a prefix"),
        ({"required": (VOCAB,)}, [], "not in the vocabulary of 7 tokens"),
        ({"banned": (-1,)}, [], "token ids begin with 0"),
        ({}, [400], "token 400 is not in the vocabulary"),
    ],
)
def test_impossible_wishes_are_named(options, prefix, message):
    with pytest.raises(SeqtoolError, match=message):
        search(TableModel(VOCAB), [[4]], Short(beam=2, **options), [prefix])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam": 2, "n_best": 3}, "give beam=3"),
        ({"beam": 5, "diverse_groups": 2}, "multiple of the groups"),
        ({"beam": 0}, "beam must be from 1 to 1000, not 0"),
        ({"temperature": 0.0}, "temperature must be"),
        ({"top_p": 1.5}, "top_p must be"),
        ({"max_length_ratio": 1e9}, "max_length_ratio must be from 0 to 1000"),
        ({"patience": 1e30}, "patience must be more than 0 and at most 1000, or inf"),
        ({"patience": math.nan}, "patience must"),
    ],
)
def test_impossible_options_are_named(options, message):
    with pytest.raises(SeqtoolError, match=message):
        SearchOptions(**options)


def test_a_model_whose_output_is_not_a_number_is_named():
    model = TableModel(VOCAB)
    model.table.fill_(float("nan"))
    with pytest.raises(SeqtoolError, match="not a number"):
        search(model, [[4]], Short(beam=2))
