"""The options that only `seqtool eval` has, so that the command's signature stays readable."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from seqtool.evaluation.scores.evaluation import ComparisonPlan
    from seqtool.evaluation.scores.metrics import MetricOptions

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
Worst = Annotated[
    int,
    typer.Option(
        "--worst", min=0, help="Show this many of the worst lines; with --vs also of the lines that differ most."
    ),
]
Output = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the translation to this file.")
]
Record = Annotated[bool, typer.Option("--record", help="Write the scores into the model's manifest.json.")]


def _option(panel: str, help: str, *names: str, metavar: str | None = None, low: float | None = None) -> Any:
    return typer.Option(*names, help=help, metavar=metavar, min=low, rich_help_panel=panel)


_metric, _comparison = partial(_option, "Metrics, as in sacreBLEU"), partial(_option, "Comparison")


@dataclass(frozen=True, kw_only=True)
class MetricGroup:
    """Which metrics to compute, and how."""

    metrics: Annotated[list[str] | None, _metric("bleu, chrf, chrf++, ter; comma-separated.", metavar="NAMES")] = None
    tokenize: Annotated[str | None, _metric("BLEU's tokenizer: 13a, intl, zh, char, ...", metavar="NAME")] = None
    lowercase: Annotated[bool, _metric("BLEU that ignores case.", "--lowercase")] = False
    smooth_method: Annotated[str, _metric("BLEU's smoothing: exp, floor, add-k or none.", metavar="NAME")] = "exp"
    smooth_value: Annotated[float | None, _metric("For floor and add-k.")] = None
    chrf_char_order: Annotated[int, _metric("chrF's character n-gram order.", low=1)] = 6
    chrf_word_order: Annotated[int, _metric("chrF's word n-gram order; 2 makes it chrF++.", low=0)] = 0
    chrf_beta: Annotated[int, _metric("chrF's weight of recall.", low=1)] = 2
    chrf_whitespace: Annotated[bool, _metric("chrF that counts spaces.", "--chrf-whitespace")] = False
    chrf_lowercase: Annotated[bool, _metric("chrF that ignores case.", "--chrf-lowercase")] = False
    ter_case_sensitive: Annotated[bool, _metric("TER that does not ignore case.", "--ter-case-sensitive")] = False
    ter_asian_support: Annotated[bool, _metric("TER with East Asian characters split.", "--ter-asian-support")] = False
    ter_no_punct: Annotated[bool, _metric("TER that ignores punctuation.", "--ter-no-punct")] = False
    ter_normalized: Annotated[bool, _metric("TER on normalised and tokenized text.", "--ter-normalized")] = False
    confidence: Annotated[bool, _metric("Add 95 % confidence intervals by bootstrap.", "--confidence")] = False
    confidence_n: Annotated[int, _metric("Resamples for --confidence.", low=2)] = 1000
    width: Annotated[int | None, _metric("Decimals (default: 1, in JSON all).", low=0)] = None

    def options(self, target_language: str) -> "MetricOptions":
        """Return the options, checked."""
        from seqtool.evaluation.scores.metrics import METRIC_NAMES, MetricOptions

        listed = (name.strip().lower() for names in self.metrics or METRIC_NAMES for name in names.split(","))
        values = {
            **vars(self),
            "metrics": tuple(dict.fromkeys(filter(None, listed))),
            "target_language": target_language,
            "confidence": self.confidence_n if self.confidence else 0,
            "width": 1 if self.width is None else self.width,
        }
        del values["confidence_n"]
        return MetricOptions(**values)


@dataclass(frozen=True, kw_only=True)
class ComparisonGroup:
    """Which significance tests to run."""

    paired_bs: Annotated[bool, _comparison("Only the paired bootstrap test.", "--paired-bs")] = False
    paired_ar: Annotated[bool, _comparison("Only paired approximate randomization.", "--paired-ar")] = False
    paired_bs_n: Annotated[int, _comparison("Resamples of the bootstrap test.", low=2)] = 1000
    paired_ar_n: Annotated[int, _comparison("Trials of approximate randomization.", low=2)] = 10000

    def plan(self) -> "ComparisonPlan":
        """Return the tests: those that are chosen, or all."""
        from seqtool.evaluation.scores.evaluation import ComparisonPlan

        chosen = tuple(name for name, wanted in (("bs", self.paired_bs), ("ar", self.paired_ar)) if wanted)
        return ComparisonPlan(tests=chosen or ("bs", "ar"), n_resamples=self.paired_bs_n, n_trials=self.paired_ar_n)
