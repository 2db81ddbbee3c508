"""Settles a run's configuration before it starts or continues: what auto picked, and what changed since last time."""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seqtool.config import Config, config_to_toml, load_config, resolve_config
from seqtool.config.resolve import parse_overrides, read_toml
from seqtool.corpus.reading.corpus import Corpus
from seqtool.errors import SeqtoolError
from seqtool.process import is_restarted
from seqtool.run_directory import RunDir

# What may change from one session of a run to the next: budgets, and what has no influence on the weights.
FREE = {
    "train.steps",
    "train.minutes",
    "train.epochs",
    "train.patience",
    "train.keep",
    "train.report_every",
    "train.tensorboard",
    "train.device",
    "data.workers",
    "train.max_bad_steps",
    "decode.beam",
    "decode.length_penalty",
    "decode.coverage_penalty",
    "decode.max_length_ratio",
    "decode.batch_tokens",
    "decode.threads",
}


@dataclass(frozen=True, kw_only=True)
class TrainRequest:
    """What a user asked `train` to do."""

    corpora: tuple[Corpus, ...]
    valid: Corpus | None = None
    against: tuple[Corpus, ...] = ()  # test sets: what is in them is not trained on
    out: Path
    preset: str = "auto"
    config_file: Path | None = None
    overrides: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    start_from: Path | None = None
    fresh: bool = False

    @property
    def held_apart(self) -> tuple[Corpus, ...]:
        """The validation and test sets that training pairs must not overlap with."""
        return (*([self.valid] if self.valid else []), *self.against)

    @property
    def starts_over(self) -> bool:
        """Whether to remove what is there; not again when torchrun starts workers anew after one of them died."""
        return self.fresh and not is_restarted()

    def given_settings(self) -> set[str]:
        """Return the names of the settings that the user gave one by one, in a file or with --set."""
        layers = [parse_overrides(self.overrides), read_toml(self.config_file) if self.config_file else {}]
        return {f"{section}.{key}" for layer in layers for section, values in layer.items() for key in values}

    def resolve(self, pairs: int | None, device: str) -> Config:
        """Return the configuration for a corpus of this size."""
        return resolve_config(self.preset, self.config_file, self.overrides, self.flags, pairs=pairs, device=device)


def check_unchanged(run: RunDir, config: Config) -> None:
    """Raise if a run that is under way was begun with other settings, naming them and what to do."""
    if not run.config.exists() or not run.checkpoint_folders():
        return
    before = load_config(run.config)
    changed = [change for change in changes(before, config) if change[0] not in FREE]
    if changed:
        listed = "; ".join(f"{name} was {old!r} and is now {new!r}" for name, old, new in changed[:3])
        more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        raise SeqtoolError(
            f"{run.path}: this run was begun with other settings: {listed}{more}. "
            f"Give those again to continue it (--config {run.config} gives all of them), "
            "-o for a new run, or --fresh to start over"
        )


def write_config(run: RunDir, config: Config) -> None:
    """Write the configuration into the run directory."""
    run.write_config(config_to_toml(config))


def changes(before: Config, after: Config) -> Iterable[tuple[str, Any, Any]]:
    """Yield (name, old, new) of every setting that differs."""
    for section in dataclasses.fields(Config):
        old_part, new_part = getattr(before, section.name), getattr(after, section.name)
        for field in dataclasses.fields(old_part):
            old, new = getattr(old_part, field.name), getattr(new_part, field.name)
            if old != new:
                yield f"{section.name}.{field.name}", old, new


def choose_precision(wanted: str, device_type: str) -> str:
    """Return the arithmetic to use: half precision where the device is made for it, never on a CPU by default."""
    import torch

    if wanted != "auto":
        return wanted
    if device_type != "cuda":
        return "float32"
    return "bf16" if torch.cuda.is_bf16_supported() else "fp16"
