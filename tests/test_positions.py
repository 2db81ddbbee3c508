"""Positions against hand-worked values, loops over the papers' formulas, and lengths beyond every table."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_models import exact_model, make_sentences, pad, shift, tiny_model
from torch import Tensor

from seqtool.config import TransformerConfig
from seqtool.errors import SeqtoolError
from seqtool.model.attention import attend_explicitly, with_causal
from seqtool.model.positions import LearnedPositions, RelativePositions, RotaryPositions, SinusoidalPositions
from seqtool.model.sinusoids import sinusoids

UNBOUNDED = ("sinusoidal", "rotary", "relative")
FAR = 1100  # tokens; more than any table holds at first


def test_sinusoids_have_the_values_of_the_paper():
    # PE(p, 2i) = sin(p / 10000^(2i/4)), PE(p, 2i+1) = cos of the same: for width 4 the angles are p and p / 100.
    #   p = 0: sin 0, cos 0, sin 0, cos 0 = 0, 1, 0, 1
    #   p = 1: sin 1 = .841471, cos 1 = .540302, sin .01 = .010000, cos .01 = .999950
    #   p = 2: sin 2 = .909297, cos 2 = -.416147, sin .02 = .019999, cos .02 = .999800
    #   p = 100: sin 100 = -.506366, cos 100 = .862319, sin 1 = .841471, cos 1 = .540302
    expected = torch.tensor(
        [
            [0.0, 1.0, 0.0, 1.0],
            [0.841471, 0.540302, 0.010000, 0.999950],
            [0.909297, -0.416147, 0.019999, 0.999800],
            [-0.506366, 0.862319, 0.841471, 0.540302],
        ]
    )
    found = torch.from_numpy(sinusoids(101, 4))[[0, 1, 2, 100]]
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize(("start", "length"), [(0, 5), (3, 4), (510, 6), (0, FAR), (5000, 2)])
def test_sinusoidal_positions_add_the_formula_at_any_place(start, length):
    width = 6
    angles = [[p / 10000 ** (2 * i / width) for i in range(width // 2)] for p in range(start, start + length)]
    expected = torch.tensor([[f(a) for a in row for f in (math.sin, math.cos)] for row in angles])
    x = torch.zeros(2, length, width)
    torch.testing.assert_close(SinusoidalPositions(width)(x, start), expected.expand(2, -1, -1), atol=1e-7, rtol=0)


def test_learned_positions_add_their_rows():
    learned = LearnedPositions(4, 10)
    torch.testing.assert_close(learned(torch.zeros(1, 3, 4), 2)[0], learned.table[2:5])


def test_learned_positions_refuse_a_longer_sequence_by_name():
    learned = LearnedPositions(4, 10)
    assert learned(torch.zeros(1, 10, 4), 0).shape == (1, 10, 4)
    with pytest.raises(SeqtoolError, match=r"11 .*10 .*max_positions"):
        learned(torch.zeros(1, 1, 4), 10)


def test_rotary_positions_turn_by_the_position():
    # Width 4 has the pairs (first, third) and (second, fourth), which turn by p and by p / 100 radians.
    #   p = 1: (1, 0) -> (cos 1, sin 1) = (.540302, .841471); (0, 1) -> (-sin .01, cos .01) = (-.010000, .999950)
    #   p = 2: (1, 0) -> (-.416147, .909297); (0, 1) -> (-.019999, .999800)
    x = torch.tensor([1.0, 0.0, 0.0, 1.0]).expand(1, 1, 2, 4)
    expected = torch.tensor([[0.540302, -0.010000, 0.841471, 0.999950], [-0.416147, -0.019999, 0.909297, 0.999800]])
    torch.testing.assert_close(RotaryPositions(4)(x, 1)[0, 0], expected, atol=1e-6, rtol=0)


@settings(max_examples=25, deadline=None)
@given(query=st.integers(0, 400), key=st.integers(0, 400), moved=st.integers(0, 800), seed=st.integers(0, 2**31))
def test_rotary_scores_depend_on_the_distance_alone(query, key, moved, seed):
    torch.manual_seed(seed)
    rotary, q, k = RotaryPositions(8), torch.randn(1, 1, 1, 8), torch.randn(1, 1, 1, 8)
    here = (rotary(q, query) * rotary(k, key)).sum()
    there = (rotary(q, query + moved) * rotary(k, key + moved)).sum()
    torch.testing.assert_close(there, here, atol=2e-3, rtol=0)


def relative_by_loops(
    q: Tensor, k: Tensor, v: Tensor, key_table: Tensor, value_table: Tensor, window: int, causal: bool
) -> Tensor:
    """Equations 3 and 4 of Shaw et al. for one head: q (Q, E) are the last of the K positions of k and v."""
    Q, K = len(q), len(k)
    rows = []
    for i in range(K - Q, K):
        seen = range(i + 1) if causal else range(K)
        far = {j: max(-window, min(window, j - i)) + window for j in seen}
        scores = torch.stack([q[i - (K - Q)] @ (k[j] + key_table[far[j]]) for j in seen]) / math.sqrt(q.shape[1])
        weights = scores.exp() / scores.exp().sum()
        rows.append(sum(w * (v[j] + value_table[far[j]]) for w, j in zip(weights, seen, strict=True)))
    return torch.stack(rows)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("n_queries", "n_keys"), [(6, 6), (1, 6), (2, 6), (9, 9)])
def test_relative_positions_follow_the_formula(n_queries, n_keys, causal):
    torch.manual_seed(4)
    relative = RelativePositions(2, 4).double()
    q, k, v = (torch.randn(2, 3, n, 4, dtype=torch.float64) for n in (n_queries, n_keys, n_keys))
    y, _ = attend_explicitly(q, k, v, with_causal(None, causal, q, k), 0.0, relative)
    tables = relative.keys.detach(), relative.values.detach()
    for b in range(2):
        for h in range(3):
            expected = relative_by_loops(q[b, h], k[b, h], v[b, h], *tables, 2, causal)
            torch.testing.assert_close(y[b, h], expected)


@pytest.mark.parametrize("positions", UNBOUNDED)
def test_a_sequence_may_be_longer_than_any_table(positions):
    """Decoded in pieces across the end of the tables, as in one piece; short sentences come out as before."""
    model = exact_model(positions=positions, encoder_layers=1, decoder_layers=1)
    short_src, src = pad(make_sentences([5])), pad(make_sentences([FAR]))
    tgt = pad(shift(make_sentences([FAR], seed=1)))
    with torch.inference_mode():
        before = model.encode(short_src).states
        memory = model.encode(src)
        cache = model.start_cache(memory)
        pieces = [model.decode_states(piece, memory, cache) for piece in tgt.split([400, 1, 200, 499], dim=1)]
        full = model.decode_states(tgt, memory)
        after = model.encode(short_src).states
    assert full.isfinite().all()
    torch.testing.assert_close(torch.cat(pieces, dim=1), full)
    torch.testing.assert_close(after, before)


@pytest.mark.parametrize("positions", UNBOUNDED)
def test_training_goes_on_after_a_long_sentence_was_translated(positions):
    """Tables that grew while no gradients were recorded serve training too."""
    model = tiny_model(positions=positions, encoder_layers=1, decoder_layers=1)
    with torch.inference_mode():
        model.encode(pad(make_sentences([600])))
        model.decode(pad(shift(make_sentences([600]))), model.encode(pad(make_sentences([3]))))
    model(pad(make_sentences([4])), pad(shift(make_sentences([4])))).sum().backward()


def test_a_model_with_learned_positions_refuses_a_longer_sentence():
    model = tiny_model(positions="learned", max_positions=8)
    model.encode(pad(make_sentences([8])))
    with pytest.raises(SeqtoolError, match="max_positions"):
        model.encode(pad(make_sentences([9])))


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "relative"])
def test_the_order_of_the_tokens_matters(positions):
    model = exact_model(positions=positions)
    states = model.encode(pad([[10, 11, 12, 3]])).states[0]
    swapped = model.encode(pad([[11, 10, 12, 3]])).states[0]
    assert not torch.allclose(states[2], swapped[2], atol=1e-4)


@pytest.mark.parametrize(
    "odd",
    [{"positions": "rotary", "d_model": 12, "n_heads": 4}, {"positions": "sinusoidal", "d_model": 9, "n_heads": 3}],
)
def test_widths_that_cannot_be_paired_are_refused(odd):
    with pytest.raises(SeqtoolError, match="even"):
        TransformerConfig(**odd)
