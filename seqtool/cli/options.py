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


def _grouped(panel: str, name: str, help: str, metavar: str | None = None, low: float | None = None) -> object:
    return typer.Option(name, help=help, metavar=metavar, min=low, rich_help_panel=panel, show_default=False)


BeamOption = Annotated[int | None, _grouped("Search", "--beam", "Beam width (1: greedy).", low=1)]
LengthPenaltyOption = Annotated[
    float | None,
    _grouped("Search", "--length-penalty", "Exponent of the GNMT length penalty (0: none, at most 10).", low=0),
]
MaxLengthRatioOption = Annotated[
    float | None,
    _grouped("Search", "--max-length-ratio", "Most target tokens per source token (plus 16).", low=0.1),
]
SplitOption = Annotated[
    str | None,
    typer.Option(
        "--split",
        metavar="WHEN",
        help="Translate each sentence of a line by itself: always, never, or auto (if the model was trained on single "
        "sentences).",
        rich_help_panel="Search",
        show_default=False,
    ),
]
EngineOption = Annotated[str, _grouped("Engine", "--engine", "auto, torch or ctranslate2.", "NAME")]
DeviceOption = Annotated[str, _grouped("Engine", "--device", "auto, cpu, cuda or mps.", "NAME")]
ThreadsOption = Annotated[int, _grouped("Engine", "--threads", "CPU threads (0: all cores).", low=0)]
BatchTokensOption = Annotated[int | None, _grouped("Engine", "--batch-tokens", "Most source tokens in a batch.", low=1)]
ComputeTypeOption = Annotated[
    str,
    _grouped(
        "Engine",
        "--compute-type",
        "Number type: float32, bfloat16, float16; with ctranslate2 also int8, ...; auto is the fastest of the device "
        "(bfloat16 or float16 on a GPU). Default: as exported, or float32 with torch.",
        "NAME",
    ),
]
