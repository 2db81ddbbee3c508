"""The tokenizers and the prepared corpus of a run directory: found unchanged, or made."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from seqtool.config.sections import TokenizerConfig
from seqtool.corpus.cleaning.rules import CleaningRules, OverlapHashes, settings_against
from seqtool.corpus.preparing.prepare import SMALL, prepare_corpus
from seqtool.corpus.preparing.prepared import (
    MANIFEST,
    PreparedCorpus,
    PrepareRequest,
    find_change,
    find_damage,
    find_other_corpus,
    read_manifest,
)
from seqtool.corpus.preparing.survey import Survey, survey_corpora
from seqtool.corpus.preparing.tokenizer_process import train_apart
from seqtool.corpus.reading.blocks import count_pairs
from seqtool.corpus.reading.corpus import Corpus, require_files
from seqtool.corpus.tokenizer.bpe import check_user_symbols
from seqtool.corpus.tokenizer.interface import Tokenizer, TokenizerPair
from seqtool.corpus.tokenizer.registry import load_pair, load_tokenizer, train_model, write_model
from seqtool.errors import SeqtoolError
from seqtool.files import make_folder
from seqtool.progress import Progress, ShowProgress, ignore
from seqtool.run_directory import RunDir

FEW = 1000  # pairs for training, below which there is a warning


def prepare_run(
    run: RunDir,
    request: PrepareRequest,
    config: TokenizerConfig,
    *,
    tokenizers: TokenizerPair | None = None,
    pairs: int | None = None,
    show: ShowProgress = ignore,
    dropped: Path | None = None,
) -> tuple[PreparedCorpus, list[str]]:
    """Return the prepared corpus of a run and notes for the user; what is there already and unchanged is not redone.

    Tokenizers are trained on the corpora, unless some are given; they are written into the run directory either way.
    """
    require_files(request.against)
    change = find_run_change(run, request, config, tokenizers)
    if change is None and dropped is None:
        return PreparedCorpus.open(run.prepared), ["the corpus is prepared already and has not changed"]
    ready = _choose_tokenizers(run, tokenizers, change)
    check_user_symbols(config.user_symbols)
    for corpus in request.against:  # errors in them are reported before the long part begins
        count_pairs(corpus)
    make_folder(run.path)
    before = (
        [] if not (run.prepared / MANIFEST).exists() else [f"prepared anew, since {change or 'that was asked for'}"]
    )
    if pairs is None:
        show(Progress("counting", 0, None))
        pairs = sum(count_each(run, request.corpora))
    held_out, notes = _make_tokenizers(run, request, config, ready, pairs, show)
    prepared = prepare_corpus(
        request,
        load_pair(run),
        run.prepared,
        held_out=held_out,
        pairs=pairs,
        extra={"tokenizer_settings": None if tokenizers else _settings(config, request.seed)},
        show=show,
        dropped=dropped,
    )
    return prepared, [*before, *notes, *describe_preparation(prepared)]


def _choose_tokenizers(run: RunDir, given: TokenizerPair | None, change: str | None) -> TokenizerPair | None:
    """Return the tokenizers to prepare with, None if they are to be trained.

    Those of a model serve to prepare its corpus again if that is lost; to replace them under a model is refused.
    """
    known = read_manifest(run.prepared)
    damage = find_damage(run.prepared, known) if known is not None and change is not None else None
    is_lost = (known is None or damage is not None) and _has_model(run)
    ready = given or (load_pair(run) if change is None or is_lost else None)
    _protect_model(run, ready, change)
    return ready


def _make_tokenizers(
    run: RunDir,
    request: PrepareRequest,
    config: TokenizerConfig,
    ready: TokenizerPair | None,
    pairs: int,
    show: ShowProgress,
) -> tuple[list[tuple[str, str]], list[str]]:
    """Survey the corpora and write the run's tokenizers; return the pairs to hold out, and notes for the user."""
    survey = survey_corpora(
        request.corpora if request.hold_out or not ready or not request.clean.shifted else (),
        CleaningRules.learn(request.clean, OverlapHashes.read(request.against), request.corpora),
        sample_pairs=0 if ready else config.sample_pairs,
        held_out=request.data.held_out if request.hold_out else 0,
        seed=request.seed,
        pairs=pairs,
        show=show,
    )
    require_pairs_left(survey, request)
    if ready:
        _write_tokenizers(run, ready)
        return survey.held_out, []
    show(Progress("training the tokenizer", 0, None))
    return survey.held_out, train_tokenizers(run, survey, config)


def find_run_change(
    run: RunDir, request: PrepareRequest, config: TokenizerConfig, tokenizers: TokenizerPair | None = None
) -> str | None:
    """Return why the prepared corpus of a run cannot serve a request, or None if it can."""
    manifest = read_manifest(run.prepared)
    if manifest is None:
        made = run.prepared / MANIFEST
        return f"{made} is damaged, or of another version" if made.exists() else "it has not been prepared"
    if manifest.get("tokenizer_settings") != (None if tokenizers else _settings(config, request.seed)):
        return "the settings of the tokenizer have changed"
    try:
        present = load_pair(run)
    except SeqtoolError:
        return "its tokenizer is missing"
    wanted = tokenizers or present
    if (present.source.sha256, present.target.sha256) != (wanted.source.sha256, wanted.target.sha256):
        return "the tokenizer is another one"
    return find_change(run.prepared, request, {"source": wanted.source.sha256, "target": wanted.target.sha256})


def count_each(run: RunDir, corpora: Sequence[Corpus]) -> list[int]:
    """Return the pairs in each corpus; read from the manifest if these files have not changed, else counted."""
    require_files(corpora)
    manifest = read_manifest(run.prepared)
    if manifest is not None and find_other_corpus(manifest, corpora) is None:
        return [part["pairs"] for part in manifest["corpora"]]
    return [count_pairs(corpus) for corpus in corpora]


def given_tokenizers(run: RunDir) -> TokenizerPair | None:
    """Return the tokenizers that a run's corpus was prepared with, if they were given and not trained for it."""
    manifest = read_manifest(run.prepared)
    return load_pair(run) if manifest and manifest.get("tokenizer_settings", "") is None else None


def load_tokenizers(path: Path) -> TokenizerPair:
    """Open the tokenizers of a run directory, or one tokenizer file for both sides."""
    if path.is_dir():
        return load_pair(RunDir(path))
    tokenizer = load_tokenizer(path)
    return TokenizerPair(tokenizer, tokenizer)


def train_tokenizers(run: RunDir, survey: Survey, config: TokenizerConfig) -> list[str]:
    """Train the tokenizer, or one for each side, on a sample of pairs; return notes for the user."""
    train = train_model if survey.pairs < SMALL else train_apart
    if config.joint:
        run.target_tokenizer.unlink(missing_ok=True)
        return write_model(train(survey.sample_texts((0, 1)), config), config, run.tokenizer)
    notes = []
    for side, path in enumerate((run.tokenizer, run.target_tokenizer)):
        found = write_model(train(survey.sample_texts((side,)), config), config, path)
        notes += [f"{('source', 'target')[side]}: {note}" for note in found]
    return notes


def require_pairs_left(survey: Survey, request: PrepareRequest) -> None:
    """Raise if all pairs of a very small corpus are the same, so that nothing is left beside what is held out."""
    if request.hold_out and survey.sample.size and next(survey.sample_texts((0, 1)), None) is None:
        raise SeqtoolError(
            f"{', '.join(map(str, request.corpora))}: of {survey.pairs:,} pairs only {len(survey.held_out):,} differ, "
            "and these are held out for validation; give more pairs, or another validation set as `valid`"
        )


def describe_preparation(prepared: PreparedCorpus) -> list[str]:
    """Return what a user should know of a preparation."""
    n_read, dropped = prepared.n_read, prepared.dropped
    dropped.pop("held_out", None)
    listed = ", ".join(f"{rule} {number:,}" for rule, number in sorted(dropped.items(), key=lambda item: -item[1]))
    notes = []
    if len(prepared) < FEW:
        notes.append("warning: so few pairs can tune a model, but one trained on them alone translates no other text")
    notes += [f"{len(prepared):,} of {n_read:,} pairs are for training" + (f"; dropped: {listed}" if listed else "")]
    notes += describe_noise(prepared.text or {})
    if n_extra := prepared.manifest.get("extra_columns", 0):
        notes.append(f"{n_extra:,} lines have more than two columns; the first is the source and the second the target")
    if prepared.held_out:
        notes.append(
            f"{len(prepared.held_out):,} pairs were held out for validation, since no validation set was given"
        )
    return notes


def describe_noise(text: Mapping[str, Any]) -> list[str]:
    """Return a note on the noise that cleaning has left, if there is much of a kind, and what drops it."""
    noise, pairs = text.get("noise", {}), text.get("lines", 0)
    settings = settings_against(noise, pairs)
    if not settings:
        return []
    listed = ", ".join(f"{kind} {n / pairs:.1%}" for kind, n in sorted(noise.items(), key=lambda item: -item[1]))
    options = ", ".join(f"clean.{name}=true" for name in settings)
    return [
        f"noise in the pairs that are left: {listed}; 'seqtool check' shows it, and these settings drop it: {options}"
    ]


def _settings(config: TokenizerConfig, seed: int) -> dict[str, Any]:
    """Return the settings that determine the tokenizer, in the form that the manifest has."""
    settings = {name: value for name, value in asdict(config).items() if name != "bpe_dropout"}
    if config.kind == "bpe":  # a corpus that was prepared before there were other kinds does not name it
        del settings["kind"]
    return {**settings, "user_symbols": list(config.user_symbols), "seed": seed}


def _write_tokenizers(run: RunDir, tokenizers: TokenizerPair) -> None:
    def write(tokenizer: Tokenizer, path: Path) -> None:
        if not path.is_file() or path.read_bytes() != tokenizer.model:
            tokenizer.save(path)

    write(tokenizers.source, run.tokenizer)
    if tokenizers.is_one:
        run.target_tokenizer.unlink(missing_ok=True)
    else:
        write(tokenizers.target, run.target_tokenizer)


def _has_model(run: RunDir) -> bool:
    return run.tokenizer.exists() and (run.weights.exists() or bool(run.checkpoint_folders()))


def _protect_model(run: RunDir, tokenizers: TokenizerPair | None, change: str | None) -> None:
    """Refuse to replace the tokenizer under a model that was trained with it."""
    if not _has_model(run):
        return
    present = load_pair(run)
    if tokenizers is None or (present.source.model, present.target.model) != (
        tokenizers.source.model,
        tokenizers.target.model,
    ):
        raise SeqtoolError(
            f"{run.path}: holds a model that was trained otherwise ({change or 'it must be prepared anew'}); "
            "give another `out`, or start over with 'seqtool train --fresh'"
        )
