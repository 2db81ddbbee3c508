"""Draws cross-attention as a heat map, in SVG or in text: tokens and weights in, markup or lines out.

Legend: T target tokens (rows), S source tokens (columns).
"""

from collections.abc import Sequence
from html import escape
from unicodedata import east_asian_width

Weights = Sequence[Sequence[float]]  # (T, S), a row per target token

CELL = 22
CHARACTER_WIDTH = 7.4  # of the token labels, generous
WIDE = 13.0  # of East Asian characters
SLANT = 0.77  # sine of the 50 degrees by which the source tokens are turned
SHADES = " ░▒▓█"

# A file by itself has no page around it to give the colours; these follow the viewer's dark mode.
STANDALONE_STYLE = (
    "<style>svg{--paper:#fff;--ink:#1d2430;--grid:#dfe3ea;--heat:#1f5fbf;font:12px system-ui,sans-serif}"
    "@media(prefers-color-scheme:dark){svg{--paper:#14181f;--ink:#e4e8ef;--grid:#303845;--heat:#7db0ff}}"
    ".paper{fill:var(--paper)}.token{fill:var(--ink)}.cell{fill:var(--heat)}.frame{fill:none;stroke:var(--grid)}</style>"
)


def attention_svg(
    src_tokens: Sequence[str], tgt_tokens: Sequence[str], weights: Weights, embedded: bool = False
) -> str:
    """Draw the map: source tokens above, target tokens to the left, the darker the more attention.

    An `embedded` picture takes its colours from the page and has no titles, since the page's script shows the values.
    """
    _check_shape(src_tokens, tgt_tokens, weights)
    left = 12 + max(label_width(token) for token in tgt_tokens)
    top = 14 + SLANT * max(label_width(token) for token in src_tokens)
    right = 10 + 0.64 * label_width(src_tokens[-1])  # the last label leans out to the right
    width, height = left + CELL * len(src_tokens) + right, top + CELL * len(tgt_tokens) + 6
    parts = [
        f'<text class="token" transform="translate({left + CELL * (i + 0.6):.1f},{top - 6:.1f}) rotate(-50)">'
        f"{escape(token)}</text>"
        for i, token in enumerate(src_tokens)
    ]
    parts += [
        f'<text class="token" x="{left - 6:.1f}" y="{top + CELL * (i + 0.7):.1f}" text-anchor="end">'
        f"{escape(token)}</text>"
        for i, token in enumerate(tgt_tokens)
    ]
    parts.append(
        f'<rect class="frame" x="{left:.1f}" y="{top:.1f}" width="{CELL * len(src_tokens)}"'
        f' height="{CELL * len(tgt_tokens)}"/>'
    )
    highest = max(max(row) for row in weights) or 1.0
    for i, row in enumerate(weights):
        for j, weight in enumerate(row):
            title = (
                "" if embedded else f"<title>{escape(tgt_tokens[i])} ← {escape(src_tokens[j])}: {weight:.2f}</title>"
            )
            close = f">{title}</rect>" if title else "/>"
            parts.append(
                f'<rect class="cell" x="{left + CELL * j + 1:.1f}" y="{top + CELL * i + 1:.1f}" width="{CELL - 2}"'
                f' height="{CELL - 2}" fill-opacity="{weight / highest:.2f}"{close}'
            )
    name = "Attention of each target token (rows) to the source tokens (columns)"
    style = "" if embedded else STANDALONE_STYLE + '<rect class="paper" width="100%" height="100%"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="attention" viewBox="0 0 {width:.0f} {height:.0f}"'
        f' width="{width:.0f}" height="{height:.0f}" role="img" aria-label="{name}">{style}{"".join(parts)}</svg>'
    )


def attention_text(src_tokens: Sequence[str], tgt_tokens: Sequence[str], weights: Weights) -> str:
    """Draw the map with characters: one row a target token with its most attended source token at the end."""
    _check_shape(src_tokens, tgt_tokens, weights)
    highest = max(max(row) for row in weights) or 1.0
    margin = max(columns_of(token) for token in tgt_tokens)
    lines = []
    for token, row in zip(tgt_tokens, weights, strict=True):
        cells = "".join(SHADES[min(int(weight / highest * len(SHADES)), len(SHADES) - 1)] * 2 for weight in row)
        most = max(range(len(row)), key=row.__getitem__)
        lines.append(f"{' ' * (margin - columns_of(token))}{token} │{cells}│ {src_tokens[most]} {row[most]:.2f}")
    return "\n".join(lines)


def label_width(token: str) -> float:
    """Return about how wide a token is drawn."""
    return sum(WIDE if east_asian_width(char) in "WF" else CHARACTER_WIDTH for char in token)


def columns_of(token: str) -> int:
    """Return how many columns of a terminal a token takes."""
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in token)


def _check_shape(src_tokens: Sequence[str], tgt_tokens: Sequence[str], weights: Weights) -> None:
    assert src_tokens, "a map needs source tokens"
    assert tgt_tokens, "a map needs target tokens"
    assert len(weights) == len(tgt_tokens), "one row of weights for each target token"
    assert all(len(row) == len(src_tokens) for row in weights), "one weight for each source token"
