"""Where a run stands: everything beside tensors that a resume needs, and the budgets that end a run."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from seqtool.config import TrainConfig

# A run with a time budget measures its speed for this share of the time before it settles the number of steps.
CALIBRATION_SHARE = 0.05
CALIBRATION_STEPS = 20
SAFETY = 0.97  # share of the remaining time that the settled steps may fill


@dataclass
class Window:
    """Sums since the last progress report."""

    steps: int = 0
    tokens: int = 0
    loss: float = 0.0
    nll: float = 0.0
    grad_norm: float = 0.0
    skipped: int = 0


@dataclass
class RunState:
    """A run's place and history; equal states and tensors continue equally."""

    step: int = 0
    epoch: int = 0
    index: int = 0  # of the next batch in its epoch
    seen_tokens: int = 0
    seconds: float = 0.0  # of training, validation included, over all sessions of the run
    planned_steps: int = 0  # settled from a time budget; 0 before that and without one
    planned_minutes: float = 0.0  # the budget it was settled for
    best_score: float | None = None
    best_step: int = 0
    validations_since_best: int = 0
    window: Window = field(default_factory=Window)

    def to_json(self) -> dict[str, Any]:
        """Return the state as plain values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "RunState":
        """Read what to_json gave."""
        known = {f.name for f in dataclasses.fields(cls)}
        kept = {key: value for key, value in values.items() if key in known}
        return cls(**{**kept, "window": Window(**values["window"])})

    def total_steps(self, config: TrainConfig) -> int:
        """Return the step at which the run ends if nothing ends it sooner."""
        return min(config.steps, self.planned_steps) if self.is_planned(config) else config.steps

    def is_planned(self, config: TrainConfig) -> bool:
        """Tell whether the number of steps is settled for the present time budget."""
        return bool(config.minutes) and self.planned_minutes == config.minutes

    def plan_steps(self, config: TrainConfig) -> None:
        """Settle the number of steps from the time budget, once enough was measured.

        The number is part of the state from then on, so that the run can be resumed and repeated exactly. A budget
        that was changed since is settled anew.
        """
        budget = config.minutes * 60
        if self.step < CALIBRATION_STEPS or self.seconds < CALIBRATION_SHARE * budget:
            return
        pace = self.seconds / self.step
        self.planned_steps = self.step + max(0, int(SAFETY * (budget - self.seconds) / pace))
        self.planned_minutes = config.minutes

    def reason_to_stop(self, config: TrainConfig) -> str | None:
        """Tell which budget is used up, if one is."""
        if self.step >= self.total_steps(config):
            if self.is_planned(config) and self.planned_steps < config.steps:
                return f"the {self.planned_steps:,} steps that fit in {config.minutes:g} minutes are done"
            return f"{config.steps:,} steps are done"
        if config.epochs and self.epoch >= config.epochs:
            return f"{config.epochs:,} epochs are done"
        if config.patience and self.validations_since_best >= config.patience:
            return f"{config.patience} validations brought no better {config.metric}"
        return None
