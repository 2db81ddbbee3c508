"""Reads and checks settings: those of presets, of TOML files and of the texts of --set."""

import dataclasses
import re
import tomllib
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from seqtool.config.configuration import SECTIONS, Config, build_config, section_classes
from seqtool.config.model import DEFAULT_KIND, KINDS, model_section
from seqtool.config.setting import check_value, field_types
from seqtool.demo import demo_folder
from seqtool.errors import SeqtoolError, suggest
from seqtool.verification import read_limited
from seqtool.visible import show_value

PRESETS = ("auto", "tiny", "small", "base", "big", "demo")
FORMER_VALUES = {("train.shard", "optimizer"): "model"}  # of earlier versions, and what does their work now
MAX_BYTES = 64 * 1024  # of a configuration file
# Python's reader takes quadratic time for these, and a setting has two parts.
LONG_KEY = re.compile(r"(?<![\w\-\"'])(?:[\w\-\"']+[ \t]*\.[ \t]*){16}")


class Layer(NamedTuple):
    """Settings from one place, by section and key, as they were read."""

    origin: str  # the name of the place in messages: a file, an option, a preset
    values: Mapping[str, Any]


class Entry(NamedTuple):
    """The value of one setting, and where it came from."""

    value: Any
    origin: str


def read_preset(name: str) -> Layer:
    """Read a preset that ships with the package."""
    if name == "demo":
        return read_toml(demo_folder() / "demo.toml")._replace(origin="preset demo")
    if name not in PRESETS:
        raise SeqtoolError(f"there is no preset '{name}'{suggest(name, PRESETS)}")
    text = (resources.files("seqtool.config") / "presets" / f"{name}.toml").read_text(encoding="utf-8")
    return Layer(f"preset {name}", tomllib.loads(text))


def read_toml(path: Path, *, stream: bool = False) -> Layer:
    """Read a configuration file, or a pipe if `stream` allows it; the content is checked when it is merged."""
    try:
        text = read_limited(path, MAX_BYTES, stream=stream).decode("utf-8")
        if LONG_KEY.search(text):
            raise SeqtoolError(f"{path}: not a configuration: it has a key of many parts; write section.key")
        return Layer(str(path), tomllib.loads(text))
    except FileNotFoundError:
        raise SeqtoolError(f"{path}: no such configuration file; check the path") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SeqtoolError(f"{path}: cannot be read as a configuration file ({error})") from None
    except (ValueError, RecursionError) as error:  # a number of too many digits, or too many brackets
        raise SeqtoolError(f"{path}: not valid TOML: {error}") from None


def load_config(path: Path) -> Config:
    """Read the complete configuration of a run directory."""
    layer = read_toml(path)
    entries = merge([layer], find_kind([layer]))
    return build_config({name: entry.value for name, entry in entries.items()})


def parse_flag(flag: str) -> Layer:
    """Read "section.key=value" that was given by an option with the name of the key."""
    return Layer(f"--{flag.partition('=')[0].partition('.')[2]}", parse_override(flag))


def parse_override(override: str) -> dict[str, dict[str, Any]]:
    """Read "section.key=value", the text of a --set; a value is TOML, and a bare word is a text."""
    name, equals, text = override.partition("=")
    section, dot, key = name.strip().partition(".")
    if not (equals and dot and section and key):
        from seqtool.config.peers import find_setting

        example = f"{find_setting(name.strip()) or 'train.lr'}={text if equals and text else '3e-4'}"
        raise SeqtoolError(f"--set {override}: write it as section.key=value, for example {example}")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        value = text.strip()
    return {section: {key: value}}


def find_kind(layers: Iterable[Layer]) -> str:
    """Return the kind of model that the last layer to name one asks for."""
    kind = DEFAULT_KIND
    for origin, values in layers:
        section = values.get("model", {})
        if isinstance(section, Mapping) and "kind" in section:
            try:
                kind = section["kind"]
                model_section(kind)
            except SeqtoolError as error:
                raise SeqtoolError(f"{origin}: [model] {error}") from None
    return kind


def preset_for_kind(preset: Layer, kind: str) -> Layer:
    """Return what a preset gives one kind of model: its tables [KIND.section] over those that are for all kinds.

    Keys of [model] that are another kind's are left out.
    """
    common = {name: dict(section) for name, section in preset.values.items() if name not in KINDS}
    for name, section in preset.values.get(kind, {}).items():
        common.setdefault(name, {}).update(section)
    if kind != DEFAULT_KIND:
        known = {field.name for field in dataclasses.fields(model_section(kind))}
        common["model"] = {key: value for key, value in common.get("model", {}).items() if key in known}
    return Layer(preset.origin, common)


def merge(layers: Iterable[Layer], kind: str) -> dict[str, Entry]:
    """Return the settings of some layers by name, a later layer over an earlier one; an error names the layer."""
    entries: dict[str, Entry] = {}
    classes = section_classes(kind)
    for origin, values in layers:
        for name, section in values.items():
            if name not in SECTIONS:
                raise SeqtoolError(f"{origin}: there is no section [{name}]{suggest(name, SECTIONS)}")
            if not isinstance(section, Mapping):
                raise SeqtoolError(f"{origin}: [{name}] must be a section with keys, not {show_value(section)}")
            known = {field.name: field for field in dataclasses.fields(classes[name])}
            hints = field_types(classes[name])
            for key, value in section.items():
                if key not in known:
                    raise SeqtoolError(f"{origin}: [{name}] has no key '{key}'{_suggest_key(name, key, known, kind)}")
                if isinstance(value, str):
                    value = FORMER_VALUES.get((f"{name}.{key}", value), value)
                try:
                    entries[f"{name}.{key}"] = Entry(check_value(known[key], hints[key], value), origin)
                except SeqtoolError as error:
                    raise SeqtoolError(f"{origin}: [{name}] {error}") from None
    return entries


def _suggest_key(section: str, key: str, known: Iterable[str], kind: str) -> str:
    """Return the section that has this key, or else the nearest key of the section in which it was given."""
    kinds = [name for name, model in KINDS.items() if key in {field.name for field in dataclasses.fields(model)}]
    if section == "model" and kinds:
        return f" when kind is '{kind}'; it is a setting of {', '.join(kinds)}"
    classes = section_classes(kind)
    homes = [name for name, part in classes.items() if key in {field.name for field in dataclasses.fields(part)}]
    if homes:
        return f"; did you mean {homes[0]}.{key}?"
    from seqtool.config.peers import SAID, find_setting

    if key in SAID:
        return f"; {SAID[key]}"
    named = find_setting(key)
    return f"; did you mean {named}?" if named else suggest(key, known)
