"""Arguments and options that several commands share, so that they read and behave the same everywhere.

A class is a group of options: a command that has a parameter of its type has an option for each field.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from seqtool.translation.engines.settings import EngineSettings

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
    list[str] | None,
    typer.Option(
        "--valid",
        metavar="FILE",
        help="Validation pairs: one file with pairs, or given twice, source then target. Further sets are only "
        "reported; the first chooses the model.",
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


def in_panel(panel: str, help: str, *names: str, metavar: str | None = None, low: float | None = None) -> Any:
    """Return an option for a panel of a long help text; its name is that of its parameter unless names are given."""
    return typer.Option(*names, help=help, metavar=metavar, min=low, rich_help_panel=panel, show_default=False)


SPLIT_HELP = (
    "Translate each sentence of a line by itself: always, never, or auto (if the model was trained on single "
    "sentences)."
)
COMPUTE_HELP = (
    "Number type: float32, bfloat16, float16; with ctranslate2 also int8, ...; auto is the fastest of the device "
    "(bfloat16 or float16 on a GPU). Default: as exported, or float32 with torch."
)
_search, _engine = partial(in_panel, "Search"), partial(in_panel, "Engine")


@dataclass(frozen=True, kw_only=True)
class SearchGroup:
    """The options of a search that every command which translates has."""

    beam: Annotated[int | None, _search("Beam width (1: greedy).", low=1)] = None
    length_penalty: Annotated[
        float | None, _search("Exponent of the GNMT length penalty (0: none, at most 10).", low=0)
    ] = None
    max_length_ratio: Annotated[float | None, _search("Most target tokens per source token (plus 16).", low=0.1)] = None
    split: Annotated[str | None, _search(SPLIT_HELP, metavar="WHEN")] = None


@dataclass(frozen=True, kw_only=True)
class EngineGroup:
    """Which engine translates, and how it computes."""

    engine: Annotated[str, _engine("auto, torch or ctranslate2.", metavar="NAME")] = "auto"
    device: Annotated[str, _engine("auto, cpu, cuda or mps.", metavar="NAME")] = "auto"
    threads: Annotated[int, _engine("CPU threads (0: all cores).", low=0)] = 0
    batch_tokens: Annotated[int | None, _engine("Most source tokens in a batch.", low=1)] = None
    compute_type: Annotated[str, _engine(COMPUTE_HELP, metavar="NAME")] = "default"

    def settings(self, compile: bool = False) -> "EngineSettings":
        """Return the settings, checked."""
        from seqtool.translation.engines.settings import EngineSettings

        return EngineSettings(**vars(self), compile=compile)
