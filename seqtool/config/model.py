"""The [model] section: what all kinds of models share, and the settings of each kind.

A kind is an architecture. Its section is a subclass of ModelConfig, found in KINDS by the setting `model.kind`; the
model itself is built elsewhere, so that a configuration can be read without loading torch.
"""

from dataclasses import dataclass

from seqtool.config.setting import check_section, setting
from seqtool.errors import SeqtoolError, suggest

DEFAULT_KIND = "transformer"


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """What every kind of model has."""

    kind: str = setting(DEFAULT_KIND, "architecture of the model", choices_of=lambda: tuple(KINDS))
    d_model: int = setting(512, "width of embeddings and layers", low=2, high=65536)
    dropout: float = setting(0.1, "dropout on embeddings and residual branches", low=0.0, high=0.95)
    word_dropout: float = setting(0.0, "chance of hiding a whole input token", low=0.0, high=0.9)
    share_embeddings: bool = setting(True, "one embedding for source, target and output (needs a joint vocabulary)")

    def __post_init__(self) -> None:
        check_section(self)

    @property
    def position_limit(self) -> int:
        """The longest sequence, with its begin or end symbol, that the model can represent; 0 if there is no limit."""
        return 0

    def describe(self) -> str:
        """Return what makes one model differ from another, in one line."""
        return f"{self.kind}, width {self.d_model}"


@dataclass(frozen=True, kw_only=True)
class SelfAttentionConfig(ModelConfig):
    """What models made of self-attention and feed-forward layers share."""

    d_ff: int = setting(2048, "width inside the feed-forward layers", low=1, high=1048576)
    n_heads: int = setting(8, "attention heads; must divide d_model", low=1, high=1024)
    attention_dropout: float = setting(0.0, "dropout on attention weights", low=0.0, high=0.95)
    ff_dropout: float = setting(0.0, "dropout inside the feed-forward layers", low=0.0, high=0.95)
    positions: str = setting("sinusoidal", "how positions are represented")
    max_positions: int = setting(1024, "longest sequence that learned positions can represent", low=1)
    norm: str = setting(
        "pre", "normalisation before each sublayer, or after it as in the paper", choices=("pre", "post")
    )
    norm_kind: str = setting("layer", "LayerNorm or RMSNorm", choices=("layer", "rms"))
    activation: str = setting("relu", "feed-forward activation")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d_model % self.n_heads:
            raise SeqtoolError(f"'n_heads' must divide 'd_model', but {self.n_heads} does not divide {self.d_model}")
        if self.positions == "rotary" and self.d_model // self.n_heads % 2:
            raise SeqtoolError("'positions = \"rotary\"' needs an even width per head (d_model / n_heads)")
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise SeqtoolError("'positions = \"sinusoidal\"' needs an even 'd_model'")

    @property
    def position_limit(self) -> int:
        """The size of the table of learned positions; other positions have no limit."""
        return self.max_positions if self.positions == "learned" else 0


@dataclass(frozen=True, kw_only=True)
class TransformerConfig(SelfAttentionConfig):
    """The shape of the encoder-decoder Transformer."""

    positions: str = setting(
        "sinusoidal", "how positions are represented", choices=("sinusoidal", "learned", "rotary", "relative")
    )
    activation: str = setting("relu", "feed-forward activation", choices=("relu", "gelu", "swish", "swiglu"))
    encoder_layers: int = setting(6, "layers of the encoder", low=1, high=256)
    decoder_layers: int = setting(6, "layers of the decoder", low=1, high=256)
    layer_drop: float = setting(0.0, "chance that a whole layer is skipped in a training step", low=0.0, high=0.95)
    relative_window: int = setting(16, "largest distance that relative positions represent", low=1, high=1024)
    output_bias: bool = setting(False, "a learned bias for each token is added to the logits")
    scale_embeddings: bool = setting(True, "token vectors are multiplied by the root of d_model on the way in")
    zero_start: bool = setting(False, "the decoder starts with a zero vector instead of a learned one, as in Marian")

    def describe(self) -> str:
        """Return layers, widths, heads, positions and norm."""
        return (
            f"Transformer, {self.encoder_layers}+{self.decoder_layers} layers, width {self.d_model}, "
            f"feed-forward {self.d_ff}, {self.n_heads} heads, {self.positions} positions, {self.norm}-norm"
        )


SCORES = ("none", "additive", "dot", "general", "scaled", "location", "cosine")


@dataclass(frozen=True, kw_only=True)
class RnnConfig(ModelConfig):
    """The shape of the recurrent encoder-decoder."""

    cell: str = setting("lstm", "recurrent cell", choices=("lstm", "gru"))
    encoder_layers: int = setting(1, "layers of the encoder", low=1, high=64)
    decoder_layers: int = setting(1, "layers of the decoder", low=1, high=64)
    bidirectional: bool = setting(True, "read the source in both directions, half of d_model each")
    residual: bool = setting(True, "add a layer's input to its output, from the second layer on")
    variational: bool = setting(False, "drop the same units at every position of a sentence (Gal and Ghahramani 2016)")
    attention: str = setting("additive", "score of the attention, or none as in Sutskever et al. 2014", choices=SCORES)
    input_feeding: bool = setting(False, "feed the attentional state to the next step (Luong et al. 2015)")
    reverse_source: bool = setting(False, "read the source backwards, as in Sutskever et al. 2014")
    max_positions: int = setting(1024, "longest source that the score 'location' can represent", low=1, high=100000)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bidirectional and self.d_model % 2:
            raise SeqtoolError("'bidirectional' needs an even 'd_model'")
        if self.bidirectional and self.reverse_source:
            raise SeqtoolError("'reverse_source' changes nothing in a bidirectional encoder; set bidirectional = false")
        if self.input_feeding and self.attention == "none":
            raise SeqtoolError("'input_feeding' feeds the result of attention; it needs an 'attention' other than none")

    @property
    def position_limit(self) -> int:
        """The size of the table of the score 'location'; other scores have no limit."""
        return self.max_positions if self.attention == "location" else 0

    def describe(self) -> str:
        """Return cell, layers, width and attention."""
        direction = "bidirectional" if self.bidirectional else "one-way"
        attention = "no attention" if self.attention == "none" else f"{self.attention} attention"
        feeding = ", input feeding" if self.input_feeding else ""
        return (
            f"recurrent ({self.cell}), {self.encoder_layers}+{self.decoder_layers} layers, {direction} encoder, "
            f"width {self.d_model}, {attention}{feeding}"
        )


@dataclass(frozen=True, kw_only=True)
class DecoderConfig(SelfAttentionConfig):
    """The shape of the decoder-only model: one stack over source and target."""

    decoder_layers: int = setting(6, "layers of the stack", low=1, high=256)
    positions: str = setting("rotary", "how positions are represented", choices=("rotary", "sinusoidal", "learned"))
    activation: str = setting("relu", "feed-forward activation", choices=("relu", "gelu", "swiglu"))
    prefix_attention: bool = setting(True, "let source tokens attend to the whole source, not only to what precedes")
    source_loss: float = setting(0.0, "weight of the loss on the source's tokens", low=0.0, high=100.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.source_loss and self.prefix_attention:
            raise SeqtoolError(
                "'source_loss' needs prefix_attention = false, as with it the source is seen and not predicted"
            )
        if self.source_loss and not self.share_embeddings:
            raise SeqtoolError("'source_loss' needs share_embeddings = true, for one output layer")

    def describe(self) -> str:
        """Return layers, widths, heads, positions and how the source is seen."""
        seen = "full" if self.prefix_attention else "causal"
        return (
            f"decoder-only, {self.decoder_layers} layers, width {self.d_model}, feed-forward {self.d_ff}, "
            f"{self.n_heads} heads, {self.positions} positions, {self.norm}-norm, {seen} attention in the source"
        )


@dataclass(frozen=True, kw_only=True)
class ConvConfig(ModelConfig):
    """The shape of the convolutional encoder-decoder."""

    encoder_layers: int = setting(4, "layers of the encoder", low=1, high=256)
    decoder_layers: int = setting(4, "layers of the decoder", low=1, high=256)
    kernel: int = setting(3, "positions that one convolution sees", low=2, high=64)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d_model % 2:
            raise SeqtoolError("convolutional models have sinusoidal positions, which need an even 'd_model'")

    def describe(self) -> str:
        """Return layers, width and kernel."""
        layers = f"{self.encoder_layers}+{self.decoder_layers} layers"
        return f"convolutional, {layers}, width {self.d_model}, kernel {self.kernel}"


KINDS: dict[str, type[ModelConfig]] = {
    "transformer": TransformerConfig,
    "rnn": RnnConfig,
    "decoder": DecoderConfig,
    "conv": ConvConfig,
}


def model_section(kind: object) -> type[ModelConfig]:
    """Return the class of the [model] section for a kind."""
    if not isinstance(kind, str) or kind not in KINDS:
        raise SeqtoolError(f"'kind' has no choice {kind!r}{suggest(str(kind), KINDS)}")
    return KINDS[kind]
