"""Registers commands with the application, in the order in which the help lists them."""

from importlib import import_module
from keyword import iskeyword

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
    """Add the command that is called, where the first argument names one; else all. One alone starts sooner."""
    for name in (first_argument,) if first_argument in COMMANDS else COMMANDS:
        function = f"{name}_" if iskeyword(name) else name
        command = getattr(import_module(f"seqtool.cli.{function}"), function)
        if isinstance(command, typer.Typer):
            app.add_typer(command)
        else:
            app.command(name)(command)
