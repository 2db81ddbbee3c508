"""Where a run stands: everything beside tensors that a resume needs, and the budgets that end a run."""

import dataclasses
from dataclasses import dataclass, field, replace
from typing import Any

from seqtool.config import TrainConfig
from seqtool.config.budget import fit_to_steps
from seqtool.durations import count
from seqtool.training.schedule import trains_both_ways

# A run with a time budget measures its speed for this share of the time, and at least this many steps, before it plans
# the number of steps; if steps are very slow, it waits for no more than the longer share.
CALIBRATION_SHARE = 0.05
CALIBRATION_STEPS = 20
LONGEST_CALIBRATION = 0.2
STEPS_SHARE = 0.97  # of the remaining time is for the steps; the rest is for validation and checkpoints
NOT_PLANNED = 2**53  # the number of steps before it is planned: none of them is the last


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
    planned_steps: int = 0  # those that fit a time budget; 0 before they are planned and without one
    planned_minutes: float = 0.0  # the budget that they were planned for
    slow_steps: int = 0  # those at the start, while caches fill, which a plan leaves out
    slow_seconds: float = 0.0
    epoch_steps: int = 0  # in the first epoch, if a number of epochs is the budget
    fitted: list[str] = field(default_factory=lambda: ["warmup"])  # settings that follow the number of steps
    one_way: bool = False  # the share of the steps that translate back too is over, and a larger budget adds none
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

    def resolve_steps(self, config: TrainConfig) -> TrainConfig:
        """Return the settings that a run uses from here on: with a budget of time or epochs, for the steps that fit."""
        if config.minutes and not self.is_planned(config):
            return replace(config, steps=NOT_PLANNED)
        if self.follows_epochs(config):
            return fit_to_steps(config, config.epochs * self.epoch_steps, self.fitted)
        return fit_to_steps(config, max(1, self.planned_steps), self.fitted) if config.minutes else config

    def follows_epochs(self, config: TrainConfig) -> bool:
        """Return whether the schedule ends with the last epoch: if epochs are the only budget, or the shorter one."""
        if not (config.epochs and self.epoch_steps and "steps" in self.fitted):
            return False
        return not config.minutes or 0 < config.epochs * self.epoch_steps <= self.planned_steps

    def is_planned(self, config: TrainConfig) -> bool:
        """Return whether the number of steps is planned for the present time budget."""
        return bool(config.minutes) and self.planned_minutes == config.minutes

    def plan_steps(self, config: TrainConfig) -> None:
        """Plan the number of steps that fit the time budget, once enough was measured.

        The number is part of the state from then on, so that the run can be resumed and repeated exactly. It is
        planned again if the budget has changed since.
        """
        budget = config.minutes * 60
        if not self.slow_steps and 0.5 < self.seconds / (CALIBRATION_SHARE * budget) < 1:
            self.slow_steps, self.slow_seconds = self.step, self.seconds
        is_measured = self.step >= CALIBRATION_STEPS or self.seconds > LONGEST_CALIBRATION * budget
        if not is_measured or self.seconds < CALIBRATION_SHARE * budget:
            return
        steps, seconds = self.step - self.slow_steps, self.seconds - self.slow_seconds
        if steps < CALIBRATION_STEPS:  # too few to leave out those before them
            steps, seconds = self.step, self.seconds
        pace = seconds / steps
        self.planned_steps = self.step + max(0, int(STEPS_SHARE * (budget - self.seconds) / pace))
        self.planned_minutes = config.minutes

    def choose_direction(self, epoch: int, config: TrainConfig) -> bool:
        """Return whether the next step learns to translate back, from the target to the source."""
        step = self.step + 1
        self.one_way = self.one_way or not trains_both_ways(step, epoch, config)
        return step % 2 == 0 and not self.one_way

    def reason_to_stop(self, config: TrainConfig) -> str | None:
        """Return which budget is used up, None if none is."""
        if self.step >= config.steps and not self.follows_epochs(config):
            if config.minutes:
                return f"the {self.planned_steps:,} steps that fit in {config.minutes:g} minutes are done"
            return f"{count(config.steps, 'step')} {'is' if config.steps == 1 else 'are'} done"
        if config.epochs and self.epoch >= config.epochs:
            return f"{count(config.epochs, 'epoch')} {'is' if config.epochs == 1 else 'are'} done"
        if config.patience and self.validations_since_best >= config.patience:
            return f"{config.patience} validations brought no better {config.metric}"
        return None
