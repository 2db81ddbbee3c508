"""Plain text and subtitles: the texts are found, and everything else comes out as it went in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_translations import reverse, translate

from seqtool.errors import OptionError, SeqtoolError
from seqtool.translation.documents.formats import open_document

SUBTITLES = """\ufeff1\r
00:00:01,000 --> 00:00:02,500 X1:10 X2:20\r
The <i>little</i> dog\r
sleeps all day.\r
\r
2\r
00:00:03,000 --> 00:00:04,000\r
- Yes.\r
- {\\an8}No way!\r
\r
\r
3\r
00:00:05,000 --> 00:00:06,000\r
1984\r
"""


def rebuild(format: str, data: str) -> str:
    document = open_document(format, data)
    return document.rebuild([translate(text) for text in document.texts])


def test_each_line_of_a_text_is_translated_by_itself() -> None:
    document = open_document("text", "one two\r\n\r\n  three\t\n \n\u2028four\x85\n")
    assert document.texts == ["one two", "three", "four"]
    changed = document.rebuild([translate(text) for text in document.texts])
    assert changed == "ONE TWO\r\n\r\n  THREE\t\n \n\u2028FOUR\x85\n"


@given(st.text("ab \n\r\t\0\u2028", max_size=30))
def test_a_text_keeps_all_but_its_words(data: str) -> None:
    assert rebuild("text", data) == data.upper()


def test_subtitles_keep_numbers_times_and_line_ends() -> None:
    document = open_document("srt", SUBTITLES)
    assert document.texts == ["The little dog sleeps all day.", "Yes.", "No way!"]
    changed = document.rebuild([translate(text) for text in document.texts])
    expected = SUBTITLES.replace("The <i>little</i> dog\r\nsleeps all day.", "THE <i>LITTLE</i> DOG\r\nSLEEPS ALL DAY.")
    assert changed == expected.replace("Yes.", "YES.").replace("No way!", "NO WAY!")


def test_formatting_in_subtitles_follows_its_words() -> None:
    document = open_document("srt", "1\n00:00:01,000 --> 00:00:02,000\n{\\an8}The <i>little</i>\ndog of 1 < 2 & more\n")
    changed = document.rebuild([reverse(text) for text in document.texts])
    assert changed.split("\n", 2)[2] == "{\\an8}MORE & 2 < 1 OF\nDOG <i>LITTLE</i> THE\n"


def test_a_long_translation_is_wrapped_to_lines_of_about_the_same_length() -> None:
    document = open_document("srt", "00:00:01,000 --> 00:00:02,000\na\nb\nc")
    words = "aaaa bbbb cccc dddd eeee ffff"
    made = [translate(words) for _ in document.texts]
    assert document.rebuild(made).split("\n")[1:] == ["AAAA BBBB", "CCCC DDDD", "EEEE FFFF"]
    assert document.rebuild([translate("aaaa bbbb")]).split("\n")[1:] == ["AAAA", "BBBB"]


@pytest.mark.parametrize(
    ("data", "place"),
    [
        ("1\n00:00:01,000 --> 00:00\nHello\n", "line 2: the times"),
        ("1\n00:00:01,000 --> 00:00:02,000\nHello\n\n2\n00:00 -> --> 3\n", "line 6: the times"),
        ("just a text\n", "line 1: text before the times"),
        ("1\n\nHello\n00:00:01,000 --> 00:00:02,000\n", "line 1: text before the times"),
    ],
)
def test_damaged_subtitles_are_named_by_line(data: str, place: str) -> None:
    with pytest.raises(SeqtoolError, match=place):
        open_document("srt", data)


@given(st.lists(st.sampled_from(["1", "\n", "\r\n", "00:00:01,000 --> 00:00:02,000", "<i>", "</i>", "a b", "- ", " "])))
def test_subtitles_of_any_shape_keep_what_is_no_word(pieces: list[str]) -> None:
    data = "".join(pieces)
    try:
        changed = rebuild("srt", data)
    except SeqtoolError:
        return
    # What follows the times on their line is where the subtitle stands, not a text.
    expected = "".join(line if "-->" in line else line.upper() for line in data.split("\n"))
    assert "".join(changed.split()) == "".join(expected.split()).replace("<I>", "<i>").replace("</I>", "</i>")
    assert [line for line in changed.split("\n") if "-->" in line] == [
        line for line in data.split("\n") if "-->" in line
    ]


def test_an_unknown_format_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(OptionError, match="give one of text, html, srt"):
        open_document("xml", "")


def test_another_number_of_translations_is_refused() -> None:
    with pytest.raises(ValueError, match="0 translations were given for 1 texts"):
        open_document("text", "one").rebuild([])
