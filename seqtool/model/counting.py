"""Parameters and floating-point operations of each kind of model, by formula: nothing is built to be counted.

Legend: D width, F width of the feed-forward, S source length, T target length, V target vocabulary.
"""

from dataclasses import dataclass

from seqtool.config import ConvConfig, DecoderConfig, RnnConfig, TransformerConfig


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
    embeddings += tgt_vocab if config.output_bias else 0
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


def count_rnn_parameters(config: RnnConfig, src_vocab: int, tgt_vocab: int) -> ParameterCount:
    """Count the parameters of a recurrent model; each gate has two matrices and two biases."""
    d, gates = config.d_model, 4 if config.cell == "lstm" else 3

    def recurrence(d_in: int, width: int) -> int:
        return gates * (width * d_in + width * width + 2 * width)

    encoder = config.encoder_layers * (2 * recurrence(d, d // 2) if config.bidirectional else recurrence(d, d))
    decoder = config.decoder_layers * recurrence(d, d) + (gates * d * d if config.input_feeding else 0)
    scores = {"additive": 2 * d * d + d, "general": d * d, "cosine": d + 1}
    scores["location"] = config.max_positions * (d + 1)
    attention = scores.get(config.attention, 0) + (2 * d * d if config.attention != "none" else 0)
    embeddings = src_vocab * d + (0 if config.share_embeddings else tgt_vocab * d)
    return ParameterCount(embeddings, encoder, decoder + attention)


def count_rnn_flops(config: RnnConfig, tgt_vocab: int, src_length: int, tgt_length: int) -> int:
    """Count the matrix products of one forward pass of one sentence pair, as for the Transformer."""
    d, s, t, gates = config.d_model, src_length, tgt_length, 4 if config.cell == "lstm" else 3
    per_source = config.encoder_layers * 2 * gates * (1.5 * d * d if config.bidirectional else 2 * d * d)
    per_target = config.decoder_layers * 2 * gates * 2 * d * d + (2 * gates * d * d if config.input_feeding else 0)
    if config.attention != "none":
        per_target += 4 * d * d + (2 * d * d if config.attention in ("additive", "general") else 0) + 4 * s * d
        per_target += 2 * d * config.max_positions if config.attention == "location" else 0
        per_source += 2 * d * d if config.attention == "additive" else 0
    return int(s * per_source + t * (per_target + 2 * d * tgt_vocab))


def count_decoder_parameters(config: DecoderConfig, src_vocab: int, tgt_vocab: int) -> ParameterCount:
    """Count the parameters of a decoder-only model."""
    d = config.d_model
    embeddings = src_vocab * d + (0 if config.share_embeddings else tgt_vocab * d) + 2 * d
    if config.positions == "learned":
        embeddings += config.max_positions * d
    norm = d * (2 if config.norm_kind == "layer" else 1)
    inner = config.d_ff * (2 if config.activation == "swiglu" else 1)
    layer = 4 * d * d + 4 * d + d * inner + inner + config.d_ff * d + d + 2 * norm
    return ParameterCount(embeddings, 0, config.decoder_layers * layer + (norm if config.norm == "pre" else 0))


def count_decoder_flops(config: DecoderConfig, tgt_vocab: int, src_length: int, tgt_length: int) -> int:
    """Count the matrix products of one forward pass of one sentence pair, as for the Transformer."""
    d, s, t = config.d_model, src_length, tgt_length
    per_token = 8 * d * d + 2 * d * config.d_ff * (3 if config.activation == "swiglu" else 2)
    layer = (s + t) * per_token + 4 * d * (s * s + t * (s + t))
    return config.decoder_layers * layer + 2 * t * d * tgt_vocab


def count_conv_parameters(config: ConvConfig, src_vocab: int, tgt_vocab: int) -> ParameterCount:
    """Count the parameters of a convolutional model."""
    d = config.d_model
    convolution = config.kernel * d * 2 * d + 2 * d + d * d + d  # with the projection behind it
    embeddings = src_vocab * d + (0 if config.share_embeddings else tgt_vocab * d)
    encoder = config.encoder_layers * (convolution + 2 * d) + 2 * d
    decoder = config.decoder_layers * (convolution + 2 * (d * d + d) + 4 * d) + 2 * d
    return ParameterCount(embeddings, encoder, decoder)


def count_conv_flops(config: ConvConfig, tgt_vocab: int, src_length: int, tgt_length: int) -> int:
    """Count the matrix products of one forward pass of one sentence pair, as for the Transformer."""
    d, s, t = config.d_model, src_length, tgt_length
    convolution = 4 * config.kernel * d * d + 2 * d * d
    decoder = config.decoder_layers * (t * (convolution + 4 * d * d) + 4 * t * s * d)
    return config.encoder_layers * s * convolution + decoder + 2 * t * d * tgt_vocab
