"""Empty and looping hypotheses are found, and honest repetition is left alone."""

from hypothesis import given
from hypothesis import strategies as st

from seqtool.translation.guard import choose, is_looping, longest_run

SOURCE = [5, 6, 7, 8, 9]


def is_empty(ids: object) -> bool:
    return not ids


def test_runs_are_counted_by_their_period() -> None:
    assert longest_run([1, 2, 3], 1) == 1
    assert longest_run([1, 1, 1, 2], 1) == 3
    assert longest_run([1, 2, 1, 2, 1, 2, 3], 2) == 3
    assert longest_run([9, 1, 2, 3, 1, 2, 3, 9], 3) == 2


def test_a_phrase_said_again_and_again_is_a_loop() -> None:
    assert is_looping(SOURCE, [1, 2, 3] * 5)
    assert is_looping(SOURCE, [4, 5, 6, *[7] * 12])
    assert is_looping(SOURCE, [*[7, 8] * 6, 4])


def test_ordinary_text_is_no_loop() -> None:
    assert not is_looping(SOURCE, list(range(60)))
    assert not is_looping(SOURCE, [1, 2, 1, 2, 3, 4, 3, 4])
    assert not is_looping(SOURCE, [7, 7, 7])


def test_a_source_that_repeats_itself_may_be_translated_so() -> None:
    assert not is_looping([5] * 10, [8] * 10)
    assert not is_looping([5, 6] * 5, [8, 9] * 10)
    assert is_looping([5] * 3, [8] * 30)


def test_the_next_best_that_is_neither_is_chosen() -> None:
    good = [4, 5, 6]
    assert choose(SOURCE, [good, [], [1] * 20], is_empty) == 0
    assert choose(SOURCE, [[], [1, 2] * 10, good], is_empty) == 2
    assert choose(SOURCE, [[], [1] * 20], is_empty) is None


@given(st.lists(st.integers(4, 9), min_size=1, max_size=4), st.integers(10, 20))
def test_every_long_repetition_of_a_short_phrase_is_found(phrase: list[int], turns: int) -> None:
    assert is_looping(list(range(100, 120)), phrase * turns)
