"""The page that a report is: sections put into one file with its style and script."""

from collections.abc import Sequence
from html import escape
from importlib import resources
from string import Template

from seqtool import __version__


def fill_page(title: str, lead: str, sections: Sequence[str]) -> str:
    """Return a page with a title, a sentence below it and the sections that are not empty."""
    page = resources.files("seqtool.evaluation.report") / "page"
    return Template((page / "report.html").read_text(encoding="utf-8")).substitute(
        title=escape(title),
        lead=escape(lead),
        css=(page / "report.css").read_text(encoding="utf-8"),
        js=(page / "report.js").read_text(encoding="utf-8"),
        sections="\n".join(part for part in sections if part),
        footer=escape(f"Written by seqtool {__version__}. This page needs no network."),
    )
