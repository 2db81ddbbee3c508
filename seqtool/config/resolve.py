"""Puts a configuration together: defaults < preset < TOML file < --set and flags; and writes it as TOML."""

import dataclasses
import json
import tomllib
import typing
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from seqtool.config.model import DEFAULT_KIND, KINDS, ModelConfig, TransformerConfig, model_section
from seqtool.config.sections import CleanConfig, DataConfig, DecodeConfig, TokenizerConfig, TrainConfig
from seqtool.config.setting import check_value
from seqtool.errors import SeqtoolError, suggest

PRESETS = ("auto", "tiny", "small", "base", "big")

Values = dict[str, dict[str, Any]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    """Everything that settles a run, one section a concern."""

    model: ModelConfig = TransformerConfig()
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

    preset_values = choose_settings(pairs, device).values if preset == "auto" else read_preset(preset)
    layers: list[tuple[str, Values]] = [(str(file), read_toml(file))] if file is not None else []
    layers += [(f"--{flag.partition('=')[0].partition('.')[2]}", parse_overrides([flag])) for flag in flags]
    layers += [("--set", parse_overrides(overrides))]
    kind = find_kind([(f"preset '{preset}'", preset_values), *layers])
    chosen: Values = {name: {} for name in SECTIONS}
    given: Values = {name: {} for name in SECTIONS}
    _merge(chosen, preset_for_kind(preset_values, kind), f"preset '{preset}'", kind)
    for origin, layer in layers:
        _merge(given, layer, origin, kind)
    _withdraw(chosen, given)
    return build_config({name: {**chosen[name], **given[name]} for name in SECTIONS})


def find_kind(layers: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
    """Return the kind of model that the last layer to name one asks for."""
    kind = DEFAULT_KIND
    for origin, layer in layers:
        section = layer.get("model", {})
        if isinstance(section, Mapping) and "kind" in section:
            try:
                kind = section["kind"]
                model_section(kind)
            except SeqtoolError as error:
                raise SeqtoolError(f"{origin}: [model] {error}") from None
    return kind


def preset_for_kind(values: Values, kind: str) -> Values:
    """Return what a preset gives one kind of model: its tables [KIND.section] over those that are for all kinds.

    Keys of [model] that are another kind's are left out.
    """
    common = {name: dict(section) for name, section in values.items() if name not in KINDS}
    for name, section in values.get(kind, {}).items():
        common.setdefault(name, {}).update(section)
    if kind != DEFAULT_KIND:
        known = {field.name for field in dataclasses.fields(model_section(kind))}
        common["model"] = {key: value for key, value in common.get("model", {}).items() if key in known}
    return common


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
    read = read_toml(path)
    _merge(values, read, str(path), find_kind([(str(path), read)]))
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
    kind = values.get("model", {}).get("kind", DEFAULT_KIND)
    for name, section in section_classes(kind).items():
        try:
            sections[name] = section(**values.get(name, {}))
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
    if 0 < config.model.position_limit <= config.data.max_tokens:
        raise SeqtoolError(
            f"[model] 'max_positions' must exceed data.max_tokens ({config.data.max_tokens}) where positions are "
            f"learned, but it is {config.model.position_limit}"
        )


def section_classes(kind: str) -> dict[str, Any]:
    """Return the class of each section for a kind of model."""
    return {**SECTIONS, "model": model_section(kind)}


def _merge(values: Values, layer: Mapping[str, Any], origin: str, kind: str) -> None:
    """Lay one layer's values over the ones so far, naming the layer in any error."""
    classes = section_classes(kind)
    for name, section in layer.items():
        if name not in SECTIONS:
            raise SeqtoolError(f"{origin}: there is no section [{name}]{suggest(name, SECTIONS)}")
        if not isinstance(section, Mapping):
            raise SeqtoolError(f"{origin}: [{name}] must be a section with keys, not {section!r}")
        known = {field.name: field for field in dataclasses.fields(classes[name])}
        hints = typing.get_type_hints(classes[name])
        for key, value in section.items():
            if key not in known:
                raise SeqtoolError(f"{origin}: [{name}] has no key '{key}'{_suggest_key(name, key, known, kind)}")
            try:
                check_value(known[key], hints[key], value)
            except SeqtoolError as error:
                raise SeqtoolError(f"{origin}: [{name}] {error}") from None
            values[name][key] = value


def _suggest_key(section: str, key: str, known: Iterable[str], kind: str) -> str:
    """Say where this very key belongs, or else name the nearest key of the section where it was given."""
    kinds = [name for name, model in KINDS.items() if key in {field.name for field in dataclasses.fields(model)}]
    if section == "model" and kinds:
        return f" when kind is '{kind}'; it is a setting of {', '.join(kinds)}"
    classes = section_classes(kind)
    homes = [name for name, part in classes.items() if key in {field.name for field in dataclasses.fields(part)}]
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
