"""The first look at a corpus: an even sample, and a choice of pairs that does not depend on their order."""

from pathlib import Path

import pytest
from small_corpora import TOKENIZER, make_pairs, write_tsv

from seqtool.config.sections import CleanConfig
from seqtool.corpus.cleaning.rules import CleaningRules, OverlapHashes
from seqtool.corpus.preparing.survey import Survey, survey_corpora
from seqtool.corpus.preparing.tokenizer_process import train_apart
from seqtool.corpus.reading.corpus import parse_corpus
from seqtool.corpus.tokenizer.registry import train_model
from seqtool.errors import SeqtoolError


def test_a_survey_counts_and_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqtool.corpus.reading.opening.CHUNK_BYTES", 2000)
    pairs = make_pairs(1500)

    def survey(path: Path, sample_pairs: int, held_out: int = 0, seed: int = 1) -> Survey:
        return survey_corpora(
            [parse_corpus([path])],
            CleaningRules(CleanConfig()),
            pairs=1500,
            sample_pairs=sample_pairs,
            held_out=held_out,
            seed=seed,
        )

    path = tmp_path / "a.tsv"
    write_tsv(path, pairs)
    found = survey(path, 300)
    texts = list(found.sample_texts((0,)))
    assert (found.pairs, found.held_out) == (1500, [])
    assert 230 < len(texts) < 370  # 300 are expected, standard deviation 15.5
    assert set(texts) < {src for src, _ in pairs}
    assert list(survey(path, 300).sample_texts((0,))) == texts
    assert list(survey(path, 300, seed=2).sample_texts((0,))) != texts
    everything = survey(path, 5000, held_out=100)
    assert set(everything.sample_texts((1,))) == {tgt for _, tgt in pairs} - {tgt for _, tgt in everything.held_out}
    assert len(list(survey(path, 5000).sample_texts((0, 1)))) == 3000
    assert list(survey(path, 0).sample_texts((0, 1))) == []
    (tmp_path / "empty.tsv").write_bytes(b"")
    with pytest.raises(SeqtoolError, match="not a single pair"):
        survey(tmp_path / "empty.tsv", 1)


def test_the_choice_of_held_out_pairs_follows_from_the_seed_not_from_the_order(tmp_path: Path) -> None:
    pairs = make_pairs(200)

    def choose(pairs: list[tuple[str, str]], seed: int) -> list[tuple[str, str]]:
        corpus = write_tsv(tmp_path / "a.tsv", pairs)
        return survey_corpora(
            [corpus], CleaningRules(CleanConfig()), pairs=len(pairs), sample_pairs=10, held_out=15, seed=seed
        ).held_out

    assert choose(pairs, 1) == choose(pairs[::-1], 1)
    assert choose(pairs, 1) != choose(pairs, 2)


def test_a_test_set_is_neither_held_out_nor_seen_by_the_tokenizer(tmp_path: Path) -> None:
    pairs = make_pairs(200)
    corpus, test = write_tsv(tmp_path / "a.tsv", pairs), write_tsv(tmp_path / "test.tsv", pairs[:150])
    rules = CleaningRules(CleanConfig(), OverlapHashes.read([test]))
    found = survey_corpora([corpus], rules, pairs=200, sample_pairs=200, held_out=20, seed=1)
    assert found.held_out
    assert not set(found.held_out) & set(pairs[:150])
    assert set(found.sample_texts((0,))) == {src for src, _ in pairs[150:]} - {src for src, _ in found.held_out}


def test_a_tokenizer_trained_in_another_process_is_the_same(tmp_path: Path) -> None:
    texts = [text for pair in make_pairs(300) for text in pair]
    assert train_apart(texts, TOKENIZER) == train_model(texts, TOKENIZER)
    with pytest.raises(SeqtoolError, match="no text to train"):
        train_apart([], TOKENIZER)
    chinese = ["".join(map(chr, range(0x4E00, 0x4E00 + 200)))] * 3
    with pytest.raises(SeqtoolError, match="vocab_size is 400"):
        train_apart(chinese, TOKENIZER)
