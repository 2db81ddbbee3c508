"""HTML cut into tags, texts and what is neither, as a browser cuts it, in time linear in its length.

The rules are those of the HTML standard's tokenizer. The tokens joined give the data again, character for character.
The standard library's parser is not used: in Python 3.11.7 it takes a minute for 60 kB of "<a <a <a", and what it
takes for a comment or a script differs between releases.
"""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

_WS = r" \t\n\f\r"
# An unclosed quote reaches to the end of the data, so the tag around it is none, and nothing is tried a second time.
_ATTRIBUTE = (
    rf"[^{_WS}/>][^{_WS}/>=]*+"
    rf"(?:[{_WS}]*+=[{_WS}]*+(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|[^{_WS}>\"'][^{_WS}>]*+)?+)?+"
)
_TOKEN = re.compile(
    rf"""
      (?P<text> (?: [^<]++ | <(?![A-Za-z!/?]) )++ )
    | (?P<tag> < (?P<end> /? ) (?P<name> [A-Za-z][^{_WS}/>]*+ )
        (?: [{_WS}/]++ | {_ATTRIBUTE} )*+ > )
    | (?P<other> <!-- (?: -?> | (?s: .*? ) (?: --!?> | \Z ) )
        | <[!?] [^>]*+ (?: > | \Z )
        | </ (?![A-Za-z]) [^>]*+ (?: > | \Z ) )
    """,
    re.VERBOSE,
)
# Their content is text without tags; only in a title is it something to translate.
RAW_TEXT = frozenset({"script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes", "plaintext"})


class Token(NamedTuple):
    """A piece of HTML as it is written."""

    kind: Literal["text", "start", "end", "content", "other"]  # content: what is in an element of RAW_TEXT
    raw: str
    name: str = ""  # of a tag, in small letters, or of the element that the content is in


def cut_html(data: str) -> Iterator[Token]:
    """Yield the tokens of HTML; an unfinished tag at the end of the data is one of kind 'other'."""
    position = 0
    while position < len(data):
        match = _TOKEN.match(data, position)
        if match is None:
            yield Token("other", data[position:])
            return
        position = match.end()
        if match["tag"] is None:
            yield Token("other" if match["text"] is None else "text", match.group())
            continue
        name = match["name"].lower()
        yield Token("end" if match["end"] else "start", match.group(), name)
        if name in RAW_TEXT and not match["end"]:
            end = _end_of_content(data, position, name)
            if end > position:
                yield Token("content", data[position:end], name)
            position = end


def _end_of_content(data: str, position: int, name: str) -> int:
    end = None if name == "plaintext" else re.compile(rf"(?i:</{name})(?=[{_WS}/>])").search(data, position)
    return end.start() if end else len(data)


def read_attributes(tag: str) -> dict[str, str]:
    """Return the attributes of a start tag, the first of each name, with entities as they are written."""
    found: dict[str, str] = {}
    start = re.match(rf"<[^{_WS}/>]+", tag)
    for match in _ATTRIBUTE_PARTS.finditer(tag, start.end() if start else 0):
        found.setdefault(match["key"].lower(), next((v for v in match.group("double", "single", "bare") if v), ""))
    return found


_ATTRIBUTE_PARTS = re.compile(
    rf"(?P<key>[^{_WS}/>][^{_WS}/>=]*+)"
    rf"(?:[{_WS}]*+=[{_WS}]*+(?:\"(?P<double>[^\"]*+)\"|'(?P<single>[^']*+)'|(?P<bare>[^{_WS}>\"'][^{_WS}>]*+))?+)?+"
)
