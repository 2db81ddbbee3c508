"""The end of a run: which weights become the model, and everything that makes the folder complete."""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor

from seqtool.config import load_config
from seqtool.errors import SeqtoolError
from seqtool.files import open_whole, write_whole
from seqtool.manifest import ModelFacts, ParentFacts, TrainingFacts
from seqtool.model.kinds import kind_of
from seqtool.model.loading import read_weights
from seqtool.run_directory import RunDir
from seqtool.training.checkpoint import ALONE, Checkpoint, read_checkpoint
from seqtool.training.data import TrainingData
from seqtool.training.display import TrainingDisplay
from seqtool.training.tensor_file import write_tensors
from seqtool.training.trainer import Trainer
from seqtool.training.validation import LeadingValidator, Validation, scores_of
from seqtool.translation.average import mean_tensor
from seqtool.translation.engines.interface import USUAL_LENGTH_PENALTY
from seqtool.translation.export.languages import known_codes
from seqtool.translation.export.record import find_damage
from seqtool.verification import checksum

PENALTY_STEP = 0.5
HIGHEST_PENALTY = 1.5  # about the mean log-probability of a token, for sentences of ordinary length


@dataclass(frozen=True)
class Candidate:
    """Weights that could become the model."""

    name: str
    step: int
    weights: Mapping[str, Tensor]


@dataclass(frozen=True)
class Choice:
    """What became the model, by what it reaches in validation."""

    candidate: Candidate
    validation: Validation
    scores: Mapping[str, float]  # of all candidates
    length_penalty: float | None = None  # if training was to choose it
    others: Mapping[str, Validation] = field(default_factory=dict)  # on the sets that are only reported


def gather_candidates(trainer: Trainer) -> list[Candidate]:
    """Return the last weights, the best validated ones, and the average of the newest checkpoints."""
    step = trainer.state.step
    last = read_checkpoint(trainer.run.checkpoint_folders()[-1])  # of this step: training ends with it
    assert last.state["run"]["step"] == step
    kind, group = ("moving average", "ema") if trainer.updater.ema else ("weights", "model")
    candidates = [Candidate(f"{kind} at the last step", step, last.tensors(group))]
    if trainer.updater.ema:  # if the learning rate has gone to zero, the average only lags behind
        candidates.append(Candidate("weights at the last step", step, last.tensors("model")))
    if trainer.run.best.exists() and trainer.state.best_step not in (0, step):  # 0: there was no validation
        for best in read_whole([trainer.run.best], trainer.display):
            name = f"{kind} with the best validation score"
            candidates.append(Candidate(name, best.state["step"], best.tensors("model")))
    paths = trainer.run.checkpoint_folders()[-trainer.config.train.average :]
    checkpoints = read_whole(paths, trainer.display) if len(paths) > 1 else []
    if len(checkpoints) > 1:
        name = f"average of {len(checkpoints)} checkpoints"
        candidates.append(Candidate(name, step, AveragedTensors([c.tensors("model") for c in checkpoints])))
    share = trainer.config.train.parent_share
    if not (share and trainer.parent):
        return candidates
    parent, name = read_parent_weights(trainer.parent), f", {share:g} of the parent in it"
    return [
        Candidate(one.name + name, one.step, AveragedTensors([one.weights, parent], [1 - share, share]))
        for one in candidates
    ]


def read_parent_weights(parent: ParentFacts) -> Mapping[str, Tensor]:
    """Read the weights that a training started from, unless they have changed since."""
    run = RunDir(Path(parent.path or ""))
    if not run.weights.is_file() or checksum(run.weights) != parent.sha256:
        raise SeqtoolError(
            f"{run.weights}: the model that this training started from is not there as it was, and "
            "train.parent_share needs it; restore it, or set that to 0"
        )
    return read_weights(run.weights)


def read_whole(paths: list[Path], display: TrainingDisplay) -> list[Checkpoint]:
    """Open those of the checkpoints that are not damaged, and say which are."""
    checkpoints = []
    for path in paths:
        try:
            checkpoints.append(read_checkpoint(path))
        except SeqtoolError as error:
            display.say(f"warning: {error}; going on without it")
    return checkpoints


class AveragedTensors(Mapping[str, Tensor]):
    """The mean of several sets of tensors, by equal or given shares, each computed in double precision when it is asked
    for."""

    def __init__(self, sets: Sequence[Mapping[str, Tensor]], shares: Sequence[float] | None = None) -> None:
        self.sets, self.shares = sets, shares

    def __getitem__(self, name: str) -> Tensor:
        tensors = [one[name] for one in self.sets]
        if self.shares is None:
            return mean_tensor(tensors).float()
        return sum(
            (share * tensor.double() for share, tensor in zip(self.shares, tensors, strict=True)),
            start=torch.zeros((), dtype=torch.float64),
        ).float()

    def __iter__(self) -> Iterator[str]:
        return iter(self.sets[0])

    def __len__(self) -> int:
        return len(self.sets[0])


def choose_model(trainer: Trainer, validator: LeadingValidator) -> Choice:
    """Return the candidate with the best validation score under the run's own decoding settings."""
    beam, metric = trainer.config.decode.beam, trainer.config.train.metric
    results = []
    candidates = gather_candidates(trainer)
    for number, candidate in enumerate(candidates, 1):
        result = validator.run(candidate.weights, beam)
        results.append((candidate, result))
        trainer.display.sign(result.bleu.signature, result.chrf.signature)
        score = f"validation {metric} {abs(result.value(metric)):.2f}"
        trainer.display.say(f"{number} of {len(candidates)}: {candidate.name}, {score}")
    chosen, validation = max(results, key=lambda result: result[1].value(metric))
    choice = Choice(chosen, validation, {c.name: v.value(metric) for c, v in results})
    if trainer.config.decode.length_penalty == "auto" and beam > 1 and metric != "loss":
        trainer.display.say("choosing the length penalty")
        choice = choose_length_penalty(choice, validator, beam, metric)
    return with_others(choice, validator, beam)


def with_others(choice: Choice, validator: LeadingValidator, beam: int) -> Choice:
    """Add what the chosen weights reach on the sets that are only reported."""
    if not validator.others:
        return choice
    options = {} if choice.length_penalty is None else {"length_penalty": choice.length_penalty}
    validator.use(choice.candidate.weights)
    return replace(choice, others=validator.run_others(beam, **options))


def choose_length_penalty(choice: Choice, validator: LeadingValidator, beam: int, metric: str) -> Choice:
    """Walk from the usual length penalty up, or else down, as long as the validation score rises.

    Models with label smoothing tend to say too little; by how much depends on the corpus. A penalty above the highest
    would rank what is long before what is likely. It may gain BLEU by fitting the length of this one validation set,
    and only as long as the search stops early (benchmarks/multi30k.md).
    """
    best, best_penalty = choice.validation, USUAL_LENGTH_PENALTY
    for step in (PENALTY_STEP, -PENALTY_STEP):
        while 0 <= (penalty := best_penalty + step) <= HIGHEST_PENALTY:
            validation = validator.run(choice.candidate.weights, beam, length_penalty=penalty)
            if validation.value(metric) <= best.value(metric):
                break
            best, best_penalty = validation, penalty
        if best is not choice.validation:
            break
    return replace(choice, validation=best, length_penalty=best_penalty)


def publish(
    run: RunDir,
    trainer: Trainer,
    data: TrainingData,
    choice: Choice,
    finished: str,
) -> None:
    """Write model.safetensors and a manifest that vouches for all files of the model."""
    state, weights = trainer.state, choice.candidate.weights
    with open_whole(run.weights) as file:
        write_tensors(file, weights, ALONE)
    model = ModelFacts(
        parameters=sum(weight.numel() for weight in weights.values()),
        source=choice.candidate.name,
        step=choice.candidate.step,
        candidates=dict(choice.scores),
        length_penalty=choice.length_penalty,
    )
    training = TrainingFacts(
        steps=state.step,
        epochs=state.epoch,
        minutes=round(state.seconds / 60, 2),
        tokens=state.seen_tokens,
        planned_steps=state.planned_steps,
        device=trainer.machine.device,
        precision=trainer.machine.precision,
        threads=trainer.machine.threads,
        finished=finished,
    )
    manifest = run.make_manifest(model, data.describe())
    sets = {"valid": choice.validation, **{f"valid {name}": other for name, other in choice.others.items()}}
    scores = tuple(score for name, validation in sets.items() for score in scores_of(validation, name))
    share = trainer.config.train.parent_share
    parent = replace(trainer.parent, share=share or None) if trainer.parent else None
    run.write_manifest(replace(manifest, scores=scores, training=training, parent=parent, complete=False))


def mark_complete(run: RunDir) -> None:
    """Record that everything is there; this is the last thing written, so that an end cut short is done again."""
    run.write_manifest(replace(run.read_manifest(), complete=True))


def record_languages(run: RunDir, languages: tuple[str, str] | None, parent: RunDir | None) -> None:
    """Record the languages that were given, or those of the model that this one was fine-tuned from."""
    manifest = run.read_manifest()
    if languages is None and parent is not None and "languages" not in manifest.others:
        languages = known_codes(parent)
    if languages is not None:
        noted = {"source": languages[0], "target": languages[1]}
        run.write_manifest(replace(manifest, others={**manifest.others, "languages": noted}))


def is_whole(run: RunDir, data: TrainingData, display: TrainingDisplay) -> bool:
    """Return whether the files of a finished model are as they were written, and say which are not."""
    try:
        run.require_model()
    except SeqtoolError as error:
        display.say(f"warning: {error}")
        return False
    damage = find_damage(run, data.tokenizers) if run.ctranslate2.exists() else None
    if damage:
        display.say(f"warning: {damage}; {export_fast_form(run)}")
    return True


def write_valid_lines(run: RunDir, pairs: Sequence[tuple[str, str]], validation: Validation) -> None:
    """Keep the validation set with the final model's translations, for the report."""
    lines = [
        json.dumps({"src": src, "ref": ref, "hyp": hyp}, ensure_ascii=False)
        for (src, ref), hyp in zip(pairs, validation.hypotheses, strict=True)
    ]
    write_whole(run.valid_lines, "\n".join(lines) + "\n")


def export_fast_form(run: RunDir) -> str:
    """Make the CTranslate2 form if that is possible; return what was done in words."""
    model = load_config(run.config).model
    if kind_of(model).ctranslate2 is None:
        return f"CTranslate2 has no models of kind '{model.kind}', so the torch engine translates"
    try:
        import ctranslate2  # noqa: F401
    except ImportError:
        return "ctranslate2 is not installed, so there is no fast form (pip install 'seqtool[fast]')"
    from seqtool.translation.export.ctranslate2 import export_ctranslate2

    shutil.rmtree(run.ctranslate2, ignore_errors=True)  # never leave the form of other weights
    try:
        export_ctranslate2(run)
    except SeqtoolError as error:
        return f"no CTranslate2 form: {error}"
    return f"exported to {run.ctranslate2}"
