"""The training loop: policy only. What a step does, how a checkpoint is written and what is shown live elsewhere."""

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from seqtool.config import Config
from seqtool.corpus.batches.batches import Batch, BatchPlan, iterate_batches
from seqtool.corpus.batches.bpe_dropout import BpeDropout
from seqtool.corpus.preparing.prepared import PreparedCorpus
from seqtool.durations import estimate_seconds
from seqtool.errors import SeqtoolError
from seqtool.manifest import ParentFacts, from_plain, to_plain
from seqtool.metrics_log import MetricsLog
from seqtool.model.interface import TranslationModel
from seqtool.model.loading import check_names, fitting, weights_of
from seqtool.run_directory import RunDir
from seqtool.training.checkpoint import Checkpoints, write_checkpoint
from seqtool.training.display import TrainingDisplay
from seqtool.training.distributed import FromFirst, Workers
from seqtool.training.interruption import Interruption
from seqtool.training.optimizer import Updater, weights_by_name
from seqtool.training.parallel import make_gradient_maker
from seqtool.training.resolution import Machine
from seqtool.training.schedule import learning_rate, word_dropout
from seqtool.training.sharding import AnyTensor, local_of, put_rows
from seqtool.training.state import CALIBRATION_STEPS, NOT_PLANNED, RunState, Window
from seqtool.training.step import train_step
from seqtool.training.tensorboard import TensorboardLog
from seqtool.training.validation import Validation, Validator, scores_of
from seqtool.unfinished import describe_surroundings

AGREE_EVERY = 10  # steps between the points where several workers agree to stop, or on how many steps fit the time


class Trainer:
    """One run from its newest checkpoint, or from the start, to the end of its budget."""

    def __init__(
        self,
        config: Config,
        run: RunDir,
        model: TranslationModel,
        corpus: PreparedCorpus,
        workers: Workers,
        display: TrainingDisplay,
        machine: Machine,
        dropout: BpeDropout | None = None,
    ) -> None:
        self.config, self.run, self.model, self.corpus = config, run, model, corpus
        self.workers, self.display, self.dropout = workers, display, dropout
        self.validator: Validator | None = None  # made when this one has what memory it needs
        self.machine = machine
        self.state = RunState()
        self.gradient_maker = make_gradient_maker(model, config.train, workers, machine.precision, machine.threads)
        self.updater = Updater(model, config.train, machine.precision, workers)
        self.checkpoints = Checkpoints(run, config.train.keep, config.train.save_every, workers)
        self.log = MetricsLog(run.metrics)
        self._tensorboard: TensorboardLog | None = None
        self._results: list[tuple[int, Tensor]] = []  # of the steps since the last report: target tokens, and figures
        self.parent: ParentFacts | None = None  # the model that this run started from
        self._saved_step = -1
        self._clock = time.monotonic()
        self._begun = (0, 0.0)  # step and seconds at which this session began
        self._pace = [0.0, 0]  # seconds and tokens of the steps since the last report, in this session alone

    def resume(self) -> dict[str, Any] | None:
        """Take up the newest whole checkpoint, which the first worker reads; return its state, None without one."""
        checkpoint, warnings = self.checkpoints.newest_whole() if self.workers.is_first else (None, [])
        for warning in warnings:
            self.display.say(f"warning: {warning}")
        found = self.workers.share((checkpoint.path, checkpoint.state) if checkpoint else None)
        if found is None:
            if self.workers.any(bool(warnings)):
                raise SeqtoolError(f"{self.run.checkpoints}: no checkpoint is whole; start over with `fresh=True`")
            return None
        path, state = found
        model, optimizer, ema = (
            FromFirst(self.workers, checkpoint.tensors(group) if checkpoint else None)
            for group in ("model", "optimizer", "ema")
        )
        with torch.no_grad():
            weights = weights_of(self.model)
            check_names(weights, model, path)
            for name, tensor in weights.items():
                put_rows(local_of(tensor), fitting(model[name], name, tensor.shape, path), self.workers)
        self.updater.restore(optimizer, ema)
        self.state = RunState.from_json(state["run"])
        parent = state.get("parent")
        self.parent = None if parent is None else from_plain(ParentFacts, parent)
        self._saved_step = self.state.step
        return dict(state)

    def train(self, interruption: Interruption) -> str | None:
        """Train until a budget is used up; return which, or None when interrupted. All is saved either way."""
        state, train = self.state, self.config.train
        batch_tokens = train.batch_tokens
        assert isinstance(batch_tokens, int), "'auto' is resolved before training starts"
        corpus, folder = self.corpus, self.run.plan / f"{self.corpus.fingerprint[:16]}-{train.seed}"
        plan = BatchPlan(corpus.src_lengths, corpus.tgt_lengths, batch_tokens, train.seed, corpus.ranges, folder)
        state.epoch_steps = len(plan.epoch(0)) if train.epochs else 0
        self._resolve_steps()
        self._begun = (state.step, state.seconds)
        start = (state.epoch, state.index)
        vocabularies = self.model.vocabularies
        special = (vocabularies.source.special, vocabularies.target.special)
        rank, size = self.workers.rank, self.workers.size
        batches = iterate_batches(self.corpus, plan, special, start, rank, size, dropout=self.dropout)
        if self.workers.is_first:
            self._open_logs()
        if self.parent and state.step == 0:
            self._validate_parent(self.parent)
        self._clock = time.monotonic()
        self.model.train()
        self._plan_steps()  # if a run goes on with other minutes
        try:
            while (reason := state.reason_to_stop(self.config.train)) is None and not self._asked_to_stop(interruption):
                self._do_step(next(batches))
            self._save()
            self.checkpoints.wait()
            return reason
        finally:
            batches.close()  # type: ignore[attr-defined]
            self.gradient_maker.close()
            self.display.stop()
            if self._tensorboard is not None:
                self._tensorboard.close()

    def _open_logs(self) -> None:
        history = self.log.keep_up_to(self.state.step or -1)
        if self.log.n_damaged:
            self.display.say(f"warning: {self.log.path}: {self.log.n_damaged:,} damaged lines are left out")
        if self.config.train.tensorboard:
            self._tensorboard = TensorboardLog(self.run.tensorboard, self.state.step)
        self.display.start(history, self._total_steps(), self.state.step)

    def _do_step(self, batch: Batch) -> None:
        train, state = self.config.train, self.state
        step = state.step + 1
        lr = learning_rate(step, train, self.config.model.d_model)
        if state.choose_direction(batch.epoch, train):
            batch = batch.turned()
        self.model.set_word_dropout(word_dropout(batch.epoch, self.config))
        result = train_step(self.gradient_maker, self.updater, batch, step, lr)
        self._results.append((batch.n_tgt_tokens, result))
        state.step = step
        state.epoch, state.index = (batch.epoch + 1, 0) if batch.last_in_epoch else (batch.epoch, batch.index + 1)
        state.seen_tokens += batch.n_tgt_tokens
        seconds = self._tick()
        self._pace[0] += seconds
        self._pace[1] += batch.n_tgt_tokens
        self.display.advance(state.step, self._total_steps(), self._seconds_left(), seconds)
        if state.step % train.report_every == 0:
            self._report(lr)
        if state.step % train.validate_every == 0:
            self._validate()
        if self.workers.size == 1 or state.step <= CALIBRATION_STEPS or state.step % AGREE_EVERY == 0:
            self._plan_steps()
        if state.step % train.save_every == 0:
            self._save()

    def _tick(self) -> float:
        """Add the time since the last tick to the run's, and return it."""
        now = time.monotonic()
        elapsed, self._clock = now - self._clock, now
        self.state.seconds += elapsed
        return elapsed

    def _asked_to_stop(self, interruption: Interruption) -> bool:
        if self.workers.size == 1:
            return interruption.asked
        return self.state.step % AGREE_EVERY == 0 and self.workers.any(interruption.asked)

    def _gather_results(self) -> None:
        """Bring the losses of the last steps from the device into the window; stop a run that only fails."""
        if not self._results:
            return
        window = self.state.window
        figures = torch.stack([result for _, result in self._results]).cpu().tolist()
        for (tokens, _), (loss, nll, norm, good) in zip(self._results, figures, strict=True):
            window.steps += 1
            if good:
                window.tokens += tokens
                window.loss, window.nll = window.loss + loss, window.nll + nll
                window.grad_norm += norm
            else:
                window.skipped += 1
        self._results.clear()
        bad_in_a_row = int(self.updater.counts[2])
        if bad_in_a_row >= self.config.train.max_bad_steps:
            raise SeqtoolError(
                f"the last {bad_in_a_row} steps before step {self.state.step:,} gave a loss or gradient that is not "
                f"finite, so training has stopped; the last good checkpoint is in {self.run.checkpoints}. Start "
                "over (another `out`, or `fresh=True`) with a lower train.lr, a longer train.warmup or "
                "train.precision=float32"
            )

    def _report(self, lr: float) -> None:
        self.checkpoints.check()
        self._gather_results()
        state, window = self.state, self.state.window
        good = window.steps - window.skipped
        tokens = max(1, window.tokens)  # of the steps that counted
        seconds, seen = self._pace
        entry: dict[str, Any] = {
            "kind": "train",
            "step": state.step,
            "epoch": state.epoch,
            "loss": window.loss / tokens,
            "nll": window.nll / tokens,
            "lr": lr,
            "grad_norm": window.grad_norm / max(1, good),
            "tokens_per_s": seen / seconds if seconds > 0 else 0.0,
            "minutes": state.seconds / 60,
            "seen_tokens": state.seen_tokens,
        }
        if window.skipped:
            entry["skipped"] = window.skipped
        self._pace = [0.0, 0]
        state.window = Window()
        self._show(entry)

    def _show(self, entry: dict[str, Any]) -> None:
        if self.workers.is_first:
            self.log.add(entry)
            if self._tensorboard is not None:
                self._tensorboard.add(entry)
            self.display.report(entry, self._total_steps(), self._seconds_left())

    def _seconds_left(self) -> float:
        total, state = self._total_steps(), self.state
        if not total:
            return max(0.0, self.config.train.minutes * 60 - state.seconds)
        return estimate_seconds(total, (state.step, state.seconds), self._begun)

    def _total_steps(self) -> int:
        """Return the steps of the whole run, 0 before they are planned."""
        steps = self.config.train.steps
        return 0 if steps == NOT_PLANNED else steps

    def _resolve_steps(self) -> None:
        """Make the configuration that of the present plan; it changes at the start of a session, and once planned."""
        self.config = replace(self.config, train=self.state.resolve_steps(self.config.train))

    def _plan_steps(self) -> None:
        """Plan how many steps fit the time budget once that is known, and save it at once, for a resume to know."""
        train, state = self.config.train, self.state
        if not train.minutes or state.is_planned(train):
            return
        if self.workers.is_first:
            state.plan_steps(train)
        state.planned_steps, state.planned_minutes = self.workers.share((state.planned_steps, state.planned_minutes))
        if state.is_planned(train):
            self._resolve_steps()
            text = f"{state.planned_steps:,} steps fit in {train.minutes:g} minutes"
            self._show({"kind": "note", "step": state.step, "text": text})
            self._saved_step = -1
            self._save()
            self.checkpoints.wait()

    @cached_property
    def surroundings(self) -> dict[str, str]:
        """What the checkpoints of this session belong to."""
        return describe_surroundings(self.run)

    def _validate(self) -> None:
        """Validate, each worker a share of the pairs, and note a new best."""
        if self.validator is None:
            return
        state = self.state
        beam, weights = self.config.train.valid_beam, self.weights_to_use()
        result, others = self.validator.run(weights, beam), self.validator.run_others(beam)
        value = result.value(self.config.train.metric)
        best = state.best_score is None or value > state.best_score
        if best:
            state.best_score, state.best_step, state.validations_since_best = value, state.step, 0
            known = {"step": state.step, "belongs_to": self.surroundings}
            write_checkpoint(self.run.best, {"model": weights}, known, self.workers)
        else:
            state.validations_since_best += 1
        self.validator.release()
        self._tick()
        self._show(validation_entry(state, result, others, best))
        self.model.train()

    def weights_to_use(self) -> dict[str, AnyTensor]:
        """Return the moving average of the weights if there is one, else the weights."""
        return self.updater.ema_weights() or weights_by_name(self.model)

    def _validate_parent(self, parent: ParentFacts) -> None:
        """Validate the model that the run starts from, and record its scores."""
        assert self.validator is not None
        beam = self.config.train.valid_beam
        result, others = self.validator.run(self.weights_to_use(), beam), self.validator.run_others(beam)
        scores = [scores_of(result, "valid"), *(scores_of(other, f"valid {name}") for name, other in others.items())]
        self.parent = replace(parent, before=tuple(score for both in scores for score in both))
        self._show(validation_entry(self.state, result, others, best=False))

    def _save(self) -> None:
        """Save all that a resume needs, unless this step is saved already."""
        self._gather_results()
        if self._saved_step == self.state.step:
            return
        groups = {
            "model": weights_by_name(self.model),
            "ema": self.updater.ema_weights(),
            "optimizer": self.updater.state_tensors(),
        }
        state = {"run": self.state.to_json(), "data": self.corpus.fingerprint, "belongs_to": self.surroundings}
        if self.parent:
            state["parent"] = to_plain(self.parent)
        self.checkpoints.save(self.state.step, groups, state)
        self._saved_step = self.state.step


def validation_entry(
    state: RunState, result: Validation, others: Mapping[str, Validation], best: bool
) -> dict[str, Any]:
    """Return a validation as an entry of metrics.jsonl."""
    reported = {
        name: {"loss": other.loss, "bleu": other.bleu.score, "chrf": other.chrf.score} for name, other in others.items()
    }
    return {
        "kind": "valid",
        "step": state.step,
        "minutes": state.seconds / 60,
        "loss": result.loss,
        "perplexity": result.perplexity,
        "bleu": result.bleu.score,
        "bleu_signature": result.bleu.signature,
        "chrf": result.chrf.score,
        "chrf_signature": result.chrf.signature,
        "decoding": result.decoding,
        "best": best,
        **({"others": reported} if reported else {}),
    }
