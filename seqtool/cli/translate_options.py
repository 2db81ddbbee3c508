"""The options that only `seqtool translate` has, so that the command's signature stays readable."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from seqtool.cli.options import SearchGroup, in_panel

_file, _search, _sampling = (partial(in_panel, panel) for panel in ("Input and output", "Search", "Sampling"))

Input = Annotated[Path | None, _file("Translate this file (.gz, .xz, .zst too).", "-i", "--input", metavar="FILE")]
Output = Annotated[
    Path | None, _file("Write to this file, which appears when all is done.", "-o", "--output", metavar="FILE")
]
Resume = Annotated[bool, _file("Continue an interrupted --output.", "--resume")]
Json = Annotated[
    bool, _file("Print one JSON object per line: text, score, tokens, alignment (source, target token).", "--json")
]
TokenScores = Annotated[
    bool, _file("With --json: add the log-probability of each token and of the end.", "--token-scores")
]
NBest = Annotated[
    int,
    _file("Print the N best translations of each line: line number, score and text, separated by tabs.", low=1),
]
ShowAttention = Annotated[
    Path | None, _file("Draw the attention of the first line: an SVG file, or - for text.", metavar="FILE")
]
Prefix = Annotated[str, _search("Begin every translation with this text.", metavar="TEXT")]
Ban = Annotated[list[str] | None, _search("Never use this word (one token); may be repeated.", metavar="WORD")]
Require = Annotated[
    list[str] | None,
    _search("Use this word (one token), in each part of a split line; may be repeated.", metavar="WORD"),
]
Compile = Annotated[
    bool, in_panel("Engine", "torch.compile the model (torch engine); slow to start, for large inputs.", "--compile")
]


@dataclass(frozen=True, kw_only=True)
class FullSearchGroup(SearchGroup):
    """All options of a search but its words, by the names that they have in SearchOptions."""

    coverage_penalty: Annotated[float | None, _search("Weight of the GNMT coverage penalty.", low=0)] = None
    patience: Annotated[
        float | None,
        _search("Search until beam times this many hypotheses have ended (inf: until none can be better)."),
    ] = None
    no_repeat_ngram: Annotated[int | None, _search("Never repeat an n-gram of this many tokens (0: off).", low=0)] = (
        None
    )
    diverse_groups: Annotated[int | None, _search("Diverse beam search with this many groups.", low=1)] = None
    diversity: Annotated[float | None, _search("Penalty for tokens that other groups chose.", low=0)] = None
    sample: Annotated[bool, _sampling("Sample from the model's distribution instead of searching.", "--sample")] = False
    temperature: Annotated[
        float | None, _sampling("Of the softmax: above 1 more varied, below 1 more conservative.")
    ] = None
    top_k: Annotated[int | None, _sampling("Sample from the k most probable tokens (0: all).", low=0)] = None
    top_p: Annotated[
        float | None, _sampling("Sample from the most probable tokens that together have this probability.")
    ] = None
    seed: Annotated[int | None, _sampling("Random seed of the samples.", low=0)] = None
