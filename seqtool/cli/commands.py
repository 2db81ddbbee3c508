"""Registers commands with the application, in the order in which the help lists them."""

import functools
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from importlib import import_module
from inspect import Parameter, getdoc, signature
from keyword import iskeyword
from typing import Any

import typer

# Each lives in a file of its name, as a function of its name, and imports what is heavy only when it runs. A name that
# is a keyword of Python has an underscore behind it there.
COMMANDS = (
    "train",
    "translate",
    "serve",
    "eval",
    "tokenizer",
    "prepare",
    "check",
    "split",
    "score",
    "average",
    "export",
    "import",
    "report",
    "info",
)


def register(app: typer.Typer, first_argument: str | None) -> None:
    """Register the command that the first argument names, which starts faster than all; without one, register all."""
    for name in (first_argument,) if first_argument in COMMANDS else COMMANDS:
        function = f"{name}_" if iskeyword(name) else name
        command = getattr(import_module(f"seqtool.cli.{function}"), function)
        if isinstance(command, typer.Typer):
            app.add_typer(command)
        else:
            app.command(name, help=unwrap(getdoc(command) or ""))(with_groups(command))


def unwrap(text: str) -> str:
    """Join the lines of each paragraph, so that a help text is broken as the terminal is wide."""
    return re.sub(r"(?<!\n)\n(?!\n)", " ", text)


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that has an option for each field of those of its parameters that are dataclasses."""
    form = signature(command)
    groups: dict[str, Any] = {
        name: one.annotation for name, one in form.parameters.items() if is_dataclass(one.annotation)
    }

    @functools.wraps(command)
    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        command(**given)

    parameters: list[Parameter] = []
    for name, one in form.parameters.items():
        options = fields(groups[name]) if name in groups else ()
        parameters += [one.replace(name=o.name, default=o.default, annotation=o.type) for o in options] or [one]
    run.__signature__ = form.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run
