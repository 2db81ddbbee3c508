"""Words are grouped by how often training has shown them, and counted as a reader would."""

from seqtool.evaluation.scores.frequency import FrequencyGroup, count_words, cut_words, group_by_frequency


def test_words_are_without_punctuation_and_characters_where_there_are_no_spaces() -> None:
    assert cut_words("„Don't!“, said Anna-Maria (in 2.5 s).") == ["Don't", "said", "Anna-Maria", "in", "2.5", "s"]
    assert cut_words("犬が、走る。") == ["犬", "が", "走", "る"]
    assert count_words(["a b.", "b, c b"]) == {"b": 3, "a": 1, "c": 1}


def test_words_are_scored_by_their_frequency_in_training() -> None:
    counts = {"the": 5000, "cat": 12, "sat": 10, "dog": 12}
    groups = group_by_frequency(["the cat cat sat"], ["the the dog sat quietly"], counts)
    # By hand: "the" is said once of twice; of cat, cat, sat against dog, sat one is right; quietly is new, and missing.
    assert groups == [
        FrequencyGroup(0, 0, references=1, hypotheses=0, matched=0),
        FrequencyGroup(10, 29, references=2, hypotheses=3, matched=1),
        FrequencyGroup(1000, None, references=2, hypotheses=1, matched=1),
    ]
    assert [group.label for group in groups] == ["0", "10-29", "1,000+"]
    assert [round(group.f1, 1) for group in groups] == [0.0, 40.0, 66.7]
