"""Which of several systems differ significantly: sacreBLEU's paired significance tests against the first system."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sacrebleu.significance import PairedTest

from seqtool.errors import OptionError, SeqtoolError
from seqtool.evaluation.scores.metrics import (
    HIGHER_IS_BETTER,
    METRIC_TITLES,
    MetricOptions,
    as_command_reads,
    build_metric,
)

TEST_NAMES = {"bs": "paired bootstrap", "ar": "paired approximate randomization"}
LEVELS = (0.001, 0.01, 0.05)


@dataclass(frozen=True)
class SystemLines:
    """A system's name and its translation of the test set."""

    name: str
    lines: Sequence[str]


@dataclass(frozen=True)
class PairedResult:
    """What one paired test says of one system: its own score and how likely the difference is by chance."""

    score: float
    p_value: float | None  # None for the baseline
    mean: float | None = None  # of the bootstrap resamples
    interval: float | None = None  # half-width of their 95 % interval


@dataclass(frozen=True)
class Comparison:
    """One paired test of one metric over all systems, the baseline first."""

    test: str  # one of TEST_NAMES
    metric: str
    signature: str
    systems: tuple[str, ...]
    results: tuple[PairedResult, ...]

    def difference(self, index: int) -> float:
        """Return how much system `index` scores above the baseline (for TER: below is better)."""
        return self.results[index].score - self.results[0].score

    def verdict(self, index: int) -> str:
        """Say in words whether system `index` differs from the baseline, in which direction and at what level."""
        p_value = self.results[index].p_value
        if p_value is None:
            return "baseline"
        level = self.level(index)
        if level is None:
            return "no significant difference" if self.difference(index) else "no difference"
        return f"{self.direction(index)} (p < {level:g})"

    def level(self, index: int) -> float | None:
        """Return the strictest usual level at which system `index` differs from the baseline, None if at none.

        Equal scores differ at none: sacreBLEU's tests, which count the samples that differ more, call them significant.
        """
        p_value = self.results[index].p_value
        return None if p_value is None or not self.difference(index) else significance_level(p_value)

    def direction(self, index: int) -> str:
        """Return whether system `index` is significantly "better" or "worse" than the baseline; empty if neither."""
        if self.level(index) is None:
            return ""
        return "better" if (self.difference(index) > 0) == HIGHER_IS_BETTER[self.metric] else "worse"

    def to_json(self) -> dict[str, Any]:
        """Return the comparison for programs."""
        systems = [
            {
                "system": name,
                **asdict(result),
                "difference": self.difference(index),
                "level": self.level(index),
                "verdict": self.verdict(index),
            }
            for index, (name, result) in enumerate(zip(self.systems, self.results, strict=True))
        ]
        return {
            "test": TEST_NAMES[self.test],
            "metric": self.metric,
            "signature": self.signature,
            "baseline": self.systems[0],
            "systems": systems,
        }


def compare_systems(
    systems: Sequence[SystemLines],
    references: Sequence[Sequence[str]],
    options: MetricOptions,
    tests: Sequence[str] = ("bs", "ar"),
    n_resamples: int = 1000,
    n_trials: int = 10000,
) -> list[Comparison]:
    """Compare each system with the first by every test and metric; equal to `sacrebleu --paired-bs` and `--paired-ar`.

    The random seed is sacreBLEU's own: 12345, or the environment variable SACREBLEU_SEED.
    """
    if len(systems) < 2:
        raise OptionError("a comparison needs at least two systems; add one with `vs`")
    names = unique_names([system.name for system in systems])
    lines: list[list[str]] = []
    for name, system in zip(names, systems, strict=True):
        try:
            lines.append(as_command_reads(system.lines, references)[0])
        except SeqtoolError as error:
            raise SeqtoolError(f"{name}: {error}") from None
    references = as_command_reads(lines[0], references)[1]
    n_samples = {"bs": n_resamples, "ar": n_trials}
    return [
        _run_test(test, metric, list(zip(names, lines, strict=True)), references, options, n_samples[test])
        for test in tests
        for metric in options.metrics
    ]


def conclude(comparisons: Sequence[Comparison], index: int) -> str:
    """Say in one sentence whether system `index` is better than the baseline, by which metrics, and how sure that is.

    A difference counts where all tests that were made find it.
    """
    baseline, name = comparisons[0].systems[0], comparisons[0].systems[index]
    found: dict[str, list[str]] = {"better": [], "worse": [], "": [], "unclear": []}
    for metric in dict.fromkeys(comparison.metric for comparison in comparisons):
        of_metric = [comparison for comparison in comparisons if comparison.metric == metric]
        p_value = max(comparison.results[index].p_value or 0.0 for comparison in of_metric)
        words = {comparison.direction(index) for comparison in of_metric}
        difference = of_metric[0].difference(index)
        figures = f"{METRIC_TITLES[metric]} " + (
            f"{difference:+.2f}, p = {format_p(p_value)}" if difference else "equal"
        )
        found[words.pop() if len(words) == 1 else "unclear"].append(figures)
    parts = [
        f"{name} is significantly {word} than {baseline} ({'; '.join(found[word])})"
        for word in ("better", "worse")
        if found[word]
    ]
    if found[""]:
        start = (
            "the other differences are not significant"
            if parts
            else f"{name} and {baseline} do not differ significantly"
        )
        parts.append(f"{start} ({'; '.join(found[''])})")
    if found["unclear"]:
        start = "the tests disagree" if parts else f"the tests of {name} and {baseline} disagree"
        parts.append(f"{start} ({'; '.join(found['unclear'])})")
    return ", ".join(parts) + "."


def format_p(p_value: float) -> str:
    """Return a p-value with the digits that tell on which side of a level it is: 0.000999, 0.0456."""
    return f"{p_value:.3g}"


def significance_level(p_value: float) -> float | None:
    """Return the strictest usual level that a p-value is below, or None if it is not below 0.05."""
    return next((level for level in LEVELS if p_value < level), None)


def unique_names(names: Sequence[str]) -> list[str]:
    """Number the names that occur more than once, so that the rows of a table can be distinguished."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return found


def _run_test(
    test: str,
    metric: str,
    named_lines: list[tuple[str, list[str]]],
    references: Sequence[Sequence[str]],
    options: MetricOptions,
    n_samples: int,
) -> Comparison:
    paired = PairedTest(
        named_lines,  # type: ignore[arg-type]
        {metric: build_metric(metric, options, references)},
        references=None,
        test_type=test,
        n_samples=n_samples,
    )
    signatures, scores = paired()
    title = next(name for name in scores if name != "System")
    results = tuple(
        PairedResult(float(found.score), found.p_value, _as_float(found.mean), _as_float(found.ci))  # type: ignore[union-attr]
        for found in scores[title]
    )
    names = tuple(name for name, _ in named_lines)
    return Comparison(test, metric, signatures[title].format(), names, results)


def _as_float(value: Any) -> float | None:
    return None if value is None else float(value)
