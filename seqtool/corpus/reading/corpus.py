"""Where a parallel corpus lies: what a user named, as files, columns and a weight for mixing."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from seqtool.corpus.reading.forms import holds_pairs, open_file, require_lines
from seqtool.corpus.reading.opening import readable
from seqtool.corpus.reading.records import Columns
from seqtool.errors import OptionError, SeqtoolError

WITH_COLUMNS = re.compile(r"(.+):([^:/]+):([^:/]+)")


@dataclass(frozen=True)
class Corpus:
    """Where a parallel corpus lies: two aligned files, or one file with pairs (then target is None).

    columns name source and target within the one file: the languages of a TMX file, the columns of a table, the files
    in an archive. weight is for mixing.
    """

    source: Path
    target: Path | None
    weight: float = 1.0
    columns: Columns | None = None

    @property
    def paths(self) -> tuple[Path, ...]:
        return (self.source,) if self.target is None else (self.source, self.target)

    def __str__(self) -> str:
        return ":".join((str(self.source), *self.columns)) if self.columns else " ".join(map(str, self.paths))


def parse_corpus(paths: Sequence[Path], weight: float = 1.0) -> Corpus:
    """Make a corpus of one file with pairs, which may name its columns as in a.csv:en:de, or of two aligned files."""
    if not paths or len(paths) > 2:
        listed = ": " + ", ".join(str(path) for path in paths) if paths else ""
        raise OptionError(
            "a corpus is one TSV, TMX, CSV, JSONL or PO file, or two aligned files (source, then target),"
            f" not {len(paths)} files{listed}; give further ones to train on with `corpus`"
        )
    if not (math.isfinite(weight) and weight > 0):
        raise OptionError(f"{' '.join(map(str, paths))}: the weight of a corpus must be more than 0, not {weight}")
    if len(paths) == 2:
        return Corpus(Path(paths[0]), Path(paths[1]), weight)
    match = WITH_COLUMNS.fullmatch(str(paths[0]))
    if match and not Path(paths[0]).exists():
        return Corpus(Path(match[1]), None, weight, (match[2], match[3]))
    return Corpus(Path(paths[0]), None, weight)


def parse_corpus_option(text: str) -> Corpus:
    """Make a corpus of a text that names it: "a.tsv", "a.en,a.de", and either with a weight as in "a.tsv@0.5"."""
    names, weight = text, 1.0
    head, at, tail = text.rpartition("@")
    if at and not Path(text).exists():
        try:
            names, weight = head, float(tail)
        except ValueError:
            if "," not in tail and "/" not in tail and "." not in tail:
                raise OptionError(f"{text}: the weight after '@' must be a number, not '{tail}'") from None
    parts = [names] if Path(names).exists() else names.split(",")
    if not all(parts):
        raise OptionError(
            f"{text!r} names no corpus: write it as FILE.tsv, SOURCE,TARGET or either with a weight, FILE.tsv@0.5"
        )
    return parse_corpus([Path(part) for part in parts], weight)


def parse_against(values: Sequence[str]) -> list[Corpus]:
    """Turn the values of `against` into corpora, those that stand alone first."""
    return [_parse_set(group) for group in sorted(_group_sets(values, "against"), key=len)]


def parse_sets(values: Sequence[str], parameter: str) -> list[Corpus]:
    """Turn the values of a parameter that may be given several times into corpora, in the order in which they begin."""
    return [_parse_set(group) for group in _group_sets(values, parameter)]


def _group_sets(values: Sequence[str], parameter: str) -> list[list[str]]:
    """Group values: one with a comma, or of a file that holds pairs, stands alone; the others go two by two."""
    groups: list[list[str]] = []
    waiting: list[list[str]] = []  # a source whose target is still to come
    for value in values:
        if waiting and not _stands_alone(value):
            waiting.pop().append(value)
            continue
        groups.append([value])
        if not _stands_alone(value):
            waiting.append(groups[-1])
    if waiting and len(values) > 1:
        raise OptionError(
            f"`{parameter}`: give one file with pairs, or two files for each set, source then target;"
            f" {waiting[0][0]} has no other side"
        )
    return groups


def _parse_set(group: Sequence[str]) -> Corpus:
    alone = len(group) == 1 and _stands_alone(group[0])
    return parse_corpus_option(group[0]) if alone else parse_corpus([Path(value) for value in group])


def names_pairs(path: Path) -> bool:
    """Return whether a path names one file with pairs, perhaps with columns, as in a.csv:en:de."""
    return holds_pairs(path) if path.exists() else WITH_COLUMNS.fullmatch(str(path)) is not None


def _stands_alone(value: str) -> bool:
    return names_pairs(Path(value)) or ("," in value and not Path(value).exists())


def require_files(corpora: Iterable[Corpus]) -> None:
    """Raise if a path cannot be opened, plainly is something else, or is a pipe or the like: preparation reads it
    more than once."""
    for corpus in corpora:
        for path in corpus.paths:
            if path.exists() and not (path.is_file() or path.is_dir()):
                raise SeqtoolError(f"{path}: a pipe can be read only once; write it to a file and name that")
            with readable(path), open(path, "rb"):
                pass
            if corpus.target is not None:
                require_lines(open_file(path))
