"""What must be the same on both sides of a pair and is not, and traces of a wrong conversion: pair by pair, as text."""

import html.entities
import re
from collections import Counter
from collections.abc import Callable, Collection

import numpy as np
from numpy.typing import NDArray

from seqtool.corpus.reading.lines import LineBlock, Mask, PairBlock

NUMBER = re.compile(r"\d+(?:[.,:'’\u00a0\u202f\u2009]\d+)*")
NOT_DIGIT = re.compile(r"\D")
SPELLED_OUT = 12  # numbers up to this one may be a word on the other side
URL = re.compile(r"(?:https?|ftp)://[^\s<>\"»”]+|www\.[^\s<>\"»”]+|[\w.+-]+@[\w-]+\.[\w.-]+")
URL_END = ".,;:!?)]}'"
LANGUAGE_PART = re.compile(r"(?<=[/.])[a-z]{2}(?:[-_][a-zA-Z]{2})?(?=[/.]|$)")
TAG = re.compile(r"<(/?)([A-Za-z][\w:-]*)((?:\s[^<>]*)?)>")
HTML_TAGS = {
    *("a", "abbr", "b", "big", "blockquote", "body", "br", "center", "cite", "code", "dd", "del", "div", "dl", "dt"),
    *("em", "font", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "img", "ins", "kbd", "li", "ol", "p", "pre", "q"),
    *("s", "small", "span", "strike", "strong", "sub", "sup", "table", "tbody", "td", "th", "tr", "tt", "u", "ul"),
}
PLACEHOLDER = re.compile(
    r"(?<![\d%])(?<!\d )%(?:\d+\$)?l?[sduic]|"  # also before a letter, as in %dkB
    r"%(?:\d+\$)?[-+#0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|z|j|t|L)?[diouxXeEfgGcspn@](?![A-Za-zÀ-ÿ])"
    r"|%\(\w+\)[a-z]|\$?\{\w{0,40}\}|\$\(\w+\)"
)
POSITION = re.compile(r"(?<=%)\d+\$")
ENTITY = re.compile(r"&(#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]\w{1,31});")
ENTITY_NAMES = {name.removesuffix(";") for name in html.entities.html5}

REPLACEMENT = "\ufffd"
# A character that begins a sequence in UTF-8 and one that goes on with it, both read as Latin-1 or Windows-1252.
MISREAD = re.compile(
    "[\u00c2-\u00f4](?:[\u0080-\u00bf\u0152\u0153\u0160\u0161\u0178\u017d\u017e\u0192\u02c6\u02dc]"
    "|[\u2013-\u203a\u20ac\u2122])+"
)
# What such sequences stand for in living text: Latin, Greek, Cyrillic, Hebrew, Arabic, punctuation, East Asia, emoji.
LIKELY = [(0xA0, 0x180), (0x370, 0x530), (0x590, 0x700), (0x900, 0x1000), (0x1E00, 0x2200), (0x3000, 0xD7B0)]
LIKELY += [(0xF900, 0x1FB00)]


def find_noise(block: PairBlock, kinds: Collection[str]) -> dict[str, Mask]:
    """Return for each kind of noise the pairs that have it; lines that are not UTF-8 have none."""
    found = {kind: np.zeros(len(block), bool) for kind in kinds}
    signs = _find_signs(block.src) | _find_signs(block.tgt)
    for number, (kind, (_, trigger, is_noise)) in enumerate(KINDS.items()):
        for i in np.flatnonzero(signs & (1 << number)).tolist() if kind in found else ():
            src, tgt = block.src.line(i), block.tgt.line(i)
            if trigger.search(src) or trigger.search(tgt):
                found[kind][i] = is_noise(src.decode("utf-8", "ignore"), tgt.decode("utf-8", "ignore"))
    return found


def _find_signs(lines: LineBlock) -> NDArray[np.uint8]:
    """Return a number for each line, in which a bit stands for a kind of noise: 1 if the line has one of its bytes."""
    bits = np.append(np.frombuffer(lines.data.translate(SIGNS), np.uint8), np.uint8(0))
    bits[[match.start() for match in re.finditer(rb"www\.", lines.data)]] |= SIGNS[ord(":")]
    bounds = np.stack([lines.starts, lines.ends], axis=1).ravel()
    signs: NDArray[np.uint8] = np.bitwise_or.reduceat(bits, bounds)[::2] if len(lines) else bits[:0]
    return np.where(lines.ends > lines.starts, signs, np.uint8(0))


def numbers_differ(src: str, tgt: str) -> bool:
    """Return whether the sides have other numbers, without separators and small ones that may be words elsewhere."""
    if sorted(NOT_DIGIT.sub("", src)) == sorted(NOT_DIGIT.sub("", tgt)):
        return False
    ours, theirs = (Counter(_number(match.group()) for match in NUMBER.finditer(text)) for text in (src, tgt))
    more, less = ours - theirs, theirs - ours
    if more and less:
        return True
    return any(number > SPELLED_OUT for number in (*more, *less))


def _number(text: str) -> int:
    return int(NOT_DIGIT.sub("", text)[:60])


def urls_differ(src: str, tgt: str) -> bool:
    """Return whether the sides have other web or mail addresses; the language in an address does not count."""
    return _urls(src) != _urls(tgt)


def _urls(text: str) -> Counter[str]:
    found = (match.group().rstrip(URL_END).partition("://") for match in URL.finditer(text))
    return Counter(LANGUAGE_PART.sub("*", "/" + (rest or first)).rstrip("/") for first, _, rest in found)


def tags_differ(src: str, tgt: str) -> bool:
    """Return whether the sides have other HTML or XML tags; a word in angle brackets alone is none."""
    return _tags(src) != _tags(tgt)


def _tags(text: str) -> Counter[str]:
    found = [match.groups() for match in TAG.finditer(text)]
    closed = {name for slash, name, _ in found if slash}
    names = (
        slash + name.lower()
        for slash, name, rest in found
        if name in closed or name.lower() in HTML_TAGS or "=" in rest or rest.endswith("/")
    )
    return Counter(names)


def placeholders_differ(src: str, tgt: str) -> bool:
    """Return whether the sides have other placeholders, such as %s, %(name)s, {0} or ${name}."""
    ours, theirs = (Counter(POSITION.sub("", found) for found in PLACEHOLDER.findall(text)) for text in (src, tgt))
    return ours != theirs


def has_entities(src: str, tgt: str) -> bool:
    """Return whether a side has entities of HTML, which should have become characters."""
    return any(match[1][0] == "#" or match[1] in ENTITY_NAMES for text in (src, tgt) for match in ENTITY.finditer(text))


def is_damaged(src: str, tgt: str) -> bool:
    """Return whether a side was decoded wrongly: UTF-8 read as Latin-1, or U+FFFD in place of a lost character."""
    return _is_misread(src) or _is_misread(tgt) or _lost_characters(src, tgt)


def _is_misread(text: str) -> bool:
    return any(_decodes(match.group()) for match in MISREAD.finditer(text))


def _decodes(run: str) -> bool:
    data = b"".join(_as_byte(char) for char in run)
    text = data.decode("utf-8", "ignore")
    return bool(text) and any(low <= ord(text[0]) < high for low, high in LIKELY)


def _as_byte(char: str) -> bytes:
    try:
        return char.encode("cp1252")
    except UnicodeEncodeError:
        return char.encode("latin-1", "ignore")


def _lost_characters(src: str, tgt: str) -> bool:
    """Return whether U+FFFD stands for lost letters: a text about it has it by itself, and on both sides."""
    counts = src.count(REPLACEMENT), tgt.count(REPLACEMENT)
    if counts == (0, 0):
        return False
    return counts[0] != counts[1] or any(_within_words(text) for text in (src, tgt))


def _within_words(text: str) -> bool:
    return re.search(f"\\w{REPLACEMENT}|{REPLACEMENT}\\w", text) is not None


# Bytes of which a line must have one, what it must have at the least for a check to be worth while, and the check.
KINDS: dict[str, tuple[bytes, re.Pattern[bytes], Callable[[str, str], bool]]] = {
    "damaged": (b"\xef\xc3", re.compile(rb"\xef\xbf\xbd|\xc3[\x82-\xb4][\xc2\xc5\xc6\xcb\xe2]"), is_damaged),
    "entities": (b"&", re.compile(rb"&[A-Za-z#]\w*;"), has_entities),
    "urls": (b":@", re.compile(rb"://|www\.|@"), urls_differ),
    "tags": (b"<", re.compile(rb"<[/A-Za-z]"), tags_differ),
    "placeholders": (b"%{$", re.compile(rb"[%{]|\$\("), placeholders_differ),
    "numbers": (b"0123456789\xef\xd9\xdb", re.compile(rb"\d|\xef\xbc[\x90-\x99]|[\xd9\xdb]"), numbers_differ),
}
SIGNS = bytes(
    sum(1 << number for number, (signs, *_) in enumerate(KINDS.values()) if byte in signs) for byte in range(256)
)
