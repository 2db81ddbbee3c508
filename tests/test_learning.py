"""A small model learns to copy and to reverse: masks, positions and cross-attention work together."""

import pytest
import torch
from special_ids import BOS, EOS, vocabularies
from torch import Tensor

from seqtool.config import TransformerConfig
from seqtool.model.transformer import Transformer
from seqtool.training.loss import smoothed_cross_entropy

LENGTH, VOCAB, STEPS, ROWS, HIGHEST_LR = 20, 16, 450, 32, 4e-3


def make_pairs(task: str, n: int) -> tuple[Tensor, Tensor]:
    """Return n random sources and their targets, each (n, LENGTH + 1) with EOS."""
    words, eos = torch.randint(EOS + 1, VOCAB, (n, LENGTH)), torch.full((n, 1), EOS)
    target = words if task == "copy" else words.flip(1)
    return torch.cat([words, eos], dim=1), torch.cat([target, eos], dim=1)


def train(model: Transformer, task: str) -> None:
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    for step in range(STEPS):
        rise, fall = (step + 1) / 100, (STEPS - step) / (0.4 * STEPS)
        optimizer.param_groups[0]["lr"] = HIGHEST_LR * min(1.0, rise, fall)
        src, tgt_out = make_pairs(task, ROWS)
        tgt_in = tgt_out.roll(1, dims=1).index_fill(1, torch.tensor([0]), BOS)
        states = model(src, tgt_in).flatten(0, 1)
        loss, _ = smoothed_cross_entropy(states, model.output_weight, None, tgt_out.flatten(), 0.0)
        (loss / tgt_out.numel()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


@torch.inference_mode()
def translate_greedily(model: Transformer, src: Tensor) -> Tensor:
    memory = model.encode(src)
    cache = model.start_cache(memory)
    tokens = torch.full((len(src), 1), BOS)
    for _ in range(src.shape[1]):
        best = model.decode(tokens[:, -1:], memory, cache).argmax(-1)
        tokens = torch.cat([tokens, best], dim=1)
    return tokens[:, 1:]


@pytest.mark.parametrize("task", ["copy", "reverse"])
def test_a_two_layer_model_learns_perfectly(task):
    """The minute of the promise is several times what these steps take on two cores."""
    torch.manual_seed(1)
    config = TransformerConfig(d_model=32, d_ff=64, n_heads=4, encoder_layers=2, decoder_layers=2, dropout=0.0)
    model = Transformer(config, vocabularies(VOCAB))
    train(model.train(), task)
    src, expected = make_pairs(task, 100)
    assert translate_greedily(model.eval(), src).tolist() == expected.tolist()
