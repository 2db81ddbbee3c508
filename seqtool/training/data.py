"""What a run trains and validates on, in its run directory: found there unchanged, or made."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from seqtool.config import Config, TokenizerConfig, load_config
from seqtool.config.auto import choose_settings
from seqtool.config.resolve import check_together
from seqtool.corpus.batches.bpe_dropout import BpeDropout
from seqtool.corpus.preparing.prepared import PreparedCorpus, PrepareRequest
from seqtool.corpus.preparing.run_corpus import count_known_pairs, given_tokenizers, prepare_run
from seqtool.corpus.progress import Progress as CorpusProgress
from seqtool.corpus.progress import Stopwatch
from seqtool.corpus.reading.blocks import read_texts
from seqtool.corpus.reading.corpus import Corpus
from seqtool.corpus.tokenizer.interface import TokenizerPair
from seqtool.corpus.tokenizer.registry import load_pair
from seqtool.errors import SeqtoolError
from seqtool.manifest import DataFacts
from seqtool.run_directory import RunDir
from seqtool.training.progress import Progress
from seqtool.training.settling import TrainRequest, changes, check_unchanged, write_config


@dataclass(frozen=True)
class TrainingData:
    """Everything that training reads."""

    config: Config
    tokenizers: TokenizerPair
    corpus: PreparedCorpus
    valid: list[tuple[str, str]]
    bpe_dropout: BpeDropout | None

    def describe(self) -> DataFacts:
        """Return what the manifest says of the data."""
        return replace(self.corpus.describe(), validation_pairs=len(self.valid))


def prepare_data(request: TrainRequest, run: RunDir, device: str, progress: Progress) -> None:
    """Settle the configuration, then make tokenizer and prepared corpus unless they are there unchanged."""
    pairs = count_known_pairs(run, request.corpora)
    config = request.resolve(pairs, device)
    if request.start_from:
        tokenizers: TokenizerPair | None = load_pair(RunDir(request.start_from).require_model())
        config = config_to_tune(request, config)
    elif tokenizers := given_tokenizers(run):
        config = replace(config, tokenizer=describe_given(run, tokenizers, config.tokenizer, request.given_settings()))
    config = settle_directions(request, config)
    check_together(config)
    config = keep_settled(run, config, request.given_settings())
    check_unchanged(run, config)
    if request.preset == "auto":
        reason = f", for {choose_settings(pairs, device).reason}" if not tokenizers else ""
        progress.say(f"preset auto{reason}: {describe_config(config)}")
    _, notes = prepare_run(
        run,
        PrepareRequest(
            corpora=request.corpora,
            against=request.held_apart,
            hold_out=request.valid is None,
            clean=config.clean,
            data=config.data,
            seed=config.train.seed,
        ),
        config.tokenizer,
        tokenizers=tokenizers,
        pairs=pairs,
        report=CorpusDisplay(progress),
    )
    for note in notes:
        progress.say(note)
    write_config(run, config)


def settle_directions(request: TrainRequest, config: Config) -> Config:
    """Train one way where only a preset would not: from a model that is trained, or with two given vocabularies."""
    if "train.both_ways" in request.given_settings() or (config.tokenizer.joint and not request.start_from):
        return config
    return replace(config, train=replace(config.train, both_ways=0.0))


def keep_settled(run: RunDir, config: Config, given: set[str]) -> Config:
    """Keep what an earlier session of the run fitted to the memory and device, where it is not `given` anew."""
    if not run.checkpoint_folders() or not run.config.exists():
        return config
    before, train = load_config(run.config).train, config.train
    if train.batch_tokens == "auto" and before.batch_tokens != "auto":
        train = replace(train, batch_tokens=before.batch_tokens, micro_tokens=before.micro_tokens)
    elif "train.micro_tokens" not in given:
        train = replace(train, micro_tokens=before.micro_tokens)
    return replace(config, train=train)


def describe_config(config: Config) -> str:
    """Return what makes one model differ from another, in a line."""
    model, train = config.model, config.train
    return (
        f"{model.describe()}, vocabulary {config.tokenizer.vocab_size:,}, dropout {model.dropout:g}, "
        f"label smoothing {train.label_smoothing:g}, {train.batch_tokens} tokens a batch, "
        f"{train.optimizer} with learning rate {train.lr:g}"
        + (f", the first {100 * train.both_ways:g} % of the steps both ways" if train.both_ways else "")
        + (f", word dropout {model.word_dropout:g}" if model.word_dropout else "")
        + (f" after {train.word_dropout_after} epochs" if model.word_dropout and train.word_dropout_after else "")
    )


def config_to_tune(request: TrainRequest, config: Config) -> Config:
    """Return a configuration with the shape and the tokenizer of the model to start from; asked otherwise, raise."""
    assert request.start_from is not None
    theirs = load_config(RunDir(request.start_from).config)
    asked = request.given_settings()
    for name, old, new in changes(theirs, config):
        section, _, setting = name.partition(".")
        if name in asked and section in ("model", "tokenizer") and "drop" not in setting:
            raise SeqtoolError(
                f"{request.start_from}: its model has {name} = {old!r}, so it cannot start a model with {new!r}; "
                "leave that setting out, or train from the start without --from"
            )
    model, tokenizer = config.model, config.tokenizer
    rates = {name: value for name, value in asdict(model).items() if "drop" in name}
    return replace(
        config,
        model=replace(theirs.model, **rates),
        tokenizer=replace(theirs.tokenizer, bpe_dropout=tokenizer.bpe_dropout),
    )


def describe_given(run: RunDir, tokenizers: TokenizerPair, config: TokenizerConfig, asked: set[str]) -> TokenizerConfig:
    """Return the settings of tokenizers that `prepare --tokenizer` was given; asked otherwise, raise."""
    facts: dict[str, Any] = {"vocab_size": tokenizers.source.vocab_size, "joint": tokenizers.joint}
    for name, value in facts.items():
        if f"tokenizer.{name}" in asked and getattr(config, name) != value:
            raise SeqtoolError(
                f"{run.path}: was prepared with a given tokenizer, which has {name} = {value!r}; "
                f"leave tokenizer.{name} out, or start over with --fresh"
            )
    return replace(config, **facts)


def open_data(request: TrainRequest, run: RunDir) -> TrainingData:
    """Open what prepare_data made; every worker does this for itself."""
    config = load_config(run.config)
    tokenizers = load_pair(run)
    corpus = PreparedCorpus.open(run.prepared)
    valid = read_valid(request.valid) if request.valid else corpus.held_out
    if not valid:
        raise SeqtoolError(f"{run.path}: the corpus is too small to hold pairs out of it; give --valid")
    dropout = BpeDropout.of(tokenizers, config.tokenizer.bpe_dropout, config.train.seed, config.data.max_tokens)
    return TrainingData(config, tokenizers, corpus, valid, dropout)


def read_valid(corpus: Corpus) -> list[tuple[str, str]]:
    """Read the validation pairs as text; a line that cannot be decoded is an error, since scores depend on each."""
    pairs = read_texts(corpus, "give --valid one file with pairs, or give it twice, for the source and for the target")
    if not pairs:
        raise SeqtoolError(f"{corpus}: the validation set is empty; give another --valid, or none to hold some out")
    return pairs


class CorpusDisplay:
    """Shows the stages of preparation, and within a long one how far it is and how long it will take."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._watch = Stopwatch()
        self._stage = ""
        self._told = 0.0

    def __call__(self, state: CorpusProgress) -> None:
        left = self._watch.seconds_left(state)
        if state.stage != self._stage:
            self._stage, self._told = state.stage, 0.0
            self._progress.say(f"{state.stage} …")
        elif left is not None and state.fraction is not None and state.fraction - self._told >= 0.1:
            self._told = state.fraction
            self._progress.say(f"{state.stage}: {100 * state.fraction:.0f} %, {left:.0f} s left")
