"""The sections of the report as HTML; each takes facts and returns markup, empty if there is nothing to show."""

import base64
import difflib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from html import escape

import numpy as np

from seqtool.corpus.scripts import SPACELESS
from seqtool.evaluation.report.attention_map import attention_svg
from seqtool.evaluation.report.attention_reading import AttentionMap
from seqtool.evaluation.report.card import Card
from seqtool.evaluation.report.card_text import fact_rows, format_minutes, score_rows
from seqtool.evaluation.report.charts import Bar, Point, Series, bar_chart, format_number, line_chart
from seqtool.evaluation.report.history import History, TranslatedPair
from seqtool.evaluation.report.markup import panel, table
from seqtool.evaluation.scores.diagnosis import LengthBucket, OutputFaults
from seqtool.evaluation.scores.metrics import METRIC_TITLES, SentenceScore

MAX_NOTES = 200
WORD = re.compile(rf"(?:[{SPACELESS}]|[^\s{SPACELESS}]+) ?")
FAULT_TITLES = {
    "empty": "empty",
    "looping": "looping (words repeated over and over)",
    "short": "over-short (less than half of the reference)",
    "copied": "copied from the source",
}


def tiles(card: Card) -> str:
    """The few numbers that a reader wants first."""
    found: list[tuple[str, str]] = []
    for score in card.scores[:2]:
        title = METRIC_TITLES.get(str(score.metric), str(score.metric))
        beam = (score.decoding or {}).get("beam")
        found.append((f"{score.score:.1f}", f"{title} on {score.set or 'valid'}" + (f", beam {beam}" if beam else "")))
    if card.n_parameters:
        found.append((format_number(card.n_parameters), "parameters"))
    if card.data.pairs:
        found.append((f"{card.data.pairs:,}", "training pairs"))
    training = card.training
    if training.steps:
        found.append((f"{training.steps:,}", "steps"))
    if training.minutes:
        found.append((format_minutes(training.minutes), "training time"))
    inner = "".join(
        f'<div class="tile"><b>{escape(value)}</b><span>{escape(name)}</span></div>' for value, name in found
    )
    return f'<div class="tiles">{inner}</div>' if inner else ""


def curves(history: History) -> str:
    """Loss, translation quality, learning rate, gradient norm and speed over the steps; the legends show the last
    values."""

    def series(kind: str, key: str, name: str, color: int, form: str, marked: Sequence[Point] = ()) -> Series:
        points = history.points(kind, key)
        value = format(points[-1][1], form) if points else ""
        return Series(name, points, color, dots=kind == "valid", marked=marked, value=value)

    nll = "nll" if history.points("train", "nll") else "loss"
    best = (
        [(float(history.best["step"]), float(history.best["bleu"]))] if history.best and "bleu" in history.best else []
    )
    rates = history.points("train", "lr")
    highest = format_number(max(rate for _, rate in rates)) if rates else ""
    charts = [
        line_chart(
            "Loss per token",
            [series("train", nll, "training", 1, ".3f"), series("valid", "loss", "validation", 2, ".3f")],
        ),
        line_chart(
            f"Validation scores{name_beam(history)}",
            [series("valid", "bleu", "BLEU", 2, ".1f", best), series("valid", "chrf", "chrF", 3, ".1f")],
        ),
        line_chart("Learning rate", [Series("at most", rates, 1, value=highest)], from_zero=True),
        line_chart("Gradient norm", [series("train", "grad_norm", "before clipping", 1, ".3f")], from_zero=True),
        line_chart("Speed", [series("train", "tokens_per_s", "target tokens a second", 1, ",.0f")], from_zero=True),
    ]
    inner = "".join(charts)
    return f'<div class="charts">{inner}</div>' if inner else ""


def name_beam(history: History) -> str:
    """How wide the beam of the validations in training is, which scores less than the finished model with its own."""
    beams = {str(one["decoding"].get("beam")) for one in history.valid if isinstance(one.get("decoding"), dict)}
    return f" with beam {beams.pop()}" if len(beams) == 1 else ""


def score_table(card: Card) -> str:
    """Each recorded score with its signature and how its translation was made."""
    rows = [
        [escape(name), escape(metric), value, f"<code>{escape(signature)}</code>", escape(decoding)]
        for name, metric, value, signature, decoding in score_rows(card)
    ]
    heads = ["set", "metric", "score", "signature", "decoding"]
    return panel(table(heads, rows, numbers=(2,), kind="scores")) if rows else ""


def lengths(buckets: Sequence[LengthBucket], faults: OutputFaults | None) -> str:
    """Scores by source length, and how many outputs are wrong at first sight."""
    if not buckets:
        return ""
    charts = []
    for index, title in ((0, "BLEU"), (1, "chrF")):
        bars = [
            Bar(
                bucket.label,
                bucket.scores[index].score,
                f"{bucket.label} {bucket.unit}: {title} {bucket.scores[index].score:.1f} over {bucket.n_lines:,} lines",
            )
            for bucket in buckets
        ]
        chart_title = f"{title} by source length"
        charts.append(bar_chart(chart_title, bars, f"source {buckets[0].unit}"))
    rows = [
        [escape(bucket.label), f"{bucket.n_lines:,}", *(f"{score.score:.1f}" for score in bucket.scores)]
        for bucket in buckets
    ]
    signatures = "<br>".join(
        f"{METRIC_TITLES[score.name]} <code>{escape(score.signature)}</code>" for score in buckets[0].scores
    )
    counts = table([f"source {buckets[0].unit}", "lines", "BLEU", "chrF"], rows, numbers=(1, 2, 3))
    found = f'<div class="charts">{"".join(charts)}</div>'
    found += (
        f"<details><summary>The numbers and their signatures</summary>{panel(counts)}"
        f'<p class="note">{signatures}</p></details>'
    )
    if faults is not None:
        rows = [
            [
                escape(FAULT_TITLES[name]),
                f"{value['count']:,}",
                escape(", ".join(f"{line:,}" for line in value["lines"][:8])),
            ]
            for name, value in faults.to_json().items()
        ]
        found += "<h3>Outputs that are wrong at first sight</h3>"
        found += panel(table(["kind", "lines", "first line numbers"], rows, numbers=(1,)))
    return found


def samples(pairs: Sequence[TranslatedPair], scores: Sequence[SentenceScore], rows: Mapping[str, Sequence[int]]) -> str:
    """Translations by rank of their sentence chrF; words that differ from the reference are marked."""
    cards = []
    for kind, indices in rows.items():
        for row in indices:
            pair = pairs[row]
            hyp, ref = mark_differences(pair.hyp, pair.ref)
            cards.append(
                f'<article class="sample {kind}"><dl>'
                f'<dt>source</dt><dd dir="auto">{escape(pair.src)}</dd>'
                f'<dt>translation</dt><dd dir="auto">{hyp or "<em>(empty)</em>"}</dd>'
                f'<dt>reference</dt><dd dir="auto">{ref}</dd></dl>'
                f'<span class="rank">{kind} · line {row + 1:,} · chrF {scores[row].chrf:.0f}</span></article>'
            )
    return f'<div class="samples">{"".join(cards)}</div>' if cards else ""


def mark_differences(hypothesis: str, reference: str) -> tuple[str, str]:
    """Return both texts as HTML with the words marked that the other does not have in that place."""
    sides = [cut_words(hypothesis), cut_words(reference)]
    words = [[word.rstrip() for word in side] for side in sides]
    marked = ["", ""]
    for tag, *spans in difflib.SequenceMatcher(None, words[0], words[1], autojunk=False).get_opcodes():
        for side in (0, 1):
            text = "".join(sides[side][spans[2 * side] : spans[2 * side + 1]])
            inner = escape(text.rstrip())
            space = " " if text != text.rstrip() else ""
            if inner:
                marked[side] += (inner if tag == "equal" else f"<mark>{inner}</mark>") + space
    return marked[0].rstrip(), marked[1].rstrip()


def cut_words(text: str) -> list[str]:
    """Cut a text into words, each with the space after it; in a script without spaces a character counts as one."""
    return WORD.findall(" ".join(text.split()))


def attention(maps: Sequence[AttentionMap]) -> str:
    """The maps, drawn as averages; the page's script shows single layers and heads from the weights beside them."""
    if not maps:
        return ""
    n_layers, n_heads = maps[0].weights.shape[:2]
    data = [
        {
            "src": one.src_tokens,
            "tgt": one.tgt_tokens,
            "layers": n_layers,
            "heads": n_heads,
            "rows": one.weights.shape[2],
            "columns": one.weights.shape[3],
            "weights": base64.b64encode(np.rint(one.weights * 255).astype(np.uint8).tobytes()).decode(),
        }
        for one in maps
    ]
    sentences = "".join(f'<option value="{i}">{escape(shorten(one.src_text))}</option>' for i, one in enumerate(maps))
    pictures = "".join(
        f'<div class="map scroll"{"" if i == 0 else " hidden"}>'
        f'<p class="note" dir="auto">{escape(one.src_text)}<br>{escape(one.tgt_text)}</p>'
        f"{attention_svg(one.src_tokens, one.tgt_tokens, one.average(), embedded=True)}</div>"
        for i, one in enumerate(maps)
    )
    content = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    return (
        f'<div class="panel" id="attention"><div class="controls">'
        f'<label>Sentence<select id="attention-sentence">{sentences}</select></label>'
        f'<label>Layer<select id="attention-layer">{number_options(n_layers)}</select></label>'
        f'<label>Head<select id="attention-head">{number_options(n_heads)}</select></label></div>'
        f'{pictures}<p class="readout" aria-live="polite"></p>'
        f'<script type="application/json" id="attention-data">{content}</script></div>'
    )


def facts(card: Card) -> str:
    """What was trained on what: data, model, software, files and the whole configuration."""
    body = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in fact_rows(card))
    found = panel(f'<table class="facts">{body}</table>') if body else ""
    if card.config:
        found += "<details><summary>The whole configuration</summary>" + panel(config_tables(card)) + "</details>"
    if card.files:
        files = [[escape(check.name), f"<code>{escape(check.sha256)}</code>"] for check in card.files]
        found += (
            f"<details><summary>Files and their sha256</summary>{panel(table(['file', 'sha256'], files))}</details>"
        )
    return found


def config_tables(card: Card) -> str:
    """Each section of the configuration as a table of keys and values."""
    assert card.config is not None
    found = []
    for name, values in asdict(card.config).items():
        rows = [
            [escape(key), f"<code>{escape(json.dumps(value, ensure_ascii=False))}</code>"]
            for key, value in values.items()
        ]
        found.append(f"<h3>{escape(name)}</h3>{table(['key', 'value'], rows)}")
    return "".join(found)


def notes(history: History) -> str:
    """What the trainer had to say."""
    last = history.notes[-MAX_NOTES:]
    rows = [[f"{int(note.get('step', 0)):,}", escape(str(note.get("text", "")))] for note in last]
    return panel(table(["step", "note"], rows, numbers=(0,))) if rows else ""


def number_options(n: int) -> str:
    """The options of a select: all, then each by its number."""
    return '<option value="all">all (mean)</option>' + "".join(
        f'<option value="{i}">{i + 1}</option>' for i in range(n)
    )


def shorten(text: str, most: int = 70) -> str:
    """A text cut to what a select can show."""
    return text if len(text) <= most else text[: most - 1] + "…"
