"""The whole configuration: one value of each section, and what must hold between sections."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from seqtool.config.model import DEFAULT_KIND, ModelConfig, TransformerConfig, model_section
from seqtool.config.sections import CleanConfig, DataConfig, DecodeConfig, TokenizerConfig, TrainConfig
from seqtool.errors import SeqtoolError


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    """All settings of a run, one section per concern."""

    model: ModelConfig = TransformerConfig()
    tokenizer: TokenizerConfig = TokenizerConfig()
    clean: CleanConfig = CleanConfig()
    data: DataConfig = DataConfig()
    train: TrainConfig = TrainConfig()
    decode: DecodeConfig = DecodeConfig()

    def settings(self) -> dict[str, Any]:
        """Return all settings by name: {"model.d_model": 512, ...}."""
        return {
            f"{section.name}.{field.name}": getattr(getattr(self, section.name), field.name)
            for section in dataclasses.fields(self)
            for field in dataclasses.fields(getattr(self, section.name))
        }


SECTIONS: dict[str, Any] = {field.name: type(field.default) for field in dataclasses.fields(Config)}


def section_classes(kind: str) -> dict[str, Any]:
    """Return the class of each section for a kind of model."""
    return {**SECTIONS, "model": model_section(kind)}


def build_config(settings: Mapping[str, Any]) -> Config:
    """Make the typed configuration from settings by name; those that are missing get their defaults."""
    values: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    for name, value in settings.items():
        section, _, key = name.partition(".")
        values[section][key] = value
    sections = {}
    for section, section_class in section_classes(settings.get("model.kind", DEFAULT_KIND)).items():
        try:
            sections[section] = section_class(**values[section])
        except SeqtoolError as error:
            raise SeqtoolError(f"[{section}] {error}") from None
    config = Config(**sections)
    check_together(config)
    return config


def check_together(config: Config) -> None:
    """Raise for settings of different sections that do not go together."""
    if config.model.share_embeddings and not config.tokenizer.joint:
        raise SeqtoolError(
            "[model] 'share_embeddings' needs one vocabulary: set tokenizer.joint=true, or model.share_embeddings=false"
        )
    if config.train.both_ways and not config.tokenizer.joint:
        raise SeqtoolError(
            "[train] 'both_ways' needs one vocabulary: set tokenizer.joint=true, or train.both_ways=0 to train one way"
        )
    if 0 < config.model.position_limit <= config.data.max_tokens:
        raise SeqtoolError(
            f"[model] 'max_positions' must exceed data.max_tokens ({config.data.max_tokens}) if positions are "
            f"learned, but it is {config.model.position_limit}"
        )
