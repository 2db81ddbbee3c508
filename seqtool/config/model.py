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
        """Return what makes one model differ from another, in a line."""
        return f"{self.kind}, width {self.d_model}"


@dataclass(frozen=True, kw_only=True)
class TransformerConfig(ModelConfig):
    """The shape of the encoder-decoder Transformer."""

    d_ff: int = setting(2048, "width inside the feed-forward layers", low=1, high=1048576)
    n_heads: int = setting(8, "attention heads; must divide d_model", low=1, high=1024)
    encoder_layers: int = setting(6, "layers of the encoder", low=1, high=256)
    decoder_layers: int = setting(6, "layers of the decoder", low=1, high=256)
    attention_dropout: float = setting(0.0, "dropout on attention weights", low=0.0, high=0.95)
    ff_dropout: float = setting(0.0, "dropout inside the feed-forward layers", low=0.0, high=0.95)
    layer_drop: float = setting(0.0, "chance that a whole layer is skipped in a training step", low=0.0, high=0.95)
    positions: str = setting(
        "sinusoidal", "how positions are represented", choices=("sinusoidal", "learned", "rotary", "relative")
    )
    max_positions: int = setting(1024, "longest sequence that learned positions can represent", low=1)
    relative_window: int = setting(16, "largest distance that relative positions represent", low=1, high=1024)
    norm: str = setting(
        "pre", "normalisation before each sublayer, or after it as in the paper", choices=("pre", "post")
    )
    norm_kind: str = setting("layer", "LayerNorm or RMSNorm", choices=("layer", "rms"))
    activation: str = setting("relu", "feed-forward activation", choices=("relu", "gelu", "swiglu"))

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

    def describe(self) -> str:
        """Return layers, widths, heads, positions and norm."""
        return (
            f"Transformer, {self.encoder_layers}+{self.decoder_layers} layers, width {self.d_model}, "
            f"feed-forward {self.d_ff}, {self.n_heads} heads, {self.positions} positions, {self.norm}-norm"
        )


KINDS: dict[str, type[ModelConfig]] = {"transformer": TransformerConfig}


def model_section(kind: object) -> type[ModelConfig]:
    """Return the class of the [model] section for a kind."""
    if not isinstance(kind, str) or kind not in KINDS:
        raise SeqtoolError(f"'kind' has no choice {kind!r}{suggest(str(kind), KINDS)}")
    return KINDS[kind]
