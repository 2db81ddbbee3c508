"""Parameters and floating-point operations of a Transformer, by formula: nothing is built to be counted.

Legend: D width, F width of the feed-forward, S source length, T target length, V target vocabulary.
"""

from dataclasses import dataclass

from seqtool.config import TransformerConfig


@dataclass(frozen=True)
class ParameterCount:
    """How many numbers a model learns, by part."""

    embeddings: int
    encoder: int
    decoder: int

    @property
    def total(self) -> int:
        return self.embeddings + self.encoder + self.decoder


def count_parameters(config: TransformerConfig, src_vocab: int, tgt_vocab: int) -> ParameterCount:
    """Count the parameters; shared embeddings count once, and the output layer is the target embedding."""
    d = config.d_model
    embeddings = src_vocab * d + (0 if config.share_embeddings else tgt_vocab * d)
    if config.positions == "learned":
        embeddings += 2 * config.max_positions * d
    norm = d * (2 if config.norm_kind == "layer" else 1)
    attention = 4 * d * d + 4 * d
    relative = 2 * (2 * config.relative_window + 1) * (d // config.n_heads) if config.positions == "relative" else 0
    inner = config.d_ff * (2 if config.activation == "swiglu" else 1)
    feed_forward = d * inner + inner + config.d_ff * d + d
    last_norm = norm if config.norm == "pre" else 0
    encoder = config.encoder_layers * (attention + relative + feed_forward + 2 * norm) + last_norm
    decoder = config.decoder_layers * (2 * attention + relative + feed_forward + 3 * norm) + last_norm
    return ParameterCount(embeddings, encoder, decoder)


def count_forward_flops(config: TransformerConfig, tgt_vocab: int, src_length: int, tgt_length: int) -> int:
    """Count the floating-point operations of matrix products in one forward pass of one sentence pair.

    A product of (m, k) with (k, n) counts 2mkn. Additions, norms and softmaxes, small beside these, are left out.
    """
    d, s, t = config.d_model, src_length, tgt_length
    feed_forward = 2 * d * config.d_ff * (3 if config.activation == "swiglu" else 2)
    # Relative positions compare every query with every distance, and combine a vector for every distance.
    relative = 4 * d * (2 * config.relative_window + 1) if config.positions == "relative" else 0
    encoder_layer = s * (8 * d * d + relative + feed_forward) + 4 * s * s * d
    self_attention = t * (8 * d * d + relative) + 4 * t * t * d
    cross_attention = t * 4 * d * d + s * 4 * d * d + 4 * t * s * d
    decoder_layer = self_attention + cross_attention + t * feed_forward
    output = 2 * t * d * tgt_vocab
    return config.encoder_layers * encoder_layer + config.decoder_layers * decoder_layer + output
