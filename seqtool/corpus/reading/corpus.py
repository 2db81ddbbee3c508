"""Where a parallel corpus lies: what a user named, as files and a weight for mixing. Reads nothing."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from seqtool.corpus.reading.opening import readable
from seqtool.errors import SeqtoolError


@dataclass(frozen=True)
class Corpus:
    """Where a parallel corpus lies: two aligned files, or one TSV file (then target is None); weight is for mixing."""

    source: Path
    target: Path | None
    weight: float = 1.0

    @property
    def paths(self) -> tuple[Path, ...]:
        return (self.source,) if self.target is None else (self.source, self.target)

    def __str__(self) -> str:
        return " ".join(str(path) for path in self.paths)


def parse_corpus(paths: Sequence[Path], weight: float = 1.0) -> Corpus:
    """Make a corpus of one TSV file or of two aligned files."""
    if not paths or len(paths) > 2:
        listed = ": " + ", ".join(str(path) for path in paths) if paths else ""
        raise SeqtoolError(
            f"a corpus is one TSV file or two aligned files (source, then target), not {len(paths)} files{listed};"
            " give further ones to train on with --corpus"
        )
    if not (math.isfinite(weight) and weight > 0):
        raise SeqtoolError(f"{' '.join(map(str, paths))}: the weight of a corpus must be more than 0, not {weight}")
    return Corpus(Path(paths[0]), Path(paths[1]) if len(paths) == 2 else None, weight)


def parse_corpus_option(text: str) -> Corpus:
    """Make a corpus of a --corpus value: "a.tsv", "a.en,a.de", and either with a weight as in "a.tsv@0.5"."""
    names, weight = text, 1.0
    head, at, tail = text.rpartition("@")
    if at and not Path(text).exists():
        try:
            names, weight = head, float(tail)
        except ValueError:
            if "," not in tail and "/" not in tail and "." not in tail:
                raise SeqtoolError(f"--corpus {text}: the weight after '@' must be a number, not '{tail}'") from None
    parts = [names] if Path(names).exists() else names.split(",")
    if not all(parts):
        raise SeqtoolError(
            f"--corpus {text}: write it as FILE.tsv, SOURCE,TARGET or either with a weight, FILE.tsv@0.5"
        )
    return parse_corpus([Path(part) for part in parts], weight)


def parse_against(values: Sequence[str]) -> list[Corpus]:
    """Turn --against values into corpora: a value with a comma or a .tsv file stands alone, others go two by two."""
    alone = [value for value in values if "," in value or ".tsv" in Path(value).suffixes]
    others = [Path(value) for value in values if value not in alone]
    if len(others) > 1 and len(others) % 2:
        raise SeqtoolError(
            "--against: give one TSV file, or two files for each set, source then target;"
            f" these are {len(others)}: {', '.join(map(str, others))}"
        )
    pairs = [others[i : i + 2] for i in range(0, len(others), 2)]
    return [parse_corpus_option(value) for value in alone] + [parse_corpus(pair) for pair in pairs]


def require_files(corpora: Iterable[Corpus]) -> None:
    """Raise where a path cannot be opened, or is a pipe or the like, since what is prepared is read more than once."""
    for path in (path for corpus in corpora for path in corpus.paths):
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise SeqtoolError(f"{path}: a pipe can be read only once; write it to a file and name that")
        with readable(path), open(path, "rb"):
            pass
