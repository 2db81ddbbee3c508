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
from seqtool.config import Config
from seqtool.errors import SeqtoolError
from seqtool.files import RunDir, sha256_of, to_json, write_whole
from seqtool.model.counting import count_parameters
from seqtool.model.loading import save_weights
from seqtool.training.checkpoint import read_checkpoint
from seqtool.training.data import TrainingData
from seqtool.training.state import RunState
from seqtool.training.trainer import Trainer, best_folder
from seqtool.training.validation import Validation, Validator


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
        best = read_checkpoint(best_folder(trainer.run))
        candidates.append(
            Candidate(f"{kind} with the best validation score", best.state["step"], best.tensors("model"))
        )
    paths = trainer.checkpoints.names()[-trainer.config.train.average :]
    if len(paths) > 1 and trainer.config.train.average > 1:
        candidates.append(Candidate(f"average of {len(paths)} checkpoints", step, average_weights(paths)))
    return candidates


def average_weights(paths: list[Path]) -> dict[str, Tensor]:
    """Return the mean of the weights of some checkpoints, computed in double precision."""
    total: dict[str, Tensor] = {}
    for path in paths:
        for name, tensor in read_checkpoint(path).tensors("model").items():
            total[name] = total[name] + tensor.double() if name in total else tensor.double()
    return {name: (tensor / len(paths)).float() for name, tensor in total.items()}


def choose_model(trainer: Trainer, validator: Validator) -> tuple[Candidate, Validation, dict[str, float]]:
    """Return the candidate with the best validation score under the run's own decoding settings, and all scores."""
    config = trainer.config
    results = [(c, validator.run(c.weights, config.decode.beam)) for c in gather_candidates(trainer)]
    chosen, validation = max(results, key=lambda result: result[1].value(config.train.metric))
    return chosen, validation, {c.name: v.value(config.train.metric) for c, v in results}


def publish(
    run: RunDir,
    config: Config,
    data: TrainingData,
    state: RunState,
    weights: Mapping[str, Tensor],
    source: str,
    step: int,
    validation: Validation | None,
    finished: str | None,
    candidates: Mapping[str, float] | None = None,
) -> None:
    """Write model.safetensors and a manifest that vouches for all files of the model."""
    save_weights(dict(weights), run.weights)
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
        "model": {"parameters": parameters.total, "source": source, "step": step, "candidates": dict(candidates or {})},
        "scores": scores_of(validation) if validation else [],
        "training": {
            "steps": state.step,
            "epochs": state.epoch,
            "minutes": round(state.seconds / 60, 2),
            "tokens": state.seen_tokens,
            "planned_steps": state.planned_steps,
            "finished": finished or False,
        },
    }
    write_whole(run.manifest, to_json(manifest))


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
