"""What a user asks `train` to do."""

from dataclasses import dataclass
from pathlib import Path

from seqtool.config import ConfigRequest
from seqtool.corpus.reading.corpus import Corpus
from seqtool.process import is_restarted


@dataclass(frozen=True, kw_only=True)
class TrainRequest:
    """A request to train: on which corpora, in which folder, with which settings, from which model."""

    corpora: tuple[Corpus, ...]
    valid: Corpus | None = None  # the set that chooses the model
    also_valid: tuple[Corpus, ...] = ()  # further validation sets, whose scores are reported
    against: tuple[Corpus, ...] = ()  # test sets: what is in them is not trained on
    out: Path
    settings: ConfigRequest = ConfigRequest()
    start_from: Path | None = None
    fresh: bool = False
    languages: tuple[str, str] | None = None  # codes of source and target
    quiet: bool = False  # show warnings alone
    log_file: Path | None = None  # where lines with the time are added too

    @property
    def held_apart(self) -> tuple[Corpus, ...]:
        """The validation and test sets that training pairs must not overlap with."""
        return (*([self.valid] if self.valid else []), *self.also_valid, *self.against)

    @property
    def starts_over(self) -> bool:
        """Whether to remove what is there; not again when torchrun starts workers anew after one of them died."""
        return self.fresh and not is_restarted()
