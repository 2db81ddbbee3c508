"""Where files part is found from the lengths of their lines."""

import numpy as np
import pytest

from seqtool.corpus.reading.shifts import PartingFinder, likely_shifts

BOTH_WAYS = (-3, -2, -1, 1, 2, 3)


def translate_lengths(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Lengths as sentences have them: log-normal, and a translation 1.2 times as long, give or take 15 %."""
    rng = np.random.default_rng(seed)
    src = np.exp(rng.normal(4.0, 0.5, n))
    return src.astype(np.int64), (src * np.exp(rng.normal(0.2, 0.15, n))).astype(np.int64)


def run(src: np.ndarray, tgt: np.ndarray, shifts, block: int = 700) -> PartingFinder:
    finder = PartingFinder(shifts)
    for start in range(0, max(len(src), len(tgt)), block):
        finder.add(src[start : start + block], tgt[start : start + block])
    finder.finish()
    return finder


@pytest.mark.parametrize("missing", [1, 2, 7, 100])
@pytest.mark.parametrize("place", [0, 30, 2500, 4700])
@pytest.mark.parametrize("block", [50, 5000])
def test_lines_that_are_missing_are_found_where_they_are_missing(missing, place, block):
    src, tgt = translate_lengths(5000)
    tgt = np.delete(tgt, slice(place, place + missing))
    finder = run(src, tgt, likely_shifts(len(src), len(tgt)), block)
    assert finder.near is not None
    assert abs(finder.near - (place + 1)) <= 12
    mirrored = run(tgt, src, likely_shifts(len(tgt), len(src)), block)
    assert mirrored.near is not None
    assert abs(mirrored.near - (place + 1)) <= 12


def test_of_several_places_the_first_is_named():
    src, tgt = translate_lengths(5000)
    tgt = np.delete(tgt, [1000, 3000, 3001])
    near = run(src, tgt, likely_shifts(5000, 4997)).near
    assert near is not None
    assert abs(near - 1001) <= 12


def test_a_file_that_just_ends_early_parts_at_its_end():
    src, tgt = translate_lengths(3000)
    finder = run(src, tgt[:2000], likely_shifts(3000, 2000))
    assert finder.near is None
    assert finder.best_guess(2001) == 2001


def test_a_stretch_of_shifted_lines_is_found_in_files_of_equal_length():
    src, tgt = translate_lengths(6000)
    tgt = np.insert(np.delete(tgt, 2000), 4000, 50)
    near = run(src, tgt, BOTH_WAYS).near
    assert near is not None
    assert abs(near - 2001) <= 12


@pytest.mark.parametrize("seed", range(20))
def test_aligned_files_raise_no_alarm(seed):
    assert run(*translate_lengths(3000, seed), BOTH_WAYS).near is None


@pytest.mark.parametrize("by", ["src", "tgt", "both"])
def test_sorted_files_raise_no_alarm(by):
    src, tgt = translate_lengths(20000)
    order = np.argsort({"src": src, "tgt": tgt, "both": src + tgt}[by])
    finder = run(src[order], tgt[order], BOTH_WAYS)
    assert finder.near is None
    assert len(finder.src) <= 3  # whether it goes on or has given up, it keeps none but the last
    assert finder.best_guess(1) is None or finder.tests


def test_lengths_without_information_name_no_place():
    same = np.full(1000, 20)
    finder = run(same, same[:-1], [1])
    assert finder.near is None
    assert finder.best_guess(1000) is None
