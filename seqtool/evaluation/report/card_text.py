"""A model card as rows of plain text, for the terminal and for the report."""

from collections.abc import Mapping, Sequence
from typing import Any

from seqtool.corpus.scripts import name_writing
from seqtool.corpus.sentences import has_single_sentences
from seqtool.durations import count
from seqtool.evaluation.report.card import Card
from seqtool.evaluation.report.charts import format_number
from seqtool.evaluation.scores.metrics import METRIC_TITLES
from seqtool.evaluation.scores.systems import describe_decoding
from seqtool.manifest import DataFacts, ModelFacts, ParentFacts, ScoreEntry, TrainingFacts


def fact_rows(card: Card) -> list[tuple[str, str]]:
    """Return what was trained on what, as names and values; what is not known is left out."""
    data, training = card.data, card.training
    rows = [
        ("model", describe_model(card)),
        ("parameters", f"{card.n_parameters:,}" if card.n_parameters else ""),
        ("vocabulary", describe_vocabulary(card)),
        ("weights", describe_weights(card.manifest.model)),
        ("training", describe_training(training)),
        *parent_rows(card.manifest.parent),
        ("data", ", ".join(name_source(source) for source in data.sources or ())),
        ("training pairs", f"{data.pairs:,}" if data.pairs else ""),
        ("text", describe_text(data)),
        ("dropped in cleaning", ", ".join(f"{rule} {n:,}" for rule, n in (data.cleaning or {}).items() if n)),
        ("data fingerprint", data.fingerprint or ""),
        ("made", card.manifest.created or ""),
        ("software", ", ".join(f"{name} {version}" for name, version in software(card).items())),
    ]
    return [(name, value) for name, value in rows if value]


def parent_rows(parent: ParentFacts | None) -> list[tuple[str, str]]:
    """Return what is known of the model that was fine-tuned: which it was, its own scores, its scores on these sets."""
    if parent is None:
        return []
    which = ", ".join(part for part in (parent.source, f"step {parent.step:,}" if parent.step else "") if part)
    return [
        ("fine-tuned from", f"{parent.path}" + (f" ({which})" if which else "")),
        ("parent's sha256", parent.sha256 or ""),
        ("parent's scores", list_scores(parent.scores)),
        ("before fine-tuning", list_scores(parent.before)),
        ("parent in the weights", f"{100 * parent.share:g} %" if parent.share else ""),
    ]


def list_scores(scores: Sequence[ScoreEntry]) -> str:
    """Return scores with their signatures in one line."""
    return ", ".join(
        f"{score.set}: {METRIC_TITLES.get(str(score.metric), str(score.metric))}|{score.signature} = {score.score:.2f}"
        for score in scores
    )


def score_rows(card: Card) -> list[list[str]]:
    """Return a row for each score: set, metric, value, signature, how the translation was made."""
    return [
        [
            score.set or "",
            METRIC_TITLES.get(str(score.metric), str(score.metric)),
            f"{score.score:.2f}",
            score.signature or "",
            describe_decoding(score.decoding or {}),
        ]
        for score in card.scores
    ]


def file_rows(card: Card) -> list[list[str]]:
    """Return a row for each file: name, size, state, sha256."""
    return [[check.name, format_size(check.n_bytes), check.state, check.sha256] for check in card.files]


def describe_model(card: Card) -> str:
    """The shape of the network in one line."""
    return card.config.model.describe() if card.config else ""


def describe_vocabulary(card: Card) -> str:
    """The vocabulary sizes: one number if both sides have the same."""
    if not card.vocabulary:
        return ""
    source, target = card.vocabulary
    if source == target:
        return f"{source:,} tokens"
    return f"{source:,} source and {target:,} target tokens"


def describe_text(data: DataFacts) -> str:
    """The scripts of both sides, and whether lines are translated sentence by sentence."""
    if not data.pairs:
        return ""
    if data.text is None:
        return "not measured by the version that prepared it; translate does not split lines (--split always does)"
    scripts = [name_writing(shares) for shares in data.text.get("scripts", {}).values()]
    share = data.text.get("single_sentences")
    found = [f"{side} {name}" for side, name in zip(("source", "target"), scripts, strict=False) if name]
    if isinstance(share, int | float):
        splits = "splits" if has_single_sentences(data.text) else "does not split"
        found.append(f"{100 * share:.0f} % of the sources are one sentence, so translate {splits} lines into sentences")
    return "; ".join(found)


def describe_weights(model: ModelFacts) -> str:
    """Which weights were kept, such as 'average of 5, step 12,000'."""
    return ", ".join(part for part in (model.source, f"step {model.step:,}" if model.step else "") if part)


def describe_training(training: TrainingFacts) -> str:
    """How far and how long: '6,000 steps, 6 epochs, 30 min'."""
    parts = []
    if training.steps:
        parts.append(count(training.steps, "step"))
    if training.epochs:
        parts.append(count(training.epochs, "epoch"))
    if training.minutes:
        parts.append(format_minutes(training.minutes))
    if training.finished is False:
        parts.append("not finished")
    return ", ".join(parts)


def name_source(source: Any) -> str:
    """The name of a corpus: a path, what was noted of a file, or a list of these."""
    if isinstance(source, Mapping):
        return str(source.get("path", source))
    if isinstance(source, list):
        return " ".join(name_source(part) for part in source)
    return str(source)


def software(card: Card) -> dict[str, str]:
    """The versions that made the model."""
    own = {"seqtool": card.manifest.seqtool} if card.manifest.seqtool else {}
    return {**own, **card.manifest.versions}


def format_minutes(minutes: float) -> str:
    """A duration for people: 42 s, 12 min, 3 h 20 min."""
    if minutes < 1:
        return f"{minutes * 60:.0f} s"
    if minutes < 90:
        return f"{minutes:.0f} min"
    hours, rest = divmod(round(minutes), 60)
    return f"{hours:,} h {rest} min"


def format_size(n_bytes: int) -> str:
    """A file size for people."""
    return f"{n_bytes:,} B" if n_bytes < 10_000 else f"{format_number(n_bytes)}B"
