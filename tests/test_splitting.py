"""Over-long lines are cut where it hurts least, nothing is lost, and no part is too long."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtool.translation.splitting import cut_text, join_parts, split_text


def count_words(texts: list[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def count_chars(texts: list[str]) -> list[int]:
    return [len(text.strip()) for text in texts]


def stripped(parts: list[str]) -> list[str]:
    return [part.strip() for part in parts]


def test_each_sentence_becomes_a_part() -> None:
    text = "The man in the blue shirt walks. Does the woman at the window wave? The two dogs in the park bark!"
    assert stripped(split_text(text, count_words, 12)) == [
        "The man in the blue shirt walks.",
        "Does the woman at the window wave?",
        "The two dogs in the park bark!",
    ]


def test_an_abbreviation_does_not_end_a_sentence() -> None:
    text = "We met Dr. Smith and Mr. Jones at 3.14 p.m. near example.org that day. Then all of us went home again."
    assert stripped(split_text(text, count_words, 15)) == [
        "We met Dr. Smith and Mr. Jones at 3.14 p.m. near example.org that day.",
        "Then all of us went home again.",
    ]


def test_short_sentences_stay_with_their_neighbours() -> None:
    assert split_text("Yes. No. Perhaps. Well.", count_words, 3) == ["Yes. No. Perhaps. ", "Well."]


def test_a_long_sentence_is_cut_at_clauses_and_packed_full() -> None:
    text = "one two three, four five six, seven eight nine, ten eleven twelve"
    assert stripped(split_text(text, count_words, 6)) == [
        "one two three, four five six,",
        "seven eight nine, ten eleven twelve",
    ]


def test_a_long_clause_is_cut_at_spaces() -> None:
    assert stripped(split_text("a b c d e f g", count_words, 3)) == ["a b c", "d e f", "g"]


def test_text_without_spaces_is_cut_anywhere_but_not_before_an_accent() -> None:
    parts = split_text("e\u0301" * 10, count_chars, 5)
    assert "".join(parts) == "e\u0301" * 10
    assert all(not part.startswith("\u0301") and len(part) <= 5 for part in parts)


@pytest.mark.parametrize("mark", [".", "!", ",", ".)", "—", "...,,,", " .", "。"])
def test_a_line_of_marks_takes_no_longer_than_another(mark: str) -> None:
    start = time.process_time()
    split_text(mark * (50_000 // len(mark)), count_chars, 200)
    assert (
        time.process_time() - start < 2
    )  # seconds of the processor, whatever else runs; a search from every mark to the last one took over ten


def test_chinese_is_cut_at_its_own_full_stops() -> None:
    text = "这个男人在公园里散步。那个女人在窗边挥手。"
    assert split_text(text, count_chars, 12) == ["这个男人在公园里散步。", "那个女人在窗边挥手。"]


def test_parts_are_joined_with_a_space_only_where_the_script_has_one() -> None:
    assert join_parts(["Ein Mann.", "Eine Frau."]) == "Ein Mann. Eine Frau."
    assert join_parts(["这个男人。", "那个女人。"]) == "这个男人。那个女人。"
    assert join_parts(["猫がいます。", "2019年です。", "USBです。"]) == "猫がいます。2019年です。USBです。"
    assert join_parts(["Ein Mann.", "", "那个女人。"]) == "Ein Mann. 那个女人。"
    assert join_parts([]) == ""


@given(st.text(alphabet=st.sampled_from("ab .,!?\u0301字。\u200d"), max_size=200), st.integers(1, 20))
def test_nothing_is_lost_and_no_part_is_too_long(text: str, limit: int) -> None:
    parts = split_text(text, count_chars, limit)
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(0 < count <= limit for count in count_chars(parts))


def test_a_text_is_cut_at_line_breaks_and_into_sentences_if_asked_for() -> None:
    text = "He sleeps. She sings.\n\nNow! \n"
    assert cut_text(text, True) == [("", "He sleeps."), ("", "She sings."), ("\n\n", "Now!")]
    assert cut_text(text, False) == [("", "He sleeps. She sings."), ("\n\n", "Now!")]
    assert cut_text("", True) == []


def test_line_breaks_are_kept_when_parts_are_joined() -> None:
    assert join_parts(["A.", "B.", "C."], ["", "", "\n\n"]) == "A. B.\n\nC."
    assert join_parts(["A.", "", "字。", "字。"], ["", "\n", "", ""]) == "A.\n字。字。"
