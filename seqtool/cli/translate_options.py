"""The options that only `seqtool translate` has, one name each, so that the command's signature stays readable."""

from pathlib import Path
from typing import Annotated

import typer

FILES, SEARCH, SAMPLING, ENGINE = "Input and output", "Search", "Sampling", "Engine"


def _option(panel: str, name: str, help: str, metavar: str | None = None, low: float | None = None) -> object:
    names = name.split("/")
    return typer.Option(*names, help=help, metavar=metavar, min=low, rich_help_panel=panel, show_default=False)


Input = Annotated[Path | None, _option(FILES, "-i/--input", "Translate this file (.gz, .xz, .zst too).", "FILE")]
Output = Annotated[
    Path | None, _option(FILES, "-o/--output", "Write to this file, which appears when all is done.", "FILE")
]
Resume = Annotated[bool, _option(FILES, "--resume", "Continue an interrupted --output.")]
Json = Annotated[
    bool,
    _option(FILES, "--json", "Print one JSON object per line: text, score, tokens, alignment (source, target token)."),
]
TokenScores = Annotated[
    bool, _option(FILES, "--token-scores", "With --json: add the log-probability of each token and of the end.")
]
NBest = Annotated[
    int,
    _option(
        FILES,
        "--n-best",
        "Print the N best translations of each line: line number, score and text, separated by tabs.",
        low=1,
    ),
]
ShowAttention = Annotated[
    Path | None,
    _option(FILES, "--show-attention", "Draw what the first line looked at: an SVG file, or - for text.", "FILE"),
]

CoveragePenalty = Annotated[
    float | None, _option(SEARCH, "--coverage-penalty", "Weight of the GNMT coverage penalty.", low=0)
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

Compile = Annotated[
    bool, _option(ENGINE, "--compile", "torch.compile the model (torch engine); slow to start, for large inputs.")
]
