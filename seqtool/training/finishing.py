"""The end of a run: which weights become the model, and everything that makes the folder complete."""

import datetime
import importlib.metadata
import json
import platform
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from seqtool import __version__
from seqtool.errors import SeqtoolError
from seqtool.files import RunDir, sha256_of, to_json, write_whole
from seqtool.model.counting import count_parameters
from seqtool.model.loading import save_weights
from seqtool.training.checkpoint import Checkpoint, read_checkpoint
from seqtool.training.data import TrainingData
from seqtool.training.progress import Progress
from seqtool.training.trainer import Trainer, best_folder
from seqtool.training.validation import Validation, Validator
from seqtool.translation.average import mean_tensor


@dataclass(frozen=True)
class Candidate:
    """Weights that could become the model."""

    name: str
    step: int
    weights: dict[str, Tensor]


def gather_candidates(trainer: Trainer) -> list[Candidate]:
    """Return the best validated weights, the last ones, and the average of the newest checkpoints."""
    step = trainer.state.step
    kind = "moving average" if trainer.updater.ema else "weights"
    candidates = [Candidate(f"{kind} at the last step", step, trainer.last_weights)]
    if best_folder(trainer.run).exists() and trainer.state.best_step != step:
        for best in read_whole([best_folder(trainer.run)], trainer.progress):
            name = f"{kind} with the best validation score"
            candidates.append(Candidate(name, best.state["step"], best.tensors("model")))
    paths = trainer.run.checkpoint_folders()[-trainer.config.train.average :]
    checkpoints = read_whole(paths, trainer.progress) if len(paths) > 1 else []
    if len(checkpoints) > 1:
        name = f"average of {len(checkpoints)} checkpoints"
        candidates.append(Candidate(name, step, average_weights(checkpoints)))
    return candidates


def read_whole(paths: list[Path], progress: Progress) -> list[Checkpoint]:
    """Open those of the checkpoints that are not damaged, and say which are."""
    checkpoints = []
    for path in paths:
        try:
            checkpoints.append(read_checkpoint(path))
        except SeqtoolError as error:
            progress.say(f"warning: {error}; going on without it")
    return checkpoints


def average_weights(checkpoints: list[Checkpoint]) -> dict[str, Tensor]:
    """Return the mean of the weights of some checkpoints, computed in double precision."""
    models = [checkpoint.tensors("model") for checkpoint in checkpoints]
    return {name: mean_tensor([model[name] for model in models]).float() for name in models[0]}


def choose_model(trainer: Trainer, validator: Validator) -> tuple[Candidate, Validation, dict[str, float]]:
    """Return the candidate with the best validation score under the run's own decoding settings, and all scores."""
    config = trainer.config
    results = [(c, validator.run(c.weights, config.decode.beam)) for c in gather_candidates(trainer)]
    chosen, validation = max(results, key=lambda result: result[1].value(config.train.metric))
    return chosen, validation, {c.name: v.value(config.train.metric) for c, v in results}


def publish(
    run: RunDir,
    trainer: Trainer,
    data: TrainingData,
    chosen: Candidate,
    validation: Validation,
    candidates: Mapping[str, float],
    finished: str,
) -> None:
    """Write model.safetensors and a manifest that vouches for all files of the model."""
    config, state = trainer.config, trainer.state
    save_weights(chosen.weights, run.weights)
    files = [run.config, run.tokenizer, run.target_tokenizer, run.weights]
    vocabularies = data.tokenizers.source.vocab_size, data.tokenizers.target.vocab_size
    parameters = count_parameters(config.model, *vocabularies)
    manifest = {
        "format": 1,
        "seqtool": __version__,
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "files": {file.name: sha256_of(file) for file in files if file.exists()},
        "versions": versions(),
        "data": data.describe(),
        "model": {
            "parameters": parameters.total,
            "source": chosen.name,
            "step": chosen.step,
            "candidates": dict(candidates),
        },
        "scores": scores_of(validation),
        "training": {
            "steps": state.step,
            "epochs": state.epoch,
            "minutes": round(state.seconds / 60, 2),
            "tokens": state.seen_tokens,
            "planned_steps": state.planned_steps,
            "finished": finished,
        },
        "complete": False,
    }
    write_whole(run.manifest, to_json(manifest))


def mark_complete(run: RunDir) -> None:
    """Record that everything is there; this is the last thing written, so that an end cut short is done again."""
    write_whole(run.manifest, to_json({**run.read_manifest(), "complete": True}))


def scores_of(validation: Validation) -> list[dict[str, Any]]:
    """Return a validation's scores as the manifest records them."""
    return [
        {
            "set": "valid",
            "metric": score.name,
            "score": score.score,
            "signature": score.signature,
            "decoding": validation.decoding,
        }
        for score in (validation.bleu, validation.chrf)
    ]


def versions() -> dict[str, str]:
    """Return the versions of what the model was made with."""
    names = ("torch", "sentencepiece", "numpy", "safetensors", "sacrebleu")
    return {"python": platform.python_version(), **{name: importlib.metadata.version(name) for name in names}}


def write_valid_lines(run: RunDir, validator: Validator, validation: Validation) -> None:
    """Keep the validation set with the final model's translations, for the report."""
    lines = [
        json.dumps({"src": src, "ref": ref, "hyp": hyp}, ensure_ascii=False)
        for (src, ref), hyp in zip(validator.pairs, validation.hypotheses, strict=True)
    ]
    write_whole(run.path / "valid.jsonl", "\n".join(lines) + "\n")


def export_fast_form(run: RunDir) -> str:
    """Make the CTranslate2 form where that is possible; return what was done in words."""
    try:
        import ctranslate2  # noqa: F401
    except ImportError:
        return "ctranslate2 is not installed, so there is no fast form (pip install 'seqtool[fast]')"
    from seqtool.translation.export import export_ctranslate2

    shutil.rmtree(run.ctranslate2, ignore_errors=True)  # never leave the form of other weights
    try:
        export_ctranslate2(run)
    except SeqtoolError as error:
        return f"no CTranslate2 form: {error}"
    return f"exported to {run.ctranslate2}"
