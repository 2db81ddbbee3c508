"""The sections of the report about text: what check found in the corpus, and scores by the frequency of words."""

from collections.abc import Sequence
from html import escape

from seqtool.corpus.checking.checker import SETTINGS
from seqtool.corpus.checking.report_text import TITLES
from seqtool.corpus.preparing.prepared import PreparedCorpus
from seqtool.corpus.tokenizer.registry import load_pair
from seqtool.errors import SeqtoolError
from seqtool.evaluation.report.charts import Bar, bar_chart
from seqtool.evaluation.report.markup import panel, table
from seqtool.evaluation.scores.frequency import FrequencyGroup, count_words
from seqtool.manifest import DataFacts
from seqtool.run_directory import RunDir

COUNTED_PAIRS = 100_000  # of the training corpus, at most, to count words in
OTHER_TITLES = {"too_many_tokens": "too many tokens", "held_out": "held out for validation"}


def corpus_findings(data: DataFacts) -> str:
    """What check found: the pairs that cleaning dropped, and the noise in a sample of those that are left."""
    dropped, text = data.cleaning or {}, data.text or {}
    noise, n_looked_at = text.get("noise"), text.get("lines")
    rows = [
        [name_finding(rule), f"{number:,}", share_of(number, data.read), "dropped", name_setting(rule)]
        for rule, number in sorted(dropped.items(), key=lambda item: -item[1])
        if number
    ]
    note = ""
    if isinstance(noise, dict) and n_looked_at:
        rows += [
            [name_finding(kind), f"{number:,}", share_of(number, n_looked_at), "left in", name_setting(kind)]
            for kind, number in sorted(noise.items(), key=lambda item: -item[1])
        ]
        note = (
            f"What is dropped is counted over all {data.read or 0:,} pairs; what is left in, over a sample of "
            f"{n_looked_at:,} of the pairs that training uses. The setting named drops it, and "
            "<code>seqtool check</code> shows the lines."
        )
    if not rows:
        return ""
    heads = ["found", "pairs", "share", "", "setting"]
    return (f'<p class="note">{note}</p>' if note else "") + panel(table(heads, rows, numbers=(1, 2), kind="findings"))


def name_finding(name: str) -> str:
    """The title of a finding as HTML."""
    return escape(OTHER_TITLES.get(name) or TITLES.get(name, name))


def name_setting(name: str) -> str:
    """The setting that drops what was found, as HTML."""
    return f"<code>clean.{escape(SETTINGS[name])}</code>" if name in SETTINGS else ""


def share_of(number: int, whole: int | None) -> str:
    """A share in percent."""
    return f"{100 * number / whole:.2f} %" if whole else ""


def frequencies(groups: Sequence[FrequencyGroup]) -> str:
    """F1 of words by how often the training corpus has them."""
    if not groups:
        return ""
    bars = [
        Bar(one.label, one.f1, f"{one.label} times in training: F1 {one.f1:.1f}, {one.references:,} words wanted")
        for one in groups
    ]
    rows = [
        [one.label, f"{one.references:,}", f"{one.hypotheses:,}", f"{one.matched:,}", f"{one.f1:.1f}"] for one in groups
    ]
    heads = ["in training", "wanted", "translated", "right", "F1"]
    return (
        f'<div class="charts">{bar_chart("F1 of words by frequency", bars, "occurrences in training")}</div>'
        f"<details><summary>The numbers</summary>{panel(table(heads, rows, numbers=(1, 2, 3, 4)))}</details>"
    )


def count_training_words(run: RunDir) -> dict[str, int] | None:
    """Count the target words of the first pairs that a run was trained on; None if they are not there any more."""
    try:
        corpus, tokenizer = PreparedCorpus.open(run.prepared, verify=False), load_pair(run).target
    except SeqtoolError:
        return None
    rows = range(min(len(corpus), COUNTED_PAIRS))
    return count_words(tokenizer.decode(corpus.target[row].tolist()) for row in rows)
