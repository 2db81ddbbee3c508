"""The Transformer in CTranslate2's terms: every weight in the place where that engine looks for it. Needs no torch."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqtool.config import TransformerConfig
from seqtool.corpus.tokenizer.interface import TokenizerPair
from seqtool.model.sinusoids import sinusoids

Weights = Mapping[str, NDArray[np.float32]]


def make_spec(
    config: TransformerConfig, weights: Weights, tokenizers: TokenizerPair, max_tokens: int
) -> tuple[Any, int]:
    """Describe a model with ctranslate2's own classes; return how many positions it has room for too (0: no limit)."""
    from ctranslate2 import specs

    n_positions = count_positions(config, max_tokens)

    activations = {
        "relu": specs.Activation.RELU,
        "gelu": specs.Activation.GELU,
        "swish": specs.Activation.SWISH,
        "swiglu": specs.Activation.SWISH,
    }
    shared = {
        "pre_norm": config.norm == "pre",
        "activation": activations[config.activation],
        "relative_position": config.positions == "relative",
        "ffn_glu": config.activation == "swiglu",
        "rms_norm": config.norm_kind == "rms",
        "rotary_dim": 0 if config.positions == "rotary" else None,
        "rotary_interleave": False,
    }
    spec = specs.TransformerSpec(
        specs.TransformerEncoderSpec(config.encoder_layers, config.n_heads, **shared),
        specs.TransformerDecoderSpec(
            config.decoder_layers,
            config.n_heads,
            alignment_layer=config.decoder_layers - 1,  # the same as in TorchEngine.attend
            alignment_heads=config.n_heads,
            **shared,
        ),
    )
    spec.config.layer_norm_epsilon = 1e-5 if config.norm_kind == "layer" else 1e-6
    spec.config.add_source_eos = True
    pieces, special = tokenizers.target.piece_list, tokenizers.target.special
    spec.config.unk_token, spec.config.eos_token = pieces[special.unk], pieces[special.eos]
    spec.config.bos_token = spec.config.decoder_start_token = pieces[special.bos]
    spec.register_source_vocabulary(tokenizers.source.piece_list)
    spec.register_target_vocabulary(tokenizers.target.piece_list)
    fill_spec(spec, config, weights, n_positions)
    return spec, n_positions


def count_positions(config: TransformerConfig, max_tokens: int) -> int:
    """Return how many positions the exported model has room for; 0 if there is no limit."""
    if config.positions == "learned":
        return config.max_positions
    return max(1024, 4 * max_tokens) if config.positions == "sinusoidal" else 0


def fill_spec(spec: Any, config: TransformerConfig, weights: Weights, n_positions: int) -> None:
    """Put every weight into its place."""
    target = weights["src_embedding.tokens.weight" if config.share_embeddings else "tgt_embedding.tokens.weight"]
    spec.encoder.embeddings[0].weight = weights["src_embedding.tokens.weight"]
    spec.decoder.embeddings.weight = target
    spec.decoder.projection.weight = target
    if config.output_bias:
        spec.decoder.projection.bias = weights["bias"]
    spec.encoder.scale_embeddings = spec.decoder.scale_embeddings = config.scale_embeddings
    spec.decoder.start_from_zero_embedding = config.zero_start
    for side, stack, name in ((spec.encoder, "encoder", "src_embedding"), (spec.decoder, "decoder", "tgt_embedding")):
        if config.positions == "sinusoidal":
            side.position_encodings.encodings = sinusoids(n_positions, config.d_model)
        elif config.positions == "learned":
            side.position_encodings.encodings = weights[f"{name}.positions.table"]
        if config.norm == "pre":
            fill_norm(side.layer_norm, weights, f"{stack}_norm")
        for index, layer in enumerate(side.layer):
            fill_layer(layer, weights, f"{stack}.{index}")


def fill_layer(layer: Any, weights: Weights, name: str) -> None:
    """Put one layer's weights into its place; ctranslate2 keeps a sublayer's norm inside the sublayer."""
    attention = layer.self_attention
    fill_norm(attention.layer_norm, weights, f"{name}.self_norm")
    fill_linear(attention.linear[0], weights, f"{name}.self_attention.qkv")
    fill_linear(attention.linear[1], weights, f"{name}.self_attention.out")
    if f"{name}.self_attention.relative.keys" in weights:
        attention.relative_position_keys = weights[f"{name}.self_attention.relative.keys"]
        attention.relative_position_values = weights[f"{name}.self_attention.relative.values"]
    if f"{name}.cross_attention.qkv.weight" in weights:
        cross = layer.attention
        width = weights[f"{name}.cross_attention.out.bias"].shape[0]
        fill_norm(cross.layer_norm, weights, f"{name}.cross_norm")
        fill_linear(cross.linear[0], weights, f"{name}.cross_attention.qkv", slice(0, width))
        fill_linear(cross.linear[1], weights, f"{name}.cross_attention.qkv", slice(width, 3 * width))
        fill_linear(cross.linear[2], weights, f"{name}.cross_attention.out")
    fill_norm(layer.ffn.layer_norm, weights, f"{name}.ff_norm")
    inner, outer = f"{name}.feed_forward.inner", f"{name}.feed_forward.outer"
    width = weights[f"{outer}.weight"].shape[1]
    fill_linear(layer.ffn.linear_0, weights, inner, slice(0, width))  # if gated, the gate comes first
    if hasattr(layer.ffn, "linear_0_noact"):
        fill_linear(layer.ffn.linear_0_noact, weights, inner, slice(width, 2 * width))
    fill_linear(layer.ffn.linear_1, weights, outer)


def fill_linear(spec: Any, weights: Weights, name: str, rows: slice = slice(None)) -> None:
    """Put a matrix and its bias, or some rows of them, into their place."""
    spec.weight = np.ascontiguousarray(weights[f"{name}.weight"][rows])
    spec.bias = np.ascontiguousarray(weights[f"{name}.bias"][rows])


def fill_norm(spec: Any, weights: Weights, name: str) -> None:
    """Put a normalisation's scale, and its shift if it has one, into their place."""
    spec.gamma = weights[f"{name}.weight"]
    if f"{name}.bias" in weights:
        spec.beta = weights[f"{name}.bias"]
