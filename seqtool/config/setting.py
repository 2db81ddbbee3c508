"""One setting: its default, its help text and the values it may take; and the check of a value against them."""

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Callable
from typing import Any

from seqtool.errors import SeqtoolError, suggest
from seqtool.visible import show_value


@functools.cache
def field_types(kind: Any) -> dict[str, Any]:
    """Return the types of a class's fields by name; resolving them is slow, and done once."""
    return typing.get_type_hints(kind)


def setting(
    default: Any,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
    words: tuple[str, ...] = (),
    choices_of: Callable[[], tuple[str, ...]] | None = None,
) -> Any:
    """Declare a field: numbers lie in [low, high], a text is one of choices; words may stand for a number.

    `choices_of` returns the choices, if they are known only later.
    """
    choices_of = choices_of or (lambda: choices)
    metadata = {"help": help, "low": low, "high": high, "choices": choices_of, "words": words}
    return dataclasses.field(default=default, metadata=metadata)


def check_section(section: Any) -> None:
    """Check every field of a section; called from __post_init__, so that no section can hold a bad value."""
    hints = field_types(section.__class__)
    for field in dataclasses.fields(section):
        value = check_value(field, hints[field.name], getattr(section, field.name))
        object.__setattr__(section, field.name, value)


def check_value(field: dataclasses.Field[Any], hint: Any, value: Any) -> Any:
    """Return the value in its field's type, or raise an error that names the field and what it may be."""
    allowed = list(typing.get_args(hint)) if isinstance(hint, types.UnionType) else [hint]
    words = field.metadata["words"]
    if isinstance(value, int) and not isinstance(value, bool) and float in allowed and int not in allowed:
        value = float(value)
    if typing.get_origin(allowed[0]) is tuple:
        return _check_list(field, value)
    if type(value) not in allowed or (isinstance(value, str) and words and value not in words):
        raise SeqtoolError(f"'{field.name}' must be {describe_type(allowed, words)}, not {show_value(value)}")
    if isinstance(value, str):
        choices = field.metadata["choices"]()
        if choices and value not in choices:
            raise SeqtoolError(f"'{field.name}' has no choice {show_value(value)}{suggest(value, choices)}")
    elif isinstance(value, int | float):
        _check_range(field, value)
    return value


def _check_list(field: dataclasses.Field[Any], value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise SeqtoolError(f"'{field.name}' must be a list of texts, not {show_value(value)}")
    return tuple(value)


def _check_range(field: dataclasses.Field[Any], value: float) -> None:
    low, high = field.metadata["low"], field.metadata["high"]
    is_finite = value == value and abs(value) != math.inf
    if not is_finite or (low is not None and value < low) or (high is not None and value > high):
        bounds = f"at least {low}" if high is None else f"at most {high}" if low is None else f"from {low} to {high}"
        finite = "" if is_finite or high is not None else " and finite"
        raise SeqtoolError(f"'{field.name}' must be {bounds}{finite}, not {show_value(value)}")


def describe_type(allowed: list[Any], words: tuple[str, ...] = ()) -> str:
    """Name the types of a setting for a person: "a whole number or 'auto'"."""
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
    parts = [names[kind] for kind in allowed if not (kind is str and words)]
    return " or ".join(parts + [repr(word) for word in words])
