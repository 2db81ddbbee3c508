"""An evaluation as text for a terminal: the lines that the sacrebleu command prints, then what seqtool adds."""

import unicodedata
from collections.abc import Iterator, Sequence

from seqtool.evaluation.scores.comparison import TEST_NAMES, Comparison, format_p
from seqtool.evaluation.scores.evaluation import Evaluation, OtherSystem
from seqtool.evaluation.scores.metrics import METRIC_TITLES
from seqtool.evaluation.scores.systems import describe_decoding

N_LINES_SHOWN = 8


def evaluation_text(found: Evaluation) -> Iterator[str]:
    """Yield the lines of the whole result."""
    for score in found.scores:
        yield score.text
    if found.system.decoding:
        yield f"decoding: {describe_decoding(found.system.decoding)}"
    for other in found.others:
        yield ""
        yield f"{other.output.name}:"
        for score in other.scores:
            yield score.text
        if other.output.decoding:
            yield f"decoding: {describe_decoding(other.output.decoding)}"
    yield from comparison_text(found.comparisons)
    yield from diagnosis_text(found)
    yield from worst_text(found)
    for other in found.others:
        yield from differing_text(found, other)
    for other in found.others:
        yield ""
        if other.settings:
            yield (
                f"warning: {found.system.name} and {other.output.name} were made with other settings "
                f"({'; '.join(other.settings)}), which are part of the difference"
            )
        yield other.conclusion


def comparison_text(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Yield a table for each test and metric: which differences from the first system are significant."""
    for test in dict.fromkeys(comparison.test for comparison in comparisons):
        chosen = [comparison for comparison in comparisons if comparison.test == test]
        yield ""
        yield f"{TEST_NAMES[test]} test against {chosen[0].systems[0]}"
        rows = [["metric", "system", "score", "95 % interval", "difference", "p", "verdict"]]
        for comparison in chosen:
            for index, (name, result) in enumerate(zip(comparison.systems, comparison.results, strict=True)):
                has_interval = result.mean is not None and result.interval is not None
                rows.append(
                    [
                        METRIC_TITLES[comparison.metric] if index == 0 else "",
                        name,
                        f"{result.score:.2f}",
                        f"{result.mean:.2f} ± {result.interval:.2f}" if has_interval else "",
                        "" if index == 0 else f"{comparison.difference(index):+.2f}",
                        "" if result.p_value is None or not comparison.difference(index) else format_p(result.p_value),
                        comparison.verdict(index),
                    ]
                )
        yield from aligned(rows, right=(2, 3, 4, 5))
        for comparison in chosen:
            yield f"  {METRIC_TITLES[comparison.metric]}|{comparison.signature}"


def diagnosis_text(found: Evaluation) -> Iterator[str]:
    """Yield scores by length, and the counts of outputs that are wrong at first sight."""
    if len(found.buckets) > 1:
        side = "source" if found.test_set.sources is not None else "reference"
        yield ""
        yield f"by {side} length"
        rows = [[found.buckets[0].unit, "lines", *(METRIC_TITLES[score.name] for score in found.buckets[0].scores)]]
        for bucket in found.buckets:
            rows.append([bucket.label, f"{bucket.n_lines:,}", *(f"{score.score:.1f}" for score in bucket.scores)])
        yield from aligned(rows, right=(1, 2, 3))
        yield from (f"  {METRIC_TITLES[score.name]}|{score.signature}" for score in found.buckets[0].scores)
    yield ""
    faults = found.faults
    kinds = [("empty", faults.empty), ("looping", faults.looping), ("over-short", faults.short)]
    if found.test_set.sources is not None:
        kinds.append(("copied from the source", faults.copied))
    yield "outputs: " + ", ".join(f"{len(lines):,} {name}{_where(lines)}" for name, lines in kinds)


def worst_text(found: Evaluation) -> Iterator[str]:
    """Yield the worst lines with their texts."""
    if not found.worst or found.sentence_scores is None:
        return
    yield ""
    yield f"worst lines by sentence chrF|{found.sentence_signatures[0]}"
    for row in found.worst:
        yield f"  line {row + 1:,}: chrF {found.sentence_scores[row].chrf:.1f}"
        if found.test_set.sources is not None:
            yield f"    source       {printable(found.test_set.sources[row])}"
        yield f"    translation  {printable(found.system.lines[row])}"
        for side in found.test_set.references:
            yield f"    reference    {printable(side[row])}"


def differing_text(found: Evaluation, other: OtherSystem) -> Iterator[str]:
    """Yield the sentences in which a system differs most from the first one, in both directions."""
    if other.sentence_scores is None or found.sentence_scores is None:
        return
    for kind, rows in other.differing.items():
        if not rows:
            continue
        yield ""
        yield f"lines that are {kind} in {other.output.name}, by sentence chrF|{found.sentence_signatures[0]}"
        for row in rows:
            before, after = found.sentence_scores[row].chrf, other.sentence_scores[row].chrf
            yield f"  line {row + 1:,}: chrF {before:.1f} in {found.system.name}, {after:.1f} in {other.output.name}"
            if found.test_set.sources is not None:
                yield f"    source       {printable(found.test_set.sources[row])}"
            yield f"    translation  {printable(found.system.lines[row])}"
            yield f"    the other's  {printable(other.output.lines[row])}"
            for side in found.test_set.references:
                yield f"    reference    {printable(side[row])}"


def printable(text: str) -> str:
    """A text without control characters, which could make a terminal do anything."""
    return "".join("\ufffd" if unicodedata.category(char) == "Cc" else char for char in text)


def aligned(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> Iterator[str]:
    """Yield rows with their columns below each other; the columns in `right` are set right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield ("  " + "  ".join(cells)).rstrip()


def _where(lines: Sequence[int]) -> str:
    if not lines:
        return ""
    more = ", ..." if len(lines) > N_LINES_SHOWN else ""
    return f" (line{'s' if len(lines) > 1 else ''} {', '.join(f'{line:,}' for line in lines[:N_LINES_SHOWN])}{more})"
