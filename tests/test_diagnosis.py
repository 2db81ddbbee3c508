"""Faults and buckets are found where a reader would find them."""

from hypothesis import given
from hypothesis import strategies as st

from seqtool.evaluation.scores.diagnosis import (
    bucket_by_length,
    differing_rows,
    find_faults,
    has_loop,
    length_unit,
    sample_rows,
    worst_rows,
)
from seqtool.evaluation.scores.metrics import SentenceScore, score_corpus
from seqtool.translation.guard import longest_run


def test_empty_looping_short_and_copied_outputs_are_found() -> None:
    sources = ["Hello there, my friend.", "I see the dog.", "The weather is fine today.", "Berlin", "No no no no!", ""]
    references = ["Hallo, mein Freund.", "Ich sehe den Hund.", "Das Wetter ist heute schön.", "Berlin", "Nein!", ""]
    hypotheses = ["", "Ich sehe sehe sehe sehe sehe", "The weather is fine  today.", "Berlin", "no no no no", ""]
    faults = find_faults(hypotheses, [references], sources)
    assert faults.empty == (1,)
    assert faults.looping == (2,)  # line 5 repeats what its source repeats
    assert faults.copied == (3,)  # line 4 is a name: its reference is the same
    assert faults.short == ()
    assert find_faults(["Das ist"], [["Das ist ein viel längerer Satz."]]).short == (1,)
    assert faults.to_json()["empty"] == {"count": 1, "lines": [1]}


def test_loops_of_words_phrases_and_letters() -> None:
    assert has_loop("he said that he said that he said that")
    assert has_loop("o" * 40)
    assert has_loop("你好" * 20)
    assert not has_loop("no no no")
    assert not has_loop("the dog and the cat and the bird sing")
    assert not has_loop("Donaudampfschifffahrtsgesellschaftskapitän")
    assert not has_loop("")


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=4), st.integers(1, 6))
def test_repeats_of_a_unit_are_counted(unit: list[str], times: int) -> None:
    assert longest_run(unit * times, len(unit)) >= times


def test_buckets_hold_every_line_once_and_score_as_their_lines_do() -> None:
    sources = ["a b", "a b c d e f g", "x " * 60, "", "a b c"]
    references = [["A B", "A B C D E F G", "X " * 60, "", "A B C"]]
    hypotheses = ["A B", "A B C D E F", "X " * 50, "", "A C"]
    buckets = bucket_by_length(hypotheses, references, sources)
    assert [(bucket.label, bucket.n_lines) for bucket in buckets] == [("0-5", 3), ("6-10", 1), ("51+", 1)]
    alone = {score.name: score for score in score_corpus([hypotheses[1]], [[references[0][1]]])}
    assert buckets[1].scores == (alone["bleu"], alone["chrf"])
    assert buckets[1].to_json()["bleu"]["signature"] == alone["bleu"].signature


def test_text_without_spaces_is_measured_in_characters() -> None:
    assert length_unit(["今天天气很好，我们去公园散步，然后回家吃饭。"]) == "characters"
    assert length_unit(["The weather is fine."]) == "words"
    assert length_unit([""]) == "words"


def test_worst_rows_come_first_and_ties_keep_their_order() -> None:
    assert worst_rows([SentenceScore(chrf, 0.0) for chrf in (50.0, 10.0, 90.0, 10.0)], 3) == [1, 3, 0]


@given(st.lists(st.floats(0, 100), min_size=1, max_size=40), st.integers(1, 6))
def test_samples_are_never_shown_twice(values: list[float], n_rows: int) -> None:
    samples = sample_rows([SentenceScore(value, 0.0) for value in values], range(len(values)), n_rows)
    rows = [row for group in samples.values() for row in group]
    assert len(rows) == len(set(rows))
    if len(values) >= 3 * n_rows:
        assert len(rows) == 3 * n_rows
        assert min(values[row] for row in samples["best"]) >= max(values[row] for row in samples["median"])
        assert min(values[row] for row in samples["median"]) >= max(values[row] for row in samples["worst"])


def test_of_equal_scores_the_longest_sentence_is_the_best() -> None:
    scores = [SentenceScore(100.0, 0.0)] * 6
    assert sample_rows(scores, [3, 9, 4, 8, 7, 5], 2) == {"best": [1, 3], "median": [5, 4], "worst": [0, 2]}


def test_the_sentences_that_differ_most_are_shown_in_both_directions() -> None:
    before = [SentenceScore(chrf, 0.0) for chrf in (50.0, 50.0, 50.0, 50.0, 50.0)]
    after = [SentenceScore(chrf, 0.0) for chrf in (50.0, 80.0, 10.0, 90.0, 49.0)]
    assert differing_rows(before, after, 2) == {"better": [3, 1], "worse": [2, 4]}
    assert differing_rows(before, before, 2) == {"better": [], "worse": []}
