"""SubRip subtitles: numbers and times stay as they are, the text of each subtitle is translated and wrapped again."""

import re
from collections.abc import Sequence

from seqtool.errors import SeqtoolError
from seqtool.translation.documents.inline import InlineText
from seqtool.translation.documents.interface import Document
from seqtool.translation.results import Translation

_ARROW = "-->"
_TIME = r"\d+:\d{1,2}:\d{1,2}(?:[,.]\d{1,3})?"
_TIMES = re.compile(rf"\s*{_TIME}\s*{_ARROW}\s*{_TIME}(?:\s.*)?")
# Formatting, and where on the screen the text stands: {\an8}.
_MARKUP = re.compile(r"(?P<tag></?(?P<name>[bius]|font)\b[^<>]*>)|\{\\[^{}]*\}", re.IGNORECASE)
_SPEAKER = re.compile(r"\s*[-–—]\s*")
_FORM = "1, then 00:00:01,000 --> 00:00:02,000, then the text"


class SrtDocument(Document):
    """Subtitles, each with the lines of its text; what several persons say is translated line by line."""

    def __init__(self, data: str) -> None:
        self._content: list[str | tuple[InlineText, int, str]] = []  # a text, its number of lines, its line end
        lines = data.split("\n")
        kinds = _classify(lines)
        group: list[str] = []
        for number, (line, kind) in enumerate(zip(lines, kinds, strict=True)):
            ended = line + "\n" if number < len(lines) - 1 else line
            if kind == "text":
                if group and _SPEAKER.match(line):
                    self._end_group(group)
                group.append(ended)
                continue
            self._end_group(group)
            self._content.append(ended)
        self._end_group(group)
        self.texts = [sentence for part in self._content if not isinstance(part, str) for sentence in part[0].sentences]

    def _end_group(self, group: list[str]) -> None:
        if group:
            text = _read_text("".join(group))
            self._content.append((text, len(group), "\r\n" if group[0].endswith("\r\n") else "\n"))
            group.clear()

    def _parts(self, translations: Sequence[Translation]) -> list[str]:
        parts: list[str] = []
        done = 0
        for part in self._content:
            if isinstance(part, str):
                parts.append(part)
                continue
            text, n_lines, line_end = part
            end = done + len(text.sentences)
            written = text.write(translations[done:end])
            parts.append(_wrap(written, n_lines, line_end) if end > done else written)
            done = end
        return parts


def _classify(lines: list[str]) -> list[str]:
    """Return for each line whether it is text or not; raise if the file is damaged."""
    kinds = ["blank" if not line.strip("\r\n\t \ufeff") else "text" for line in lines]
    seen = False
    for index, line in enumerate(lines):
        if _ARROW in line:
            if not _TIMES.fullmatch(line.lstrip("\ufeff")):
                problem = f"the times of a subtitle cannot be read: {line.strip()[:60]!r}"
                raise SeqtoolError(f"line {index + 1}: {problem}; a subtitle is {_FORM}")
            kinds[index] = "times"
            if index and lines[index - 1].strip().lstrip("\ufeff").isdecimal():
                kinds[index - 1] = "number"
    for index, kind in enumerate(kinds):
        seen = seen or kind == "times"
        if kind == "text" and not seen:
            raise SeqtoolError(f"line {index + 1}: text before the times of the first subtitle; a subtitle is {_FORM}")
    return kinds


def _read_text(data: str) -> InlineText:
    text = InlineText()
    speaker = _SPEAKER.match(data)
    done = speaker.end() if speaker else 0
    if speaker:
        text.add_object(data[:done])
    for match in _MARKUP.finditer(data):
        before = data[done : match.start()]
        text.add_text(before, before)
        if match["tag"]:
            text.add_tag(match["tag"], match["name"].lower(), closing=match["tag"].startswith("</"))
        else:
            text.add_object(match.group())
        done = match.end()
    text.add_text(data[done:], data[done:])
    return text.finish()


def _wrap(text: str, n_lines: int, line_end: str) -> str:
    """Break a text into lines of about the same length, at spaces outside of markup."""
    body = text.rstrip()
    spaces: list[tuple[int, int]] = []  # where in the text, and after how many visible characters
    hidden = done = 0
    for start, end in [*(match.span() for match in _MARKUP.finditer(body)), (len(body), len(body))]:
        spaces += [(at, at - hidden) for at in range(done, start) if body[at] == " "]
        hidden += end - start
        done = end
    length = len(body) - hidden
    breaks: list[int] = []
    for line in range(1, n_lines):
        if not spaces:
            break
        nearest = min(range(len(spaces)), key=lambda index: abs(spaces[index][1] - line * length / n_lines))
        breaks.append(spaces[nearest][0])
        spaces = spaces[nearest + 1 :]
    for at in reversed(breaks):
        body = body[:at] + line_end + body[at + 1 :]
    return body + text[len(text.rstrip()) :]
