"""Settings: typed sections, presets, and how a run's configuration is resolved."""

from seqtool.config.configuration import Config
from seqtool.config.model import ConvConfig, DecoderConfig, ModelConfig, RnnConfig, TransformerConfig
from seqtool.config.reading import load_config
from seqtool.config.resolve import ConfigRequest, Fixed, Resolved, RunFacts, resolve_config
from seqtool.config.sections import (
    CleanConfig,
    DataConfig,
    DecodeConfig,
    TokenizerConfig,
    TrainConfig,
)
from seqtool.config.writing import config_to_toml, describe_config

__all__ = [
    "CleanConfig",
    "Config",
    "ConfigRequest",
    "ConvConfig",
    "DataConfig",
    "DecodeConfig",
    "DecoderConfig",
    "Fixed",
    "ModelConfig",
    "Resolved",
    "RnnConfig",
    "RunFacts",
    "TokenizerConfig",
    "TrainConfig",
    "TransformerConfig",
    "config_to_toml",
    "describe_config",
    "load_config",
    "resolve_config",
]
