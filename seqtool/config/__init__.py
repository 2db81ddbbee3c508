"""Settings: typed sections, presets, and how a run's configuration is put together."""

from seqtool.config.model import ModelConfig, TransformerConfig
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
    "DataConfig",
    "DecodeConfig",
    "ModelConfig",
    "TokenizerConfig",
    "TrainConfig",
    "TransformerConfig",
    "config_to_toml",
    "load_config",
    "resolve_config",
]
