"""Both halves of cleaning in one process, for tests."""

from collections import Counter

from seqtool.config import CleanConfig
from seqtool.corpus.cleaning.rules import KEPT, RULES, CleaningRules, Deduplicator, OverlapHashes, Verdicts
from seqtool.corpus.reading.lines import PairBlock


class Cleaner:
    """Cleans a corpus in one process, block by block, and counts what each rule drops."""

    def __init__(self, config: CleanConfig, against: OverlapHashes | None = None) -> None:
        self.rules = CleaningRules(config, against)
        self.seen = Deduplicator(config)
        self.pairs = 0
        self.dropped: Counter[str] = Counter()

    def judge(self, block: PairBlock) -> Verdicts:
        """Apply every rule to each pair of a block, and count."""
        verdicts = self.rules.judge(block)
        self.seen.mark(verdicts)
        self.pairs += len(block)
        self.dropped.update(verdicts.counts())
        return verdicts

    def rule_for(self, src: bytes, tgt: bytes | None) -> str | None:
        """Return the name of the rule that drops one pair, None where it is kept."""
        rule = int(self.judge(PairBlock.from_pairs([(src, tgt)])).rules[0])
        return None if rule == KEPT else RULES[rule]
