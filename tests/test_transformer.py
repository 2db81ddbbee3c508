"""The whole model against torch.nn.Transformer with the same weights: outputs and every gradient."""

import math
from collections.abc import Iterator

import pytest
import torch
import torch.nn.functional as F
from special_ids import BOS, EOS, PAD, vocabularies
from tiny_models import NORMS, VOCAB, make_sentences, pad, shift, tiny_config, tiny_model
from torch import Tensor, nn

from seqtool.errors import SeqtoolError
from seqtool.model.transformer import Transformer

SRC, TGT = make_sentences([7, 3, 5]), make_sentences([4, 6, 2], seed=1)


class Reference(nn.Module):
    """Embeddings and positions by the paper's formulas around torch.nn.Transformer."""

    def __init__(self, norm: str, activation: str, n_embeddings: int) -> None:
        super().__init__()
        activation = F.silu if activation == "swish" else activation
        first, pre_norm, d = True, norm == "pre", 16
        shape = {"dim_feedforward": 24, "dropout": 0.0, "activation": activation, "batch_first": first}
        encoder_layer = nn.TransformerEncoderLayer(d, 4, norm_first=pre_norm, **shape)
        decoder_layer = nn.TransformerDecoderLayer(d, 4, norm_first=pre_norm, **shape)
        # nn.Transformer by itself ends every stack with a norm; the paper's post-norm model has none there.
        ends = [nn.LayerNorm(d) if pre_norm else None for _ in range(2)]
        self.core = nn.Transformer(
            d,
            4,
            batch_first=first,
            custom_encoder=nn.TransformerEncoder(encoder_layer, 2, ends[0], enable_nested_tensor=False),
            custom_decoder=nn.TransformerDecoder(decoder_layer, 2, ends[1]),
        )
        self.embeddings = nn.ModuleList(nn.Embedding(VOCAB, d) for _ in range(n_embeddings))

    def embed(self, ids: Tensor, table: nn.Embedding) -> Tensor:
        d = table.embedding_dim
        positions = [
            [(math.cos if i % 2 else math.sin)(p / 10000 ** (i // 2 * 2 / d)) for i in range(d)]
            for p in range(ids.shape[1])
        ]
        return table(ids) * math.sqrt(d) + torch.tensor(positions)

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        length = tgt_in.shape[1]
        states = self.core(
            self.embed(src, self.embeddings[0]),
            self.embed(tgt_in, self.embeddings[-1]),
            tgt_mask=torch.ones(length, length, dtype=torch.bool).triu(1),
            src_key_padding_mask=src == PAD,
            tgt_key_padding_mask=tgt_in == PAD,
            memory_key_padding_mask=src == PAD,
        )
        return F.linear(states, self.embeddings[-1].weight)


def twin_modules(ours: Transformer, theirs: Reference) -> Iterator[tuple[nn.Module, nn.Module]]:
    """Yield the pairs of modules that hold the same weights."""
    yield ours.src_embedding.tokens, theirs.embeddings[0]
    if len(theirs.embeddings) == 2:
        yield ours.tgt_embedding.tokens, theirs.embeddings[1]
    stacks = ((ours.encoder, theirs.core.encoder), (ours.decoder, theirs.core.decoder))
    for our_stack, their_stack in stacks:
        for our, their in zip(our_stack, their_stack.layers, strict=True):
            yield our.self_attention, their.self_attn
            yield our.self_norm, their.norm1
            if hasattr(our, "cross_attention"):
                yield our.cross_attention, their.multihead_attn
                yield our.cross_norm, their.norm2
            yield our.ff_norm, their.norm3 if hasattr(their, "norm3") else their.norm2
            yield our.feed_forward.inner, their.linear1
            yield our.feed_forward.outer, their.linear2
    if theirs.core.encoder.norm is not None:
        yield ours.encoder_norm, theirs.core.encoder.norm
        yield ours.decoder_norm, theirs.core.decoder.norm


def twin_weights(ours: Transformer, theirs: Reference) -> Iterator[tuple[nn.Parameter, nn.Parameter]]:
    """Yield the pairs of weights; torch's attention has the same matrices in the same order under other names."""
    for our, their in twin_modules(ours, theirs):
        if isinstance(their, nn.MultiheadAttention):
            yield our.qkv.weight, their.in_proj_weight
            yield our.qkv.bias, their.in_proj_bias
            yield our.out.weight, their.out_proj.weight
            yield our.out.bias, their.out_proj.bias
        else:
            yield from zip(our.parameters(), their.parameters(), strict=True)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu", "swish"])
@pytest.mark.parametrize("norm", NORMS)
def test_outputs_and_gradients_equal_those_of_torch(norm, activation, shared):
    ours = tiny_model(norm=norm, activation=activation, share_embeddings=shared)
    theirs = Reference(norm, activation, n_embeddings=1 if shared else 2)
    pairs = list(twin_weights(ours, theirs))
    assert len({our for our, _ in pairs}) == len(list(ours.parameters())) == len(list(theirs.parameters()))
    with torch.no_grad():
        for our, their in pairs:
            their.copy_(our)
    src, tgt_in = pad(SRC), pad(shift(TGT))
    real = tgt_in != PAD

    expected = theirs(src, tgt_in)[real]
    logits = ours.decode(tgt_in, ours.encode(src))[real]
    torch.testing.assert_close(logits, expected)

    direction = torch.randn(expected.shape, generator=torch.Generator().manual_seed(5)) / 10
    (logits * direction).sum().backward()
    (expected * direction).sum().backward()
    for our, their in pairs:
        torch.testing.assert_close(our.grad, their.grad, atol=1e-5, rtol=1e-5)


def test_forward_gives_the_states_whose_projection_are_the_logits():
    model = tiny_model()
    src, tgt_in = pad(SRC), pad(shift(TGT))
    states = model(src, tgt_in)
    torch.testing.assert_close(model.project(states), model.decode(tgt_in, model.encode(src)))
    torch.testing.assert_close(model.project(states), states @ model.output_weight.T)


def test_an_output_bias_is_added_to_the_logits_and_trained():
    model = tiny_model(output_bias=True)
    assert model.output_bias is not None
    assert model.output_bias.detach().abs().min() > 0
    plain = tiny_model()
    plain.load_state_dict({name: weight for name, weight in model.state_dict().items() if name != "bias"})
    src, tgt_in = pad(SRC), pad(shift(TGT))
    logits = model.decode(tgt_in, model.encode(src))
    torch.testing.assert_close(logits, plain.decode(tgt_in, plain.encode(src)) + model.output_bias)
    logits.sum().backward()
    torch.testing.assert_close(model.output_bias.grad, torch.full((VOCAB,), float(tgt_in.numel())))


def test_embeddings_that_are_not_scaled_enter_as_they_are():
    scaled, plain = tiny_model(share_embeddings=False), tiny_model(share_embeddings=False, scale_embeddings=False)
    with torch.no_grad():
        for table in (plain.src_embedding.tokens, plain.tgt_embedding.tokens):
            table.weight.mul_(4)  # the root of d_model
    src, tgt_in = pad(SRC), pad(shift(TGT))
    expected = scaled.decode_states(tgt_in, scaled.encode(src))
    torch.testing.assert_close(plain.decode_states(tgt_in, plain.encode(src)), expected)


def test_a_zero_start_equals_a_start_symbol_whose_vector_is_zero():
    model, twin = tiny_model(zero_start=True, share_embeddings=False), tiny_model(share_embeddings=False)
    assert model.state_dict().keys() == twin.state_dict().keys()
    with torch.no_grad():
        twin.tgt_embedding.tokens.weight[BOS] = 0
    src, tgt_in = pad(SRC), pad(shift(TGT))
    states = model.decode_states(tgt_in, model.encode(src))
    torch.testing.assert_close(states, twin.decode_states(tgt_in, twin.encode(src)))
    cache = model.start_cache(model.encode(src))
    steps = [model.decode_states(tgt_in[:, i : i + 1], model.encode(src), cache) for i in range(tgt_in.shape[1])]
    torch.testing.assert_close(torch.cat(steps, dim=1), states)
    model.decode(tgt_in, model.encode(src))[..., EOS].sum().backward()
    assert model.tgt_embedding.tokens.weight.grad[BOS].count_nonzero() == 0


def test_embeddings_are_shared_by_default_and_separate_on_request():
    model = Transformer(tiny_config(), vocabularies(VOCAB))
    assert model.src_embedding.tokens.weight is model.tgt_embedding.tokens.weight is model.output_weight
    model = Transformer(tiny_config(share_embeddings=False), vocabularies(VOCAB, VOCAB + 4))
    assert model.src_embedding.tokens.weight.shape == (VOCAB, 16)
    assert model.output_weight.shape == (VOCAB + 4, 16)
    assert model.decode(pad(shift(TGT)), model.encode(pad(SRC))).shape == (3, 6, VOCAB + 4)


def test_vocabularies_of_different_sizes_cannot_share_embeddings():
    with pytest.raises(SeqtoolError, match="share_embeddings"):
        Transformer(tiny_config(), vocabularies(VOCAB, VOCAB + 1))


def test_encoder_and_decoder_may_have_different_depths():
    model = tiny_model(encoder_layers=3, decoder_layers=1)
    assert (len(model.encoder), len(model.decoder)) == (3, 1)
    assert model(pad(SRC), pad(shift(TGT))).isfinite().all()


@pytest.mark.parametrize("positions", ["sinusoidal", "relative"])
def test_cross_attention_can_be_read_out(positions):
    """Every layer's weights, which sum to one over the real source tokens; reading changes no logits."""
    model = tiny_model(positions=positions)
    src, tgt_in = pad(SRC), pad(shift(TGT))
    weights = torch.stack(model.attention_weights(src, tgt_in))
    assert weights.shape == (2, 3, 4, 6, 7)  # (L, B, H, T, S)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 4, 6))
    assert (weights * (src == PAD)[None, :, None, None, :]).count_nonzero() == 0
    read: list[Tensor] = []
    logits = model.project(model.decode_states(tgt_in, model.encode(src), attention=read))
    torch.testing.assert_close(torch.stack(read), weights)
    torch.testing.assert_close(logits, model.decode(tgt_in, model.encode(src)))


def test_cross_attention_of_beams_equals_that_of_each_row():
    model = tiny_model()
    memory = model.encode(pad(SRC[:2]))
    rows = pad(shift(make_sentences([5, 5, 5, 5, 5, 5], seed=3)))  # three rows a sentence
    read: list[Tensor] = []
    model.decode_states(rows, memory, attention=read)
    for row in range(6):
        alone: list[Tensor] = []
        model.decode_states(rows[row : row + 1], memory.select(torch.tensor([row // 3])), attention=alone)
        torch.testing.assert_close(read[0][row : row + 1], alone[0])
