"""A run's corpus is prepared when it must be, and only then; validation pairs are held out of training."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from small_corpora import TOKENIZER, content_of, make_pairs, make_request, make_tokenizers, texts_of, write_tsv

from seqtool.config.sections import CleanConfig, DataConfig, TokenizerConfig
from seqtool.corpus.preparing.prepared import PrepareRequest
from seqtool.corpus.preparing.run_corpus import count_each, prepare_run
from seqtool.corpus.tokenizer.interface import TokenizerPair
from seqtool.corpus.tokenizer.registry import load_pair
from seqtool.errors import SeqtoolError
from seqtool.run_directory import RunDir


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> TokenizerPair:
    return make_tokenizers(tmp_path_factory.mktemp("tokenizer"))


# Noticing what changed


def test_an_unchanged_corpus_is_not_prepared_twice_and_a_changed_one_is(tmp_path: Path) -> None:
    pairs = make_pairs(120)
    path = tmp_path / "a.tsv"
    request = make_request(write_tsv(path, pairs))
    run = RunDir(tmp_path / "run")

    def prepare(request: PrepareRequest = request, config: TokenizerConfig = TOKENIZER) -> bool:
        """Prepare, and tell if anything was written."""
        stamp = (run.prepared / "manifest.json").stat().st_ino if run.prepared.exists() else None
        prepared, _ = prepare_run(run, request, config)
        assert len(prepared) == prepared.n_read
        return (run.prepared / "manifest.json").stat().st_ino != stamp

    assert prepare()
    assert not prepare()
    assert not prepare(replace(request, data=DataConfig(workers=3)))
    assert sum(count_each(run, request.corpora)) == 120
    os.utime(path, ns=(1, 1))  # another time, the same bytes
    assert not prepare()
    write_tsv(path, [*pairs[:-1], ("Anna sees a bird at 7.", "Anna sieht einen Vogel um 7.")])
    assert prepare()
    assert prepare(replace(request, clean=CleanConfig(max_words=200)))
    assert prepare(replace(request, clean=CleanConfig(max_words=200)), replace(TOKENIZER, vocab_size=390))
    assert prepare()
    (run.prepared / "source.tokens").write_bytes(b"")
    assert prepare()
    run.tokenizer.unlink()
    assert prepare()
    assert prepare(replace(request, against=(write_tsv(tmp_path / "v.tsv", [("x y", "z")]),)))


def test_a_tokenizer_can_be_given(tokenizers: TokenizerPair, tmp_path: Path) -> None:
    request = make_request(write_tsv(tmp_path / "a.tsv", make_pairs(60)))
    run = RunDir(tmp_path / "run")
    prepare_run(run, request, TOKENIZER, tokenizers=tokenizers)
    assert run.tokenizer.read_bytes() == tokenizers.source.model
    _, notes = prepare_run(run, request, TOKENIZER, tokenizers=tokenizers)
    assert notes == ["the corpus is prepared already and has not changed"]
    write_tsv(tmp_path / "a.tsv", make_pairs(61))
    _, notes = prepare_run(run, request, TOKENIZER, tokenizers=tokenizers)
    assert notes[0] == f"prepared anew, since {tmp_path / 'a.tsv'} has changed"


def test_separate_vocabularies(tmp_path: Path) -> None:
    pairs = make_pairs(60)
    request = make_request(write_tsv(tmp_path / "a.tsv", pairs))
    run = RunDir(tmp_path / "run")
    prepared, _ = prepare_run(run, request, replace(TOKENIZER, joint=False))
    pair = load_pair(run)
    assert not pair.joint
    assert texts_of(prepared, pair) == pairs
    prepare_run(run, request, TOKENIZER)
    assert load_pair(run).joint


def test_the_tokenizer_under_a_trained_model_is_not_replaced(tmp_path: Path) -> None:
    request = make_request(write_tsv(tmp_path / "a.tsv", make_pairs(60)))
    run = RunDir(tmp_path / "run")
    prepare_run(run, request, TOKENIZER)
    run.weights.write_bytes(b"")
    prepare_run(run, request, TOKENIZER)
    write_tsv(tmp_path / "a.tsv", make_pairs(70))
    before = run.tokenizer.read_bytes()
    with pytest.raises(SeqtoolError, match=r"trained otherwise \(.*a\.tsv has changed\)"):
        prepare_run(run, request, TOKENIZER)
    assert run.tokenizer.read_bytes() == before
    prepared, _ = prepare_run(run, request, TOKENIZER, tokenizers=load_pair(run))
    assert len(prepared) == 70


# Holding out


def test_held_out_pairs_and_their_duplicates_are_not_trained_on(tmp_path: Path) -> None:
    pairs = make_pairs(300)
    bad = [("same", "same"), ("", "leer")]
    corpus = write_tsv(tmp_path / "a.tsv", [*pairs, *bad, *pairs[:100]])
    request = make_request(corpus, hold_out=True, data=DataConfig(held_out=25))
    run = RunDir(tmp_path / "run")
    prepared, notes = prepare_run(run, request, TOKENIZER)
    assert len(set(prepared.held_out)) == 25
    assert set(prepared.held_out) <= set(pairs)
    trained = texts_of(prepared, load_pair(run))
    assert sorted(trained + prepared.held_out) == sorted(pairs)
    assert "25 pairs were held out for validation" in notes[-1]


@pytest.mark.parametrize("damage", ["other pairs", "missing", "a pipe"])
def test_damaged_held_out_pairs_are_held_out_anew(tmp_path: Path, damage: str) -> None:
    corpus = write_tsv(tmp_path / "a.tsv", make_pairs(300))
    request = make_request(corpus, hold_out=True, data=DataConfig(held_out=25))
    run = RunDir(tmp_path / "run")
    prepared, _ = prepare_run(run, request, TOKENIZER)
    path = run.prepared / "held_out.jsonl"
    whole = path.read_bytes()
    path.unlink()
    if damage == "other pairs":
        path.write_bytes(b"".join(whole.splitlines(keepends=True)[::-1]))
    elif damage == "a pipe":
        os.mkfifo(path)
    again, _ = prepare_run(run, request, TOKENIZER)
    assert again.held_out == prepared.held_out
    assert path.read_bytes() == whole


@pytest.mark.parametrize("clean", [CleanConfig(enabled=False), CleanConfig(overlap=False)])
def test_held_out_pairs_are_left_out_even_without_cleaning(tmp_path: Path, clean: CleanConfig) -> None:
    pairs = make_pairs(100)
    request = make_request(write_tsv(tmp_path / "a.tsv", pairs), hold_out=True, clean=clean)
    run = RunDir(tmp_path / "run")
    prepared, _ = prepare_run(run, request, TOKENIZER)
    assert len(prepared.held_out) == 10  # a tenth, though 1,000 were asked for
    assert sorted(texts_of(prepared, load_pair(run)) + prepared.held_out) == sorted(pairs)


def test_asking_for_the_dropped_pairs_prepares_anew_with_the_same_result(tmp_path: Path) -> None:
    request = make_request(write_tsv(tmp_path / "a.tsv", [*make_pairs(60), ("", "leer")]), hold_out=True)
    run = RunDir(tmp_path / "run")
    prepare_run(run, request, TOKENIZER)
    before = content_of(run.prepared)
    run.weights.write_bytes(b"")  # its tokenizer is not touched
    _, notes = prepare_run(run, request, TOKENIZER, dropped=tmp_path / "there" / "dropped.tsv")
    assert notes[0] == "prepared anew, since that was asked for"
    assert content_of(run.prepared) == before
    assert (tmp_path / "there" / "dropped.tsv").read_text().count("\n") == 1 + 6
