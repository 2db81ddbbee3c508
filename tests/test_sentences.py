"""Tests for corpus/sentences.py: texts as people write them, and what must hold for any text."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtool.corpus.sentences import has_single_sentences, split_sentences

# Each text with | where one sentence ends and another begins.
TEXTS = [
    "He sleeps. |She sings. |The man sees the dog.",
    "Is it late? |Yes! |Go...  |Now",
    "Dr. Smith and Mrs. Jones paid 3.50. |He left at 5 p.m. |She stayed.",
    "J. R. R. Tolkien wrote it. |George W. Bush did not.",
    "He lives on a U.S. Army base. |She lives in the U.S. |The end.",
    "Acme Inc. Chairman Bob left. |He bought Acme Inc. |The price was low.",
    "Cats, dogs, etc. |The rest e.g. Paris vs. Rome is in No. 5 and Fig. 3. |No. |She said no.",
    "Visit www.example.com. |It works with Node.js, see http://a.b/c?d=e!f and v1.2.3. |Now.",
    '"Really?" she asked. |"Yes!" |He left. |He said: "Go." |Then he (it was late. Very late.) slept.',
    "He came (it was late). |(She woke.) |Yahoo! is old.",
    "He was born in 1990. |She was not. |I have 3. |She has 14.",
    "1. Go home. |2. Sleep.",
    "Am 3. Oktober kam er. |Der 2. Weltkrieg endete 1945. |Im 19. Jahrhundert z.B. gab es d.h. bzw. ca. 50. |Er starb.",
    "„Wirklich?“ fragte sie. |Siehe Abb. 3 und Nr. 7 usw. |Dann weiter.",
    "M. Dupont est là. |Mme Curie aussi ! |Où ?",
    "¿Qué pasa? |¡Nada! |Vamos a la pág. 3 del libro.",
    "В 1990 году. |Он пришёл к ул. Ленина, т.е. домой.",
    "彼は寝る。|彼女は歌う！|「行くよ。」と彼は言った。|「行くよ。」|彼は（遅い。とても。）笑った。",
    "３．５％です．|次です．",
    "他睡觉。|她唱歌！|“我走了。”|他说。|真的吗？！|是的。",
    "그는 잔다. |그녀는 노래한다.",
    "هو ينام. |هي تغني. |هل تنام؟ |نعم.",
    "वह सोता है। |डॉ. शर्मा आए। |वह गाती है।",
    "He sleeps . |She sings .",
]


@pytest.mark.parametrize("text", TEXTS)
def test_sentences_end_where_a_reader_would_end_them(text: str) -> None:
    assert split_sentences(text.replace("|", "")) == text.split("|")


@given(st.text(alphabet=st.sampled_from("aB1 .!?…\"'()「」。、\t"), max_size=80))
def test_nothing_is_lost_and_no_sentence_is_blank_but_of_a_blank_text(text: str) -> None:
    pieces = split_sentences(text)
    assert "".join(pieces) == text
    assert all(piece.strip() for piece in pieces) or not text.strip() or text[0].isspace()


@pytest.mark.parametrize("part", [".", ". ", "A. ", "(A. ", "(.) A", ".” ", "。", "a", "5. A "])
def test_no_text_takes_much_longer_than_another(part: str) -> None:
    start = time.process_time()
    split_sentences(part * (100_000 // len(part)))
    assert time.process_time() - start < 5  # seconds of the processor; work that grows with the square takes minutes


def test_a_corpus_has_single_sentences_if_that_was_measured_and_hardly_a_line_has_more() -> None:
    assert has_single_sentences({"single_sentences": 0.97})
    assert not has_single_sentences({"single_sentences": 0.9})
    assert not has_single_sentences({"single_sentences": None})
    assert not has_single_sentences(None)
