"""Pairs from a TMX translation memory, read as a stream by expat. A file from outside may be hostile: declarations of
entities are refused, nothing outside the file is opened, and each token, segment and depth has its limit."""

from collections.abc import Iterator
from xml.parsers import expat

from seqtool.corpus.reading.records import MAX_RECORD_BYTES, Columns, Record, to_line
from seqtool.errors import SeqtoolError

CODE_TAGS = {"bpt", "ept", "it", "ph", "ut"}  # their content is markup, not text
MAX_DEPTH = 100
MAX_NAMES = 1000  # of elements and attributes: the parser never forgets one
MAX_TOKEN_BYTES = 4 << 20  # of a tag or comment, which the parser must hold whole
MAX_LANGUAGES = 200
WAITING_UNITS = 1000  # without a translation, before the first that shows the languages


def read_tmx(name: str, chunks: Iterator[bytes], columns: Columns | None) -> Iterator[Record]:
    """Yield source and target of each translation unit; columns are their languages, needed if there are more than
    two. Without them the source is the one that the header names, or that comes first."""
    reader = _TmxReader(name, columns)
    for chunk in chunks:
        reader.feed(chunk)
        yield from reader.take()
    reader.feed(b"", is_last=True)
    yield from reader.take()


class _TmxReader:
    def __init__(self, name: str, columns: Columns | None) -> None:
        self._name = name
        self._wanted = (_normal(columns[0]), _normal(columns[1])) if columns else None
        self._header = ""  # the language that the header calls the source
        self._waiting: list[dict[str, str]] = []  # units that came before the languages were known
        self._records: list[Record] = []
        self._found = False  # both languages, in some unit
        self._languages: set[str] = set()
        self._names: set[str] = set()
        self._unit: dict[str, str] = {}
        self._language = ""
        self._open: list[str] = []
        self._segment: list[str] | None = None
        self._segment_size = self._code_depth = self._fed = 0
        self._parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.StartDoctypeDeclHandler = self._doctype
        parser.EntityDeclHandler = self._entity
        parser.SkippedEntityHandler = lambda entity, is_parameter: self._text(f"&{entity};")

    def feed(self, chunk: bytes, is_last: bool = False) -> None:
        self._fed += len(chunk)
        try:
            self._parser.Parse(chunk, is_last)
        except expat.ExpatError as error:
            raise self._error(f"is not well-formed XML: {expat.ErrorString(error.code)}", error.lineno) from None
        except (ValueError, LookupError) as error:  # an encoding that it does not know
            raise self._error(f"cannot be read ({error}); convert it to UTF-8") from None
        if self._fed - self._parser.CurrentByteIndex > MAX_TOKEN_BYTES and not is_last:
            raise self._error(f"has a tag or comment of more than {MAX_TOKEN_BYTES >> 20} MiB")
        if is_last and not self._found:
            seen = ", ".join(sorted(self._languages)) or "none"
            between = f"in '{self._wanted[0]}' and '{self._wanted[1]}'" if self._wanted else "in two languages"
            raise SeqtoolError(f"{self._name}: no translation unit has segments {between}; its languages: {seen}")

    def take(self) -> list[Record]:
        """Return the pairs that are complete."""
        records, self._records = self._records, []
        return records

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._open.append(tag)
        self._names.update((tag, *attributes))
        if len(self._open) > MAX_DEPTH or len(self._names) > MAX_NAMES:
            raise self._error("is no translation memory: its elements are nested too deeply, or have too many names")
        if self._segment is not None:
            self._code_depth += tag in CODE_TAGS or self._code_depth > 0
        elif tag == "seg":
            self._segment, self._segment_size = [], 0
        elif tag == "tuv":
            self._language = _normal(attributes.get("xml:lang") or attributes.get("lang") or "")
        elif tag == "tu":
            self._unit = {}
        elif tag == "header":
            self._header = _normal(attributes.get("srclang", ""))

    def _end(self, tag: str) -> None:
        self._open.pop()
        if self._segment is not None and tag != "seg":
            self._code_depth = max(0, self._code_depth - 1)
        elif self._segment is not None:
            self._unit.setdefault(self._language, "".join(self._segment))
            self._segment = None
        elif tag == "tu":
            self._end_unit(self._unit)

    def _text(self, text: str) -> None:
        if self._segment is not None and not self._code_depth:
            self._segment.append(text)
            self._segment_size += len(text)
            if self._segment_size > MAX_RECORD_BYTES:
                raise self._error(f"has a segment of more than {MAX_RECORD_BYTES >> 20} MiB, too much for one pair")

    def _doctype(self, name: str, system: str | None, public: str | None, has_subset: bool) -> None:
        if has_subset:
            raise self._error("has declarations in its DOCTYPE, which are not read, for safety; remove them")

    def _entity(self, *_: object) -> None:
        raise self._error("declares entities, which are not read, for safety; remove the declarations")

    def _end_unit(self, unit: dict[str, str]) -> None:
        if len(self._languages) < MAX_LANGUAGES:
            self._languages.update(unit)
        if self._wanted is None:
            self._waiting.append(unit)
            if len(unit) < 2:
                if len(self._waiting) > WAITING_UNITS:
                    raise self._error(f"none of the first {WAITING_UNITS:,} units has segments in two languages")
                return
            self._wanted = self._choose(list(unit))
            units, self._waiting = self._waiting, []
        else:
            units = [unit]
        for each in units:
            src, tgt = (_find(each, language) for language in self._wanted)
            self._found |= src is not None and tgt is not None
            self._records.append((to_line(src or ""), None if tgt is None else to_line(tgt)))

    def _choose(self, languages: list[str]) -> tuple[str, str]:
        if len(languages) > 2:
            listed = ", ".join(languages[:12])
            raise SeqtoolError(
                f"{self._name}: has the languages {listed}; name source and target, as in"
                f" {self._name}:{languages[0]}:{languages[1]}"
            )
        src, tgt = languages
        if _find({tgt: ""}, self._header) is not None and _find({src: ""}, self._header) is None:
            src, tgt = tgt, src
        bases = src.partition("-")[0], tgt.partition("-")[0]  # en, whichever country's
        return bases if bases[0] != bases[1] else (src, tgt)

    def _error(self, what: str, line: int | None = None) -> SeqtoolError:
        place = f"line {line or self._parser.CurrentLineNumber:,}"
        return SeqtoolError(f"{self._name}: {what} ({place})")


def _normal(language: str) -> str:
    return language.strip().lower().replace("_", "-")


def _find(unit: dict[str, str], language: str) -> str | None:
    """Return the text in a language: "en" is also "en-us"."""
    if language in unit:
        return unit[language]
    return next((text for name, text in unit.items() if name.startswith(language + "-")), None)
