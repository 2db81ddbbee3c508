"""How well words are translated by how often training has shown them."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from seqtool.corpus.scripts import SPACELESS

STARTS = (0, 1, 3, 10, 30, 100, 1000)  # occurrences in training from which a group begins
# Letters and digits, with what joins them; a script without spaces counts by characters.
WORD = re.compile(rf"[{SPACELESS}]|[^\W_{SPACELESS}]+(?:['’.-][^\W_{SPACELESS}]+)*")


@dataclass(frozen=True)
class FrequencyGroup:
    """The words that training has shown this often: how many the references have, and how many of those are right."""

    low: int
    high: int | None
    references: int  # words in the references
    hypotheses: int  # in the translations
    matched: int  # in both sides of a pair

    @property
    def label(self) -> str:
        if self.high is None:
            return f"{self.low:,}+"
        return f"{self.low:,}" if self.low == self.high else f"{self.low:,}-{self.high:,}"

    @property
    def f1(self) -> float:
        """F1 of the words in percent: the harmonic mean of precision and recall."""
        return 200 * self.matched / max(1, self.references + self.hypotheses)


def cut_words(text: str) -> list[str]:
    """Return the words of a text, without punctuation."""
    return WORD.findall(text)


def count_words(lines: Iterable[str]) -> Counter[str]:
    """Count the words of many lines."""
    return Counter(word for line in lines for word in cut_words(line))


def group_by_frequency(
    hypotheses: Sequence[str], references: Sequence[str], counts: Mapping[str, int]
) -> list[FrequencyGroup]:
    """Return the groups that have words, the rarest first; a word is right as often as the reference has it too."""
    ends: list[int | None] = [start - 1 for start in STARTS[1:]]
    sums = [[0, 0, 0] for _ in STARTS]
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        said, wanted = Counter(cut_words(hypothesis)), Counter(cut_words(reference))
        for kind, words in enumerate((wanted, said, wanted & said)):
            for word, number in words.items():
                sums[group_of(counts.get(word, 0))][kind] += number
    return [
        FrequencyGroup(low, high, *numbers)
        for low, high, numbers in zip(STARTS, [*ends, None], sums, strict=True)
        if numbers[0] or numbers[1]
    ]


def group_of(count: int) -> int:
    """Return the number of the group of a word that occurs this often."""
    return sum(count >= start for start in STARTS) - 1
