"""What a corpus score hides: scores by sentence length, the worst lines, and outputs that went wrong."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from seqtool.corpus.scripts import lacks_spaces
from seqtool.evaluation.scores.metrics import MetricOptions, MetricScore, SentenceScore, score_corpus
from seqtool.translation.guard import longest_run

BUCKET_STARTS = {"words": (0, 6, 11, 16, 21, 31, 51), "characters": (0, 11, 21, 31, 51, 81, 151)}
LONGEST_LOOP_UNIT = 8  # words, or characters within a word
WORD_REPEATS = 3  # a loop of several words: said three times in a row
SINGLE_REPEATS = 4  # "no no no" may be meant
CHARACTER_REPEATS = 8
PUNCTUATION = ".,;:!?\"'()[]…»«„“”‚‘’¡¿。，、！？"
SHORT_RATIO = 0.5
SHORT_MARGIN = 10  # characters; below it a short sentence is not called over-short


@dataclass(frozen=True)
class LengthBucket:
    """The score of the lines whose source length is between `low` and `high` (None: and longer)."""

    low: int
    high: int | None
    unit: str  # "words", or "characters" where the text has no spaces
    n_lines: int
    scores: tuple[MetricScore, ...]

    @property
    def label(self) -> str:
        """The range in a few characters, such as 6-10 or 51+."""
        return f"{self.low}+" if self.high is None else f"{self.low}-{self.high}"

    def to_json(self) -> dict[str, Any]:
        """Return the bucket for programs."""
        scores = {score.name: {"score": score.score, "signature": score.signature} for score in self.scores}
        return {"low": self.low, "high": self.high, "unit": self.unit, "lines": self.n_lines, **scores}


@dataclass(frozen=True)
class OutputFaults:
    """Line numbers (from 1) of outputs that are wrong at first sight; each line may be in several lists."""

    empty: tuple[int, ...]  # nothing came out although the reference says something
    looping: tuple[int, ...]  # words said again and again, not so in the reference or the source
    short: tuple[int, ...]  # less than half as long as the shortest reference
    copied: tuple[int, ...]  # the source itself, although the reference differs from it

    def to_json(self, n_shown: int = 20) -> dict[str, Any]:
        """Return counts and the first line numbers for programs."""
        return {
            name: {"count": len(lines), "lines": list(lines[:n_shown])}
            for name, lines in (
                ("empty", self.empty),
                ("looping", self.looping),
                ("short", self.short),
                ("copied", self.copied),
            )
        }


def bucket_by_length(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    measured: Sequence[str],
    options: MetricOptions | None = None,
) -> list[LengthBucket]:
    """Score lines apart by the length of `measured` (the source, or the reference if there is no source)."""
    options = replace(options or MetricOptions(), metrics=("bleu", "chrf"), confidence=0, force=True)
    unit = length_unit(measured)
    lengths = [len(line.split()) if unit == "words" else len(line.strip()) for line in measured]
    starts = BUCKET_STARTS[unit]
    ends: list[int | None] = [start - 1 for start in starts[1:]]
    buckets = []
    for low, high in zip(starts, [*ends, None], strict=True):
        rows = [row for row, length in enumerate(lengths) if low <= length and (high is None or length <= high)]
        if rows:
            scores = score_corpus(
                [hypotheses[row] for row in rows], [[side[row] for row in rows] for side in references], options
            )
            buckets.append(LengthBucket(low, high, unit, len(rows), tuple(scores)))
    return buckets


def length_unit(lines: Sequence[str]) -> str:
    """Return what to count: characters for a text that is written without spaces, otherwise words."""
    return "characters" if lacks_spaces(lines) else "words"


def worst_rows(scores: Sequence[SentenceScore], n_rows: int) -> list[int]:
    """Return the row numbers (from 0) with the lowest sentence chrF, worst first."""
    return sorted(range(len(scores)), key=lambda row: (scores[row].chrf, row))[:n_rows]


def differing_rows(
    scores: Sequence[SentenceScore], others: Sequence[SentenceScore], n_rows: int
) -> dict[str, list[int]]:
    """Return the rows whose sentence chrF differs most between two systems: those that are better in the other one, and
    those that are worse, the largest difference first."""
    gain = [other.chrf - score.chrf for score, other in zip(scores, others, strict=True)]
    ranked = sorted(range(len(gain)), key=lambda row: (-abs(gain[row]), row))
    return {
        "better": [row for row in ranked if gain[row] > 0][:n_rows],
        "worse": [row for row in ranked if gain[row] < 0][:n_rows],
    }


def sample_rows(scores: Sequence[SentenceScore], lengths: Sequence[int], n_rows: int) -> dict[str, list[int]]:
    """Return rows for "best", "median" and "worst" sentence chrF, none of them twice.

    Of equal scores the longer sentence counts as better, so that the best are not all of three words.
    """
    ranked = sorted(range(len(scores)), key=lambda row: (scores[row].chrf, lengths[row], row))
    n_rows = min(n_rows, len(ranked) // 3 or 1)
    worst, rest = ranked[:n_rows], ranked[n_rows:]
    best, rest = rest[::-1][:n_rows], rest[: max(len(rest) - n_rows, 0)]
    middle = max((len(rest) - n_rows) // 2, 0)
    return {"best": best, "median": rest[middle : middle + n_rows], "worst": worst}


def find_faults(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str] | None = None
) -> OutputFaults:
    """Find empty, looping, over-short and copied outputs; copies only where the sources are known."""
    empty, looping, short, copied = [], [], [], []
    for number, (hypothesis, *refs) in enumerate(zip(hypotheses, *references, strict=True), 1):
        source = sources[number - 1] if sources is not None else None
        if not hypothesis.strip():
            if all(ref.strip() for ref in refs):
                empty.append(number)
            continue
        known = refs if source is None else [*refs, source]
        if has_loop(hypothesis) and not any(has_loop(line) for line in known):
            looping.append(number)
        if is_over_short(hypothesis, refs):
            short.append(number)
        if source is not None and is_copy(hypothesis, source, refs):
            copied.append(number)
    return OutputFaults(tuple(empty), tuple(looping), tuple(short), tuple(copied))


def has_loop(text: str) -> bool:
    """Return whether words, or characters within a very long word, are repeated over and over."""
    words = [word.strip(PUNCTUATION) or word for word in text.casefold().split()]
    for size in range(1, LONGEST_LOOP_UNIT + 1):
        if longest_run(words, size) >= (SINGLE_REPEATS if size == 1 else WORD_REPEATS):
            return True
    return any(
        longest_run(word, size) >= CHARACTER_REPEATS
        for word in words
        if len(word) >= 3 * CHARACTER_REPEATS
        for size in range(1, LONGEST_LOOP_UNIT + 1)
    )


def is_over_short(hypothesis: str, references: Sequence[str]) -> bool:
    """Return whether an output has less than half the characters of every reference."""
    wanted = min(len(ref.strip()) for ref in references)
    got = len(hypothesis.strip())
    return got < SHORT_RATIO * wanted and wanted - got >= SHORT_MARGIN


def is_copy(hypothesis: str, source: str, references: Sequence[str]) -> bool:
    """Return whether an output repeats its source although no reference does (case and spacing aside)."""

    def plain(text: str) -> str:
        return " ".join(text.casefold().split())

    return plain(hypothesis) == plain(source) and plain(source) not in {plain(ref) for ref in references}
