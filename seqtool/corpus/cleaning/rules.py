"""Which pairs of a corpus are not fit to train on, and by which rule. Knows nothing of files or tokens.

The rules look at pairs by themselves, except for repetition, which needs a memory of all pairs so far. So there are two
halves, and several processes can share the work:

    rules = CleaningRules(config, against)  # against is from OverlapHashes.read, or None
    verdicts = rules.judge(block)           # in any process: the rule that drops each pair, or KEPT, and its hash
    seen = Deduplicator(config)
    seen.mark(verdicts)                     # in one process, in the order of the corpus: marks repeated pairs
    [block.src.line(i) for i in np.flatnonzero(verdicts.kept)]

Rules are tried in the order of RULES; the first that applies names the reason.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seqtool.config import CleanConfig
from seqtool.corpus.cleaning.hashing import Hashes, HashTable, hash_pairs
from seqtool.corpus.cleaning.languages import Languages
from seqtool.corpus.cleaning.measuring import Measures, measure_pairs
from seqtool.corpus.cleaning.noise import KINDS, find_noise
from seqtool.corpus.reading.blocks import read_blocks
from seqtool.corpus.reading.corpus import Corpus
from seqtool.corpus.reading.lines import Mask, PairBlock
from seqtool.errors import SeqtoolError

BASIC = ("undecodable", "columns", "empty", "control", "identical", "too_long", "ratio")
LANGUAGE = ("swapped", "language")
RULES = (*BASIC, *KINDS, *LANGUAGE, "overlap", "many_targets", "duplicate")
MUCH_NOISE = 0.005  # the share of the pairs with a kind of noise from which its setting is recommended
FALSE_ALARMS = {"language": 0.05}  # that a kind may have: unusual words make a line look like another language
KEPT = len(RULES)
MANY_TARGETS, DUPLICATE = RULES.index("many_targets"), RULES.index("duplicate")


def settings_against(counts: Mapping[str, int], pairs: int) -> list[str]:
    """Return the settings of [clean] that drop the noise of which there is much, given the pairs with each kind."""
    much = [kind for kind, n in counts.items() if n and n > FALSE_ALARMS.get(kind, MUCH_NOISE) * pairs]
    return list(dict.fromkeys("language" if kind in LANGUAGE else kind for kind in much))


@dataclass(frozen=True)
class OverlapHashes:
    """The sorted hashes of the source and target lines of the validation and test sets."""

    src: Hashes
    tgt: Hashes

    @classmethod
    def read(cls, corpora: Iterable[Corpus]) -> "OverlapHashes":
        """Hash every line that is not blank."""
        sides: tuple[list[Hashes], list[Hashes]] = ([], [])
        for corpus in corpora:
            for block in read_blocks(corpus):
                measured = measure_pairs(block)
                if (alone := np.flatnonzero(block.missing & ~measured[0].blank)).size:
                    raise SeqtoolError(
                        f"{corpus}: line {block.number + int(alone[0]):,} has no tab and so no target; "
                        "give a set to keep apart as one file with pairs, or as two files, source then target"
                    )
                for hashes, side in zip(sides, measured, strict=True):
                    hashes.append(side.hashes[~side.blank])
        src, tgt = (np.unique(np.concatenate([*side, np.zeros(0, np.uint64)])) for side in sides)
        return cls(src, tgt)

    def find(self, src: Measures, tgt: Measures) -> tuple[Mask, Mask]:
        """Return True for the sources, and for the targets, that are in the set."""
        return _is_in(src.hashes, self.src), _is_in(tgt.hashes, self.tgt)


def _is_in(hashes: Hashes, ordered: Hashes) -> Mask:
    if not len(ordered):
        return np.zeros(len(hashes), bool)
    places = np.minimum(np.searchsorted(ordered, hashes), len(ordered) - 1)
    result: Mask = ordered[places] == hashes
    return result


@dataclass(frozen=True)
class Verdicts:
    """For each pair of a block the index in RULES of the rule that drops it, or KEPT; and the hash of the pair."""

    rules: NDArray[np.uint8]
    hashes: Hashes
    sources: Hashes | None = None  # of the sources, if a rule needs them

    @property
    def kept(self) -> Mask:
        result: Mask = self.rules == KEPT
        return result

    def counts(self) -> dict[str, int]:
        """Return the number of pairs that each rule drops; rules that drop none are left out."""
        numbers = np.bincount(self.rules, minlength=KEPT + 1).tolist()
        return {rule: number for rule, number in zip(RULES, numbers, strict=False) if number}


@dataclass(frozen=True)
class CleaningRules:
    """The rules that look at a pair by itself, in whatever process."""

    config: CleanConfig
    against: OverlapHashes | None = None
    languages: Languages | None = None

    @classmethod
    def learn(cls, config: CleanConfig, against: OverlapHashes | None, corpora: Iterable[Corpus]) -> "CleaningRules":
        """Make the rules; the one for languages learns from the first pairs of the corpora."""
        if not (config.enabled and config.language):
            return cls(config, against)
        return cls(config, against, Languages.learn(block for corpus in corpora for block in read_blocks(corpus)))

    def judge(self, block: PairBlock) -> Verdicts:
        """Apply the rules to each pair of a block."""
        return self.judge_measured(block, *measure_pairs(block))

    def judge_measured(self, block: PairBlock, src: Measures, tgt: Measures) -> Verdicts:
        """Apply the rules to a block that has been measured."""
        rules = np.full(len(block), KEPT, np.uint8)
        found = self._find(block, src, tgt)
        for rule in reversed(found):  # so that the first rule has the last word
            rules[found[rule]] = RULES.index(rule)
        sources = src.hashes if self.config.enabled and self.config.max_targets else None
        return Verdicts(rules, hash_pairs(src.hashes, tgt.hashes), sources)

    def _find(self, block: PairBlock, src: Measures, tgt: Measures) -> dict[str, Mask]:
        config = self.config
        found = {"undecodable": src.invalid | tgt.invalid, "columns": block.missing}
        if config.empty:
            found["empty"] = src.blank | tgt.blank
        if not config.enabled:
            return found
        if config.control:
            found["control"] = src.control | tgt.control
        if config.identical:
            found["identical"] = (src.hashes == tgt.hashes) & ~src.blank
        found["too_long"] = too_long(config, src, tgt)
        found["ratio"] = is_lopsided(config, src, tgt)
        found |= find_noise(block, [kind for kind in KINDS if getattr(config, kind)])
        if config.language and self.languages is not None:
            found |= dict(zip(LANGUAGE, self.languages.find(block), strict=True))
        if config.overlap and self.against is not None:
            found["overlap"] = np.logical_or(*self.against.find(src, tgt))
        return found


def too_long(config: CleanConfig, src: Measures, tgt: Measures) -> Mask:
    """Return True for the pairs with a side over a limit."""
    result = np.zeros(len(src.chars), bool)
    if config.max_chars:
        result |= np.maximum(src.chars, tgt.chars) > config.max_chars
    if config.max_words:
        result |= np.maximum(src.words, tgt.words) > config.max_words
    return result


def is_lopsided(config: CleanConfig, src: Measures, tgt: Measures) -> Mask:
    """Return True for the pairs whose sides differ too much in length; for short texts a ratio says nothing."""
    longer, shorter = np.maximum(src.chars, tgt.chars), np.minimum(src.chars, tgt.chars)
    if not config.max_ratio:
        return np.zeros(len(longer), bool)
    return (longer > config.ratio_from) & (longer > config.max_ratio * shorter) & (shorter > 0)


class TargetCounter:
    """Remembers how many different targets each source has had, up to a limit."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.table = HashTable()

    def add(self, sources: Hashes) -> Mask:
        """Count pairs that are no repetitions by the hashes of their sources; return True beyond the limit."""
        over = np.arange(len(sources))
        for number in range(self.limit):
            numbered = hash_pairs(sources[over], np.full(len(over), number, np.uint64))
            over = over[self.table.add(numbered)]
        mask = np.zeros(len(sources), bool)
        mask[over] = True
        return mask


class Deduplicator:
    """Remembers the hashes of pairs: at most 16 bytes for each of a large corpus."""

    def __init__(self, config: CleanConfig) -> None:
        self.active = config.enabled and config.duplicate
        self.table = HashTable()
        self.targets = TargetCounter(config.max_targets)

    def mark(self, verdicts: Verdicts) -> None:
        """Change the verdict of pairs that were kept before, here or in an earlier block, to "duplicate"."""
        if self.active:
            kept = np.flatnonzero(verdicts.kept)
            verdicts.rules[kept[self.table.add(verdicts.hashes[kept])]] = DUPLICATE
        if verdicts.sources is not None:
            kept = np.flatnonzero(verdicts.kept)
            verdicts.rules[kept[self.targets.add(verdicts.sources[kept])]] = MANY_TARGETS


def dropped_lines(block: PairBlock, verdicts: Verdicts, names: Sequence[str] = RULES, file: str = "") -> bytes:
    """Return the dropped pairs of a block as TSV lines: rule, place, source, target; invalid bytes as U+FFFD.

    The place is the line number, after the file's name if that is given; `names` are those of the rules.
    """
    lines = []
    before = f"{file}:" if file else ""
    for i in np.flatnonzero(~verdicts.kept).tolist():
        src, tgt = (side.line(i).replace(b"\t", b" ").decode("utf-8", "replace") for side in (block.src, block.tgt))
        lines.append(f"{names[verdicts.rules[i]]}\t{before}{block.number + i}\t{src}\t{tgt}\n")
    return "".join(lines).encode("utf-8")


def require_usable(config: CleanConfig, corpus: str, pairs: int, dropped: dict[str, int]) -> None:
    """Raise SeqtoolError if training on a corpus would be wrong: no pair is left, or too much is not UTF-8."""
    undecodable = dropped.get("undecodable", 0)
    if undecodable > config.max_undecodable * pairs:
        raise SeqtoolError(
            f"{corpus}: {undecodable:,} of {pairs:,} pairs are not UTF-8, more than clean.max_undecodable"
            f" ({100 * config.max_undecodable:g} %) allows; convert the text, for example with"
            " 'iconv -f ISO-8859-1 -t UTF-8' (or -f UTF-16)"
        )
    if not pairs:
        raise SeqtoolError(f"{corpus}: no lines; give a file with text")
    if sum(dropped.values()) >= pairs:
        rule, number = max(dropped.items(), key=lambda item: item[1])
        raise SeqtoolError(
            f"{corpus}: no pair is fit for training; rule '{rule}' alone drops {number:,} of {pairs:,}."
            f" {ADVICE.get(rule, f'See the clean.* settings, or run seqtool check {corpus}')}"
        )


ADVICE = {
    "columns": "A single file must be TSV (source, tab, target) or another file with pairs; two are source and target.",
    "identical": "Are source and target the same file?",
}
