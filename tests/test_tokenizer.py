"""The tokenizer gives back exactly the text it was given, and its files are ordinary SentencePiece models."""

import subprocess
import sys
import unicodedata
from collections import Counter
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import example, given, settings
from hypothesis import strategies as st
from special_ids import BOS, EOS, PAD, UNK

from seqtool.config.sections import TokenizerConfig
from seqtool.corpus.tokenizer.interface import Tokenizer
from seqtool.corpus.tokenizer.registry import load_pair, load_tokenizer, train_tokenizer
from seqtool.corpus.tokenizer.sampling import sample_stream
from seqtool.errors import SeqtoolError
from seqtool.run_directory import RunDir

SENTENCE = "the a small old house stands near green river and two children walk slowly over wide bridge"
WORDS = SENTENCE.split(" ")
TEXTS = [" ".join(WORDS[(i * step + i) % len(WORDS)] for i in range(8)) + "." for step in range(1, 60)] + [
    "Ein großes Haus steht am Fluß; zwei Kinder gehen über die Brücke.",
    "日本語の文です。",
    "tags such as <s> and <0x41> occur in real text",
]
CONFIG = TokenizerConfig(vocab_size=500, user_symbols=("<de>", "<fr>"))


@pytest.fixture(scope="module")
def model_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.model"
    train_tokenizer(TEXTS, CONFIG, path)
    return path


@pytest.fixture(scope="module")
def tokenizer(model_path: Path) -> Tokenizer:
    return load_tokenizer(model_path)


any_text = st.text(st.characters(exclude_categories=("Cs", "Cc")))
spaces_and_marks = st.text(st.sampled_from(" \u2581\u3000\u00a0ab<s>/0x41\u0301\ue000\U0010ffff\ufdd0😀"))


@settings(max_examples=400, deadline=None)
@given(any_text | spaces_and_marks)
@example("")
@example("   ")
@example(" leading and trailing ")
@example("two  spaces")
@example("\u2581")
@example("a \u2581\u2581 b\u2581")
@example("\u2581\U0010ffff\U0010fffe")
@example("\u3000wide\u3000")
@example("\u00a0fixed\u00a0")
@example("\u0301alone")
@example("\ue000\uf8ff")
@example("👩‍👩‍👧 🇩🇪")
@example("<s> </s> <unk> <pad> <0x41> <de> <0xZZ>")
@example("\u2028\u2029\u200b\ufeff\u2585\u2047")
def test_any_text_without_control_characters_comes_back(tokenizer: Tokenizer, text: str) -> None:
    assert not any(unicodedata.category(char) == "Cc" for char in text)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert tokenizer.ids_of(tokenizer.pieces(ids)) == ids
    assert not {PAD, UNK, BOS, EOS} & set(ids)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.integers(-5, 600)))
@example([14, 17, 260, 5])
def test_decode_takes_any_ids_and_gives_one_line(tokenizer: Tokenizer, ids: list[int]) -> None:
    text = tokenizer.decode(ids)
    assert len((text + "x").splitlines()) == 1 or "\u2028" in text or "\u2029" in text
    text.encode()


def test_decode_replaces_line_breaks_and_bad_bytes(tokenizer: Tokenizer) -> None:
    by_piece = {piece: index for index, piece in enumerate(tokenizer.piece_list)}
    assert tokenizer.decode([by_piece["a"], by_piece["<0x0A>"], by_piece["b"]]) == "a b"
    assert tokenizer.decode([by_piece["<0xC2>"], by_piece["<0x85>"], by_piece["b"]]) == "b"
    assert tokenizer.decode([by_piece["a"], by_piece["<0xFF>"], by_piece["b"]]) == "a\ufffdb"
    assert tokenizer.decode([BOS, by_piece["a"], EOS, PAD, PAD]) == "a"
    assert "⁇" in tokenizer.decode([UNK])


def test_text_with_control_characters_or_half_surrogates_is_encoded_too(tokenizer: Tokenizer) -> None:
    assert tokenizer.decode(tokenizer.encode("a\tb\0c")) == "a\tb\0c"
    assert tokenizer.decode(tokenizer.encode("a\ud800b")) == "a\ufffdb"
    assert tokenizer.encode_batch(["a\ud800\u2581", "b"])[1] == tokenizer.encode("b")


def test_reserved_ids_and_user_symbols(tokenizer: Tokenizer) -> None:
    assert tokenizer.piece_list[:6] == ["<pad>", "<unk>", "<s>", "</s>", "<de>", "<fr>"]
    assert tokenizer.pieces(tokenizer.encode("<de> a"))[1] == "<de>"
    assert 4 in tokenizer.encode("a<de>")
    assert not {2, 3} & set(tokenizer.encode("<s> </s>"))


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\u2581")))
def test_the_sentencepiece_package_gives_the_same_ids(model_path: Path, tokenizer: Tokenizer, text: str) -> None:
    plain = sentencepiece.SentencePieceProcessor(model_file=str(model_path))
    for line in [text, *TEXTS[:3]]:
        assert plain.encode(line) == tokenizer.encode(line)
    assert plain.decode(plain.encode(TEXTS[0])) == TEXTS[0]
    assert plain.get_piece_size() == tokenizer.vocab_size


def test_encoding_in_company_changes_nothing(tokenizer: Tokenizer) -> None:
    texts = [*TEXTS, "", "\u2581", " x"]
    assert tokenizer.encode_batch(texts) == [tokenizer.encode(text) for text in texts]


def test_training_twice_gives_the_same_bytes(model_path: Path, tmp_path: Path) -> None:
    train_tokenizer(iter(TEXTS), CONFIG, tmp_path / "again.model")
    assert (tmp_path / "again.model").read_bytes() == model_path.read_bytes()


def test_a_small_corpus_gives_a_smaller_vocabulary_and_a_note(tmp_path: Path) -> None:
    notes = train_tokenizer(TEXTS[:5], TokenizerConfig(vocab_size=8000), tmp_path / "t.model")
    tokenizer = load_tokenizer(tmp_path / "t.model")
    assert len(notes) == 1
    assert f"{tokenizer.vocab_size:,} tokens, not 8,000" in notes[0]
    assert tokenizer.decode(tokenizer.encode(TEXTS[0])) == TEXTS[0]
    assert train_tokenizer(["a"], TokenizerConfig(vocab_size=300), tmp_path / "one.model")
    one = load_tokenizer(tmp_path / "one.model")
    assert one.decode(one.encode("a")) == "a"


def test_unusable_training_text_is_survived(tmp_path: Path) -> None:
    texts = ["\u2581\u2585 a b", "nul\0 here", "half \ud800 pair", "x" * 50_000, "", " ", "a\nb", *TEXTS]
    train_tokenizer(texts, TokenizerConfig(vocab_size=500), tmp_path / "t.model")
    tokenizer = load_tokenizer(tmp_path / "t.model")
    assert "\u2585" not in "".join(tokenizer.piece_list)
    assert not any("\u2581" in piece[1:] for piece in tokenizer.piece_list)


def test_a_vocabulary_too_small_for_the_characters_is_an_error_with_the_cure(tmp_path: Path) -> None:
    texts = ["".join(map(chr, range(0x4E00, 0x4E00 + 200)))] * 3
    with pytest.raises(SeqtoolError, match=r"vocab_size is 300.* need \d+ tokens; raise it"):
        train_tokenizer(texts, TokenizerConfig(vocab_size=300), tmp_path / "t.model")
    assert not (tmp_path / "t.model").exists()


@pytest.mark.parametrize("texts", [[], [""], [" ", "\0"]])
def test_no_text_is_an_error(tmp_path: Path, texts: list[str]) -> None:
    with pytest.raises(SeqtoolError, match="no text to train a tokenizer on"):
        train_tokenizer(texts, CONFIG, tmp_path / "t.model")


@pytest.mark.parametrize("symbol", ["", "a b", "<s>", "<0x41>", "\u2581x", "a\n"])
def test_a_user_symbol_that_cannot_be_one_is_refused(tmp_path: Path, symbol: str) -> None:
    with pytest.raises(SeqtoolError, match="user_symbols"):
        train_tokenizer(TEXTS, TokenizerConfig(vocab_size=500, user_symbols=(symbol,)), tmp_path / "t.model")
    with pytest.raises(SeqtoolError, match="given twice"):
        train_tokenizer(TEXTS, TokenizerConfig(vocab_size=500, user_symbols=("<x>", "<x>")), tmp_path / "t.model")


def test_training_is_silent(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from seqtool.config.sections import TokenizerConfig;"
        "from seqtool.corpus.tokenizer.registry import train_tokenizer;"
        f"train_tokenizer(['a b c'] * 20, TokenizerConfig(), Path({str(tmp_path / 't.model')!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_files_that_are_no_tokenizer_are_named(tmp_path: Path) -> None:
    with pytest.raises(SeqtoolError, match=r"missing\.model: cannot read"):
        load_tokenizer(tmp_path / "missing.model")
    (tmp_path / "bad.model").write_bytes(b"not a model")
    with pytest.raises(SeqtoolError, match=r"bad\.model: not a SentencePiece model"):
        load_tokenizer(tmp_path / "bad.model")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "must be tokens 0, 1, 2, 3"),
        ({"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3}, "no byte fallback"),
        ({"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3, "byte_fallback": True}, "changes the text"),
    ],
)
def test_a_model_that_would_lose_text_is_refused(tmp_path: Path, options: dict[str, object], message: str) -> None:
    with open(tmp_path / "foreign.model", "wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(TEXTS),
            model_writer=file,
            model_type="bpe",
            vocab_size=400,
            minloglevel=2,
            hard_vocab_limit=False,
            **options,
        )
    with pytest.raises(SeqtoolError, match=message):
        load_tokenizer(tmp_path / "foreign.model")


def test_separate_vocabularies_are_found_in_the_run_directory(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    train_tokenizer(TEXTS, CONFIG, run.tokenizer)
    assert load_pair(run).joint
    train_tokenizer(TEXTS[:20], CONFIG, run.target_tokenizer)
    pair = load_pair(run)
    assert not pair.joint
    assert pair.source.piece_list != pair.target.piece_list


def test_a_sample_is_bounded_even_and_repeatable() -> None:
    assert sample_stream(range(5), 10, seed=1) == [0, 1, 2, 3, 4]
    assert sample_stream(iter(range(1000)), 10, seed=3) == sample_stream(iter(range(1000)), 10, seed=3)
    assert sample_stream(range(1000), 10, seed=3) != sample_stream(range(1000), 10, seed=4)
    # Each of 50 items is expected 5 of 50 times in each draw: 400 in 4,000 draws, standard deviation 19.
    counts = Counter(item for seed in range(4000) for item in sample_stream(range(50), 5, seed))
    assert all(300 < counts[item] < 500 for item in range(50))
