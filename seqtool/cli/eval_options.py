"""The options that only `seqtool eval` has, one name each, so that the command's signature stays readable."""

from pathlib import Path
from typing import Annotated

import typer

METRICS, COMPARISON = "Metrics, as in sacreBLEU", "Comparison"

Files = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[SRC] REF...",
        help="Source and reference(s), with --hyp only reference(s); or one file with both, such as a TSV.",
        show_default=False,
    ),
]
Models = Annotated[
    list[Path] | None,
    typer.Option("-m", "--model", metavar="DIR", help="The model to score; several make an ensemble."),
]
Hyp = Annotated[Path | None, typer.Option("--hyp", metavar="FILE", help="Score this translation, not a model's.")]
Source = Annotated[Path | None, typer.Option("--source", metavar="FILE", help="The source that belongs to --hyp.")]
Versus = Annotated[
    list[Path] | None,
    typer.Option("--vs", metavar="DIR|FILE", help="Compare with this model or translation; may be repeated."),
]
TestSet = Annotated[
    str | None, typer.Option("--test-set", metavar="NAME", help="One of sacreBLEU's test sets, such as wmt14.")
]
LangPair = Annotated[str | None, typer.Option("--langpair", metavar="SRC-TGT", help="Its languages, such as en-de.")]
PerSentence = Annotated[
    Path | None, typer.Option("--per-sentence", metavar="FILE", help="Write a TSV with a row for each sentence.")
]
Worst = Annotated[int, typer.Option("--worst", min=0, help="Show this many of the worst lines.")]
Output = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the translation to this file.")
]
Record = Annotated[bool, typer.Option("--record", help="Write the scores into the model's manifest.json.")]


def _metric(name: str, help: str, metavar: str | None = None, low: float | None = None) -> object:
    return typer.Option(name, help=help, metavar=metavar, min=low, rich_help_panel=METRICS)


Metrics = Annotated[list[str] | None, _metric("--metrics", "bleu, chrf, chrf++, ter; comma-separated.", "NAMES")]
Tokenize = Annotated[str | None, _metric("--tokenize", "BLEU's tokenizer: 13a, intl, zh, char, ...", "NAME")]
Lowercase = Annotated[bool, _metric("--lowercase", "BLEU without case.")]
SmoothMethod = Annotated[str, _metric("--smooth-method", "BLEU's smoothing: exp, floor, add-k or none.", "NAME")]
SmoothValue = Annotated[float | None, _metric("--smooth-value", "For floor and add-k.")]
ChrfCharOrder = Annotated[int, _metric("--chrf-char-order", "chrF's longest run of characters.", low=1)]
ChrfWordOrder = Annotated[int, _metric("--chrf-word-order", "chrF's longest run of words; 2 makes it chrF++.", low=0)]
ChrfBeta = Annotated[int, _metric("--chrf-beta", "chrF's weight of recall.", low=1)]
ChrfWhitespace = Annotated[bool, _metric("--chrf-whitespace", "chrF with spaces.")]
ChrfLowercase = Annotated[bool, _metric("--chrf-lowercase", "chrF without case.")]
TerCaseSensitive = Annotated[bool, _metric("--ter-case-sensitive", "TER with case.")]
TerAsianSupport = Annotated[bool, _metric("--ter-asian-support", "TER with East Asian characters split.")]
TerNoPunct = Annotated[bool, _metric("--ter-no-punct", "TER without punctuation.")]
TerNormalized = Annotated[bool, _metric("--ter-normalized", "TER on normalised and tokenized text.")]
Confidence = Annotated[bool, _metric("--confidence", "Add 95 % intervals by bootstrap.")]
ConfidenceN = Annotated[int, _metric("--confidence-n", "Resamples for --confidence.", low=2)]
Width = Annotated[int | None, _metric("--width", "Decimals; without it 1, and all of them in JSON.", low=0)]


def _comparison(name: str, help: str, low: float | None = None) -> object:
    return typer.Option(name, help=help, min=low, rich_help_panel=COMPARISON)


PairedBs = Annotated[bool, _comparison("--paired-bs", "Only the paired bootstrap test.")]
PairedAr = Annotated[bool, _comparison("--paired-ar", "Only paired approximate randomization.")]
PairedBsN = Annotated[int, _comparison("--paired-bs-n", "Resamples of the bootstrap test.", low=2)]
PairedArN = Annotated[int, _comparison("--paired-ar-n", "Trials of approximate randomization.", low=2)]
