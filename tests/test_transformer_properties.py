"""What must hold of every variant of the model: padding, the future and the company of a sentence change nothing."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_models import (
    ACTIVATIONS,
    NORM_KINDS,
    NORMS,
    POSITIONS,
    VOCAB,
    exact_model,
    make_sentences,
    pad,
    shift,
)
from torch import Tensor

from seqtool.model.transformer import Transformer

SRC, TGT = make_sentences([7, 3, 5]), make_sentences([4, 6, 2], seed=1)
SHORT = settings(max_examples=10, deadline=None, derandomize=True, database=None)


@pytest.fixture(params=[(p, n, k) for p in POSITIONS for n in NORMS for k in NORM_KINDS], ids="-".join, scope="module")
def model(request: pytest.FixtureRequest) -> Transformer:
    positions, norm, norm_kind = request.param
    activation = ACTIVATIONS[POSITIONS.index(positions) % len(ACTIVATIONS)]
    return exact_model(positions=positions, norm=norm, norm_kind=norm_kind, activation=activation)


def compute_logits(model: Transformer, src: Tensor, tgt_in: Tensor) -> Tensor:
    with torch.inference_mode():
        return model.decode(tgt_in, model.encode(src))


def test_padding_changes_nothing(model):
    """Each sentence alone and unpadded gives what it gives in a batch with far more padding than it needs."""
    together = compute_logits(model, pad(SRC, width=11), pad(shift(TGT), width=9))
    for row, (src, tgt_in) in enumerate(zip(SRC, shift(TGT), strict=True)):
        alone = compute_logits(model, pad([src]), pad([tgt_in]))
        torch.testing.assert_close(together[row, : len(tgt_in)], alone[0])


def test_a_future_token_changes_no_earlier_output(model):
    tgt_in = pad(shift(make_sentences([8], seed=4)))
    expected = compute_logits(model, pad(SRC[:1]), tgt_in)
    for changed in range(1, 8):
        other = tgt_in.clone()
        other[0, changed] = 4 if other[0, changed] != 4 else 5
        logits = compute_logits(model, pad(SRC[:1]), other)
        torch.testing.assert_close(logits[:, :changed], expected[:, :changed])
        assert not torch.allclose(logits[:, changed], expected[:, changed], atol=1e-4)


def test_every_source_token_reaches_every_target_position(model):
    src, tgt_in = pad(SRC[:1]), pad(shift(TGT[:1]))
    expected = compute_logits(model, src, tgt_in)
    for changed in range(src.shape[1]):
        other = src.clone()
        other[0, changed] = 4 if other[0, changed] != 4 else 5
        differs = (compute_logits(model, other, tgt_in) - expected).abs().amax(-1) > 1e-6
        assert differs.all()


def test_permuting_the_batch_permutes_the_output(model):
    src, tgt_in = pad(SRC), pad(shift(TGT))
    expected = compute_logits(model, src, tgt_in)
    order = torch.tensor([2, 0, 1])
    torch.testing.assert_close(compute_logits(model, src[order], tgt_in[order]), expected[order])


def test_beams_share_their_sentence_s_memory(model):
    """Rows stand next to each other by sentence; each gives what it gives with a memory of its own."""
    rows = torch.randint(1, VOCAB, (6, 5), generator=torch.Generator().manual_seed(6))
    with torch.inference_mode():
        memory = model.encode(pad(SRC))
        shared = model.decode(rows, memory)
        own = model.decode(rows, memory.select(torch.tensor([0, 0, 1, 1, 2, 2])))
    torch.testing.assert_close(shared, own)


def test_padding_gets_no_gradient(model):
    """No loss on padding means that the embedding of PAD never learns from it."""
    model.zero_grad()
    states = model(pad(SRC, width=9), pad(shift(TGT)))
    real = pad(shift(TGT)) != 0
    states[real].square().sum().backward()
    assert model.src_embedding.tokens.weight.grad[0].count_nonzero() == 0


@SHORT
@given(lengths=st.lists(st.integers(1, 12), min_size=1, max_size=5), extra=st.integers(0, 9), seed=st.integers(0, 999))
def test_batching_changes_no_sentence(lengths, extra, seed):
    model = exact_model()
    src = make_sentences(lengths, seed)
    tgt_in = shift(make_sentences(lengths[::-1], seed + 1))
    together = compute_logits(model, pad(src, max(lengths) + extra), pad(tgt_in, max(lengths) + extra))
    for row in range(len(src)):
        alone = compute_logits(model, pad([src[row]]), pad([tgt_in[row]]))
        torch.testing.assert_close(together[row, : len(tgt_in[row])], alone[0])
