"""A doctor for corpora: reads one once and reports what is wrong with it, by line number. Prints nothing."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from seqtool.config import CleanConfig
from seqtool.corpus.checking.examples import Example, make_example, name_controls, name_invalid, name_lengths
from seqtool.corpus.checking.outliers import LengthStatistics
from seqtool.corpus.checking.scripts import find_scripts, script_table
from seqtool.corpus.cleaning.hashing import Hashes, HashTable
from seqtool.corpus.cleaning.languages import Languages
from seqtool.corpus.cleaning.measuring import Measures, measure_pairs
from seqtool.corpus.cleaning.noise import KINDS, find_noise
from seqtool.corpus.cleaning.rules import (
    DUPLICATE,
    LANGUAGE,
    RULES,
    CleaningRules,
    OverlapHashes,
    TargetCounter,
    Verdicts,
    dropped_lines,
    is_lopsided,
    require_usable,
    too_long,
)
from seqtool.corpus.cleaning.rules import MANY_TARGETS as MANY_TARGETS_RULE
from seqtool.corpus.reading.blocks import read_blocks
from seqtool.corpus.reading.corpus import Corpus
from seqtool.corpus.reading.lines import Mask, PairBlock
from seqtool.corpus.reading.parting import LineCountError, ShiftWatch
from seqtool.errors import SeqtoolError
from seqtool.progress import Progress, ShowProgress, ignore

# What may be found, in the order of the report; the names that are also rules come first.
FINDINGS = (*RULES, "extra_columns", "unusually_long", "unusually_lopsided", "other_script")
SIDES = ("source", "target")
# The setting of [clean] that drops what was found.
SETTINGS = {name: name for name in (*KINDS, "empty", "control", "identical", "overlap", "duplicate")}
SETTINGS |= {"too_long": "max_chars", "unusually_long": "max_chars"}
SETTINGS |= {"ratio": "max_ratio", "unusually_lopsided": "max_ratio"}
SETTINGS |= {"swapped": "language", "language": "language", "other_script": "language", "many_targets": "max_targets"}
MANY_TARGETS = 5  # different targets of a source, from which on they are reported if clean.max_targets is not set
LISTED_LINES = 50  # line numbers that a finding keeps
OWN_SCRIPT_SHARE = 0.2  # a script with this share of a side's letters is at home there


@dataclass
class Finding:
    """How many pairs have something, the line numbers of the first ones (of outliers: the worst ones), and examples."""

    pairs: int = 0
    lines: list[int] = field(default_factory=list)
    examples: list[Example] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        examples = [example.to_dict() for example in self.examples]
        return {"pairs": self.pairs, "lines": self.lines, "examples": examples}


@dataclass
class Side:
    """Totals of one side of a corpus."""

    lines: int = 0
    words: int = 0
    chars: int = 0
    median_chars: int = 0
    max_chars: int = 0
    scripts: dict[str, float] = field(default_factory=dict)  # share of the letters

    def add(self, measures: Measures) -> None:
        self.words += int(measures.words.sum())
        self.chars += int(measures.chars.sum())
        self.max_chars = max(self.max_chars, int(measures.chars.max(initial=0)))


@dataclass
class Report:
    """All that a check found; problems are the reasons why training on the corpus would be wrong."""

    corpus: Corpus
    pairs: int = 0
    source: Side = field(default_factory=Side)
    target: Side = field(default_factory=Side)
    parts_near: int | None = None  # where files of different length seem to part
    shifted_near: int | None = None  # where files of the same length seem shifted
    findings: dict[str, Finding] = field(default_factory=lambda: {name: Finding() for name in FINDINGS})
    dropped: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    @property
    def kept(self) -> int:
        return self.pairs - sum(self.dropped.values())

    def to_dict(self) -> dict[str, Any]:
        """Return the report for programs."""
        return {
            "corpus": [str(path) for path in self.corpus.paths],
            "fit": not self.problems,
            "problems": self.problems,
            "pairs": self.pairs,
            "parity": {
                "equal": self.source.lines == self.target.lines,
                "source_lines": self.source.lines,
                "target_lines": self.target.lines,
                "parts_near": self.parts_near,
                "shifted_near": self.shifted_near,
            },
            "source": vars(self.source),
            "target": vars(self.target),
            "findings": {
                name: {**finding.to_dict(), "setting": f"clean.{SETTINGS[name]}" if name in SETTINGS else None}
                for name, finding in self.findings.items()
            },
            "cleaning": {"kept": self.kept, "dropped": {rule: self.dropped[rule] for rule in RULES}},
        }


def check_corpus(
    corpus: Corpus,
    config: CleanConfig,
    against: Sequence[Corpus] = (),
    *,
    n_examples: int = 3,
    dropped: BinaryIO | None = None,
    show: ShowProgress = ignore,
) -> Report:
    """Read a corpus and report on it; write the pairs that cleaning would drop to a file if one is given."""
    overlap = OverlapHashes.read(against) if against else None
    checker = _Checker(corpus, config, overlap, n_examples)
    try:
        for block in _learning(read_blocks(corpus), checker):
            verdicts = checker.add(block)
            if dropped is not None:
                dropped.write(dropped_lines(block, verdicts))
            show(Progress("checking", checker.report.pairs))
    except LineCountError as error:
        checker.note_line_counts(error)
    return checker.finish()


def _learning(blocks: Iterator[PairBlock], checker: "_Checker") -> Iterator[PairBlock]:
    """Yield the blocks of a corpus after the first of them, which are kept as long, have taught the languages."""
    first: list[PairBlock] = []

    def kept() -> Iterator[PairBlock]:
        for block in blocks:
            first.append(block)
            yield block

    try:
        checker.learn(kept())
    except LineCountError:  # raised again after the pairs before it have been checked
        yield from first
        raise
    yield from first
    yield from blocks


class _Checker:
    """The state of a check while the corpus streams by."""

    def __init__(self, corpus: Corpus, config: CleanConfig, overlap: OverlapHashes | None, n_examples: int) -> None:
        self.report = Report(corpus)
        self.config = config
        self.rules = CleaningRules(config, overlap)
        self.n_examples = n_examples
        self.seen = HashTable(with_numbers=True)
        self.languages: Languages | None = None
        self.targets = TargetCounter(config.max_targets or MANY_TARGETS)
        self.lengths = LengthStatistics(LISTED_LINES)
        self.watch = ShiftWatch()
        self.letters = np.zeros((2, 256), np.int64)
        self.strangest: list[tuple[float, Example]] = []
        self.by_scripts: dict[tuple[int, int], Finding] = {}  # dominant scripts of source and target

    def learn(self, blocks: Iterator[PairBlock]) -> None:
        """Learn what the languages of the corpus look like from its first pairs."""
        self.languages = Languages.learn(blocks)
        self.rules = replace(self.rules, languages=self.languages)

    def add(self, block: PairBlock) -> Verdicts:
        """Take in the next block; return what cleaning would do with its pairs."""
        src, tgt = measure_pairs(block)
        verdicts = self.rules.judge_measured(block, src, tgt)
        self.report.pairs += len(block)
        self.report.source.add(src)
        self.report.target.add(tgt)
        self._note_defects(block, src, tgt)
        self._note_repeats(block, verdicts, src.hashes)
        self._note_scripts(block)
        sound = ~(src.invalid | src.blank), ~(tgt.invalid | tgt.blank)
        self.lengths.add(src.chars, tgt.chars, sound, block.number, lambda i: _with_lengths(block, i))
        self.watch.add(block)
        self.report.dropped.update(verdicts.counts())
        return verdicts

    def note_line_counts(self, error: LineCountError) -> None:
        """Record that one file goes on after the other's end."""
        self.report.source.lines, self.report.target.lines = error.src_lines, error.tgt_lines
        self.report.parts_near = error.near
        self.report.problems.append(error.summary)

    def finish(self) -> Report:
        """Compute what depends on the whole corpus, and return the report."""
        report = self.report
        if not report.problems:
            report.source.lines = report.target.lines = report.pairs
            self.watch.finish()
            report.shifted_near = self.watch.near
            if not self.config.shifted and (problem := self.watch.problem(report.corpus)):
                report.problems.append(problem)
        report.findings["language"].examples = [example for _, example in self.strangest]
        self._summarise_lengths()
        self._summarise_scripts()
        try:
            require_usable(self.config, str(report.corpus), report.pairs, report.dropped)
        except SeqtoolError as error:
            report.problems.append(str(error))
        return report

    def _note(
        self, finding: Finding, mask: Mask, block: PairBlock, describe: Callable[[int], str] | None = None
    ) -> None:
        places = np.flatnonzero(mask)
        finding.pairs += len(places)
        finding.lines += (block.number + places[: LISTED_LINES - len(finding.lines)]).tolist()
        for i in places[: self.n_examples - len(finding.examples)].tolist():
            finding.examples.append(make_example(block, i, describe(i) if describe else ""))

    def _note_defects(self, block: PairBlock, src: Measures, tgt: Measures) -> None:
        findings = self.report.findings
        invalid, blank = src.invalid | tgt.invalid, (src.blank | tgt.blank) & ~block.missing
        sound = ~(invalid | blank | block.missing)
        self._note(findings["undecodable"], invalid, block, lambda i: name_invalid(block, i))
        self._note(findings["columns"], block.missing, block)
        self._note(findings["empty"], blank, block, lambda i: _which_side(src.blank[i], tgt.blank[i]))
        self._note(findings["control"], src.control | tgt.control, block, lambda i: name_controls(block, i))
        self._note(findings["identical"], (src.hashes == tgt.hashes) & sound, block)
        long, lopsided = too_long(self.config, src, tgt), is_lopsided(self.config, src, tgt)
        self._note(findings["too_long"], long & sound, block, lambda i: name_lengths(block, i))
        self._note(findings["ratio"], lopsided & sound, block, lambda i: name_lengths(block, i))
        if self.rules.against is not None:
            in_src, in_tgt = self.rules.against.find(src, tgt)
            self._note(findings["overlap"], in_src | in_tgt, block, lambda i: _which_side(in_src[i], in_tgt[i]))
        self._note(findings["extra_columns"], block.extra, block)
        for kind, mask in find_noise(block, KINDS).items():
            self._note(findings[kind], mask & (sound | (kind == "damaged")), block)
        if self.languages is not None:
            *masks, depths = self.languages.examine(block)
            for kind, mask in zip(LANGUAGE, masks, strict=True):
                self._note(findings[kind], mask & sound, block)
            self._keep_strangest(block, masks[-1] & sound, depths)

    def _keep_strangest(self, block: PairBlock, mask: Mask, depths: NDArray[np.float32]) -> None:
        """Keep the pairs that read least like their languages as examples: near the limit many are names and codes."""
        places = np.flatnonzero(mask)
        depth, side = depths.max(axis=0), depths.argmax(axis=0)
        worst = places[np.argsort(-depth[places], kind="stable")][: self.n_examples].tolist()
        self.strangest += [(-float(depth[i]), make_example(block, i, SIDES[side[i]])) for i in worst]
        self.strangest = sorted(self.strangest, key=lambda item: item[0])[: self.n_examples]

    def _note_repeats(self, block: PairBlock, verdicts: Verdicts, sources: Hashes) -> None:
        """Find repeated pairs among those that have nothing worse, and change their verdicts as cleaning would."""
        whole = np.flatnonzero(verdicts.rules > RULES.index("control"))
        numbers = np.minimum(block.number + whole, 0xFFFFFFFF).astype(np.uint32)
        repeats = whole[self.seen.add(verdicts.hashes[whole], numbers)]
        mask = np.zeros(len(block), bool)
        mask[repeats] = True
        finding = self.report.findings["duplicate"]
        self._note(finding, mask, block, lambda i: f"as line {self.seen.numbers_of(verdicts.hashes[i : i + 1])[0]:,}")
        if self.config.enabled and self.config.duplicate:
            verdicts.rules[mask & verdicts.kept] = DUPLICATE
        first = whole[~mask[whole]]
        many = np.zeros(len(block), bool)
        many[first[self.targets.add(sources[first])]] = True
        self._note(self.report.findings["many_targets"], many, block)
        if self.config.enabled and self.config.max_targets:
            verdicts.rules[many & verdicts.kept] = MANY_TARGETS_RULE

    def _note_scripts(self, block: PairBlock) -> None:
        src, tgt = find_scripts(block.src), find_scripts(block.tgt)
        self.letters += np.stack([src.letters, tgt.letters])
        both = src.dominant.astype(np.int64) * 256 + tgt.dominant
        for combination in np.flatnonzero(np.bincount(both)).tolist():
            finding = self.by_scripts.setdefault(divmod(combination, 256), Finding())
            self._note(finding, both == combination, block)

    def _summarise_scripts(self) -> None:
        names, other = script_table().names, self.report.findings["other_script"]
        shares = self.letters / np.maximum(self.letters.sum(axis=1, keepdims=True), 1)
        for facts, row in zip((self.report.source, self.report.target), shares, strict=True):
            order = np.argsort(-row, kind="stable").tolist()
            facts.scripts = {names[script]: round(float(row[script]), 6) for script in order if row[script]}
        for scripts, finding in self.by_scripts.items():
            foreign = [
                bool(script) and row[script] < OWN_SCRIPT_SHARE for script, row in zip(scripts, shares, strict=True)
            ]
            notes = [f"{side} is {names[s]}" for side, s, f in zip(SIDES, scripts, foreign, strict=True) if f]
            if notes:
                other.pairs += finding.pairs
                other.lines += finding.lines
                other.examples += [replace(example, note=", ".join(notes)) for example in finding.examples]
        other.lines = sorted(other.lines)[:LISTED_LINES]
        other.examples = sorted(other.examples, key=lambda example: example.line)[: self.n_examples]

    def _summarise_lengths(self) -> None:
        report, lengths = self.report, self.lengths
        for side, histogram in ((report.source, lengths.src), (report.target, lengths.tgt)):
            side.median_chars = histogram.quantile(0.5) if histogram.counts.any() else 0
        if not lengths.both.counts.any():
            return
        for name, (pairs, worst) in (
            ("unusually_long", lengths.find_long()),
            ("unusually_lopsided", lengths.find_lopsided()),
        ):
            report.findings[name] = Finding(pairs, [example.line for example in worst], worst[: self.n_examples])


def _which_side(src: bool, tgt: bool) -> str:
    return "both sides" if src and tgt else SIDES[0] if src else SIDES[1]


def _with_lengths(block: PairBlock, i: int) -> Example:
    return make_example(block, i, name_lengths(block, i))
