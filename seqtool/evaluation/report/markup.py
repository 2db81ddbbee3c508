"""The pieces of markup that all sections of the report are made of."""

from collections.abc import Iterable, Sequence
from html import escape


def section(title: str, content: str, note: str = "") -> str:
    """Wrap a section's content under its heading; nothing if there is no content."""
    if not content:
        return ""
    note = f'<p class="note">{note}</p>' if note else ""
    return f"<section><h2>{escape(title)}</h2>{note}{content}</section>"


def table(heads: Iterable[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = (), kind: str = "") -> str:
    """A table of cells that are HTML already; the columns in `numbers` are set right."""
    kinds = dict.fromkeys(numbers, ' class="number"')
    head = "".join(f"<th{kinds.get(i, '')}>{escape(name)}</th>" for i, name in enumerate(heads))
    body = "".join(
        "<tr>" + "".join(f"<td{kinds.get(i, '')}>{cell}</td>" for i, cell in enumerate(row)) + "</tr>" for row in rows
    )
    return f'<table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def panel(content: str) -> str:
    """A card that scrolls sideways by itself where the screen is narrow."""
    return f'<div class="panel scroll">{content}</div>'
