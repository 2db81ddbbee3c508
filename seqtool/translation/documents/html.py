"""HTML: what a reader reads is translated, and every tag, comment, script and attribute stays as it is written.

What stands between two block tags is one text; inline tags in it follow the words. Not translated: scripts and styles,
code and preformatted text, form fields, drawings and formulas, translate="no", class="notranslate", and attributes.
"""

import html
import re
from collections import Counter
from collections.abc import Sequence

from seqtool.translation.documents.html_tokens import Token, cut_html, read_attributes
from seqtool.translation.documents.inline import InlineText
from seqtool.translation.documents.interface import Document
from seqtool.translation.results import Translation


def _names(names: str) -> frozenset[str]:
    return frozenset(names.split())


INLINE = _names(
    "a abbr acronym b bdi bdo big cite data del dfn em font i ins label mark nobr q rb rp rt ruby s small span strike "
    "strong sub sup time tt u"
)
VOID = _names("area base br col embed frame hr img input link meta param source track wbr")
INLINE_VOID = _names("br img input wbr")
UNTOUCHED_BLOCK = _names("pre xmp noembed noframes plaintext template")
UNTOUCHED_INLINE = _names(
    "code kbd samp var script style textarea iframe svg math object audio video canvas progress meter"
)
FOREIGN = frozenset({"svg", "math"})  # in which <name/> has no content
# An element whose end tag may be left out ends where the next of its kind begins.
_ENDS = {
    "li": _names("li"),
    "dt": _names("dt dd"),
    "dd": _names("dt dd"),
    "tr": _names("tr"),
    "td": _names("td th"),
    "th": _names("td th"),
    "option": _names("option optgroup"),
    "p": _names("p div ul ol dl table h1 h2 h3 h4 h5 h6 pre blockquote section article header footer nav form hr"),
}


class HtmlDocument(Document):
    """A page or a fragment of one, or whatever a browser would make something of."""

    def __init__(self, data: str) -> None:
        self._content = _Reader(data).read()
        self.texts = [sentence for part in self._content if isinstance(part, InlineText) for sentence in part.sentences]

    def _parts(self, translations: Sequence[Translation]) -> list[str]:
        parts: list[str] = []
        done = 0
        for part in self._content:
            if isinstance(part, InlineText):
                end = done + len(part.sentences)
                parts.append(part.write(translations[done:end]))
                done = end
            else:
                parts.append(part)
        return parts


def escape_text(text: str) -> str:
    """Write text so that HTML reads it as that text."""
    return html.escape(text, quote=False).replace("\u00a0", "&nbsp;")


class _Reader:
    """Sorts tokens into texts to translate and what is kept as it is."""

    def __init__(self, data: str) -> None:
        self.tokens = list(cut_html(data))
        self.content: list[str | InlineText] = []
        self.inline = InlineText(escape_text)

    def read(self) -> list[str | InlineText]:
        """Return the content in order; texts in which there is nothing to translate are among the rest."""
        index = 0
        while index < len(self.tokens):
            token = self.tokens[index]
            end = self._end_of_untouched(index) if token.kind == "start" else index
            if end > index:
                raw = "".join(one.raw for one in self.tokens[index:end])
                is_inline = token.name in INLINE or token.name in UNTOUCHED_INLINE
                if is_inline and end < len(self.tokens):  # an unfinished one must stay the last
                    self.inline.add_object(raw, token.name)
                else:
                    self._keep(raw)
                index = end
                continue
            self._add(token, index)
            index += 1
        self._end_inline()
        return self.content

    def _add(self, token: Token, index: int) -> None:
        if token.kind == "text":
            self.inline.add_text(token.raw, html.unescape(token.raw))
        elif token.kind == "content":  # of a title: an untouched element has been passed over
            self.inline.add_text(token.raw, html.unescape(token.raw))
            self._end_inline()
        elif token.kind == "other" and index < len(self.tokens) - 1:
            self.inline.add_object(token.raw)
        elif token.name == "br" and not self._goes_on(index):
            self._keep(token.raw)
        elif token.name in INLINE_VOID and token.kind == "start":
            self.inline.add_object(token.raw, token.name)
        elif token.name in INLINE:
            self.inline.add_tag(token.raw, token.name, closing=token.kind == "end")
        else:
            self._keep(token.raw)

    def _keep(self, raw: str) -> None:
        self._end_inline()
        self.content.append(raw)

    def _end_inline(self) -> None:
        self.inline.finish()
        if self.inline.raw:
            self.content.append(self.inline if self.inline.sentences else self.inline.raw)
            self.inline = InlineText(escape_text)

    def _goes_on(self, index: int) -> bool:
        """Return whether a sentence goes on after a line break: what follows is text with a small letter."""
        if self.inline.is_empty:
            return False
        for token in self.tokens[index + 1 : index + 9]:
            text = token.raw.strip() if token.kind == "text" else ""
            if text:
                return text[0].islower()
            if token.kind != "text" and token.name not in INLINE:
                return False
        return False

    def _end_of_untouched(self, index: int) -> int:
        """Return where an element ends that is not to be translated; the index itself if the element is."""
        token = self.tokens[index]
        if token.name in VOID or not _is_untouched(token):
            return index
        if token.name in FOREIGN and token.raw.endswith("/>"):
            return index + 1
        open_names = [token.name]
        counts = Counter(open_names)
        for place in range(index + 1, len(self.tokens)):
            name, kind = self.tokens[place].name, self.tokens[place].kind
            if kind == "end" and counts[name]:
                while True:
                    closed = open_names.pop()
                    counts[closed] -= 1
                    if closed == name:
                        break
                if not open_names:
                    return place + 1
            elif kind == "end" and len(open_names) == 1 and token.name in _ENDS and name not in INLINE:
                return place  # the end of what it is in
            elif kind == "start" and name not in VOID:
                if name in _ENDS.get(open_names[-1], ()):
                    counts[open_names.pop()] -= 1
                    if not open_names:
                        return place
                open_names.append(name)
                counts[name] += 1
        return len(self.tokens)


_MENTIONS = re.compile("translate", re.IGNORECASE)


def _is_untouched(token: Token) -> bool:
    if token.name in UNTOUCHED_BLOCK or token.name in UNTOUCHED_INLINE:
        return True
    if not _MENTIONS.search(token.raw):
        return False
    attributes = read_attributes(token.raw)
    return attributes.get("translate", "").lower() == "no" or "notranslate" in attributes.get("class", "").split()
