"""Word alignment from attention, on weights small enough to check by hand."""

import numpy as np
from word_alignment import align_words, gather_words, token_words, word_weights

from seqtool.evaluation.report.attention_reading import AttentionMap

SRC = ("▁I", "▁have", "▁se", "en", "▁it", ".", "</s>")  # words: I, have, seen, it.
TGT = ("▁Ich", "▁habe", "▁es", "▁ge", "sehen", ".", "</s>")  # words: Ich, habe, es, gesehen.


def crossing_map() -> AttentionMap:
    """One layer with one head in which "es" looks at "it" and "gesehen." at both halves of "seen"."""
    looked = {0: (0,), 1: (1,), 2: (4,), 3: (2, 3), 4: (3,), 5: (5,), 6: (6,)}
    weights = np.zeros((1, 1, 7, 7), np.float32)
    for row, columns in looked.items():
        weights[0, 0, row, list(columns)] = 1 / len(columns)
    return AttentionMap("I have seen it.", "Ich habe es gesehen.", SRC, TGT, weights)


def test_a_token_that_begins_with_a_space_begins_a_word() -> None:
    assert token_words(SRC[:-1]) == [0, 1, 2, 2, 3, 3]
    assert token_words(["Ich", "▁habe"]) == [0, 1]
    assert gather_words(["▁a", "b", "▁c"]).tolist() == [[1, 1, 0], [0, 0, 1]]


def test_punctuation_does_not_speak_for_the_word_before_it() -> None:
    assert gather_words(["▁a", "b", ".", "▁-"]).tolist() == [[1, 1, 0, 0], [0, 0, 0, 1]]


def test_each_target_word_takes_the_source_word_that_its_tokens_look_at_most() -> None:
    assert align_words(crossing_map(), layer=0) == [0, 1, 3, 2]
    # gesehen. = ge (half se, half en) + sehen (en); the full stop, which looks at that of "it.", does not count
    assert word_weights(crossing_map(), layer=0)[3].tolist() == [0, 0, 2, 0]


def test_looking_one_row_ahead_reads_the_row_where_the_token_is_known() -> None:
    late = crossing_map()
    shifted = np.roll(late.weights, 1, axis=2)
    moved = AttentionMap(late.src_text, late.tgt_text, SRC, TGT, shifted)
    assert align_words(moved, layer=0, ahead=1) == [0, 1, 3, 2]


def test_words_in_another_order_count_as_crossing() -> None:
    # "es" (it, 4) stands before ge (se, 2) and sehen (en, 3): 2 of the 15 pairs of the 6 tokens are crossed
    assert crossing_map().crossing == 2 / 15
