"""The options of `seqtool translate`, one name an option, so that the command's signature stays readable."""

from pathlib import Path
from typing import Annotated

import typer

FILES, SEARCH, SAMPLING, MACHINE = "Input and output", "Search", "Sampling", "Engine"


def _option(panel: str, name: str, help: str, metavar: str | None = None, low: float | None = None) -> object:
    names = name.split("/")
    return typer.Option(*names, help=help, metavar=metavar, min=low, rich_help_panel=panel, show_default=False)


Input = Annotated[Path | None, _option(FILES, "-i/--input", "Translate this file (.gz, .xz, .zst too).", "FILE")]
Output = Annotated[
    Path | None, _option(FILES, "--output", "Write to this file, which appears when all is done.", "FILE")
]
Resume = Annotated[bool, _option(FILES, "--resume", "Continue an interrupted --output.")]
Json = Annotated[
    bool, _option(FILES, "--json", "Print an object a line: text, score, tokens, alignment (source, target token).")
]
TokenScores = Annotated[
    bool, _option(FILES, "--token-scores", "With --json: add the log-probability of each token and of the end.")
]
NBest = Annotated[
    int, _option(FILES, "--n-best", "Print so many translations a line: line number, score, text, with tabs.", low=1)
]
ShowAttention = Annotated[
    Path | None,
    _option(FILES, "--show-attention", "Draw what the first line looked at: an SVG file, or - for text.", "FILE"),
]

Beam = Annotated[int | None, _option(SEARCH, "--beam", "Beam width (1: greedy).", low=1)]
LengthPenalty = Annotated[
    float | None,
    _option(SEARCH, "--length-penalty", "Exponent of the GNMT length penalty (0: none, at most 10).", low=0),
]
CoveragePenalty = Annotated[
    float | None, _option(SEARCH, "--coverage-penalty", "Weight of the GNMT coverage penalty.", low=0)
]
MaxLengthRatio = Annotated[
    float | None, _option(SEARCH, "--max-length-ratio", "Most target tokens for a source token (plus 16).", low=0.1)
]
Patience = Annotated[
    float | None,
    _option(
        SEARCH, "--patience", "Search until beam times this many translations ended (inf: until none can be better)."
    ),
]
NoRepeatNgram = Annotated[
    int | None, _option(SEARCH, "--no-repeat-ngram", "Never repeat a phrase of this many tokens.", low=0)
]
DiverseGroups = Annotated[
    int | None, _option(SEARCH, "--diverse-groups", "Search in groups that avoid each other's words.", low=1)
]
Diversity = Annotated[float | None, _option(SEARCH, "--diversity", "How much the groups avoid each other.", low=0)]
Prefix = Annotated[str, _option(SEARCH, "--prefix", "Begin every translation with this text.", "TEXT")]
Ban = Annotated[list[str] | None, _option(SEARCH, "--ban", "Never use this word (one token); may be repeated.", "WORD")]
Require = Annotated[
    list[str] | None,
    _option(SEARCH, "--require", "Use this word (one token), in each part of a split line; may be repeated.", "WORD"),
]

Sample = Annotated[bool, _option(SAMPLING, "--sample", "Draw words by their probability instead of searching.")]
Temperature = Annotated[float | None, _option(SAMPLING, "--temperature", "Above 1 bolder, below 1 more careful.")]
TopK = Annotated[int | None, _option(SAMPLING, "--top-k", "Draw from the k most probable words.", low=0)]
TopP = Annotated[float | None, _option(SAMPLING, "--top-p", "Draw from the words that make up this probability.")]
Seed = Annotated[int | None, _option(SAMPLING, "--seed", "The same seed draws the same words.", low=0)]

Engine = Annotated[str, _option(MACHINE, "--engine", "auto, torch or ctranslate2.", "NAME")]
Device = Annotated[str, _option(MACHINE, "--device", "auto, cpu, cuda or mps.", "NAME")]
Threads = Annotated[int, _option(MACHINE, "--threads", "CPU threads (default: all cores).", low=0)]
BatchTokens = Annotated[
    int | None, _option(MACHINE, "--batch-tokens", "Source tokens translated at once, at most.", low=1)
]
ComputeType = Annotated[
    str,
    _option(
        MACHINE,
        "--compute-type",
        "Arithmetic: float32, bfloat16, float16, and int8, ... with ctranslate2; auto is the quickest of the device "
        "(bfloat16 or float16 on a GPU). Without it as exported, and float32 with torch.",
        "NAME",
    ),
]
Compile = Annotated[
    bool, _option(MACHINE, "--compile", "torch.compile the model (torch engine); slow to start, for large inputs.")
]
