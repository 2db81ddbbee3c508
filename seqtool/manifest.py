"""The manifest of a model: checksums of its files, what it was made of and how, its scores.

It is a JSON object, and these dataclasses name what is in it. What a manifest lacks is None here; what it holds beyond
these names is kept in `others` and written again.
"""

import dataclasses
import typing
from dataclasses import dataclass, field
from types import NoneType, UnionType
from typing import Any, TypeVar

from seqtool.config.setting import field_types
from seqtool.visible import show_value

FORMAT = 1
T = TypeVar("T")


def _or_null() -> Any:
    """Declare a field that is written as null, not left out, if it is None."""
    return field(default=None, metadata={"null": True})


@dataclass(frozen=True, kw_only=True)
class DataFacts:
    """What a model was trained on."""

    fingerprint: str | None = None
    pairs: int | None = None  # for training
    read: int | None = None  # before cleaning
    cleaning: dict[str, int] | None = None  # pairs that each rule dropped
    validation_pairs: int | None = None
    sources: tuple[Any, ...] | None = None  # paths
    text: dict[str, Any] | None = None  # scripts of both sides, and the share of sources that are a single sentence
    others: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ModelFacts:
    """Which weights became the model."""

    parameters: int | None = None
    source: str | None = None  # such as "average of 5 checkpoints"
    step: int | None = None
    candidates: dict[str, float] | None = None  # what each reached in validation
    averaged: tuple[dict[str, str], ...] | None = None  # file and checksum of each
    length_penalty: float | None = _or_null()  # as validation chose it
    others: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ScoreEntry:
    """A score, with all that it takes to reproduce it."""

    set: str | None = None
    metric: str | None = None
    score: float
    signature: str | None = None
    set_sha256: str | None = None
    decoding: dict[str, Any] | None = None
    others: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class TrainingFacts:
    """How long and how far a model was trained."""

    steps: int | None = None
    epochs: float | None = _or_null()
    minutes: float | None = _or_null()
    tokens: int | None = None
    planned_steps: int | None = None
    device: str | None = None
    precision: str | None = None  # of the arithmetic, as 'auto' was resolved
    threads: int | None = None
    finished: str | bool | None = None  # by which budget
    others: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ParentFacts:
    """The model that a training started from."""

    path: str | None = None
    sha256: str | None = None  # of its weights
    source: str | None = None  # which weights these were
    step: int | None = None
    scores: tuple[ScoreEntry, ...] = ()  # those that its own manifest has
    before: tuple[ScoreEntry, ...] = ()  # its scores on the validation sets of this training
    share: float | None = None  # of it in the model, where the two were interpolated
    others: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """All that a model's folder records of itself."""

    format: int | None = None
    seqtool: str | None = None  # the version that made it
    created: str | None = None
    files: dict[str, str] = field(default_factory=dict)  # checksums by name
    settings_sha256: str | None = None  # of config.toml without its [decode], which may be changed
    versions: dict[str, str] = field(default_factory=dict)
    data: DataFacts = DataFacts()
    model: ModelFacts = ModelFacts()
    scores: tuple[ScoreEntry, ...] = ()
    training: TrainingFacts | None = None
    parent: ParentFacts | None = None  # of a model that was fine-tuned
    complete: bool | None = None  # False until all that belongs to the model is written
    sha256: str | None = field(default=None, compare=False)  # of all the rest
    others: dict[str, Any] = field(default_factory=dict)


def to_plain(value: Any) -> Any:
    """Return a manifest, or a part of one, as JSON has it; what is None is left out."""
    if dataclasses.is_dataclass(value):
        parts = {one.name: (getattr(value, one.name), "null" in one.metadata) for one in dataclasses.fields(value)}
        others, _ = parts.pop("others")
        known = {name: to_plain(part) for name, (part, or_null) in parts.items() if part is not None or or_null}
        return {**known, **others}
    if isinstance(value, tuple):
        return [to_plain(one) for one in value]
    return value


def from_plain(kind: type[T], content: Any, place: str = "") -> T:
    """Read a manifest, or a part of one, from JSON; raise ValueError that says where a value has a wrong type."""
    if not isinstance(content, dict):
        raise ValueError(f"{place or 'it'} is no object")
    hints = field_types(typing.cast(Any, kind))
    values = {}
    for one in dataclasses.fields(kind):  # type: ignore[arg-type]
        name = f"{place}.{one.name}" if place else one.name
        if one.name in content and one.name != "others":
            values[one.name] = _convert(hints[one.name], content[one.name], name)
        elif one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING:
            raise ValueError(f"{name} is missing")
    others = {name: value for name, value in content.items() if name not in values}
    return typing.cast(Any, kind)(**values, others=others)


def _convert(hint: Any, value: Any, name: str) -> Any:
    """Return a JSON value as a field's type has it, or raise if it does not fit."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is UnionType:
        if value is None and NoneType in parts:
            return None
        fitting = next((part for part in parts if _fits(value, typing.get_origin(part) or part)), parts[0])
        return _convert(fitting, value, name)
    if dataclasses.is_dataclass(hint):
        return from_plain(typing.cast(type[Any], hint), value, name)
    if not _fits(value, origin or hint):
        raise ValueError(f"{name} is {show_value(value)}")
    if origin is tuple:
        return tuple(_convert(parts[0], one, f"{name}[{index}]") for index, one in enumerate(value))
    if origin is dict:
        return {key: _convert(parts[1], part, f"{name}.{key}") for key, part in value.items()}
    return value


def _fits(value: Any, kind: Any) -> bool:
    if kind is Any or isinstance(value, bool):
        return kind in (Any, bool)
    wider: dict[Any, Any] = {float: (int, float), tuple: list}
    return isinstance(value, wider.get(kind, kind))
