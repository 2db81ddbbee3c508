"""The texts that a translation is scored against: from files, or from sacreBLEU's named test sets."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from seqtool.corpus.reading.blocks import read_lines, read_texts
from seqtool.corpus.reading.corpus import names_pairs, parse_corpus
from seqtool.errors import SeqtoolError, suggest


@dataclass(frozen=True)
class ReferenceSet:
    """A test set: its name, its source lines if they are known, and one or more sets of references."""

    name: str
    sources: list[str] | None
    references: list[list[str]]

    @property
    def sha256(self) -> str:
        """Distinguishes test sets of the same name."""
        return hashlib.sha256(json.dumps([self.sources, self.references]).encode()).hexdigest()

    def check_lines(self, lines: Sequence[str], name: str) -> None:
        """Raise if a translation has not one line for each reference."""
        n_wanted = len(self.references[0])
        if len(lines) != n_wanted:
            raise SeqtoolError(
                f"{name} has {len(lines):,} lines but the reference of {self.name} has {n_wanted:,}; "
                "both must be line-aligned"
            )


def read_reference_set(source: Path | None, references: Sequence[Path]) -> ReferenceSet:
    """Read a test set from files and check that they are line-aligned; the first reference may be one file with pairs,
    which brings the source."""
    if not references:
        raise SeqtoolError("there is no reference to score against; give at least one REF file")
    sources, sides = None, []
    if names_pairs(references[0]):
        if source:
            raise SeqtoolError(
                f"{references[0]}: holds the source too; leave out {source}, or give a file of references"
            )
        sources, first_side = read_pair_set(references[0])
        sides.append(first_side)
    sides += [read_text_lines(path) for path in references[len(sides) :]]
    sources = read_text_lines(source) if source else sources
    first = source or references[0]
    n_first = len(sources if sources is not None else sides[0])
    for path, lines in zip(references, sides, strict=True):
        if len(lines) != n_first:
            raise SeqtoolError(
                f"{first} has {n_first:,} lines but {path} has {len(lines):,}; both must be line-aligned. "
                f"Run 'seqtool check {first} {path}' to find where they part."
            )
    return ReferenceSet(references[0].name, sources, sides)


def read_pair_set(path: Path) -> tuple[list[str], list[str]]:
    """Read the sources and the references of a test set that is one file with pairs."""
    corpus = parse_corpus([path])
    pairs = read_texts(corpus, "a test set needs both sides of each pair")
    if not pairs:
        raise SeqtoolError(f"{path}: the file is empty; give one with a pair for each sentence")
    return [src for src, _ in pairs], [tgt for _, tgt in pairs]


def read_text_lines(path: Path) -> list[str]:
    r"""Read the lines of a text file, plain or compressed, split on "\n" only."""
    lines = []
    for number, line in enumerate(read_lines(path), 1):
        try:
            lines.append(line.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise SeqtoolError(
                f"{path}: line {number:,} is not UTF-8 (byte {error.start + 1}); convert it with "
                f"'iconv -f latin1 -t utf-8' or repair the line"
            ) from None
    if not lines:
        raise SeqtoolError(f"{path}: the file is empty; give one with a line for each sentence")
    return lines


def fetch_reference_set(name: str, langpair: str) -> ReferenceSet:
    """Get one of sacreBLEU's test sets, downloaded on first use into its own cache."""
    import sacrebleu

    if name not in sacrebleu.DATASETS:
        raise SeqtoolError(f"sacreBLEU has no test set '{name}'{_nearest(name, sacrebleu.DATASETS)}")
    pairs = sacrebleu.get_langpairs_for_testset(name)
    if langpair not in pairs:
        raise SeqtoolError(f"the test set {name} has no language pair '{langpair}'; it has: {', '.join(sorted(pairs))}")
    try:
        source = sacrebleu.get_source_file(name, langpair)
        references = sacrebleu.get_reference_files(name, langpair)
    except (OSError, SystemExit) as error:  # sacreBLEU exits by itself on some failures
        raise SeqtoolError(
            f"sacreBLEU cannot download the test set {name} ({error}); connect to the network and try again, "
            f"or copy a folder with it to {sacrebleu.SACREBLEU_DIR}, or give SRC and REF files instead"
        ) from None
    found = read_reference_set(Path(source), [Path(path) for path in references])
    return ReferenceSet(f"{name}/{langpair}", found.sources, found.references)


def _nearest(name: str, known: Iterable[str]) -> str:
    hint = suggest(name, known)
    return hint if "did you mean" in hint else "; list them with 'sacrebleu --list'"
