"""Schedules against values worked out by hand."""

import math

import pytest

from seqtool.config import Config, TrainConfig, TransformerConfig
from seqtool.training.schedule import learning_rate, word_dropout
from seqtool.training.state import RunState


def rate(step: int, schedule: str, total: int = 10_000, lr: float = 1.0, warmup: int = 4000) -> float:
    return learning_rate(step, TrainConfig(schedule=schedule, lr=lr, warmup=warmup, steps=total), d_model=512)


def test_the_papers_formula_gives_the_papers_values() -> None:
    # d_model^-0.5 = 512^-0.5 = 0.0441942; warmup^-1.5 = 4000^-1.5 = 3.95285e-6
    assert rate(1, "paper") == pytest.approx(0.0441942 * 3.95285e-6, rel=1e-5)  # 1.74693e-7
    assert rate(2000, "paper") == pytest.approx(0.0441942 * 2000 * 3.95285e-6, rel=1e-5)  # 3.49386e-4
    assert rate(4000, "paper") == pytest.approx(0.0441942 * 0.0158114, rel=1e-5)  # the peak, 6.98771e-4
    assert rate(16000, "paper") == pytest.approx(0.0441942 * 0.00790569, rel=1e-5)  # half of it at four times the step


def test_inverse_square_root_rises_linearly_then_halves_at_four_times_the_warmup() -> None:
    assert rate(1000, "inverse_sqrt") == pytest.approx(0.25)
    assert rate(4000, "inverse_sqrt") == pytest.approx(1.0)
    assert rate(16000, "inverse_sqrt") == pytest.approx(0.5)


def test_cosine_is_half_at_the_middle_and_zero_at_the_end() -> None:
    assert rate(4000, "cosine") == pytest.approx(1.0)
    assert rate(7000, "cosine") == pytest.approx(0.5)
    assert rate(5500, "cosine") == pytest.approx(0.5 * (1 + math.sqrt(0.5)))  # a quarter of the way: cos(pi / 4)
    assert rate(10_000, "cosine") == pytest.approx(0.0, abs=1e-12)
    assert rate(12_000, "cosine") == pytest.approx(0.0, abs=1e-12)


def test_linear_falls_evenly_and_constant_stays() -> None:
    assert rate(7000, "linear") == pytest.approx(0.5)
    assert rate(10_000, "linear") == 0.0
    assert rate(2000, "constant") == pytest.approx(0.5)
    assert rate(9999, "constant") == 1.0


def test_without_warmup_the_first_step_has_the_full_rate() -> None:
    assert rate(1, "constant", warmup=0) == 1.0
    assert rate(1, "inverse_sqrt", warmup=0) == 1.0


def turned_steps(state: RunState, config: TrainConfig, until: int = 100, epoch_steps: int = 1000) -> list[int]:
    """Take the steps up to the last one, and return which of them translate back."""
    turned, config = [], state.resolve_steps(config)
    for step in range(state.step + 1, min(until, config.steps) + 1):
        if state.choose_direction((step - 1) // epoch_steps, config):
            turned.append(step)
        state.step = step
    return turned


def test_every_other_step_is_turned_until_the_share_is_used_up() -> None:
    assert turned_steps(RunState(), TrainConfig(steps=10, both_ways=0.55)) == [2, 4]
    assert turned_steps(RunState(), TrainConfig(steps=10, both_ways=1.0)) == [2, 4, 6, 8, 10]
    assert turned_steps(RunState(), TrainConfig(steps=10)) == []


def test_no_step_is_turned_after_the_share_of_the_epochs() -> None:
    assert turned_steps(RunState(), TrainConfig(steps=100, epochs=4, both_ways=0.5), epoch_steps=3) == [2, 4, 6]


def test_a_larger_budget_turns_no_steps_again() -> None:
    state, share = RunState(), {"both_ways": 0.4}
    assert turned_steps(state, TrainConfig(steps=10, **share)) == [2, 4]
    assert turned_steps(state, TrainConfig(steps=100, **share)) == []
    assert turned_steps(state, TrainConfig(minutes=10, **share), until=110) == []  # not planned yet


def test_word_dropout_begins_after_its_epochs() -> None:
    model = TransformerConfig(word_dropout=0.2)
    later = Config(model=model, train=TrainConfig(word_dropout_after=2))
    assert [word_dropout(epoch, later) for epoch in range(4)] == [0.0, 0.0, 0.2, 0.2]
    assert word_dropout(0, Config(model=model)) == 0.2
