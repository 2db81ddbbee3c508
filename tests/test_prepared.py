"""A prepared corpus holds every clean pair once, in order, and depends on nothing but its sources and settings."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_corpora import TOKENIZER, content_of, make_pairs, make_request, make_tokenizers, texts_of, write_tsv
from special_ids import BOTH

from seqtool.config.sections import CleanConfig, DataConfig
from seqtool.corpus.batches.batches import BatchPlan, iterate_batches
from seqtool.corpus.preparing import worker_pool
from seqtool.corpus.preparing.prepare import prepare_corpus
from seqtool.corpus.preparing.prepared import PreparedCorpus
from seqtool.corpus.preparing.run_corpus import prepare_run
from seqtool.corpus.preparing.token_array import PairRange
from seqtool.corpus.reading.corpus import parse_corpus
from seqtool.corpus.reading.parting import LineCountError
from seqtool.corpus.tokenizer.interface import TokenizerPair
from seqtool.errors import SeqtoolError
from seqtool.progress import Progress
from seqtool.run_directory import RunDir


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> TokenizerPair:
    return make_tokenizers(tmp_path_factory.mktemp("tokenizer"))


# Content


def test_every_clean_pair_is_there_in_order(tokenizers: TokenizerPair, tmp_path: Path) -> None:
    pairs = make_pairs(200)
    prepared = prepare_corpus(make_request(write_tsv(tmp_path / "a.tsv", pairs)), tokenizers, tmp_path / "prepared")
    assert texts_of(prepared, tokenizers) == pairs
    assert prepared.dropped == {}
    assert prepared.n_read == len(prepared) == 200
    assert prepared.src_lengths.tolist() == [len(tokenizers.source.encode(src)) for src, _ in pairs]
    assert prepared.source.tokens.dtype == np.uint16
    assert prepared.ranges == [PairRange(0, 200, 1.0)]
    assert prepared.held_out == []


def test_dropped_pairs_are_counted_and_written_with_their_rule(tokenizers: TokenizerPair, tmp_path: Path) -> None:
    pairs = make_pairs(30)
    lines = [f"{src}\t{tgt}".encode() for src, tgt in pairs]
    lines[3] = b"bad \xff bytes\tschlecht"
    lines[5] = b"no tab"
    lines[7] = b"\tleer"
    lines[9] = lines[8]
    lines[11] = ("many " * 100 + "\t" + "viele " * 100).encode()
    (tmp_path / "a.tsv").write_bytes(b"\n".join(lines) + b"\n")
    request = make_request(
        parse_corpus([tmp_path / "a.tsv"]), data=DataConfig(max_tokens=90), clean=CleanConfig(max_undecodable=0.1)
    )
    prepared = prepare_corpus(request, tokenizers, tmp_path / "prepared", dropped=tmp_path / "dropped.tsv")
    expected = {"undecodable": 1, "columns": 1, "empty": 1, "duplicate": 1, "too_many_tokens": 1}
    assert prepared.dropped == expected
    assert texts_of(prepared, tokenizers) == [pair for i, pair in enumerate(pairs) if i not in (3, 5, 7, 9, 11)]
    written = [line.split("\t")[:2] for line in (tmp_path / "dropped.tsv").read_text().split("\n")[:-1]]
    places = {f"{tmp_path / 'a.tsv'}:{number}" for number in (4, 6, 8, 10, 12)}
    assert {place for _, place in written} == places
    assert {rule for rule, _ in written} == set(expected)


def test_aligned_files_and_tsv_give_the_same(tokenizers: TokenizerPair, tmp_path: Path) -> None:
    pairs = make_pairs(50)
    tsv = write_tsv(tmp_path / "a.tsv", pairs)
    for side, name in enumerate(("a.en", "a.de")):
        (tmp_path / name).write_text("\n".join(pair[side] for pair in pairs), encoding="utf-8", newline="")
    aligned = parse_corpus([tmp_path / "a.en", tmp_path / "a.de"])
    one, two = (
        prepare_corpus(make_request(corpus), tokenizers, tmp_path / name)
        for corpus, name in ((tsv, "one"), (aligned, "two"))
    )
    assert one.fingerprint == two.fingerprint


def test_pairs_of_the_validation_set_are_left_out(tokenizers: TokenizerPair, tmp_path: Path) -> None:
    pairs = make_pairs(40)
    valid = write_tsv(tmp_path / "valid.tsv", [pairs[7], ("other source", pairs[9][1])])
    request = make_request(write_tsv(tmp_path / "a.tsv", pairs), against=(valid,))
    prepared = prepare_corpus(request, tokenizers, tmp_path / "prepared")
    assert prepared.dropped == {"overlap": 2}
    assert texts_of(prepared, tokenizers) == [pair for i, pair in enumerate(pairs) if i not in (7, 9)]


def test_several_corpora_keep_their_weights(tokenizers: TokenizerPair, tmp_path: Path) -> None:
    pairs = make_pairs(60)
    one = write_tsv(tmp_path / "one.tsv", pairs[:20])
    two = replace(write_tsv(tmp_path / "two.tsv", [*pairs[10:20], *pairs[20:]]), weight=0.5)
    prepared = prepare_corpus(make_request(one, two), tokenizers, tmp_path / "prepared")
    assert prepared.ranges == [PairRange(0, 20, 1.0), PairRange(20, 60, 0.5)]
    assert prepared.dropped == {"duplicate": 10}
    plan = BatchPlan(prepared.src_lengths, prepared.tgt_lengths, 300, 1, prepared.ranges)
    batch = next(iterate_batches(prepared, plan, BOTH, prefetch=0))
    assert tokenizers.source.decode(batch.src[0]) == pairs[int(batch.pairs[0])][0]


# The same files whatever the circumstances


@pytest.mark.parametrize("hold_out", [False, True])
def test_the_number_of_workers_changes_no_byte(
    tokenizers: TokenizerPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hold_out: bool
) -> None:
    monkeypatch.setattr("seqtool.corpus.reading.opening.CHUNK_BYTES", 2000)  # many small blocks
    pairs = make_pairs(700)
    corpus = write_tsv(tmp_path / "a.tsv", [*pairs, *pairs[:100], ("", "x"), *pairs[650:]])
    contents = []
    for workers in (1, 2, 3):
        request = make_request(corpus, data=DataConfig(workers=workers, held_out=20), hold_out=hold_out)
        run = RunDir(tmp_path / str(workers))
        prepared, _ = prepare_run(run, request, TOKENIZER)
        assert prepared.dropped["duplicate"] + prepared.dropped.get("held_out", 0) >= 150
        contents.append((content_of(run.prepared), run.tokenizer.read_bytes()))
    assert contents[0] == contents[1] == contents[2]


def test_leftovers_of_a_killed_preparation_are_removed(tokenizers: TokenizerPair, tmp_path: Path) -> None:
    request = make_request(write_tsv(tmp_path / "a.tsv", make_pairs(50)))
    clean = content_of(prepare_corpus(request, tokenizers, tmp_path / "one" / "prepared").folder)
    half = tmp_path / "two" / ".prepared.seqtool" / "new"
    half.mkdir(parents=True)
    (half / "source.tokens").write_bytes(b"half")
    assert content_of(prepare_corpus(request, tokenizers, tmp_path / "two" / "prepared").folder) == clean
    assert [path.name for path in (tmp_path / "two").iterdir()] == ["prepared"]


def test_a_failure_leaves_the_earlier_corpus(tokenizers: TokenizerPair, tmp_path: Path) -> None:
    corpus = write_tsv(tmp_path / "a.tsv", make_pairs(50))
    out = tmp_path / "run" / "prepared"
    before = content_of(prepare_corpus(make_request(corpus), tokenizers, out).folder)
    with pytest.raises(SeqtoolError, match="no pair is fit"):
        prepare_corpus(make_request(corpus, clean=CleanConfig(max_chars=1)), tokenizers, out)
    assert content_of(out) == before
    assert [path.name for path in out.parent.iterdir()] == ["prepared"]


def test_a_worker_that_dies_is_an_error_and_not_a_hang(
    tokenizers: TokenizerPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_pool.sys, "executable", shutil.which("false"))
    request = make_request(write_tsv(tmp_path / "a.tsv", make_pairs(50)), data=DataConfig(workers=2))
    with pytest.raises(SeqtoolError, match="worker process ended unexpectedly"):
        prepare_corpus(request, tokenizers, tmp_path / "prepared")
    assert not (tmp_path / "prepared").exists()


def test_only_one_preparation_at_a_time(tokenizers: TokenizerPair, tmp_path: Path) -> None:
    request = make_request(write_tsv(tmp_path / "a.tsv", make_pairs(50)))

    def second(_: Progress) -> None:
        with pytest.raises(SeqtoolError, match="being prepared here already"):
            prepare_corpus(request, tokenizers, tmp_path / "prepared")

    assert len(prepare_corpus(request, tokenizers, tmp_path / "prepared", show=second)) == 50


def test_a_file_that_changes_while_it_is_read_is_noticed(tokenizers: TokenizerPair, tmp_path: Path) -> None:
    request = make_request(write_tsv(tmp_path / "a.tsv", make_pairs(50)))

    def change(_: Progress) -> None:
        os.utime(tmp_path / "a.tsv", ns=(5, 5))

    with pytest.raises(SeqtoolError, match="was changed while it was read"):
        prepare_corpus(request, tokenizers, tmp_path / "prepared", show=change)
    assert not (tmp_path / "prepared").exists()


def test_white_space_around_a_line_is_read_as_translation_reads_it(tokenizers: TokenizerPair, tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("  Anna sees a house. \nBoris\tbuys two trees.\u3000\n", encoding="utf-8")
    (tmp_path / "a.de").write_text("Anna sieht ein Haus. \n Boris kauft zwei B\u00e4ume.\n", encoding="utf-8")
    corpus = parse_corpus([tmp_path / "a.en", tmp_path / "a.de"])
    prepared = prepare_corpus(make_request(corpus), tokenizers, tmp_path / "prepared")
    assert texts_of(prepared, tokenizers) == [
        ("Anna sees a house.", "Anna sieht ein Haus."),
        ("Boris buys two trees.", "Boris kauft zwei B\u00e4ume."),
    ]


def test_damage_is_noticed(tokenizers: TokenizerPair, tmp_path: Path) -> None:
    out = tmp_path / "prepared"
    with pytest.raises(SeqtoolError, match="no prepared corpus"):
        PreparedCorpus.open(out)
    prepare_corpus(make_request(write_tsv(tmp_path / "a.tsv", make_pairs(50))), tokenizers, out)
    content = (out / "target.tokens").read_bytes()
    (out / "target.tokens").write_bytes(content[:-2])
    with pytest.raises(SeqtoolError, match=r"target\.tokens is damaged"):
        PreparedCorpus.open(out)
    (out / "manifest.json").write_text("{")
    with pytest.raises(SeqtoolError, match="no prepared corpus"):
        PreparedCorpus.open(out)


def test_misaligned_files_are_an_error(tokenizers: TokenizerPair, tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("one\ntwo\n")
    (tmp_path / "a.de").write_text("eins\n")
    request = make_request(parse_corpus([tmp_path / "a.en", tmp_path / "a.de"]))
    with pytest.raises(LineCountError):
        prepare_corpus(request, tokenizers, tmp_path / "prepared")


# Circumstances


def test_progress_reaches_the_end(tokenizers: TokenizerPair, tmp_path: Path) -> None:
    seen: list[Progress] = []
    prepare_corpus(
        make_request(write_tsv(tmp_path / "a.tsv", make_pairs(50))), tokenizers, tmp_path / "p", show=seen.append
    )
    assert seen[-1] == Progress("preparing", 50, 50)
    assert seen[-1].fraction == 1.0


def test_it_works_from_a_script_without_a_main_guard_and_without_torch(tmp_path: Path) -> None:
    write_tsv(tmp_path / "a.tsv", make_pairs(300))
    (tmp_path / "numbers.py").write_text("raise ImportError('not the one of the standard library')")
    (tmp_path / "script.py").write_text(
        "import sys; sys.modules['torch'] = None; del sys.path[0]\n"
        "from pathlib import Path\n"
        "from seqtool.config import CleanConfig, DataConfig, TokenizerConfig\n"
        "from seqtool.corpus.preparing.prepared import PrepareRequest\n"
        "from seqtool.corpus.reading.corpus import parse_corpus\n"
        "from seqtool.corpus.preparing.run_corpus import prepare_run\n"
        "from seqtool.run_directory import RunDir\n"
        "request = PrepareRequest(corpora=(parse_corpus([Path('a.tsv')]),), clean=CleanConfig(),"
        " data=DataConfig(workers=2))\n"
        "print(len(prepare_run(RunDir(Path('run')), request, TokenizerConfig(vocab_size=400))[0]))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert (done.stdout, done.stderr, done.returncode) == ("300\n", "", 0)


def test_the_manifest_names_sources_settings_and_version(tokenizers: TokenizerPair, tmp_path: Path) -> None:
    prepare_corpus(make_request(write_tsv(tmp_path / "a.tsv", make_pairs(50))), tokenizers, tmp_path / "p")
    manifest = json.loads((tmp_path / "p" / "manifest.json").read_text())
    source = manifest["sources"][0][0]
    assert source["path"] == str(tmp_path / "a.tsv")
    assert source["size"] == (tmp_path / "a.tsv").stat().st_size
    assert len(source["sha256"]) == 64
    assert manifest["version"]
    assert manifest["tokenizers"]["source"] == tokenizers.source.sha256
    assert manifest["settings"]["clean"]["duplicate"] is True
