"""What follows from the length of a run: warm-up, validations, checkpoints and reports fit its steps unless given."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from seqtool.config.reading import Entry
from seqtool.config.sections import TrainConfig

WARMUP_SHARE = 0.1  # the most of a run that is warm-up
VALIDATIONS = 5  # in a run, at least
REPORTS = 20  # of progress
FITTED = ("warmup", "validate_every", "save_every", "report_every")  # of [train]
BUDGETS = ("train.steps", "train.minutes", "train.epochs")


def fit_to_steps(train: TrainConfig, steps: int, names: Collection[str]) -> TrainConfig:
    """Return the settings for a run of this many steps; those of [train] that are named here may become smaller."""
    limits = {
        "warmup": int(WARMUP_SHARE * steps),
        "validate_every": max(1, steps // VALIDATIONS),
        "save_every": max(1, steps // VALIDATIONS),
        "report_every": max(1, steps // REPORTS),
    }
    fitted = {name: min(getattr(train, name), limit) for name, limit in limits.items() if name in names}
    return replace(train, steps=steps, **fitted)


def find_fitted(given: Mapping[str, Entry], *, is_fixed: bool) -> tuple[str, ...]:
    """Return what may follow the length of a run once that is known: settings of [train] that nobody gave.

    A preset that is fixed was made for its own number of steps; only a time budget shortens its warm-up.
    """
    if is_fixed:
        return () if "train.warmup" in given else ("warmup",)
    return tuple(name for name in (*FITTED, "steps") if f"train.{name}" not in given)


def withdraw_budgets(chosen: dict[str, Entry], given: Mapping[str, Entry]) -> None:
    """Take back the epochs that a preset chose if the user gave another budget."""
    if any(name in given for name in BUDGETS):
        chosen.pop("train.epochs", None)
