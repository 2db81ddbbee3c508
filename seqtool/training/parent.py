"""The model that a training starts from (--from): what it fixes, and what is recorded of it; torch is not needed."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from seqtool.config import Fixed, Resolved, load_config
from seqtool.durations import count
from seqtool.manifest import ParentFacts, ScoreEntry
from seqtool.run_directory import RunDir
from seqtool.verification import checksum

FORGETS = (
    "the model will forget some of what it was trained on, unless a sample of that is mixed in: "
    "'seqtool train ... --corpus old.en,old.de@0.1'"
)


def describe_parent(path: Path) -> Fixed:
    """Return what the model in a run directory fixes: its shape and its tokenizer, but no rate of dropout."""
    config = load_config(RunDir(path).require_files().config)
    return Fixed(
        origin=f"the model {path}",
        values={
            "model": {key: value for key, value in asdict(config.model).items() if "drop" not in key},
            "tokenizer": {key: value for key, value in asdict(config.tokenizer).items() if "drop" not in key},
        },
        owner=f"{path}: its model",
        way_out="train from the start without `start_from`",
    )


def read_parent(path: Path) -> ParentFacts:
    """Return what the manifest of a fine-tuned model records of the one that it was made from."""
    run = RunDir(path)
    manifest = run.read_manifest()
    return ParentFacts(
        path=str(path.resolve()),
        sha256=manifest.files.get(run.weights.name) or checksum(run.weights),
        source=manifest.model.source,
        step=manifest.model.step,
        scores=manifest.scores,
    )


def finetuning_notes(path: Path, resolved: Resolved, *, is_mixed: bool) -> list[str]:
    """Return what a user should know when a training starts from a model: what it takes from it and what it ignores."""
    facts, train = read_parent(path), resolved.config.train
    what = ", ".join(
        filter(None, (facts.source, f"step {facts.step:,}" if facts.step else "", name_scores(facts.scores)))
    )
    length = f"{count(train.epochs, 'epoch')} at most" if train.epochs else ""
    patience = f"{count(train.patience, 'validation')} without a better {train.metric} end it" if train.patience else ""
    chosen = (
        f"{train.optimizer} with learning rate {train.lr:g} ({train.schedule}), dropout "
        f"{resolved.config.model.dropout:g}, {train.batch_tokens} tokens per batch"
    )
    return [
        f"{resolved.preset}: {', '.join(filter(None, (chosen, length, patience)))}",
        f"taken from {path}{f' ({what})' if what else ''}: weights, shape, tokenizer; not taken: its dropout, "
        "[train] settings and optimizer state; ignored: the shape and vocabulary of a preset",
        *([] if is_mixed else [FORGETS]),
    ]


def name_scores(scores: Sequence[ScoreEntry]) -> str:
    """Return scores in one line: valid bleu 31.20, valid chrf 55.10."""
    return ", ".join(f"{score.set} {score.metric} {score.score:.2f}" for score in scores)
