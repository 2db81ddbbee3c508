"""The kinds of models by the name of `model.kind`: how one is built, counted and described to CTranslate2.

To add an architecture: a section for its settings (config/model.py), its module here in model/, and an entry in KINDS.
Nothing in this file loads torch before a model is built.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seqtool.config import ModelConfig
from seqtool.config.model import KINDS as SECTIONS
from seqtool.corpus.tokenizer.interface import Vocabularies
from seqtool.model.counting import (
    ParameterCount,
    count_conv_flops,
    count_conv_parameters,
    count_decoder_flops,
    count_decoder_parameters,
    count_forward_flops,
    count_parameters,
    count_rnn_flops,
    count_rnn_parameters,
)

if TYPE_CHECKING:
    from seqtool.model.interface import TranslationModel


@dataclass(frozen=True, kw_only=True)
class ModelKind:
    """One architecture; every function takes its section of the configuration first."""

    build: "Callable[[Any, Vocabularies], TranslationModel]"
    count_parameters: Callable[[Any, int, int], ParameterCount]  # source and target vocabulary
    count_forward_flops: Callable[[Any, int, int, int], int]  # target vocabulary, source and target length
    ctranslate2: Callable[..., Any] | None = None  # makes CTranslate2's description of a model, if it has such models


def _transformer(config: Any, vocabularies: Vocabularies) -> "TranslationModel":
    from seqtool.model.transformer import Transformer

    return Transformer(config, vocabularies)


def _rnn(config: Any, vocabularies: Vocabularies) -> "TranslationModel":
    from seqtool.model.rnn import Rnn

    return Rnn(config, vocabularies)


def _decoder(config: Any, vocabularies: Vocabularies) -> "TranslationModel":
    from seqtool.model.decoder import Decoder

    return Decoder(config, vocabularies)


def _conv(config: Any, vocabularies: Vocabularies) -> "TranslationModel":
    from seqtool.model.conv import Conv

    return Conv(config, vocabularies)


def _transformer_in_ctranslate2(*arguments: Any) -> Any:
    from seqtool.model.ctranslate2_spec import make_spec

    return make_spec(*arguments)


KINDS: dict[str, ModelKind] = {
    "transformer": ModelKind(
        build=_transformer,
        count_parameters=count_parameters,
        count_forward_flops=count_forward_flops,
        ctranslate2=_transformer_in_ctranslate2,
    ),
    "rnn": ModelKind(build=_rnn, count_parameters=count_rnn_parameters, count_forward_flops=count_rnn_flops),
    "decoder": ModelKind(
        build=_decoder, count_parameters=count_decoder_parameters, count_forward_flops=count_decoder_flops
    ),
    "conv": ModelKind(build=_conv, count_parameters=count_conv_parameters, count_forward_flops=count_conv_flops),
}


def register_model(name: str, section: type[ModelConfig], kind: ModelKind) -> None:
    """Add a kind of model, with the class of its [model] section."""
    SECTIONS[name] = section
    KINDS[name] = kind


def kind_of(config: ModelConfig) -> ModelKind:
    """Return the kind of model that a configuration asks for."""
    return KINDS[config.kind]


def build_model(config: ModelConfig, vocabularies: Vocabularies) -> "TranslationModel":
    """Build the model that a configuration describes, with new weights."""
    return kind_of(config).build(config, vocabularies)
