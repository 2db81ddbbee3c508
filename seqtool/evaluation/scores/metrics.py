"""Scores through sacreBLEU, each with its signature; knows lines of text, neither models nor files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sacrebleu import BLEU, CHRF, TER
from sacrebleu.metrics.base import Metric, Score

from seqtool.errors import OptionError, SeqtoolError, suggest

METRIC_NAMES = ("bleu", "chrf", "chrf++", "ter")
METRIC_TITLES = {"bleu": "BLEU", "chrf": "chrF", "chrf++": "chrF++", "ter": "TER"}
HIGHER_IS_BETTER = {"bleu": True, "chrf": True, "chrf++": True, "ter": False}


@dataclass(frozen=True, kw_only=True)
class MetricOptions:
    """What to compute and how; names and defaults are those of the sacrebleu command."""

    metrics: tuple[str, ...] = METRIC_NAMES
    tokenize: str | None = None  # None: 13a, or what target_language needs
    target_language: str = ""
    lowercase: bool = False  # BLEU only, as in sacreBLEU
    smooth_method: str = "exp"
    smooth_value: float | None = None
    chrf_char_order: int = 6
    chrf_word_order: int = 0
    chrf_beta: int = 2
    chrf_whitespace: bool = False
    chrf_lowercase: bool = False
    ter_case_sensitive: bool = False
    ter_asian_support: bool = False
    ter_no_punct: bool = False
    ter_normalized: bool = False
    confidence: int = 0  # bootstrap resamples (0: no confidence interval)
    width: int = 1  # decimals in the text form
    force: bool = False  # no word from sacreBLEU about text that looks tokenized

    def __post_init__(self) -> None:
        if not self.metrics:
            raise OptionError(f"no metric is chosen; known are: {', '.join(METRIC_NAMES)}")
        _check_choice("metric", self.metrics, METRIC_NAMES)
        _check_choice("tokenizer", (self.tokenize or BLEU.TOKENIZER_DEFAULT,), tuple(BLEU.TOKENIZERS))
        _check_choice("smoothing method", (self.smooth_method,), tuple(BLEU.SMOOTH_DEFAULTS))
        if self.confidence == 1 or self.confidence < 0:
            raise OptionError(f"a confidence interval needs at least 2 resamples, not {self.confidence}")


@dataclass(frozen=True)
class Confidence:
    """The bootstrap's mean and the half-width of its 95 % interval."""

    mean: float
    interval: float


@dataclass(frozen=True)
class MetricScore:
    """One score with all that is needed to compare it with another's."""

    name: str  # one of METRIC_NAMES
    score: float
    signature: str
    text: str  # the line that the sacrebleu command prints
    confidence: Confidence | None = None

    def to_json(self, width: int | None = None) -> dict[str, Any]:
        """Return the score for programs, rounded only if a width is asked for."""

        def rounded(value: float) -> float:
            return value if width is None else float(f"{value:.{width}f}")

        found: dict[str, Any] = {"score": rounded(self.score), "signature": self.signature, "text": self.text}
        if self.confidence:
            found["confidence_mean"] = rounded(self.confidence.mean)
            found["confidence_interval"] = rounded(self.confidence.interval)
        return found


@dataclass(frozen=True)
class SentenceScore:
    """Sentence chrF and BLEU (with effective order, as sacreBLEU does for sentences) of one line."""

    chrf: float
    bleu: float


def score_corpus(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], options: MetricOptions | None = None
) -> list[MetricScore]:
    """Score a translation against one or more reference sets, each as long as the translation."""
    options = options or MetricOptions()
    hypotheses, references = as_command_reads(hypotheses, references)
    return [_score_with(name, build_metric(name, options, references), hypotheses, options) for name in options.metrics]


def score_bleu_chrf(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], tokenize: str | None = None
) -> tuple[MetricScore, MetricScore]:
    """Return BLEU and chrF: what validation in training logs and `seqtool eval` prints too."""
    options = MetricOptions(metrics=("bleu", "chrf"), tokenize=tokenize, force=True)
    bleu, chrf = score_corpus(hypotheses, references, options)
    return bleu, chrf


def score_sentences(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], options: MetricOptions | None = None
) -> list[SentenceScore]:
    """Score each line by itself."""
    options = options or MetricOptions()
    hypotheses, references = as_command_reads(hypotheses, references)
    chrf = build_metric("chrf", options)
    bleu = build_metric("bleu", options, effective_order=True)
    return [
        SentenceScore(chrf.sentence_score(line, list(refs)).score, bleu.sentence_score(line, list(refs)).score)
        for line, refs in zip(hypotheses, zip(*references, strict=True), strict=True)
    ]


def sentence_signatures(references: Sequence[Sequence[str]], options: MetricOptions | None = None) -> tuple[str, str]:
    """Return the signatures of the chrF and the BLEU of single lines."""
    options = options or MetricOptions()
    metrics = build_metric("chrf", options), build_metric("bleu", options, effective_order=True)
    for metric in metrics:
        metric.sentence_score("", [side[0] for side in references])  # after which it knows the number of references
    chrf, bleu = (metric.get_signature().format() for metric in metrics)
    return chrf, bleu


def as_command_reads(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]]
) -> tuple[list[str], list[list[str]]]:
    """Check that the sides have the same number of lines, and drop trailing blanks as the sacrebleu command does."""
    if not references:
        raise SeqtoolError("there is no reference to score against; give at least one")
    if not hypotheses:
        raise SeqtoolError("there is nothing to score: the translation has no lines")
    for number, reference in enumerate(references, 1):
        if len(reference) != len(hypotheses):
            which = f"reference {number}" if len(references) > 1 else "the reference"
            raise SeqtoolError(
                f"the translation has {len(hypotheses):,} lines but {which} has {len(reference):,}; "
                "both must be line-aligned"
            )
    return [line.rstrip() for line in hypotheses], [[line.rstrip() for line in side] for side in references]


def build_metric(
    name: str,
    options: MetricOptions,
    references: Sequence[Sequence[str]] | None = None,
    effective_order: bool = False,
) -> Metric:
    """Make sacreBLEU's own metric object, with the references prepared if they are given."""
    makers: dict[str, Callable[[], Metric]] = {
        "bleu": lambda: BLEU(
            lowercase=options.lowercase,
            force=options.force or options.tokenize == "none",  # who says so knows that the text is tokenized
            tokenize=options.tokenize,
            smooth_method=options.smooth_method,
            smooth_value=options.smooth_value,
            effective_order=effective_order,
            trg_lang=options.target_language,
            references=references,
        ),
        "chrf": lambda: _chrf(options, options.chrf_word_order, references),
        "chrf++": lambda: _chrf(options, 2, references),
        "ter": lambda: TER(
            normalized=options.ter_normalized,
            no_punct=options.ter_no_punct,
            asian_support=options.ter_asian_support,
            case_sensitive=options.ter_case_sensitive,
            references=references,
        ),
    }
    try:
        return makers[name]()
    except (OSError, RuntimeError, ImportError, SystemExit) as error:  # a tokenizer to be installed or downloaded first
        wanted = f"the tokenizer '{options.tokenize}'" if options.tokenize else "the target language's tokenizer"
        reason = " ".join(str(error).split())
        raise SeqtoolError(
            f"sacreBLEU cannot load {wanted} ({reason}); install or download it, or choose another `tokenize`"
        ) from None


def _chrf(options: MetricOptions, word_order: int, references: Sequence[Sequence[str]] | None) -> CHRF:
    return CHRF(
        char_order=options.chrf_char_order,
        word_order=word_order,
        beta=options.chrf_beta,
        lowercase=options.chrf_lowercase,
        whitespace=options.chrf_whitespace,
        references=references,
    )


def _score_with(name: str, metric: Metric, hypotheses: Sequence[str], options: MetricOptions) -> MetricScore:
    found: Score = metric.corpus_score(hypotheses, references=None, n_bootstrap=options.confidence or 1)
    signature = metric.get_signature().format()
    confidence = Confidence(found._mean, found._ci) if options.confidence else None
    return MetricScore(
        name, float(found.score), signature, found.format(options.width, signature=signature), confidence
    )


def _check_choice(kind: str, chosen: Sequence[str], known: Sequence[str]) -> None:
    for word in chosen:
        if word not in known:
            raise OptionError(f"unknown {kind} '{word}'{suggest(word, known)}")
