"""One evaluation from its inputs to its results: scores, comparison with other systems, and diagnosis."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from seqtool.evaluation.scores.comparison import Comparison, SystemLines, compare_systems, conclude
from seqtool.evaluation.scores.diagnosis import (
    LengthBucket,
    OutputFaults,
    bucket_by_length,
    differing_rows,
    find_faults,
    length_unit,
    worst_rows,
)
from seqtool.evaluation.scores.metrics import (
    MetricOptions,
    MetricScore,
    SentenceScore,
    score_corpus,
    score_sentences,
    sentence_signatures,
)
from seqtool.evaluation.scores.reference_set import ReferenceSet
from seqtool.evaluation.scores.systems import SystemOutput, name_differences


@dataclass(frozen=True, kw_only=True)
class ComparisonPlan:
    """Which paired tests to run on the systems to compare with, and how often they draw."""

    tests: tuple[str, ...] = ("bs", "ar")
    n_resamples: int = 1000
    n_trials: int = 10000


@dataclass(frozen=True, kw_only=True)
class OtherSystem:
    """A system beside the first: its scores, and where it differs."""

    output: SystemOutput
    scores: list[MetricScore]
    settings: list[str]  # of the decoding, in which it differs
    sentence_scores: list[SentenceScore] | None
    differing: dict[str, list[int]]  # rows that are "better" or "worse" than in the first system, most first
    conclusion: str  # one sentence on whether it is better


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What was found out about a system (and about others beside it) on a test set."""

    test_set: ReferenceSet
    system: SystemOutput
    scores: list[MetricScore]
    buckets: list[LengthBucket]
    faults: OutputFaults
    sentence_scores: list[SentenceScore] | None  # only if they were asked for
    sentence_signatures: tuple[str, str]  # of their chrF and BLEU
    worst: list[int]  # rows, worst first
    others: list[OtherSystem]
    comparisons: list[Comparison]

    def to_json(self, width: int | None = None) -> dict[str, Any]:
        """Return one object with a key per metric."""
        found: dict[str, Any] = {
            "system": self.system.name,
            "test_set": self.test_set.name,
            "lines": len(self.system.lines),
            "references": len(self.test_set.references),
            **{score.name: score.to_json(width) for score in self.scores},
            "decoding": self.system.decoding,
            "by_length": [bucket.to_json() for bucket in self.buckets],
            "outputs": self.faults.to_json(),
            "sentence_signatures": dict(zip(("chrf", "bleu"), self.sentence_signatures, strict=True)),
            "worst": [self._row_to_json(row) for row in self.worst],
        }
        if self.others:
            found["systems"] = [
                {
                    "system": other.output.name,
                    **{score.name: score.to_json(width) for score in other.scores},
                    "decoding": other.output.decoding,
                    "other_settings": other.settings,
                    "differing": {
                        kind: [self._row_to_json(row, other) for row in rows] for kind, rows in other.differing.items()
                    },
                    "conclusion": other.conclusion,
                }
                for other in self.others
            ]
            found["comparison"] = [comparison.to_json() for comparison in self.comparisons]
        return found

    def _row_to_json(self, row: int, other: OtherSystem | None = None) -> dict[str, Any]:
        assert self.sentence_scores is not None
        score = self.sentence_scores[row]
        found = {
            "line": row + 1,
            "source": self.test_set.sources[row] if self.test_set.sources is not None else None,
            "references": [side[row] for side in self.test_set.references],
            "hypothesis": self.system.lines[row],
            "chrf": score.chrf,
            "bleu": score.bleu,
        }
        if other is not None and other.sentence_scores is not None:
            found |= {"other": other.output.lines[row], "other_chrf": other.sentence_scores[row].chrf}
        return found if self.system.scores is None else {**found, "model_score": self.system.scores[row]}


def evaluate(
    test_set: ReferenceSet,
    system: SystemOutput,
    options: MetricOptions,
    others: Sequence[SystemOutput] = (),
    plan: ComparisonPlan | None = None,
    n_worst: int = 0,
    with_sentences: bool = False,
) -> Evaluation:
    """Score a system and diagnose its output; with other systems, test which of them differ from it."""
    references, lines = test_set.references, system.lines
    measured = test_set.sources if test_set.sources is not None else references[0]
    sentence_scores = score_sentences(lines, references, options) if n_worst or with_sentences else None
    comparisons: list[Comparison] = []
    if others:
        plan = plan or ComparisonPlan()
        named = [SystemLines(one.name, one.lines) for one in (system, *others)]
        comparisons = compare_systems(named, references, options, plan.tests, plan.n_resamples, plan.n_trials)
    return Evaluation(
        test_set=test_set,
        system=system,
        scores=score_corpus(lines, references, options),
        buckets=bucket_by_length(lines, references, measured, options),
        faults=find_faults(lines, references, test_set.sources),
        sentence_scores=sentence_scores,
        sentence_signatures=sentence_signatures(references, options),
        worst=worst_rows(sentence_scores, n_worst) if sentence_scores else [],
        others=[
            describe_other(other, index, system, sentence_scores, comparisons, test_set, options, n_worst)
            for index, other in enumerate(others, 1)
        ],
        comparisons=comparisons,
    )


def describe_other(
    other: SystemOutput,
    index: int,
    system: SystemOutput,
    sentence_scores: list[SentenceScore] | None,
    comparisons: Sequence[Comparison],
    test_set: ReferenceSet,
    options: MetricOptions,
    n_differing: int,
) -> OtherSystem:
    """Describe system `index` in comparison with the first one."""
    own = score_sentences(other.lines, test_set.references, options) if sentence_scores and n_differing else None
    return OtherSystem(
        output=other,
        scores=score_corpus(other.lines, test_set.references, options),
        settings=name_differences(system.decoding, other.decoding),
        sentence_scores=own,
        differing=differing_rows(sentence_scores, own, n_differing) if sentence_scores and own else {},
        conclusion=conclude(comparisons, index),
    )


def sentence_table(found: Evaluation) -> Iterator[str]:
    """Yield the lines of a TSV with one row per sentence; tabs within texts become spaces."""
    assert found.sentence_scores is not None
    references = found.test_set.references
    counts_words = length_unit(references[0]) == "words"

    def measure(text: str) -> int:
        return len(text.split()) if counts_words else len(text.strip())

    names = ["reference"] if len(references) == 1 else [f"reference_{i}" for i in range(1, len(references) + 1)]
    yield "\t".join(["line", "source", *names, "hypothesis", "chrf", "bleu", "model_score", "length_ratio"])
    for row, (hypothesis, score) in enumerate(zip(found.system.lines, found.sentence_scores, strict=True)):
        refs = [side[row] for side in references]
        source = found.test_set.sources[row] if found.test_set.sources is not None else ""
        model_score = "" if found.system.scores is None else f"{found.system.scores[row]:.6g}"
        texts = [" ".join(text.split("\t")) for text in (source, *refs, hypothesis)]
        n_wanted = measure(refs[0])
        ratio = f"{measure(hypothesis) / n_wanted:.3f}" if n_wanted else ""
        yield "\t".join([str(row + 1), *texts, f"{score.chrf:.2f}", f"{score.bleu:.2f}", model_score, ratio])
