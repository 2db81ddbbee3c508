"""The counts by formula equal those of the model that is built and run."""

import itertools

import pytest
import torch
from special_ids import vocabularies
from tiny_models import ACTIVATIONS, NORM_KINDS, NORMS, POSITIONS, VOCAB, tiny_config
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from seqtool.model.counting import count_forward_flops, count_parameters
from seqtool.model.transformer import Transformer

VARIANTS = list(itertools.product(POSITIONS, NORMS, NORM_KINDS, ACTIVATIONS, (True, False)))


def count_in(modules: nn.Module) -> int:
    return sum(weight.numel() for weight in modules.parameters())


@pytest.mark.parametrize(("positions", "norm", "norm_kind", "activation", "shared"), VARIANTS)
def test_the_parameter_formula_equals_the_built_model(positions, norm, norm_kind, activation, shared):
    config = tiny_config(
        positions=positions,
        norm=norm,
        norm_kind=norm_kind,
        activation=activation,
        share_embeddings=shared,
        encoder_layers=3,
        decoder_layers=1,
        max_positions=50,
        output_bias=not shared,
    )
    tgt_vocab = VOCAB if shared else VOCAB + 6
    with torch.device("meta"):
        model = Transformer(config, vocabularies(VOCAB, tgt_vocab))
    count = count_parameters(config, VOCAB, tgt_vocab)
    assert count.encoder == count_in(model.encoder) + count_in(model.encoder_norm)
    assert count.decoder == count_in(model.decoder) + count_in(model.decoder_norm)
    assert count.total == count_in(model)


def test_the_base_model_of_the_paper_has_its_known_size():
    # Width 512, inner 2048, six layers a side, post-norm, 37,000 shared tokens:
    #   attention 4 * (512 * 512 + 512) = 1,050,624; feed-forward 512 * 2048 + 2048 + 2048 * 512 + 512 = 2,099,712
    #   a norm 1,024; encoder layer 1,050,624 + 2,099,712 + 2,048 = 3,152,384
    #   decoder layer 2 * 1,050,624 + 2,099,712 + 3,072 = 4,204,032; embeddings 37,000 * 512 = 18,944,000
    #   6 * 3,152,384 + 6 * 4,204,032 + 18,944,000 = 63,082,496 (the paper's table says 65 million)
    config = tiny_config(d_model=512, d_ff=2048, n_heads=8, encoder_layers=6, decoder_layers=6, norm="post")
    assert count_parameters(config, 37_000, 37_000).total == 63_082_496


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("positions", POSITIONS)
def test_the_operation_formula_equals_what_torch_counts(positions, activation):
    """On the meta device, where torch counts attention as the two products it is made of."""
    config = tiny_config(positions=positions, activation=activation, encoder_layers=3, decoder_layers=2)
    B, S, T = 3, 7, 5
    with torch.device("meta"):
        model = Transformer(config, vocabularies(VOCAB))
        src, tgt_in = torch.ones(B, S, dtype=torch.int64), torch.ones(B, T, dtype=torch.int64)
    with FlopCounterMode(display=False) as counter:
        logits = model.decode(tgt_in, model.encode(src))
    forward = counter.get_total_flops()
    assert forward == B * count_forward_flops(config, VOCAB, S, T)
    with FlopCounterMode(display=False) as counter:
        logits.sum().backward()
    trained = forward + counter.get_total_flops()
    assert trained == 3 * forward
