"""The decoder-only model against torch.nn.TransformerEncoder with the corresponding mask."""

from typing import Any

import pytest
import torch
from special_ids import BOS, EOS, PAD, vocabularies
from torch import nn

from seqtool.config import DecoderConfig
from seqtool.errors import SeqtoolError
from seqtool.model.decoder import Block, Decoder

VOCAB = 37


def make(**changes: Any) -> Decoder:
    torch.manual_seed(1)
    sizes: dict[str, Any] = {"d_model": 16, "d_ff": 24, "n_heads": 4, "decoder_layers": 3, "dropout": 0.0}
    config = DecoderConfig(kind="decoder", **(sizes | {"positions": "sinusoidal"} | changes))
    model = Decoder(config, vocabularies(VOCAB)).double().eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.1)
    return model


def in_torch(model: Decoder) -> nn.TransformerEncoder:
    """Return torch's own stack with the same weights."""
    config = model.config
    layer = nn.TransformerEncoderLayer(
        config.d_model,
        config.n_heads,
        config.d_ff,
        0.0,
        config.activation,
        batch_first=True,
        norm_first=config.norm == "pre",
    )
    norm = nn.LayerNorm(config.d_model) if config.norm == "pre" else None
    stack = nn.TransformerEncoder(layer, config.decoder_layers, norm, enable_nested_tensor=False).double().eval()
    with torch.no_grad():
        for block, theirs in zip(model.blocks, stack.layers, strict=True):
            assert isinstance(block, Block)
            pairs = [
                (theirs.self_attn.in_proj_weight, block.attention.qkv.weight),
                (theirs.self_attn.in_proj_bias, block.attention.qkv.bias),
                (theirs.self_attn.out_proj.weight, block.attention.out.weight),
                (theirs.self_attn.out_proj.bias, block.attention.out.bias),
                (theirs.linear1.weight, block.feed_forward.inner.weight),
                (theirs.linear1.bias, block.feed_forward.inner.bias),
                (theirs.linear2.weight, block.feed_forward.outer.weight),
                (theirs.linear2.bias, block.feed_forward.outer.bias),
                (theirs.norm1.weight, block.self_norm.weight),
                (theirs.norm1.bias, block.self_norm.bias),
                (theirs.norm2.weight, block.ff_norm.weight),
                (theirs.norm2.bias, block.ff_norm.bias),
            ]
            for into, ours in pairs:
                into.copy_(ours)
        if norm is not None:
            stack.norm.weight.copy_(model.last_norm.weight)
            stack.norm.bias.copy_(model.last_norm.bias)
    return stack


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("full", [True, False])
def test_it_is_torchs_encoder_with_a_prefix_mask(norm: str, full: bool) -> None:
    model = make(norm=norm, prefix_attention=full)
    src = torch.tensor([[5, 6, 7, 8, EOS], [9, 10, EOS, PAD, PAD]])
    tgt = torch.tensor([[BOS, 11, 12], [BOS, 13, 14]])
    S, T = src.shape[1], tgt.shape[1]
    embedded = torch.cat((model.src_embedding(src) + model.sides[0], model.tgt_embedding(tgt) + model.sides[1]), dim=1)
    hidden = torch.ones(S + T, S + T, dtype=torch.bool).triu(1)  # True is hidden, as torch has it
    if full:
        hidden[:S, :S] = False
    padding = torch.cat((src == PAD, torch.zeros_like(tgt, dtype=torch.bool)), dim=1)
    expected = in_torch(model)(embedded, mask=hidden, src_key_padding_mask=padding)
    memory = model.encode(src)
    torch.testing.assert_close(model.decode_states(tgt, memory), expected[:, S:])
    torch.testing.assert_close(memory.states[0], expected[0, :S])
    torch.testing.assert_close(memory.states[1, :3], expected[1, :3])


def test_a_source_that_is_seen_in_full_cannot_be_predicted() -> None:
    with pytest.raises(SeqtoolError, match="prefix_attention = false"):
        DecoderConfig(kind="decoder", source_loss=1.0)


def test_the_loss_on_the_source_is_that_of_its_next_tokens() -> None:
    from seqtool.config import TrainConfig
    from seqtool.training.step import LossOf, MicroBatch

    model = make(prefix_attention=False, source_loss=0.5).train()
    src, tgt_in = torch.tensor([[5, 6, EOS], [7, EOS, PAD]]), torch.tensor([[BOS, 8], [BOS, 9]])
    targets = torch.tensor([8, EOS, 9, EOS])
    part = MicroBatch(src, tgt_in, torch.arange(4), targets, src_real=torch.tensor([0, 1, 2]))
    loss, nll = LossOf(model, TrainConfig(label_smoothing=0.0))(part)
    memory = model.encode(src)
    logits = model.project(model.decode_states(tgt_in, memory)).flatten(0, 1)
    of_source = model.project(memory.states)
    expected = nn.functional.cross_entropy(logits, targets, reduction="sum")
    # The source's next tokens: 6 and the end in the first row, the end in the second; padding is no token.
    source = nn.functional.cross_entropy(
        torch.stack((of_source[0, 0], of_source[0, 1], of_source[1, 0])), torch.tensor([6, EOS, EOS]), reduction="sum"
    )
    torch.testing.assert_close(nll, expected.detach().float())
    torch.testing.assert_close(loss, (expected + 0.5 * source).float())
