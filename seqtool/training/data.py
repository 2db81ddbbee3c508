"""What a run trains and validates on, in its run directory: found there unchanged, or made."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from seqtool.config import Config
from seqtool.corpus.batches.bpe_dropout import BpeDropout
from seqtool.corpus.preparing.prepared import PreparedCorpus, PrepareRequest
from seqtool.corpus.preparing.run_corpus import prepare_run
from seqtool.corpus.reading.blocks import read_texts
from seqtool.corpus.reading.corpus import Corpus
from seqtool.corpus.reading.opening import without_compression
from seqtool.corpus.tokenizer.interface import TokenizerPair
from seqtool.corpus.tokenizer.registry import load_pair
from seqtool.errors import SeqtoolError
from seqtool.manifest import DataFacts
from seqtool.run_directory import RunDir
from seqtool.training.display import TrainingDisplay
from seqtool.training.request import TrainRequest
from seqtool.training.resolution import RunSettings


@dataclass(frozen=True)
class TrainingData:
    """Everything that training reads."""

    tokenizers: TokenizerPair
    corpus: PreparedCorpus
    valid: list[tuple[str, str]]
    also_valid: dict[str, list[tuple[str, str]]]  # by name
    bpe_dropout: BpeDropout | None

    def describe(self) -> DataFacts:
        """Return the manifest's record of the data."""
        return replace(self.corpus.describe(), validation_pairs=len(self.valid))


def prepare_data(request: TrainRequest, run: RunDir, settings: RunSettings, display: TrainingDisplay) -> PreparedCorpus:
    """Make tokenizer and prepared corpus unless they are there unchanged."""
    with display.progress() as line:
        prepared, notes = prepare_run(
            run,
            PrepareRequest.of(settings.config, request.corpora, request.valid, (*request.also_valid, *request.against)),
            settings.config.tokenizer,
            tokenizers=settings.tokenizers,
            pairs=settings.pairs,
            show=line,
        )
    for note in notes:
        display.say(note)
    return prepared


def open_data(request: TrainRequest, run: RunDir, config: Config) -> TrainingData:
    """Open what prepare_data made; every worker does this for itself."""
    tokenizers = load_pair(run)
    corpus = PreparedCorpus.open(run.prepared)
    valid = read_valid(request.valid) if request.valid else corpus.held_out
    if not valid:
        raise SeqtoolError(
            f"{run.path}: the corpus is too small to hold pairs out of it; give more, or a validation set as `valid`"
        )
    dropout = BpeDropout.of(tokenizers, config.tokenizer.bpe_dropout, config.train.seed, config.data.max_tokens)
    also_valid = dict(zip(name_sets(request.also_valid), map(read_valid, request.also_valid), strict=True))
    return TrainingData(tokenizers, corpus, valid, also_valid, dropout)


def name_of(path: Path) -> str:
    """Return the name of a file without what says its form: test.2016 for test.2016.en.gz."""
    return without_compression(path).stem


def name_sets(corpora: Sequence[Corpus]) -> list[str]:
    """Return a name for each set: its source file's without the last part, or the whole path if two are alike."""
    short = [name_of(corpus.source) for corpus in corpora]
    return [name if short.count(name) == 1 else str(corpus) for name, corpus in zip(short, corpora, strict=True)]


def read_valid(corpus: Corpus) -> list[tuple[str, str]]:
    """Read the validation pairs as text; a line that cannot be decoded is an error, since scores depend on each."""
    pairs = read_texts(corpus, "give `valid` one file with pairs, or give it twice, for the source and for the target")
    if not pairs:
        raise SeqtoolError(f"{corpus}: the validation set is empty; give another `valid`, or none to hold some out")
    return pairs
