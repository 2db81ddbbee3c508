"""Models small enough to test every variant of, and sentences for them."""

from typing import Any

import torch
from special_ids import BOS, EOS, PAD, vocabularies
from torch import Tensor

from seqtool.config import TransformerConfig
from seqtool.model.transformer import Transformer

POSITIONS = ("sinusoidal", "learned", "rotary", "relative")
NORMS = ("pre", "post")
NORM_KINDS = ("layer", "rms")
ACTIVATIONS = ("relu", "gelu", "swish", "swiglu")
VOCAB = 37


def tiny_config(**changes: Any) -> TransformerConfig:
    """Return a configuration of a model of two layers a side, without dropout."""
    values: dict[str, Any] = {
        "d_model": 16,
        "d_ff": 24,
        "n_heads": 4,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "dropout": 0.0,
        "relative_window": 3,
    }
    return TransformerConfig(**(values | changes))


def tiny_model(**changes: Any) -> Transformer:
    """Return a tiny model whose every weight, biases and norms too, differs from its neutral value."""
    torch.manual_seed(1)
    model = Transformer(tiny_config(**changes), vocabularies(VOCAB)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.1)
    return model


def exact_model(**changes: Any) -> Transformer:
    """Return a tiny model in float64, so that two ways to the same numbers can be compared closely."""
    return tiny_model(**changes).double()


def make_sentences(lengths: list[int], seed: int = 0) -> list[list[int]]:
    """Return sentences of these lengths, drawn from the ordinary tokens and ended by EOS."""
    draw = torch.Generator().manual_seed(seed)
    return [[*torch.randint(EOS + 1, VOCAB, (n - 1,), generator=draw).tolist(), EOS] for n in lengths]


def pad(sentences: list[list[int]], width: int = 0) -> Tensor:
    """Stack sentences into ids (B, T), T at least `width`, filled up with PAD."""
    width = max(width, *map(len, sentences))
    return torch.tensor([[*ids, *[PAD] * (width - len(ids))] for ids in sentences])


def shift(sentences: list[list[int]]) -> list[list[int]]:
    """Return the decoder's inputs for these targets: BOS in front, the last token left out."""
    return [[BOS, *ids[:-1]] for ids in sentences]
