"""Arguments and options that several commands share, so that they read and behave the same everywhere."""

from pathlib import Path
from typing import Annotated

import typer

CorpusArgument = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[CORPUS]...",
        help="One file with pairs (TSV, TMX, CSV, JSONL, PO, zip or tgz; columns as in a.csv:en:de), or two aligned "
        "files, source then target; also .gz, .xz or .zst.",
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
MoreCorporaOption = Annotated[
    list[str] | None,
    typer.Option(
        "--corpus",
        metavar="FILES[@WEIGHT]",
        help="A further corpus to mix in: a.tsv@0.5 or a.en,a.de@2.",
        show_default=False,
    ),
]
ValidOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--valid",
        metavar="FILE",
        help="Validation pairs: one file with pairs, or given twice, source then target.",
        show_default=False,
    ),
]
AgainstOption = Annotated[
    list[str] | None,
    typer.Option(
        "--against",
        metavar="FILE",
        help="A validation or test set whose lines must not be in the corpus: one file with pairs, or given twice, "
        "source then target; further sets as SOURCE,TARGET.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
