"""The whole of `train`: from a request to a complete run directory, or back to where an interrupted run stood."""

import contextlib
import os
import signal
from collections.abc import Iterator
from dataclasses import replace

import torch

from seqtool.config import Config, Resolved, config_to_toml, describe_config, resolve_config
from seqtool.config.resolve import with_batch
from seqtool.corpus.sentences import has_single_sentences
from seqtool.corpus.tokenizer.interface import TokenizerPair
from seqtool.durations import count, format_seconds
from seqtool.errors import SeqtoolError
from seqtool.files import locked, make_folder, write_whole
from seqtool.model.interface import TranslationModel
from seqtool.model.kinds import build_model
from seqtool.model.loading import put_weights, read_weights
from seqtool.process import name_launch
from seqtool.run_directory import RunDir
from seqtool.training.checkpoint import is_disk_full
from seqtool.training.data import TrainingData, open_data, prepare_data
from seqtool.training.display import TrainingDisplay
from seqtool.training.distributed import Workers, join_workers
from seqtool.training.finishing import (
    Choice,
    choose_model,
    export_fast_form,
    is_whole,
    mark_complete,
    publish,
    record_languages,
    write_valid_lines,
)
from seqtool.training.fitting import fit_batch_tokens
from seqtool.training.interruption import Interruption
from seqtool.training.machines import check_machines, keeps_files
from seqtool.training.parent import finetuning_notes, read_parent
from seqtool.training.request import TrainRequest
from seqtool.training.resolution import (
    RunSettings,
    check_unchanged,
    choose_shard,
    resolve_machine,
    resolve_training,
    tokenizers_of,
    with_tokenizer_of_bleu,
)
from seqtool.training.trainer import Trainer
from seqtool.training.validation import LeadingValidator, Validator


def train(request: TrainRequest) -> signal.Signals | None:
    """Run the pipeline for a request that was checked; return the signal that interrupted it, all saved, if one did."""
    workers = join_workers(resolve_config(request.settings).config.train)
    run = RunDir(make_folder(request.out))
    with contextlib.ExitStack() as stack:
        stack.callback(workers.leave)
        stack.enter_context(workers.explaining_losses())
        stack.enter_context(explaining_full_disk(run))
        is_keeper = keeps_files(run, workers)
        if is_keeper:
            busy = f"{run.path}: another training is at work in this folder; wait for it or give another `out`"
            # A worker group that torchrun restarts may still be ending.
            stack.enter_context(locked(run.lock, busy, patience=5))
        log_file = request.log_file if workers.is_first else None
        display = TrainingDisplay(request.quiet or not is_keeper, log_file=log_file)
        stack.callback(display.close)
        stack.enter_context(display.noting_errors())
        return _train(request, run, workers, display, is_keeper)


@contextlib.contextmanager
def explaining_full_disk(run: RunDir) -> Iterator[None]:
    """Say what is lost, and what is not, where the disk is full."""
    try:
        yield
    except OSError as error:
        if is_disk_full(error):
            raise SeqtoolError(
                f"{run.path}: the disk is full; checkpoints written before are whole. "
                "Make room and run the same command again"
            ) from None
        raise


def _train(
    request: TrainRequest, run: RunDir, workers: Workers, display: TrainingDisplay, is_keeper: bool
) -> signal.Signals | None:
    resolved = prepare(request, run, workers, display, is_keeper)
    with Interruption() as interruption:
        data = open_data(request, run, resolved.config)
        precision = resolve_machine(resolved.config, workers.device.type).precision
        check_machines(run, data, precision, workers)
        workers.limit_waits()
        trainer, validator = build_trainer(request, run, resolved, data, workers, display)
        reason = trainer.train(interruption)
        if reason is None:
            say_interrupted(trainer, display)
        elif workers.is_first:
            with LeadingValidator(validator) as leading:
                finish(trainer, leading, data, reason, display)
            record_languages(run, request.languages, RunDir(request.start_from) if request.start_from else None)
        else:
            validator.follow()
        workers.wait_for_all()
        # Of several workers one may have had the signal that all of them stopped for.
        return None if reason is not None else interruption.asked_by or signal.SIGTERM


def prepare(
    request: TrainRequest, run: RunDir, workers: Workers, display: TrainingDisplay, is_keeper: bool
) -> Resolved:
    """Resolve the configuration, prepare the corpus with it and write it down; all that follows uses it.

    The first worker resolves it for all, and then every machine prepares the corpus at the same time, unless they
    share their storage.
    """
    if is_keeper and request.starts_over:
        request = start_over(request, run)
    settings = resolve_training(request, run, workers.device.type) if workers.is_first else None
    if settings is not None:
        check_unchanged(run, settings.resolved)
        for note in preset_notes(request, settings.resolved):
            display.say(note)
    resolved: Resolved = workers.share(settings and settings.resolved)
    if is_keeper:
        settings = settings or RunSettings(resolved=resolved, tokenizers=tokenizers_of(request, run))
        corpus = prepare_data(request, run, settings, display)
        config, note = with_tokenizer_of_bleu(resolved.config, corpus)
        if note:
            display.say(note)
        run.write_config(config_to_toml(config))
        resolved = replace(resolved, config=config)
    workers.wait_for_all()  # for those that prepare too
    return workers.share(resolved)


def start_over(request: TrainRequest, run: RunDir) -> TrainRequest:
    """Remove what is in the folder, unless the same torchrun has begun it: then a machine came back, and it goes on."""
    launch = name_launch()
    if launch and run.begun_by.exists() and run.begun_by.read_text(encoding="utf-8") == launch:
        return replace(request, fresh=False)
    run.remove()
    write_whole(run.begun_by, launch or "")
    return request


def preset_notes(request: TrainRequest, resolved: Resolved) -> list[str]:
    """Return what a user should know of the settings that nobody gave."""
    if request.start_from:
        return finetuning_notes(request.start_from, resolved, is_mixed=len(request.corpora) > 1)
    return [f"{resolved.preset}: {describe_config(resolved.config)}"] if resolved.preset else []


def build_trainer(
    request: TrainRequest,
    run: RunDir,
    resolved: Resolved,
    data: TrainingData,
    workers: Workers,
    display: TrainingDisplay,
) -> tuple[Trainer, Validator]:
    """Make the model and its trainer, at the newest checkpoint or at the start."""
    config = resolved.config
    machine = resolve_machine(config, workers.device.type)
    torch.set_num_threads(machine.threads)
    if workers.device.type == "cuda":
        set_up_gpu(config)
    torch.manual_seed(config.train.seed)
    model = build_model(config.model, data.tokenizers.vocabularies)
    if request.start_from:
        with torch.no_grad():
            put_weights(model, read_weights(RunDir(request.start_from).require_model().weights), request.start_from)
    shard = choose_shard(config.train, model, workers)
    if shard == "none":  # else each part of it is brought there when it is shared out
        model.to(workers.device)
    if config.train.batch_tokens == "auto":
        config = fit_batch(config, run, model, data.tokenizers, workers, display)
    config = replace(config, train=replace(config.train, shard=shard))
    single, threads = has_single_sentences(data.corpus.text), machine.decode_threads
    trainer = Trainer(config, run, model, data.corpus, workers, display, machine, data.bpe_dropout)
    validator = Validator(data.valid, data.tokenizers, config, workers, threads, single, data.also_valid)
    trainer.validator = validator
    trainer.state.fitted = list(resolved.fitted)
    checkpoint = trainer.resume()
    if request.start_from and checkpoint is None:
        trainer.parent = read_parent(request.start_from)
    if checkpoint is not None:
        if checkpoint.get("data") != data.corpus.fingerprint:
            raise SeqtoolError(
                f"{run.path}: the corpus has changed since this run began. Restore it to continue, give `out` for a "
                "new run (`start_from` this one to fine-tune it), or `fresh=True` to start over"
            )
        display.say(f"continuing at step {trainer.state.step:,}")
    return trainer, validator


def set_up_gpu(config: Config) -> None:
    """Choose how a GPU computes: float32 products with rounded factors (TF32), and repeatable kernels if asked."""
    torch.set_float32_matmul_precision("high")
    if config.train.deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when cuBLAS is first used
        # As torch.use_deterministic_algorithms, which also imports the compiler: as long as importing torch.
        torch._C._set_deterministic_algorithms(True, warn_only=True)
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # nothing here reads it


def fit_batch(
    config: Config,
    run: RunDir,
    model: TranslationModel,
    tokenizers: TokenizerPair,
    workers: Workers,
    display: TrainingDisplay,
) -> Config:
    """Fit the batch to the memory, and record the figure so that the run keeps it."""
    tokens = fit_batch_tokens(model, config, tokenizers.source.vocab_size, workers.device) if workers.is_first else 0
    tokens = workers.share(tokens)
    display.say(f"train.batch_tokens = {tokens:,} fits the memory")
    config = replace(config, train=with_batch(config.train, tokens, workers.size))
    if workers.is_first:
        run.write_config(config_to_toml(config))
    return config


def finish(
    trainer: Trainer, validator: LeadingValidator, data: TrainingData, reason: str, display: TrainingDisplay
) -> None:
    """Choose the model, write everything that belongs to it, and print a summary."""
    run = trainer.run
    mark, manifest = finished_mark(trainer, reason), run.read_manifest()
    if manifest.complete and manifest.training and manifest.training.finished == mark and is_whole(run, data, display):
        display.say(f"this run is finished: {reason}. Raise that budget to continue; the model is in {run.path}")
        return
    display.say(f"{reason}; choosing the model")
    choice = choose_model(trainer, validator)
    publish(run, trainer, data, choice, mark)
    write_valid_lines(run, data.valid, choice.validation)
    display.say(export_fast_form(run))
    from seqtool.evaluation.report.report import write_report

    write_report(run)
    mark_complete(run)
    say_summary(trainer, choice, display)


def finished_mark(trainer: Trainer, reason: str) -> str:
    """Return what the manifest records of a finished run; it changes when the run goes on."""
    share = trainer.config.train.parent_share if trainer.parent else 0.0
    return f"{reason} at step {trainer.state.step}" + (f", with {share:g} of the parent" if share else "")


def say_summary(trainer: Trainer, choice: Choice, display: TrainingDisplay) -> None:
    """Print time, scores with signatures, where the model is and how to use it."""
    state, run = trainer.state, trainer.run
    display.say("")
    display.say(
        f"trained {count(state.step, 'step')} ({count(state.epoch, 'epoch')}) in {format_seconds(state.seconds)}"
    )
    display.say(f"model: {choice.candidate.name}")
    if choice.length_penalty is not None:
        display.say(f"length penalty {choice.length_penalty:g}, chosen by validation")
    for score in (choice.validation.bleu, choice.validation.chrf):
        display.say(f"validation {score.name} {score.score:.2f}  {score.signature}")
    display.say(f"report: {run.report}")
    display.say(f"translate with: seqtool translate -m {run.path} < input.txt")
    display.say(f"or in a browser: seqtool serve -m {run.path}")


def say_interrupted(trainer: Trainer, display: TrainingDisplay) -> None:
    """Print that everything is saved."""
    display.say(
        f"stopped at step {trainer.state.step:,}; everything is saved in {trainer.run.path}. "
        "The same command continues from here"
    )
