"""What changes on the way, as pure functions: learning rate, direction, word dropout."""

import math

from seqtool.config import Config, TrainConfig


def learning_rate(step: int, config: TrainConfig, d_model: int) -> float:
    """Return the learning rate of a step, counted from 1.

    All schedules but the paper's rise linearly to `lr` over `warmup` steps. Then `inverse_sqrt` falls with the root
    of the step, `cosine` and `linear` reach zero at the last step, `constant` stays. `paper` is the formula of
    section 5.3, d_model^-0.5 * min(step^-0.5, step * warmup^-1.5), times `lr`.
    """
    warmup = max(1, config.warmup)
    if config.schedule == "paper":
        return config.lr * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
    if step < warmup:
        return config.lr * step / warmup
    if config.schedule == "inverse_sqrt":
        return config.lr * math.sqrt(warmup / step)
    done = min(1.0, (step - warmup) / max(1, config.steps - warmup))
    if config.schedule == "cosine":
        return config.lr * 0.5 * (1 + math.cos(math.pi * done))
    if config.schedule == "linear":
        return config.lr * (1 - done)
    return config.lr


def trains_both_ways(step: int, epoch: int, config: TrainConfig) -> bool:
    """Return whether a step, counted from 1, is in the share of a run that learns to translate back too."""
    in_steps = step <= config.both_ways * config.steps
    return in_steps and (not config.epochs or epoch < config.both_ways * config.epochs)


def word_dropout(epoch: int, config: Config) -> float:
    """Return the chance of hiding an input token in an epoch (the first one is 0)."""
    return config.model.word_dropout if epoch >= config.train.word_dropout_after else 0.0
