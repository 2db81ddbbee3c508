"""Arguments and options that several commands share, so that they read and behave the same everywhere."""

from pathlib import Path
from typing import Annotated

import typer

CorpusArgument = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[CORPUS]...",
        help="One TSV file (source<TAB>target) or two aligned files, source then target; also .gz, .xz or .zst.",
        show_default=False,
    ),
]
ModelOption = Annotated[
    list[Path],
    typer.Option(
        "-m", "--model", metavar="DIR", help="A run directory with a trained model; several make an ensemble."
    ),
]
ConfigOption = Annotated[Path | None, typer.Option("--config", metavar="FILE.toml", help="Settings to start from.")]
PresetOption = Annotated[
    str, typer.Option("--preset", metavar="NAME", help="tiny, small, base, big, or auto (fits the corpus).")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Change one setting; may be repeated.", show_default=False),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
