"""Plain SVG charts for the report: numbers in, markup out. Colours are classes of the page, which knows dark mode."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import pairwise

Point = tuple[float, float]

WIDTH, HEIGHT = 440, 230  # of the viewBox; the page scales it, so text sizes are in these units
TOP, RIGHT, BOTTOM = 12, 14, 40
CHARACTER_WIDTH = 8.2  # of tick labels at the larger size that the page gives them on a phone
MAX_POINTS = 300


@dataclass(frozen=True)
class Series:
    """One curve: `color` is the number of a CSS class, `marked` points get a ring, `value` stands in the legend."""

    name: str
    points: Sequence[Point]
    color: int = 1
    dots: bool = False
    marked: Sequence[Point] = ()
    value: str = ""


@dataclass(frozen=True)
class Bar:
    """One bar with what stands below it and what a pointer shows."""

    label: str
    value: float
    note: str


@dataclass(frozen=True)
class Scale:
    """Maps values between low and high to pixels between start and end."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def line_chart(title: str, series: Sequence[Series], x_name: str = "step", from_zero: bool = False) -> str:
    """Draw curves over one x axis; the legend stands above the picture, so nothing overlaps."""
    series = [replace(one, points=thin_out(one.points)) for one in series if one.points]
    if not series:
        return ""
    xs = [x for one in series for x, _ in one.points]
    ys = [y for one in series for _, y in (*one.points, *one.marked)]
    y_ticks = nice_ticks(0.0 if from_zero else min(ys), max(ys), 5)
    x_ticks = nice_ticks(min(min(xs), 0.0), max(xs), 5)
    left = 12 + CHARACTER_WIDTH * max(len(format_number(tick)) for tick in y_ticks)
    x_of = Scale(min(min(xs), 0.0), max(max(xs), 1.0), left, WIDTH - RIGHT)
    y_of = Scale(y_ticks[0], y_ticks[-1], HEIGHT - BOTTOM, TOP)
    parts = [_grid(y_ticks, y_of, left)]
    parts += [
        f'<text class="tick" x="{x_of(tick):.1f}" y="{HEIGHT - BOTTOM + 17}" text-anchor="middle">'
        f"{escape(format_number(tick))}</text>"
        for tick in x_ticks
        if tick <= x_of.high
    ]
    parts.append(f'<text class="axis" x="{WIDTH - RIGHT}" y="{HEIGHT - 5}" text-anchor="end">{escape(x_name)}</text>')
    parts += [_curve(one, x_of, y_of) for one in series]
    scale = f'data-x="{x_of.low:g} {x_of.high:g} {x_of.start:g} {x_of.end:g}"'
    scale += f' data-y="{y_of.low:g} {y_of.high:g} {y_of.start:g} {y_of.end:g}" data-x-name="{escape(x_name)}"'
    legend = "".join(
        f'<span class="key"><i class="s{one.color}"></i>{escape(one.name)} <b>{escape(one.value)}</b></span>'
        for one in series
    )
    described = "; ".join(
        f"{one.name} from {format_number(one.points[0][1])} to {format_number(one.points[-1][1])}" for one in series
    )
    return _figure(title, legend, f"{title}: {described}", "".join(parts), f'class="curves" {scale}')


def bar_chart(title: str, bars: Sequence[Bar], x_name: str) -> str:
    """Draw bars from zero, each with its value above it."""
    if not bars:
        return ""
    ticks = nice_ticks(0.0, max(max(bar.value for bar in bars), 1e-9), 4)
    left = 12 + CHARACTER_WIDTH * max(len(format_number(tick)) for tick in ticks)
    y_of = Scale(0.0, ticks[-1], HEIGHT - BOTTOM, TOP + 14)
    slot = (WIDTH - RIGHT - left) / len(bars)
    width = min(slot * 0.64, 56)
    parts = [_grid(ticks, y_of, left)]
    for index, bar in enumerate(bars):
        middle = left + slot * (index + 0.5)
        top = y_of(bar.value)
        parts.append(
            f'<g class="bar"><title>{escape(bar.note)}</title>'
            f'<rect class="s1" x="{middle - width / 2:.1f}" y="{top:.1f}" width="{width:.1f}"'
            f' height="{HEIGHT - BOTTOM - top:.1f}" rx="2"/>'
            f'<text class="value" x="{middle:.1f}" y="{top - 5:.1f}" text-anchor="middle">'
            f"{bar.value:.1f}</text>"
            f'<text class="tick" x="{middle:.1f}" y="{HEIGHT - BOTTOM + 17}" text-anchor="middle">'
            f"{escape(bar.label)}</text></g>"
        )
    parts.append(f'<text class="axis" x="{WIDTH - RIGHT}" y="{HEIGHT - 5}" text-anchor="end">{escape(x_name)}</text>')
    described = "; ".join(bar.note for bar in bars)
    return _figure(title, "", f"{title}: {described}", "".join(parts), 'class="bars"')


def thin_out(points: Sequence[Point], most: int = MAX_POINTS) -> list[Point]:
    """Return at most `most` points: means of neighbours, but the first and the last as they are."""
    if len(points) <= most:
        return list(points)
    inner = points[1:-1]
    n_bins = most - 2
    edges = [round(index * len(inner) / n_bins) for index in range(n_bins + 1)]
    bins = [inner[low:high] for low, high in pairwise(edges)]
    means = [(sum(x for x, _ in one) / len(one), sum(y for _, y in one) / len(one)) for one in bins if one]
    return [points[0], *means, points[-1]]


def nice_ticks(low: float, high: float, n_wanted: int) -> list[float]:
    """Return round, evenly spaced values around low..high, at least two."""
    largest = max(abs(low), abs(high))
    if high - low <= 1e-9 * max(largest, 1e-3):  # as good as one value
        span = largest if largest > 1e-300 else 1.0
        low, high = low - span / 2, high + span / 2
    rough = (high - low) / n_wanted
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * size for factor in (1, 2, 2.5, 5, 10) if factor * size >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [float(f"{index * step:.12g}") for index in range(first, last + 1)]


def format_number(value: float) -> str:
    """Write a number in a few characters: 12k, 3.5M, 1.25G, 0.25, 7e-4."""
    size = abs(value)
    if size >= 1e4 or (size >= 1e3 and value % 100 == 0):
        for unit, sign in ((1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T")):
            if (scaled := float(f"{value / unit:.3g}")) and abs(scaled) < 1000:
                return f"{scaled:g}{sign}"
    if size and size < 1e-2:
        digits, exponent = f"{value:.2e}".split("e")
        return f"{float(digits):g}e{int(exponent)}"
    return f"{value:.4g}"


def _grid(ticks: Sequence[float], y_of: Scale, left: float) -> str:
    lines = []
    for tick in ticks:
        y = y_of(tick)
        kind = "base" if tick == ticks[0] else "grid"
        lines.append(
            f'<line class="{kind}" x1="{left:.1f}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="tick" x="{left - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">'
            f"{escape(format_number(tick))}</text>"
        )
    return "".join(lines)


def _curve(series: Series, x_of: Scale, y_of: Scale) -> str:
    path = "L".join(f"{x_of(x):.3f},{y_of(y):.2f}" for x, y in series.points)
    found = f'<path class="line s{series.color}" data-name="{escape(series.name)}" d="M{path}"/>'
    if series.dots or len(series.points) == 1:
        found += "".join(
            f'<circle class="dot s{series.color}" cx="{x_of(x):.1f}" cy="{y_of(y):.1f}" r="2.6"/>'
            for x, y in series.points
        )
    return found + "".join(
        f'<circle class="ring s{series.color}" cx="{x_of(x):.1f}" cy="{y_of(y):.1f}" r="6"/>' for x, y in series.marked
    )


def _figure(title: str, legend: str, description: str, content: str, attributes: str) -> str:
    return (
        f'<figure class="chart"><figcaption><strong>{escape(title)}</strong>{legend}</figcaption>'
        f'<svg {attributes} viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(description)}">'
        f"{content}</svg></figure>"
    )
