"""One rule says what a file is, by its first bytes and then its name; what plainly is something else is refused."""

import gzip
import io
import json
import os
import re
import tarfile
import threading
import zipfile
from pathlib import Path

import pytest
from command_line import run_text
from synthetic_run import make_pairs, make_run

from seqtool.corpus.reading.blocks import count_pairs, read_lines, read_pairs
from seqtool.corpus.reading.corpus import (
    Corpus,
    parse_against,
    parse_corpus,
    parse_corpus_option,
    parse_sets,
    require_files,
)
from seqtool.corpus.reading.forms import CSV, JSONL, LINES, PO, TAR, TMX, TSV, ZIP, form_of
from seqtool.errors import SeqtoolError

TMX_START = b'<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4">'
PO_START = b'# Italian\nmsgid "Open"\nmsgstr "Apri"\n'


def tar_of(name: str, content: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        header = tarfile.TarInfo(name)
        header.size = len(content)
        archive.addfile(header, io.BytesIO(content))
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "form"),
    [
        ("a.en", b"one\ntwo\n", LINES),
        ("a.en", b"", LINES),
        ("a.en", b"one\tuno\nno tab\nthree\n", LINES),  # a tab now and then
        ("a.txt", b"one\tuno\ntwo\tdue\n", TSV),
        ("a.txt.gz", b"one\tuno\n\n\ntwo\tdue", TSV),
        ("a.csv", b"one\tuno\ntwo\tdue\n", TSV),
        ("a.csv", b"en,it\none,uno\n", CSV),
        ("a.txt", b"en,it\none,uno\n", LINES),
        ("a.tsv", TMX_START, TMX),
        ("a", TMX_START.decode().encode("utf-16"), TMX),
        ("a.tmx", b"nothing of the kind", TMX),
        ("a.xml", b"<?xml version='1.0'?><html/>", LINES),
        ("a", b'{"en": "a", "it": "b"}\n{"en": "c", "it": "d"}\n', JSONL),
        ("a", b"{this is a sentence}\n", LINES),
        ("a.json.gz", b"[1]", JSONL),
        ("it.txt", PO_START, PO),
        ("it.po", b"", PO),
        ("a.zip", b"PK\x03\x04...", ZIP),
        ("a", tar_of("a.en", b"one\n"), TAR),
        ("a.tgz", b"?", TAR),
    ],
)
def test_the_form_of_a_file_follows_from_content_then_name(name: str, content: bytes, form: str) -> None:
    assert form_of(name, content) == form


def test_a_file_that_only_claims_to_be_an_archive_is_refused() -> None:
    with pytest.raises(SeqtoolError, match=r"a\.zip: is no zip archive"):
        form_of("a.zip", b"one\n")


@pytest.fixture
def tsv(tmp_path: Path) -> Path:
    path = tmp_path / "test.tsv"
    path.write_bytes(b"".join(b"one %d\tuno %d\n" % (n, n) for n in range(100)))
    return path


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    path = tmp_path / "plain.it"
    path.write_bytes(b"".join(b"uno %d\n" % n for n in range(100)))
    return path


def test_a_tsv_file_is_no_side_of_a_corpus(tsv: Path, plain: Path) -> None:
    for corpus in (Corpus(tsv, tsv), Corpus(plain, tsv)):
        for read in (count_pairs, lambda corpus: list(read_pairs(corpus)), lambda corpus: require_files([corpus])):
            with pytest.raises(SeqtoolError, match=r"test\.tsv: has a tab in nearly every line, so it is TSV"):
                read(corpus)
    with pytest.raises(SeqtoolError, match=r"test\.tsv: has a tab"):
        list(read_lines(tsv))


def test_a_pipe_is_recognised_too(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(b'{"en": "a", "it": "b"}\n'))
    writer.start()
    assert list(read_pairs(Corpus(pipe, None))) == [(1, b"a", b"b")]
    writer.join()


def test_each_set_to_keep_apart_stands_alone_if_it_holds_pairs(tsv: Path, plain: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"  # TSV by content
    other.write_bytes(tsv.read_bytes())
    found = parse_against([str(tsv), str(plain), str(other), str(plain)])
    assert found == [Corpus(tsv, None), Corpus(other, None), Corpus(plain, plain)]
    with pytest.raises(SeqtoolError, match="has a tab"):
        require_files(parse_against([f"{tsv},{other}"]))


@pytest.mark.parametrize(
    ("text", "columns", "weight"),
    [("a.tmx:en:it", ("en", "it"), 1.0), ("d/a.csv:English:Italian text@0.5", ("English", "Italian text"), 0.5)],
)
def test_columns_are_named_after_the_file(text: str, columns: tuple[str, str], weight: float) -> None:
    corpus = parse_corpus_option(text)
    assert (corpus.columns, corpus.weight, corpus.target) == (columns, weight, None)
    assert str(corpus) == text.partition("@")[0]


def test_a_file_whose_name_has_colons_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a:en:it"
    path.touch()
    assert parse_corpus([path]) == Corpus(path, None)


# The same rule in each command


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "TSV", "TSV"],
        ["check", "good.tsv", "--against", "TSV,TSV"],
        ["prepare", "TSV", "TSV", "-o", "run"],
        ["train", "TSV", "TSV", "-o", "run"],
        ["train", "good.tsv", "--valid", "TSV,TSV", "-o", "run"],
        ["train", "good.tsv", "--corpus", "TSV,TSV", "-o", "run"],
        ["train", "good.tsv", "--against", "TSV,TSV", "-o", "run"],
        ["eval", "--hyp", "TSV", "plain.it"],
        ["eval", "--hyp", "plain.it", "TSV", "--vs", "TSV"],
        ["eval", "-m", "model", "TSV", "TSV"],
        ["score", "-m", "model", "TSV", "plain.it"],
        ["score", "-m", "model", "TSV", "TSV"],
    ],
)
def test_every_command_refuses_tsv_where_lines_are_needed(arguments: list[str], tsv: Path, plain: Path) -> None:
    folder = tsv.parent
    (folder / "good.tsv").write_bytes(b"a\tb\n" * 10)
    found = run_text(*(word.replace("TSV", str(tsv)) for word in arguments), cwd=folder)
    assert found.returncode == 1, found.stderr
    assert "test.tsv: has a tab in nearly every line, so it is TSV" in found.stderr
    assert not (folder / "run" / "checkpoints").exists()


def test_a_validation_set_that_is_named_twice_is_refused(tsv: Path) -> None:
    found = run_text("train", tsv, "--valid", tsv, "--valid", tsv, "-o", "run", cwd=tsv.parent)
    assert found.returncode == 2
    assert "test.tsv: --valid names it twice" in found.stderr
    assert not (tsv.parent / "run").exists()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sets")
    pairs = make_pairs(12, seed=5)
    texts = {"src": [src for src, _ in pairs], "ref": [tgt for _, tgt in pairs]}
    for name, lines in texts.items():
        (folder / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    rows = "".join(f"{src}\t{tgt}\n" for src, tgt in pairs)
    (folder / "test.tsv.gz").write_bytes(gzip.compress(rows.encode()))
    objects = (json.dumps({"en": src, "de": tgt, "id": n}) + "\n" for n, (src, tgt) in enumerate(pairs))
    (folder / "test.jsonl").write_text("".join(objects))
    with zipfile.ZipFile(folder / "test.zip", "w") as archive:
        archive.write(folder / "src", "x/Books.en-de.en")
        archive.write(folder / "ref", "x/Books.en-de.de")
        archive.writestr("README", "text")
    make_run(folder / "model")
    return folder


@pytest.mark.parametrize("name", ["test.tsv.gz", "test.jsonl:en:de", "test.zip"])
def test_a_test_set_in_one_file_scores_as_in_two(folder: Path, name: str) -> None:
    def results(*arguments: object) -> dict[str, float]:
        found = run_text("eval", *arguments, "--json", cwd=folder)
        assert found.returncode == 0, found.stderr
        return {metric: json.loads(found.stdout)[metric]["score"] for metric in ("bleu", "chrf", "ter")}

    assert results("-m", "model", name) == results("-m", "model", "src", "ref")
    assert results("--hyp", "src", name) == results("--hyp", "src", "ref")
    scores = [run_text("score", "-m", "model", *files, cwd=folder).stdout for files in ([name], ["src", "ref"])]
    assert scores[0] == scores[1]
    assert scores[0].count("\n") == 12


def test_eval_of_one_file_of_lines_is_wrong_usage(folder: Path) -> None:
    found = run_text("eval", "-m", "model", "src", cwd=folder)
    assert found.returncode == 2
    assert "or a file with both: test.tsv" in " ".join(found.stderr.split())


def test_the_source_is_not_given_twice(folder: Path) -> None:
    found = run_text("eval", "--hyp", "ref", "test.tsv.gz", "--source", "src", cwd=folder)
    assert found.returncode == 1
    assert "holds the source too" in found.stderr


def test_sets_stay_in_order_whether_they_are_one_file_or_two(tmp_path: Path) -> None:
    tsv, source, target = tmp_path / "a.tsv", tmp_path / "b.en", tmp_path / "b.de"
    tsv.write_text("a\tb\n", encoding="utf-8")
    for side in (source, target):
        side.write_text("a\n", encoding="utf-8")
    one, two = Corpus(tsv, None), Corpus(source, target)
    assert parse_sets([str(source), str(target), str(tsv)], "valid") == [two, one]
    assert parse_sets([str(tsv), str(source), str(target), str(tsv)], "valid") == [one, two, one]
    assert parse_sets([str(source), str(tsv), str(target)], "valid") == [two, one]
    assert parse_sets([f"{source},{target}", str(tsv)], "valid") == [two, one]
    with pytest.raises(SeqtoolError, match=f"valid: give one file with pairs, or two .* {re.escape(str(source))} has"):
        parse_sets([str(tsv), str(source)], "valid")
