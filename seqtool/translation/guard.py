"""The hypothesis guard: an empty or looping translation gives way to the next best that is neither."""

from collections.abc import Callable, Sequence

MAX_PERIOD = 16  # longest repeated phrase looked for, in tokens
MIN_TURNS = 4  # of the same phrase in a row, from which on it may be a loop
MIN_LOOP_TOKENS = 8  # and it must be as long as this


def longest_run(ids: Sequence[object], period: int) -> int:
    """Return how many times in a row, at most, a phrase of `period` tokens occurs (1: no repetition).

    A run of m tokens each equal to the one `period` places before it is a phrase said m // period more times.
    """
    best = run = 0
    for index in range(period, len(ids)):
        run = run + 1 if ids[index] == ids[index - period] else 0
        best = max(best, run)
    return best // period + 1


def is_looping(source: Sequence[int], target: Sequence[int]) -> bool:
    """Return whether a translation says the same over and over though its source does not.

    A source that repeats itself ("ha ha ha ha", a row of dots or zeros) may be translated by as many turns, and by
    twice as many if one of its tokens becomes two; more than that is the model's own loop.
    """
    if len(target) - len(set(target)) < MIN_LOOP_TOKENS - 2:  # every loop repeats more tokens
        return False
    turns_of_source: int | None = None
    for period in range(1, min(MAX_PERIOD, len(target) // MIN_TURNS) + 1):
        turns = longest_run(target, period)
        if turns < MIN_TURNS or turns * period < MIN_LOOP_TOKENS:
            continue
        if turns_of_source is None:
            turns_of_source = max(longest_run(source, p) for p in range(1, MAX_PERIOD + 1))
        if turns > 2 * turns_of_source + 1:
            return True
    return False


def choose(
    source: Sequence[int], hypotheses: Sequence[Sequence[int]], is_empty: Callable[[Sequence[int]], bool]
) -> int | None:
    """Return the index of the best hypothesis that is neither empty nor looping; None if there is none."""
    for index, ids in enumerate(hypotheses):
        if not is_empty(ids) and not is_looping(source, ids):
            return index
    return None
