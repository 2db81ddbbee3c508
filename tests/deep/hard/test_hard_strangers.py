"""Models and corpora that a stranger made: each is refused with a message, at little cost."""

import gzip
import io
import json
import lzma
import os
import shutil
import struct
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from faults import Measured, count, run_measured
from tiny_run import make_run
from vouching import vouch

from seqtool.files import sha256_of, to_json
from seqtool.run_directory import RunDir
from seqtool.translation.export.ctranslate2 import export_ctranslate2
from seqtool.verification import seal

pytest.importorskip("ctranslate2")
MOST_SECONDS, MOST_MEBIBYTES = 10.0, 1024
MIB = 1 << 20


def assert_refused(done: Measured, kind: str, case: str, *words: str) -> None:
    """Assert that a process gave one message for a person, soon and with little memory."""
    assert done.code == 1, (case, done)
    assert "Traceback" not in done.errors
    assert len(done.errors) < 3000
    assert done.errors.count("seqtool: error: ") == 1
    assert all(word in done.errors for word in words), (case, done.errors)
    assert done.seconds < MOST_SECONDS, (case, done.seconds)
    assert done.mebibytes < MOST_MEBIBYTES, (case, done.mebibytes)
    message = done.errors.partition("seqtool: error: ")[2].partition(": ")[2].partition("; ")[0].strip()
    count(kind, case, message[:100], seconds=done.seconds, MiB=done.mebibytes)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    run = make_run(tmp_path_factory.mktemp("made") / "run", trained=True)
    export_ctranslate2(run, "float32", check=False)
    return run


def write_config(text: str, *, whole: bool = True) -> Callable[[RunDir], object]:
    """Return what puts a configuration into a model, or adds it to the one that is there, and vouches for it."""

    def change(run: RunDir) -> None:
        run.config.write_text(text if whole else run.config.read_text() + text)
        manifest = run.read_manifest()
        files = {**manifest.files, "config.toml": sha256_of(run.config)}
        run.manifest.write_text(json.dumps({"format": 1, "files": files}))

    return change


def set_in_config(old: str, new: str) -> Callable[[RunDir], object]:
    def change(run: RunDir) -> None:
        text = run.config.read_text()
        assert old in text
        write_config(text.replace(old, new))(run)

    return change


def put(name: str, make: Callable[[Path], object]) -> Callable[[RunDir], object]:
    """Return what puts something in the place of a file."""

    def change(run: RunDir) -> None:
        (run.path / name).unlink()
        make(run.path / name)

    return change


def put_vouched(name: str, content: bytes, size: int = 0) -> Callable[[RunDir], object]:
    """Return what puts a file into a model, vouched for; with a size it ends in a hole."""

    def change(run: RunDir) -> None:
        (run.path / name).write_bytes(content)
        if size:
            os.truncate(run.path / name, size)
            run.write_manifest(replace(run.read_manifest(), files={**run.read_manifest().files, name: "0" * 64}))
        else:
            vouch(run)

    return change


def put_in_export(name: str, content: bytes) -> Callable[[RunDir], object]:
    """Return what puts a file into the exported form, whose record vouches for it."""

    def change(run: RunDir) -> None:
        (run.ctranslate2 / name).write_bytes(content)
        path = run.ctranslate2 / "seqtool.json"
        record = json.loads(path.read_text())
        record["files"][name] = sha256_of(run.ctranslate2 / name)
        del record["sha256"]
        path.write_text(to_json({**record, "sha256": seal(record)}))

    return change


def unfinished(make_state: Callable[[Path], object]) -> Callable[[RunDir], object]:
    """Return what makes a model a training that has not ended, with one checkpoint."""

    def change(run: RunDir) -> None:
        folder = run.checkpoints / "step-000000001"
        folder.mkdir(parents=True)
        run.weights.rename(folder / "model.safetensors")
        run.manifest.unlink()
        make_state(folder / "state.json")

    return change


def tensors(header: dict[str, object], data: int = 0) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(data)


DEEP = "[" * 100_000
MODELS: dict[str, Callable[[RunDir], object]] = {
    "config.toml with a key of 100,000 parts": write_config(".".join(["a"] * 100_000) + " = 1"),
    "config.toml with 60,000 tables": write_config("\n".join(f"[a{index}]" for index in range(60_000))),
    "config.toml nested 100,000 deep": write_config(f"[train]\nseed = {DEEP}"),
    "config.toml with a number of 5,001 digits": write_config(f"[train]\nseed = {'9' * 5001}"),
    "config.toml of bytes at random": write_config("\x00\x01\x02\x1b[31m"),
    "d_model 65536": set_in_config("d_model = 32", "d_model = 65536"),
    "learned positions for a billion tokens": set_in_config(
        'positions = "sinusoidal"', 'positions = "learned"\nmax_positions = 1000000000'
    ),
    "256 layers": set_in_config("decoder_layers = 2", "decoder_layers = 256"),
    "manifest.json is a pipe": put("manifest.json", os.mkfifo),
    "manifest.json is /dev/zero": put("manifest.json", lambda path: path.symlink_to("/dev/zero")),
    "manifest.json nested 100,000 deep": put("manifest.json", lambda path: path.write_text(DEEP)),
    "manifest.json names /etc/passwd": put(
        "manifest.json", lambda path: path.write_text('{"files": {"../../../../etc/passwd": "0"}}')
    ),
    "manifest.json of wrong types": put("manifest.json", lambda path: path.write_text('{"files": [1], "model": 3}')),
    "manifest.json of 300 MB": put("manifest.json", lambda path: path.write_bytes(b"[" + b"0," * 150_000_000)),
    "model.safetensors is /dev/zero": put("model.safetensors", lambda path: path.symlink_to("/dev/zero")),
    "model.safetensors with a header of 2^60 bytes": put_vouched("model.safetensors", struct.pack("<Q", 1 << 60)),
    "model.safetensors claims 2^60 numbers": put_vouched(
        "model.safetensors", tensors({"a": {"dtype": "F32", "shape": [1 << 60], "data_offsets": [0, 1 << 62]}})
    ),
    "model.safetensors with one tensor of integers": put_vouched(
        "model.safetensors", tensors({"a": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]}}, 8)
    ),
    "model.safetensors is a hole of 200 GB": put_vouched("model.safetensors", tensors({}), size=200 << 30),
    "tokenizer.model of zeros": put_vouched("tokenizer.model", bytes(100_000)),
    "tokenizer.model is a hole of 200 GB": put_vouched("tokenizer.model", b"x", size=200 << 30),
    "state.json of a checkpoint is a pipe": unfinished(os.mkfifo),
    "state.json of a checkpoint is /dev/zero": unfinished(lambda path: path.symlink_to("/dev/zero")),
    "state.json of a checkpoint nested 100,000 deep": unfinished(lambda path: path.write_text(DEEP)),
}
EXPORTS: dict[str, Callable[[RunDir], object]] = {
    "seqtool.json is a pipe": put("ctranslate2/seqtool.json", os.mkfifo),
    "seqtool.json is /dev/zero": put("ctranslate2/seqtool.json", lambda path: path.symlink_to("/dev/zero")),
    "a vocabulary of two words": put_in_export("shared_vocabulary.json", b'["a", "b"]'),
    "model.bin of zeros": put_in_export("model.bin", bytes(100_000)),
    "model.bin that claims 2^31 numbers": put_in_export("model.bin", struct.pack("<IH", 6, 0xFFFF) + b"\xff" * 50_000),
    "config.json nested 100,000 deep": put_in_export("config.json", DEEP.encode()),
}


@pytest.mark.parametrize("case", MODELS)
def test_a_hostile_model_is_refused(made: RunDir, tmp_path: Path, case: str) -> None:
    run = RunDir(Path(shutil.copytree(made.path, tmp_path / "run")))
    MODELS[case](run)
    if case in ("d_model 65536", "learned positions for a billion tokens", "256 layers"):
        shutil.rmtree(run.ctranslate2)  # which translates without them
    assert_refused(run_measured("translate", "-m", run.path, stdin="two dogs\n"), "hostile model", case)
    info = run_measured("info", run.path)
    assert "Traceback" not in info.errors
    assert info.seconds < MOST_SECONDS


@pytest.mark.parametrize("case", EXPORTS)
def test_a_hostile_export_is_refused(made: RunDir, tmp_path: Path, case: str) -> None:
    run = RunDir(Path(shutil.copytree(made.path, tmp_path / "run")))
    EXPORTS[case](run)
    command = ["translate", "-m", run.path, "--engine", "ctranslate2"]
    assert_refused(run_measured(*command, stdin="two dogs\n"), "hostile model", case)


def tmx(inside: str, before: str = "") -> bytes:
    head = f'<?xml version="1.0"?>{before}<tmx version="1.4"><header srclang="en"/><body>'
    return f"{head}{inside}</body></tmx>".encode()


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method, compresslevel=1) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def tar_of(name: str, size: int) -> bytes:
    """Return the header of a file in a tar archive that claims a size."""
    header = tarfile.TarInfo(name)
    header.size = size
    return header.tobuf(tarfile.GNU_FORMAT) + bytes(1024)


def with_directory_of(size: int) -> bytes:
    """Return a zip archive that claims a list of files of a size."""
    content = bytearray(zipped({"a.en": b"a\n", "a.de": b"b\n"}))
    struct.pack_into("<L", content, len(content) - 22 + 12, size)
    return bytes(content)


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
CORPORA: dict[str, tuple[str, Callable[[], bytes]]] = {
    "entities that expand a billionfold": (
        "a.tmx",
        lambda: tmx("<tu/>", f'<!DOCTYPE tmx [<!ENTITY l0 "ha">{LAUGHS}]>'),
    ),
    "an entity that is /etc/passwd": (
        "a.tmx",
        lambda: tmx("<tu/>", '<!DOCTYPE tmx [<!ENTITY x SYSTEM "file:///etc/passwd">]>'),
    ),
    "XML nested 100,000 deep": ("a.tmx", lambda: tmx("<a>" * 100_000)),
    "a tag of 50 MB": ("a.tmx", lambda: tmx("<tu " + "a" * 50_000_000 + ">")),
    "2,000,000 names of elements": ("a.tmx", lambda: tmx("".join(f"<a{n}/>" for n in range(2_000_000)))),
    "a segment of 80 MB": (
        "a.tmx",
        lambda: tmx(f'<tu><tuv xml:lang="en"><seg>{"a " * 40_000_000}</seg></tuv></tu>'),
    ),
    "CSV with a quotation mark that never ends": ("a.csv", lambda: b'en,de\n"' + b"a,b\n" * 5_000_000),
    "JSON nested 1,000,000 deep": ("a.jsonl", lambda: b'{"a":' * 1_000_000),
    "JSON with a number of 10,000,000 digits": (
        "a.jsonl",
        lambda: b'{"source": "a", "target": "b", "x": ' + b"9" * 10_000_000 + b"}\n",
    ),
    "PO with a message of 80 MB": (
        "a.po",
        lambda: b'msgid "a"\nmsgstr ""\n' + b'"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"\n' * 1_600_000,
    ),
    "gzip of 4 GB of zeros": ("a.tsv.gz", lambda: gzip.compress(bytes(64 * MIB)) * 64),
    "xz of 1 GB without a newline": ("a.tsv.xz", lambda: lzma.compress(b"a\t" * (8 * MIB), preset=0) * 64),
    "zip whose files hold 1 GB of zeros": ("a.zip", lambda: zipped({"a.en": bytes(1 << 29), "a.de": bytes(1 << 29)})),
    "zip with a list of files of 4 GB": ("a.zip", lambda: with_directory_of((1 << 32) - 1)),
    "zip with 30,000 files": ("a.zip", lambda: zipped({f"{n}.en": b"" for n in range(30_000)}, zipfile.ZIP_STORED)),
    "zip within zip": ("a.zip", lambda: zipped({"a.zip": zipped({"b.zip": zipped({"c.en": b"a"})})})),
    "tar of a file of 8 EiB": ("a.tar", lambda: tar_of("a.en", 1 << 62)),
    "tar with names out of the folder": ("a.tar", lambda: tar_of("../../../../etc/passwd", 0)),
    "a program": ("a.tsv", lambda: Path("/bin/ls").read_bytes()),
    "UTF-16": ("a.tsv", lambda: "a man\tein Mann\n".encode("utf-16") * 1000),
    "a line of 100 MB": ("a.tsv", lambda: b"a\t" + b"b" * 100_000_000),
    "one pair a million times": ("a.tsv", lambda: b"a man\tein Mann\n" * 1_000_000),
    "bytes at random": ("a.tsv", lambda: os.urandom(5_000_000)),
    "a text that is not compressed, despite its name": ("a.tsv.zst", lambda: b"a\tb\n"),
}


@pytest.mark.parametrize("case", CORPORA)
def test_a_hostile_corpus_is_refused(tmp_path: Path, case: str) -> None:
    name, make = CORPORA[case]
    path = tmp_path / name
    path.write_bytes(make())
    out = tmp_path / "out"
    corpus = f"{path}:en:de" if case.startswith("zip whose") else path  # else it is refused before it is read
    done = run_measured("prepare", corpus, "-o", out, "--preset", "tiny")
    assert_refused(done, "hostile corpus", case, str(path.name))
    assert not (out / "prepared").exists()
    checked = run_measured("check", corpus)
    assert "Traceback" not in checked.errors
    assert checked.seconds < MOST_SECONDS
    assert checked.mebibytes < MOST_MEBIBYTES


@pytest.mark.parametrize("place", ["/dev/zero", "/dev/urandom", "/"])
def test_what_is_no_file_is_no_corpus(tmp_path: Path, place: str) -> None:
    done = run_measured("prepare", place, "-o", tmp_path / "out", "--preset", "tiny", patience=60)
    assert_refused(done, "hostile corpus", place)
