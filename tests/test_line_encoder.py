"""Tokenizing many lines quickly gives the ids of tokenizing each."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_corpora import TOKENIZER, make_pairs, make_tokenizers

from seqtool.corpus.preparing.line_encoder import LineEncoder
from seqtool.corpus.tokenizer.interface import Tokenizer, TokenizerPair
from seqtool.corpus.tokenizer.registry import load_tokenizer, train_tokenizer


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> TokenizerPair:
    return make_tokenizers(tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture(scope="module")
def with_symbols(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    path = tmp_path_factory.mktemp("symbols") / "t.model"
    texts = [text for pair in make_pairs(100) for text in pair]
    train_tokenizer(texts, replace(TOKENIZER, user_symbols=("<de>", "a", "<d")), path)
    return load_tokenizer(path)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text() | st.text(st.sampled_from(" Anaseuyod\u2581.0<>é"))))
def test_the_line_encoder_gives_the_ids_of_the_tokenizer(
    tokenizers: TokenizerPair, with_symbols: Tokenizer, lines: list[str]
) -> None:
    for tokenizer in (tokenizers.source, with_symbols):
        encoder = LineEncoder(tokenizer)
        for _ in range(2):
            tokens, lengths = encoder.encode(lines)
            ids = [row.tolist() for row in np.split(tokens, np.cumsum(lengths)[:-1])] if lines else []
            assert ids == tokenizer.encode_batch(lines)


def test_the_line_encoder_remembers_a_bounded_number_of_words(
    tokenizers: TokenizerPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seqtool.corpus.preparing.line_encoder._KEPT_WORDS", 10)
    encoder = LineEncoder(tokenizers.source)
    for start in range(0, 100, 5):
        lines = [f"word{i} {'x' * 50}{i}  " for i in range(start, start + 5)]
        tokens, _ = encoder.encode(lines)
        assert tokens.tolist() == [index for ids in tokenizers.source.encode_batch(lines) for index in ids]
        assert len(encoder._kept) <= 11
        assert not any("xxx" in word for word in encoder._kept)
