"""The report of a checked corpus as tables and text for a person."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from seqtool.corpus.checking.checker import FINDINGS, SETTINGS, Finding, Report
from seqtool.corpus.cleaning.noise import KINDS
from seqtool.corpus.cleaning.rules import LANGUAGE, RULES, settings_against
from seqtool.visible import make_visible

TITLES = {
    "undecodable": "not UTF-8",
    "columns": "no target",
    "empty": "empty side",
    "control": "control characters",
    "identical": "identical sides",
    "too_long": "over the length limit",
    "ratio": "over the ratio limit",
    "damaged": "damaged by decoding",
    "entities": "HTML entities",
    "urls": "other addresses",
    "tags": "other tags",
    "placeholders": "other placeholders",
    "numbers": "other numbers",
    "swapped": "swapped sides",
    "language": "perhaps another language",
    "overlap": "also in a test set",
    "many_targets": "many targets",
    "duplicate": "repeated pair",
    "extra_columns": "more than two columns",
    "unusually_long": "unusually long",
    "unusually_lopsided": "unusual length ratio",
    "other_script": "another script",
}
assert tuple(TITLES) == FINDINGS
SHOWN_LINES = 8  # line numbers of a finding


def write_report(report: Report, console: Console) -> None:
    """Write the report to a console, with the verdict but not the problems behind a bad one."""
    console.print(_totals(report))
    _print_scripts(console, report)
    _print_alignment(console, report)
    found = {name: finding for name, finding in report.findings.items() if finding.pairs}
    if found:
        console.print(_findings(report, found))
        _print_examples(console, found)
    share = f" ({_percent(report.kept, report.pairs)})" if report.pairs else ""
    console.print(f"Cleaning keeps {report.kept:,} of {report.pairs:,} pairs{share}.", soft_wrap=True)
    if settings := find_settings(report):
        console.print(f"More is dropped with these settings: {', '.join(settings)}.", soft_wrap=True)
    verdict = Text("Not fit for training.", "bold red") if report.problems else Text("Fit for training.", "bold green")
    console.print(verdict)


def find_settings(report: Report) -> list[str]:
    """Return the settings that drop the noise which cleaning leaves, if there is much of it."""
    counts = {kind: report.findings[kind].pairs for kind in (*KINDS, *LANGUAGE)}
    settings = settings_against(counts, report.pairs)
    on = {SETTINGS[kind] for kind in counts if report.dropped[kind]}
    return [f"clean.{name}=true" for name in settings if name not in on]


def _totals(report: Report) -> Table:
    source, target = report.source, report.target
    names = [path.name for path in report.corpus.paths] if report.corpus.target else ["source", "target"]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("", no_wrap=True)
    for name in names:
        table.add_column(Text(name), justify="right", overflow="ellipsis", no_wrap=True)
    for title, key in (("lines", "lines"), ("words", "words"), ("characters", "chars")):
        table.add_row(title, *(f"{vars(side)[key]:,}" for side in (source, target)))
    table.add_row("characters per line, median", *(f"{side.median_chars:,}" for side in (source, target)))
    table.add_row("characters per line, maximum", *(f"{side.max_chars:,}" for side in (source, target)))
    return table


def _print_scripts(console: Console, report: Report) -> None:
    for name, side in (("source", report.source), ("target", report.target)):
        console.print(f"script of the {name}: {_scripts(side.scripts)}", soft_wrap=True)


def _scripts(shares: dict[str, float]) -> str:
    """Name the scripts that can be seen at all, with their shares if there are several."""
    seen = {name: share for name, share in shares.items() if share >= 0.001}
    return ", ".join(f"{name} {100 * share:.1f} %" if len(seen) > 1 else name for name, share in seen.items()) or "none"


def _print_alignment(console: Console, report: Report) -> None:
    console.print()
    if report.shifted_near and not report.problems:
        text = f"A part of the corpus seems shifted against each other from about line {report.shifted_near:,} on."
        console.print(Text(f"{text} Look at the lines around it.", "bold yellow"), soft_wrap=True)
        console.print()


def _findings(report: Report, found: dict[str, Finding]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("found")
    table.add_column("pairs", justify="right")
    table.add_column("share", justify="right")
    table.add_column("dropped", justify="right")
    table.add_column("clean.", no_wrap=True)
    table.add_column("lines")
    for name, finding in found.items():
        dropped = f"{report.dropped[name]:,}" if name in RULES else "-"
        lines = ", ".join(map(str, finding.lines[:SHOWN_LINES])) + (", ..." if finding.pairs > SHOWN_LINES else "")
        setting = SETTINGS.get(name, "")
        table.add_row(
            TITLES[name], f"{finding.pairs:,}", _percent(finding.pairs, report.pairs), dropped, setting, lines
        )
    return table


def _print_examples(console: Console, found: dict[str, Finding]) -> None:
    """Print the examples of each finding; a pair that has been shown before is not shown again."""
    shown: set[int] = set()
    for name, finding in found.items():
        examples = [example for example in finding.examples if example.line not in shown]
        if examples:
            console.print()
            console.print(Text(TITLES[name], "bold"))
        for example in examples:
            shown.add(example.line)
            note = f": {example.note}" if example.note else ""
            console.print(Text(f"  line {example.line}{note}", "cyan"), soft_wrap=True)
            _print_line(console, example.source)
            _print_line(console, example.target)
    console.print()


def _print_line(console: Console, text: str) -> None:
    line = Text("    " + make_visible(text)) if text else Text("    (empty)", "dim")
    line.truncate(console.width, overflow="ellipsis")
    console.print(line, no_wrap=True)


def _percent(part: int, whole: int) -> str:
    share = 100 * part / whole if whole else 0.0
    return f"{share:.2f} %" if share >= 0.01 or not part else "< 0.01 %"
