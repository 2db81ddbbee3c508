"""Writes a configuration: as TOML that can be read again, and in one line for people."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from seqtool.config.configuration import Config
from seqtool.durations import count
from seqtool.visible import make_visible


def config_to_toml(config: Config, remarks: Mapping[str, str] | None = None) -> str:
    """Write a configuration as TOML, with help texts and remarks as comments; it is itself a valid --config.

    Remarks belong to settings by their names: {"model.d_model": "--set"}.
    """
    lines: list[str] = []
    for section in dataclasses.fields(config):
        part = getattr(config, section.name)
        lines += [f"[{section.name}]"]
        for field in dataclasses.fields(part):
            value = f"{field.name} = {_toml_value(getattr(part, field.name))}"
            remark = make_visible((remarks or {}).get(f"{section.name}.{field.name}", ""))
            choices = ", ".join(field.metadata["choices"]())
            lines.append(
                f"{value:<34} # {field.metadata['help']}"
                + (f" (one of: {choices})" if choices else "")
                + (f" [{remark}]" if remark else "")
            )
        lines.append("")
    return "\n".join(lines)


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return "[" + ", ".join(_toml_value(item) for item in value) + "]"
    if isinstance(value, str):
        text = json.dumps(value, ensure_ascii=False)
        return "".join(char if char.isprintable() else f"\\U{ord(char):08X}" for char in text)
    return repr(value)


def describe_config(config: Config) -> str:
    """Return what makes one model differ from another, in one line."""
    model, train = config.model, config.train
    return (
        f"{model.describe()}, vocabulary {config.tokenizer.vocab_size:,}, dropout {model.dropout:g}, "
        f"label smoothing {train.label_smoothing:g}, {train.batch_tokens} tokens per batch, "
        f"{train.optimizer} with learning rate {train.lr:g}"
        + (f", the first {100 * train.both_ways:g} % of the steps both ways" if train.both_ways else "")
        + (f", word dropout {model.word_dropout:g}" if model.word_dropout else "")
        + (
            f" after {count(train.word_dropout_after, 'epoch')}"
            if model.word_dropout and train.word_dropout_after
            else ""
        )
    )
