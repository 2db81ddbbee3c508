"""Settings: typed sections, presets, and how a run's configuration is put together."""

from seqtool.config.resolve import Config, config_to_toml, load_config, resolve_config
from seqtool.config.sections import (
    CleanConfig,
    DataConfig,
    DecodeConfig,
    ModelConfig,
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
    "config_to_toml",
    "load_config",
    "resolve_config",
]
