"""Attention against numbers worked out by hand and against torch.nn.MultiheadAttention."""

import math

import pytest
import torch
from torch import Tensor, nn

from seqtool.model.attention import MultiHeadAttention, attend_explicitly, with_causal

B, H, Q, K, D = 3, 4, 5, 7, 16
E = D // H

# The worked example: three inputs of width 4, one head of width 3.
#
#   queries  = inputs @ query weights        keys = inputs @ key weights     values = inputs @ value weights
#     [1,0,1,0] -> [1,0,1]+[0,0,1] = [1,0,2]   [0,0,1]+[0,1,0] = [0,1,1]       [0,2,0]+[1,0,3] = [1,2,3]
#     [0,2,0,2] -> 2[1,0,0]+2[0,1,1] = [2,2,2] 2[1,1,0]+2[1,1,0] = [4,4,0]     2[0,3,0]+2[1,1,0] = [2,8,0]
#     [1,1,1,1] -> column sums = [2,1,3]       [2,3,1]                         [2,6,3]
#
#   scores = queries @ keys^T: [1,0,2]: 0+0+2 = 2,  4+0+0 = 4,  2+0+2 = 4
#                              [2,2,2]: 0+2+2 = 4,  8+8+0 = 16, 4+6+2 = 12
#                              [2,1,3]: 0+1+3 = 4,  8+4+0 = 12, 4+3+3 = 10
#
#   Row 1 unscaled: softmax(2, 4, 4) = (1, e^2, e^2) / (1 + 2 e^2) = (1, 7.38906, 7.38906) / 15.77811
#     = (0.063379, 0.468311, 0.468311); the values combine to
#     0.063379 [1,2,3] + 0.468311 ([2,8,0] + [2,6,3]) = [1.9366, 6.6831, 1.5951].
#   Row 1 scaled: softmax((2, 4, 4) / 1.732051) = (1, e^1.154701, e^1.154701) / (1 + 2 * 3.173071)
#     = (0.136126, 0.431937, 0.431937), which gives 0.136126 [1,2,3] + 0.431937 [4,14,3] = [1.8639, 6.3194, 1.7042].
#   Row 2 unscaled: softmax(4, 16, 12) = (e^-12, 1, e^-4) / 1.018322 = (0.000006, 0.982008, 0.017986), which gives
#     [2.0000, 7.9640, 0.0540]. The remaining rows go the same way.
INPUTS = torch.tensor([[1.0, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]])
KEY_WEIGHTS = torch.tensor([[0.0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]])
QUERY_WEIGHTS = torch.tensor([[1.0, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]])
VALUE_WEIGHTS = torch.tensor([[0.0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]])
UNSCALED = torch.tensor([[1.9366, 6.6831, 1.5951], [2.0000, 7.9640, 0.0540], [1.9997, 7.7599, 0.3584]])
SCALED = torch.tensor([[1.8639, 6.3194, 1.7042], [1.9991, 7.8141, 0.2735], [1.9926, 7.4796, 0.7359]])


def as_heads(x: Tensor) -> Tensor:
    """(T, E) -> (1, 1, T, E)."""
    return x[None, None]


def worked_example() -> tuple[Tensor, Tensor, Tensor]:
    return as_heads(INPUTS @ QUERY_WEIGHTS), as_heads(INPUTS @ KEY_WEIGHTS), as_heads(INPUTS @ VALUE_WEIGHTS)


def matching_pair() -> tuple[MultiHeadAttention, nn.MultiheadAttention]:
    """Return our attention and torch's with the same weights."""
    torch.manual_seed(2)
    ours, theirs = MultiHeadAttention(D, H), nn.MultiheadAttention(D, H, batch_first=True)
    with torch.no_grad():
        theirs.in_proj_bias.normal_()
        theirs.out_proj.bias.normal_()
        ours.qkv.weight.copy_(theirs.in_proj_weight)
        ours.qkv.bias.copy_(theirs.in_proj_bias)
        ours.out.load_state_dict(theirs.out_proj.state_dict())
    return ours, theirs


def some_mask() -> Tensor:
    """Return (B, K), True for the first 7, 4 and 1 keys."""
    return torch.arange(K) < torch.tensor([7, 4, 1])[:, None]


def test_the_worked_example_scaled():
    y, _ = attend_explicitly(*worked_example(), None, 0.0, None)
    torch.testing.assert_close(y[0, 0], SCALED, atol=5e-5, rtol=0)


def test_the_worked_example_unscaled():
    q, k, v = worked_example()
    y, _ = attend_explicitly(q * math.sqrt(3), k, v, None, 0.0, None)  # takes the division by sqrt(3) back
    torch.testing.assert_close(y[0, 0], UNSCALED, atol=5e-5, rtol=0)


def test_the_module_gives_the_worked_example():
    """Three of the module's four places are the example's head, the fourth is zero in keys, queries and values."""
    module = MultiHeadAttention(4, 1)
    with torch.no_grad():
        module.qkv.weight.zero_()
        module.qkv.bias.zero_()
        # The module divides by sqrt(4) where the example divides by sqrt(3).
        module.qkv.weight[0:3] = QUERY_WEIGHTS.T * math.sqrt(4 / 3)
        module.qkv.weight[4:7] = KEY_WEIGHTS.T
        module.qkv.weight[8:11] = VALUE_WEIGHTS.T
        module.out.weight.copy_(torch.eye(4))
        module.out.bias.zero_()
        y = module.attend(*module.project_self(INPUTS[None]), None, causal=False)
    torch.testing.assert_close(y[0, :, :3], SCALED, atol=5e-5, rtol=0)


def test_the_look_ahead_mask_gives_the_worked_rows():
    # Row 1 sees one score: 1. Row 2: softmax(.1, .6) = 1 / (1 + e^.5) = 1 / 2.64872 = .3775 and .6225.
    # Row 3: (e^.1, e^.3, e^.6) = (1.10517, 1.34986, 1.82212), sum 4.27715, gives .2584, .3156, .4260.
    # Row 4: (1.10517, 1.34986, 1.34986, 1.34986), sum 5.15475, gives .2144, .2619, .2619, .2619.
    scores = torch.tensor([[0.7, 0.1, 0.1, 0.1], [0.1, 0.6, 0.2, 0.1], [0.1, 0.3, 0.6, 0.1], [0.1, 0.3, 0.3, 0.3]])
    expected = torch.tensor(
        [[1, 0, 0, 0], [0.3775, 0.6225, 0, 0], [0.2584, 0.3156, 0.4260, 0], [0.2144, 0.2619, 0.2619, 0.2619]]
    )
    q, k = as_heads(scores * math.sqrt(4)), as_heads(torch.eye(4))  # then q @ k^T / sqrt(4) are the scores
    _, weights = attend_explicitly(q, k, k, with_causal(None, True, q, k), 0.0, None)
    torch.testing.assert_close(weights[0, 0], expected, atol=5e-5, rtol=0)


def test_self_attention_matches_torch():
    ours, theirs = matching_pair()
    x, may_attend = torch.randn(B, K, D), some_mask()
    expected, _ = theirs(x, x, x, key_padding_mask=~may_attend)
    y = ours.attend(*ours.project_self(x), may_attend[:, None, None, :], causal=False)
    torch.testing.assert_close(y, expected)


def test_causal_self_attention_matches_torch():
    ours, theirs = matching_pair()
    x = torch.randn(B, K, D)
    expected, _ = theirs(x, x, x, attn_mask=nn.Transformer.generate_square_subsequent_mask(K))
    torch.testing.assert_close(ours.attend(*ours.project_self(x), None, causal=True), expected)


def test_a_mask_and_causality_go_together():
    ours, theirs = matching_pair()
    x, may_attend = torch.randn(B, K, D), some_mask()
    look_ahead = ~torch.ones(K, K, dtype=torch.bool).tril()
    expected, _ = theirs(x, x, x, key_padding_mask=~may_attend, attn_mask=look_ahead)
    y = ours.attend(*ours.project_self(x), may_attend[:, None, None, :], causal=True)
    torch.testing.assert_close(y, expected)


def test_cross_attention_matches_torch():
    ours, theirs = matching_pair()
    x, context, may_attend = torch.randn(B, Q, D), torch.randn(B, K, D), some_mask()
    expected, _ = theirs(x, context, context, key_padding_mask=~may_attend)
    y = ours.attend(ours.project_query(x), *ours.project_context(context), may_attend[:, None, None, :], causal=False)
    torch.testing.assert_close(y, expected)


def test_gradients_match_torch():
    ours, theirs = matching_pair()
    x, context, may_attend = torch.randn(B, Q, D), torch.randn(B, K, D), some_mask()
    direction = torch.randn(B, Q, D)
    expected, _ = theirs(x, context, context, key_padding_mask=~may_attend)
    (expected * direction).sum().backward()
    y = ours.attend(ours.project_query(x), *ours.project_context(context), may_attend[:, None, None, :], causal=False)
    (y * direction).sum().backward()
    torch.testing.assert_close(ours.qkv.weight.grad, theirs.in_proj_weight.grad, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(ours.qkv.bias.grad, theirs.in_proj_bias.grad, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(ours.out.weight.grad, theirs.out_proj.weight.grad, atol=1e-5, rtol=1e-5)


def test_the_weights_that_are_read_out_match_torch():
    ours, theirs = matching_pair()
    x, context, may_attend = torch.randn(B, Q, D), torch.randn(B, K, D), some_mask()
    _, expected = theirs(x, context, context, key_padding_mask=~may_attend, average_attn_weights=False)
    weights: list[Tensor] = []
    ours.attend(ours.project_query(x), *ours.project_context(context), may_attend[:, None, None, :], False, weights)
    torch.testing.assert_close(weights[0], expected)


@pytest.mark.parametrize("causal", [False, True])
def test_reading_out_the_weights_changes_no_output(causal):
    ours, _ = matching_pair()
    q, k, v = ours.project_self(torch.randn(B, K, D))
    plain = ours.attend(q, k, v, None, causal)
    torch.testing.assert_close(ours.attend(q, k, v, None, causal, weights=[]), plain)


@pytest.mark.parametrize("n_new", [1, 2, K])
def test_causal_queries_are_counted_from_the_end(n_new):
    """The last queries alone get what they get together with the earlier ones."""
    ours, _ = matching_pair()
    q, k, v = ours.project_self(torch.randn(B, K, D))
    full = ours.attend(q, k, v, None, causal=True)
    torch.testing.assert_close(ours.attend(q[:, :, -n_new:], k, v, None, causal=True), full[:, -n_new:])


def test_attention_dropout_acts_in_training_only():
    torch.manual_seed(3)
    attention = MultiHeadAttention(D, H, dropout=0.5)
    q, k, v = attention.project_self(torch.randn(B, K, D))
    one, two = (attention.attend(q, k, v, None, causal=False) for _ in range(2))
    assert not torch.equal(one, two)
    attention.eval()
    one, two = (attention.attend(q, k, v, None, causal=False) for _ in range(2))
    assert torch.equal(one, two)
