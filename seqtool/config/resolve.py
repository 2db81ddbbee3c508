"""Puts a configuration together: defaults < preset < TOML file < --set and flags; and writes it as TOML."""

import dataclasses
import json
import tomllib
import typing
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from seqtool.config.sections import CleanConfig, DataConfig, DecodeConfig, ModelConfig, TokenizerConfig, TrainConfig
from seqtool.config.setting import check_value
from seqtool.errors import SeqtoolError, suggest

PRESETS = ("auto", "tiny", "small", "base", "big")

Values = dict[str, dict[str, Any]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    """Everything that settles a run, one section a concern."""

    model: ModelConfig = ModelConfig()
    tokenizer: TokenizerConfig = TokenizerConfig()
    clean: CleanConfig = CleanConfig()
    data: DataConfig = DataConfig()
    train: TrainConfig = TrainConfig()
    decode: DecodeConfig = DecodeConfig()


SECTIONS: dict[str, Any] = {field.name: type(field.default) for field in dataclasses.fields(Config)}


def resolve_config(
    preset: str = "auto",
    file: Path | None = None,
    overrides: Iterable[str] = (),
    flags: Iterable[str] = (),
    *,
    pairs: int | None = None,
    device: str = "cpu",
) -> Config:
    """Merge all layers; the `auto` preset needs the number of corpus pairs, and takes a guess while it is unknown.

    Overrides are the texts of --set; flags are like them, but came from an option of the same name as the key.
    """
    from seqtool.config.auto import choose_settings

    chosen: Values = {name: {} for name in SECTIONS}
    given: Values = {name: {} for name in SECTIONS}
    if preset == "auto":
        _merge(chosen, choose_settings(pairs, device).values, "preset 'auto'")
    else:
        _merge(chosen, read_preset(preset), f"preset '{preset}'")
    if file is not None:
        _merge(given, read_toml(file), str(file))
    for flag in flags:
        _merge(given, parse_overrides([flag]), f"--{flag.partition('=')[0].partition('.')[2]}")
    _merge(given, parse_overrides(overrides), "--set")
    _withdraw(chosen, given)
    return build_config({name: {**chosen[name], **given[name]} for name in SECTIONS})


def _withdraw(chosen: Values, given: Values) -> None:
    """Take back what a preset chose and what the user gave rules out."""
    if not given["tokenizer"].get("joint", True) or given["tokenizer"].get("user_symbols"):
        chosen["train"].pop("both_ways", None)  # two vocabularies, or symbols that belong to one side
    if "word_dropout" in given["model"]:
        chosen["train"].pop("word_dropout_after", None)  # it is meant for the whole run


def read_preset(name: str) -> Values:
    """Read a preset that ships with the package."""
    if name not in PRESETS:
        raise SeqtoolError(f"there is no preset '{name}'{suggest(name, PRESETS)}")
    text = (resources.files("seqtool.config") / "presets" / f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def read_toml(path: Path) -> Values:
    """Read a configuration file; what it holds is checked when it is merged."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SeqtoolError(f"{path}: no such configuration file; check the path given to --config") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SeqtoolError(f"{path}: cannot be read as a configuration file ({error})") from None
    except tomllib.TOMLDecodeError as error:
        raise SeqtoolError(f"{path}: not valid TOML: {error}") from None


def load_config(path: Path) -> Config:
    """Read the complete configuration of a run directory."""
    values: Values = {name: {} for name in SECTIONS}
    _merge(values, read_toml(path), str(path))
    return build_config(values)


def parse_overrides(overrides: Iterable[str]) -> Values:
    """Turn "section.key=value" texts into values; a value is TOML, and a bare word is a text."""
    values: Values = {}
    for override in overrides:
        name, equals, text = override.partition("=")
        section, dot, key = name.strip().partition(".")
        if not (equals and dot and section and key):
            raise SeqtoolError(f"--set {override}: write it as section.key=value, for example train.lr=3e-4")
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            value = text.strip()
        values.setdefault(section, {})[key] = value
    return values


def build_config(values: Mapping[str, Mapping[str, Any]]) -> Config:
    """Make the typed configuration from plain values."""
    sections = {}
    for name, kind in SECTIONS.items():
        try:
            sections[name] = kind(**values.get(name, {}))
        except SeqtoolError as error:
            raise SeqtoolError(f"[{name}] {error}") from None
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
    if config.model.positions == "learned" and config.model.max_positions <= config.data.max_tokens:
        raise SeqtoolError(
            f"[model] 'max_positions' must exceed data.max_tokens ({config.data.max_tokens}) where positions are "
            f"learned, but it is {config.model.max_positions}"
        )


def _merge(values: Values, layer: Mapping[str, Any], origin: str) -> None:
    """Lay one layer's values over the ones so far, naming the layer in any error."""
    for name, section in layer.items():
        if name not in SECTIONS:
            raise SeqtoolError(f"{origin}: there is no section [{name}]{suggest(name, SECTIONS)}")
        if not isinstance(section, Mapping):
            raise SeqtoolError(f"{origin}: [{name}] must be a section with keys, not {section!r}")
        known = {field.name: field for field in dataclasses.fields(SECTIONS[name])}
        hints = typing.get_type_hints(SECTIONS[name])
        for key, value in section.items():
            if key not in known:
                raise SeqtoolError(f"{origin}: [{name}] has no key '{key}'{_suggest_key(key, known)}")
            try:
                check_value(known[key], hints[key], value)
            except SeqtoolError as error:
                raise SeqtoolError(f"{origin}: [{name}] {error}") from None
            values[name][key] = value


def _suggest_key(key: str, known: Iterable[str]) -> str:
    """Name the section that has this very key, or else the nearest key of the section where it was given."""
    homes = [name for name, kind in SECTIONS.items() if key in {field.name for field in dataclasses.fields(kind)}]
    return f"; did you mean {homes[0]}.{key}?" if homes else suggest(key, known)


def config_to_toml(config: Config) -> str:
    """Write a configuration as TOML with its help texts as comments; it is itself a valid --config."""
    lines: list[str] = []
    for section in dataclasses.fields(config):
        part = getattr(config, section.name)
        lines += [f"[{section.name}]"]
        for field in dataclasses.fields(part):
            value = f"{field.name} = {_toml_value(getattr(part, field.name))}"
            lines.append(f"{value:<34} # {field.metadata['help']}")
        lines.append("")
    return "\n".join(lines)


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return "[" + ", ".join(_toml_value(item) for item in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
