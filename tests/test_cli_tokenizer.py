"""`seqtool tokenizer` on standard input and output: one line out for each line in."""

import subprocess
from pathlib import Path

import pytest
import sentencepiece
from command_line import SEQTOOL, run_seqtool, start_command

TEXT = b"A small house stands near the river.\nEin kleines Haus steht am Flu\xc3\x9f.\n" * 5


def seqtool(*arguments: object, text: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return run_seqtool("tokenizer", *arguments, stdin=text)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tokenizer") / "deep" / "t.model"
    done = seqtool("train", "-o", path, "--vocab-size", 350, text=TEXT)
    assert done.returncode == 0, done.stderr
    assert done.stdout == b""
    assert f"wrote {path} with 350 tokens" in done.stderr.decode()
    return path


HARD_LINES = (
    b"A small house.\n\n   \n  two  spaces \r\n\xe2\x96\x81 <s> \xe2\x80\xa8\x0b\x0c\xc2\x85 x\nno final newline"
)


@pytest.mark.parametrize("ids", [[], ["--ids"]])
def test_what_is_encoded_is_decoded_again_line_by_line(model: Path, ids: list[str]) -> None:
    encoded = seqtool("encode", "-m", model, *ids, text=HARD_LINES)
    assert encoded.returncode == 0, encoded.stderr
    lines = encoded.stdout.split(b"\n")
    assert (len(lines), lines[1], lines[-1]) == (7, b"", b"")
    decoded = seqtool("decode", "-m", model, *ids, text=encoded.stdout)
    expected = HARD_LINES.replace(b"\r\n", b"\n").replace(b"\x0b\x0c\xc2\x85", b"   ") + b"\n"
    assert decoded.stdout == expected


def test_pieces_and_ids_are_those_of_sentencepiece(model: Path) -> None:
    plain = sentencepiece.SentencePieceProcessor(model_file=str(model))
    text = "The river near a house."
    assert seqtool("encode", "-m", model, text=text.encode()).stdout.decode().split() == plain.encode(
        text, out_type=str
    )
    found = seqtool("encode", "-m", model, "--ids", text=text.encode()).stdout
    assert [int(token) for token in found.split()] == plain.encode(text)


def test_training_on_files_is_training_on_their_lines(model: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(TEXT)
    done = seqtool("train", tmp_path / "a.txt", "-o", tmp_path / "t.model", "--set", "tokenizer.vocab_size=350")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "t.model").read_bytes() == model.read_bytes()


def test_invalid_bytes_are_reported_by_line_number(model: Path) -> None:
    done = seqtool("encode", "-m", model, text=b"good\n\xff bad\n")
    assert done.returncode == 0
    assert done.stdout.count(b"\n") == 2
    assert b"line 2: not valid UTF-8" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "text", "message"),
    [
        (["encode", "-m", "missing.model"], b"x\n", "missing.model: cannot read this tokenizer"),
        (["decode", "--ids"], b"5 6\n5 x\n", "line 2: 'x' is no token id from 0 to 349"),
        (["decode", "--ids"], b"350\n", "line 1: '350' is no token id"),
        (["decode", "--ids"], b"7" * 5000 + b"\n", "is no token id"),
        (["train", "-o", "."], b"x\n", "is a folder"),
        (["train", "-o", "/nonexistent/t.model", "--vocab-size", "5"], b"x\n", "'vocab_size' must be from 300"),
        (["train", "-o", "unused.model"], b"", "no text to train a tokenizer on"),
    ],
)
def test_what_is_wrong_is_named(model: Path, tmp_path: Path, arguments: list[str], text: bytes, message: str) -> None:
    if arguments[0] == "decode":
        arguments = [*arguments, "-m", str(model)]
    done = run_seqtool("tokenizer", *arguments, stdin=text, cwd=tmp_path)
    assert done.returncode == 1
    assert message in done.stderr.decode()
    assert b"Traceback" not in done.stderr
    assert not (tmp_path / "unused.model").exists()


def test_each_line_is_answered_as_it_comes(model: Path) -> None:
    command = [*SEQTOOL, "tokenizer", "encode", "-m", str(model)]
    with start_command(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"house\n")
        process.stdin.flush()
        assert process.stdout.readline().strip()
        process.stdin.close()
