"""Two or more runs on one page: their curves in one chart, their scores with significance, and where they differ."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path

from seqtool.errors import SeqtoolError
from seqtool.evaluation.report.card import Card, read_card
from seqtool.evaluation.report.card_text import describe_model, describe_training
from seqtool.evaluation.report.charts import Series, line_chart
from seqtool.evaluation.report.history import TranslatedPair, read_translated_pairs
from seqtool.evaluation.report.markup import panel, section, table
from seqtool.evaluation.report.page_text import fill_page
from seqtool.evaluation.report.parts import mark_differences
from seqtool.evaluation.scores.comparison import (
    TEST_NAMES,
    Comparison,
    SystemLines,
    compare_systems,
    conclude,
    format_p,
    unique_names,
)
from seqtool.evaluation.scores.diagnosis import differing_rows
from seqtool.evaluation.scores.metrics import METRIC_TITLES, MetricOptions, score_sentences
from seqtool.evaluation.scores.tokenizers import fit_options
from seqtool.files import write_whole
from seqtool.run_directory import RunDir

MOST_RUNS = 6  # as many colours as the charts have
SAMPLES = 5  # of each direction
CURVES = (
    ("Training loss per token", "train", "nll"),
    ("Validation loss per token", "valid", "loss"),
    ("Validation BLEU", "valid", "bleu"),
    ("Validation chrF", "valid", "chrf"),
)


@dataclass(frozen=True)
class RunBeside:
    """A run on the page: a name that no other has, its card, and what it makes of its validation pairs."""

    name: str
    card: Card
    pairs: list[TranslatedPair]


@dataclass(frozen=True)
class Contest:
    """The pairs that all runs were validated on, their translations, and the tests of these."""

    sources: list[str]
    references: list[str]
    translations: list[list[str]]  # of each run
    comparisons: list[Comparison]
    options: MetricOptions


def write_side_by_side(runs: Sequence[RunDir], path: Path) -> list[str]:
    """Write a page about two or more runs, trained or still in training; return notes on what it lacks."""
    if len(runs) > MOST_RUNS:
        raise SeqtoolError(f"{len(runs)} runs are too many for one page; give at most {MOST_RUNS}")
    names = unique_names(
        [run.path.name if len({r.path.name for r in runs}) == len(runs) else str(run.path) for run in runs]
    )
    beside = [
        RunBeside(name, read_card(run, verify=False), read_translated_pairs(run))
        for name, run in zip(names, runs, strict=True)
    ]
    contest = hold_contest(beside)
    notes = [] if contest else ["the runs have no validation pairs in common, so their translations are not compared"]
    write_whole(path, render(beside, contest))
    return notes


def hold_contest(runs: Sequence[RunBeside]) -> Contest | None:
    """Compare the translations of the validation pairs that all runs have; None if there are none."""
    known = [dict(zip(number_pairs(run.pairs), (pair.hyp for pair in run.pairs), strict=True)) for run in runs]
    shared = [key for key in known[0] if all(key in other for other in known[1:])]
    if not shared:
        return None
    references = [ref for _, ref, _ in shared]
    configured = runs[0].card.config.train.bleu_tokenize if runs[0].card.config else "auto"
    options, _ = fit_options(MetricOptions(metrics=("bleu", "chrf")), references, configured)
    translations = [[hypotheses[key] for key in shared] for hypotheses in known]
    systems = [SystemLines(run.name, lines) for run, lines in zip(runs, translations, strict=True)]
    comparisons = compare_systems(systems, [references], options, tests=("bs", "ar"))
    return Contest([src for src, _, _ in shared], references, translations, comparisons, options)


def number_pairs(pairs: Sequence[TranslatedPair]) -> list[tuple[str, str, int]]:
    """Return source and reference of each pair, and how many equal ones came before it."""
    seen: Counter[tuple[str, str]] = Counter()
    found = []
    for pair in pairs:
        found.append((pair.src, pair.ref, seen[pair.src, pair.ref]))
        seen[pair.src, pair.ref] += 1
    return found


def render(runs: Sequence[RunBeside], contest: Contest | None) -> str:
    """Put the page together."""
    sections = [
        section("Runs", overview(runs)),
        section("Training", curves(runs)),
        section("Settings that differ", other_settings(runs)),
    ]
    if contest:
        sections += [
            section("Scores", score_tables(runs, contest), describe_contest(runs, contest)),
            *(
                section(f"Where {runs[index].name} differs most from {runs[0].name}", samples(runs, contest, index))
                for index in range(1, len(runs))
            ),
        ]
    names = ", ".join(run.name for run in runs)
    return fill_page(f"seqtool runs: {names}", f"{len(runs)} runs side by side; the first is the baseline.", sections)


def overview(runs: Sequence[RunBeside]) -> str:
    """What each run is, in a row."""
    rows = []
    for index, run in enumerate(runs, 1):
        card = run.card
        size = f"{card.n_parameters:,} parameters" if card.n_parameters else ""
        pairs = f"{card.data.pairs:,} training pairs" if card.data.pairs else ""
        what = (describe_model(card), size, pairs, describe_training(card.training), card.state)
        key = f'<span class="key"><i class="s{index}"></i>{escape(run.name)}</span>'
        rows.append([key, escape(", ".join(filter(None, what)))])
    return panel(table(["run", "what it is"], rows, kind="runs"))


def curves(runs: Sequence[RunBeside]) -> str:
    """The curves of all runs, a chart for each figure."""
    charts = []
    for title, kind, key in CURVES:
        series = [
            Series(run.name, points, color, dots=kind == "valid", value=f"{points[-1][1]:.3g}")
            for color, run in enumerate(runs, 1)
            if (points := run.card.history.points(kind, key))
        ]
        charts.append(line_chart(title, series))
    inner = "".join(charts)
    return f'<div class="charts">{inner}</div>' if inner else ""


def other_settings(runs: Sequence[RunBeside]) -> str:
    """The settings in which the runs differ."""
    settings = [
        {
            f"{section_name}.{key}": value
            for section_name, part in asdict(run.card.config).items()
            for key, value in part.items()
        }
        if run.card.config
        else {}
        for run in runs
    ]
    names = dict.fromkeys(name for one in settings for name in one)
    rows = [
        [f"<code>{escape(name)}</code>", *(escape(str(one.get(name, ""))) for one in settings)]
        for name in names
        if len({str(one.get(name)) for one in settings}) > 1
    ]
    return panel(table(["setting", *(run.name for run in runs)], rows)) if rows else ""


def describe_contest(runs: Sequence[RunBeside], contest: Contest) -> str:
    """What was compared, and in a sentence for each run what came out."""
    said = [escape(conclude(contest.comparisons, index)) for index in range(1, len(runs))]
    what = (
        f"On the {len(contest.references):,} validation pairs that all runs have, as each translated them at its end."
    )
    return "<br>".join([what, *(f"<strong>{sentence}</strong>" for sentence in said)])


def score_tables(runs: Sequence[RunBeside], contest: Contest) -> str:
    """The scores of all runs and whether they differ significantly from the first."""
    tests = list(dict.fromkeys(one.test for one in contest.comparisons))
    rows = []
    for metric in contest.options.metrics:
        of_metric = [one for one in contest.comparisons if one.metric == metric]
        for index, run in enumerate(runs):
            difference = of_metric[0].difference(index)
            p_values = [format_p(one.results[index].p_value or 0.0) if difference else "" for one in of_metric]
            score = f"{of_metric[0].results[index].score:.2f}"
            rows.append(
                [METRIC_TITLES[metric], escape(run.name), score, f"{difference:+.2f}" if index else "", *p_values]
            )
    signatures = "<br>".join(
        f"{METRIC_TITLES[one.metric]} <code>{escape(one.signature)}</code>" for one in contest.comparisons
    )
    heads = ["metric", "run", "score", "difference", *(f"p ({test})" for test in tests)]
    named = ", ".join(f"{test}: {TEST_NAMES[test]} test" for test in tests)
    note = f'<p class="note">Against {escape(runs[0].name)}; {named}.<br>{signatures}</p>'
    return panel(table(heads, rows, numbers=range(2, len(heads)))) + note


def samples(runs: Sequence[RunBeside], contest: Contest, index: int) -> str:
    """The pairs whose translation is most better, and most worse, than that of the first run."""
    first, other = (score_sentences(contest.translations[i], [contest.references], contest.options) for i in (0, index))
    found = []
    for kind, rows in differing_rows(first, other, SAMPLES).items():
        for row in rows:
            lines = [f'<dt>source</dt><dd dir="auto">{escape(contest.sources[row])}</dd>']
            for i, scores in ((0, first), (index, other)):
                hyp, _ = mark_differences(contest.translations[i][row], contest.references[row])
                lines.append(
                    f"<dt>{escape(runs[i].name)} · chrF {scores[row].chrf:.0f}</dt>"
                    f'<dd dir="auto">{hyp or "<em>(empty)</em>"}</dd>'
                )
            lines.append(f'<dt>reference</dt><dd dir="auto">{escape(contest.references[row])}</dd>')
            best = "best" if kind == "better" else "worst"
            found.append(
                f'<article class="sample {best}"><dl>{"".join(lines)}</dl>'
                f'<span class="rank">{kind} · {other[row].chrf - first[row].chrf:+.0f}</span></article>'
            )
    return f'<div class="samples">{"".join(found)}</div>' if found else ""
