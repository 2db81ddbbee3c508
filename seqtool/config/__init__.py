"""Settings: typed sections, presets, and how a run's configuration is put together."""

from seqtool.config.model import ConvConfig, DecoderConfig, ModelConfig, RnnConfig, TransformerConfig
from seqtool.config.resolve import Config, config_to_toml, load_config, resolve_config
from seqtool.config.sections import (
    CleanConfig,
    DataConfig,
    DecodeConfig,
    TokenizerConfig,
    TrainConfig,
)

__all__ = [
    "CleanConfig",
    "Config",
    "ConvConfig",
    "DataConfig",
    "DecodeConfig",
    "DecoderConfig",
    "ModelConfig",
    "RnnConfig",
    "TokenizerConfig",
    "TrainConfig",
    "TransformerConfig",
    "config_to_toml",
    "load_config",
    "resolve_config",
]
