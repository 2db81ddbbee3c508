"""Fuzzing of every reader of files from outside: what is damaged at random is read or refused, at little cost.

An exception that is not one for users is a failure, and so is a reader that takes seconds or a gibibyte.
"""

import contextlib
import gzip
import io
import json
import lzma
import resource
import shutil
import signal
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard
from faults import count
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_run import make_lines, make_run
from vouching import vouch

from seqtool.config.resolve import ConfigRequest, resolve_config
from seqtool.corpus.reading.blocks import read_blocks
from seqtool.corpus.reading.corpus import parse_corpus
from seqtool.corpus.tokenizer.registry import load_pair
from seqtool.errors import SeqtoolError
from seqtool.metrics_log import read_metrics
from seqtool.model.loading import load_model
from seqtool.run_directory import RunDir
from seqtool.translation.documents.formats import open_document
from seqtool.translation.export.ctranslate2 import export_ctranslate2
from seqtool.translation.export.record import find_damage
from seqtool.unfinished import read_state

EXAMPLES = 250  # of each reader
SECONDS, BYTES = 10, 1 << 30
PAIRS = list(zip(make_lines(5), make_lines(5, seed=1), strict=True))


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Bound the time and the additional memory of what is done within."""

    def end(*_: object) -> None:
        raise TimeoutError(f"it takes more than {SECONDS} s")

    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    handler = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, 6 * SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (used + BYTES, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)


@st.composite
def changes(draw: st.DrawFn, seed: bytes) -> bytes:
    """Return a file with some of its bytes changed, taken away, repeated, or replaced by others that matter."""
    content = bytearray(seed)
    tokens = [b'"', b"\\", b"<", b">", b"&", b"{", b"[", b"]", b",", b"\n", b"\t", b"\0", b"\xff", b"-1", b"9" * 30]
    tokens += [b"1e999", b"null", b"true", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"msgid", b"]]>", b"<!--", b"\x1b[31m"]
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.integers(0, 40)))
        kind = draw(st.integers(0, 4))
        if kind == 0:
            content[start:end] = draw(st.binary(max_size=8))
        elif kind == 1:
            content[start:end] = draw(st.sampled_from(tokens)) * draw(st.sampled_from([1, 1, 1, 3, 2000]))
        elif kind == 2:
            content[start:start] = content[start:end] * draw(st.sampled_from([1, 2, 500]))
        elif kind == 3 and content:
            content[min(start, len(content) - 1)] ^= 1 << draw(st.integers(0, 7))
        else:
            del content[start:end]
    return bytes(content)


def fuzz(name: str, seed: bytes, read: Callable[[bytes], object]) -> None:
    """Give a reader many versions of a file."""

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
    @given(changes(seed))
    def run(content: bytes) -> None:
        outcome = "read"
        with limited():
            try:
                read(content)
            except SeqtoolError:
                outcome = "refused"
        count("fuzzing", name, outcome)

    run()


def zipped() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for index, side in enumerate(("en", "de")):
            archive.writestr(f"a.{side}", "\n".join(pair[index] for pair in PAIRS))
    return buffer.getvalue()


def tarred() -> bytes:
    import tarfile

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for index, side in enumerate(("en", "de")):
            content = "\n".join(pair[index] for pair in PAIRS).encode()
            facts = tarfile.TarInfo(f"{'long/' * 30}a.{side}")
            facts.size = len(content)
            archive.addfile(facts, io.BytesIO(content))
    return buffer.getvalue()


TSV = "".join(f"{src}\t{tgt}\n" for src, tgt in PAIRS).encode()
UNITS = "".join(
    f'<tu><tuv xml:lang="en"><seg>{src} <ph x="1">&lt;b&gt;</ph></seg></tuv>'
    f'<tuv xml:lang="de"><seg>{tgt}</seg></tuv></tu>'
    for src, tgt in PAIRS
)
CORPORA = {
    "a.tsv": TSV,
    "a.tsv.gz": gzip.compress(TSV, mtime=0),
    "a.tsv.xz": lzma.compress(TSV),
    "a.tsv.zst": zstandard.compress(TSV),
    "a.tmx": f'<?xml version="1.0"?><tmx version="1.4"><header srclang="en"/><body>{UNITS}</body></tmx>'.encode(),
    "a.csv": b"en,de\n" + "".join(f'"{src}","{tgt} ""x"""\n' for src, tgt in PAIRS).encode(),
    "a.jsonl": "".join(json.dumps({"translation": {"en": s, "de": t}}) + "\n" for s, t in PAIRS).encode(),
    "a.po": b'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
    + "".join(f'#, c-format\nmsgid "{s}\\n"\nmsgstr "{t}\\x41\\n"\n\n' for s, t in PAIRS).encode(),
    "a.zip": zipped(),
    "a.tar": tarred(),
}


@pytest.mark.parametrize("name", CORPORA)
def test_corpora(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    corpus = Path(f"{path}:en:de") if name in ("a.zip", "a.tar") else path  # which of its files is the source

    def read(content: bytes) -> None:
        path.write_bytes(content)
        for block in read_blocks(parse_corpus([corpus])):
            for index in range(len(block.src)):
                block.src.line(index), block.tgt.line(index)

    read(CORPORA[name])
    fuzz(name, CORPORA[name], read)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    pytest.importorskip("ctranslate2")
    run = make_run(tmp_path_factory.mktemp("made") / "run")
    export_ctranslate2(run, "float32", check=False)
    return run


@pytest.mark.parametrize("name", ["config.toml", "tokenizer.model", "model.safetensors"])
@pytest.mark.parametrize("is_vouched_for", [False, True])
def test_models(made: RunDir, tmp_path: Path, name: str, is_vouched_for: bool) -> None:
    run = RunDir(Path(shutil.copytree(made.path, tmp_path / "run")))
    seed = (run.path / name).read_bytes()

    def read(content: bytes) -> None:
        (run.path / name).write_bytes(content)
        if is_vouched_for:
            try:
                vouch(run)
            except SeqtoolError:
                return
        run.require_model()
        load_model(run, load_pair(run).vocabularies)

    fuzz(f"{name}{', vouched for' if is_vouched_for else ''}", seed, read)


def test_manifests(made: RunDir, tmp_path: Path) -> None:
    run = RunDir(Path(shutil.copytree(made.path, tmp_path / "run")))
    content = json.loads(run.manifest.read_text())
    del content["sha256"]

    def read(content: bytes) -> None:
        run.manifest.write_bytes(content)
        run.require_model()

    fuzz("manifest.json", json.dumps(content).encode(), read)


@pytest.mark.parametrize("name", ["seqtool.json", "shared_vocabulary.json", "config.json"])
def test_exports(made: RunDir, tmp_path: Path, name: str) -> None:
    run = RunDir(Path(shutil.copytree(made.path, tmp_path / "run")))
    tokenizers = load_pair(run)

    def read(content: bytes) -> None:
        (run.ctranslate2 / name).write_bytes(content)
        find_damage(run, tokenizers)

    fuzz(f"ctranslate2/{name}", (run.ctranslate2 / name).read_bytes(), read)


def test_settings(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    seed = b'[train]\nlr = 1e-3\nsteps = 1000\n[model]\nkind = "rnn"\n[data]\nmax_tokens = 256\n[decode]\nbeam = 5\n'

    def read(content: bytes) -> None:
        path.write_bytes(content)
        resolve_config(ConfigRequest(file=path))

    fuzz("run.toml", seed, read)


def test_metrics(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    entry = {"kind": "train", "step": 1, "epoch": 0, "loss": 1, "nll": 2.0, "lr": 1e-3, "tokens_per_s": 5.0}

    def read(content: bytes) -> None:
        path.write_bytes(content)
        read_metrics(path)

    fuzz("metrics.jsonl", "".join(json.dumps({**entry, "step": step}) + "\n" for step in range(9)).encode(), read)


def test_states(tmp_path: Path) -> None:
    path = tmp_path / "state.json"

    def read(content: bytes) -> None:
        path.write_bytes(content)
        read_state(tmp_path)

    fuzz("state.json", b'{"sha256": "0", "files": {"model.safetensors": "0"}, "run": {"step": 3}}', read)


DOCUMENTS = {
    "html": "<html><head><title>a</title></head><body><p>two <b>dogs</b>.<br/>&amp; <img src='x'></p></body></html>",
    "srt": "1\n00:00:01,000 --> 00:00:02,000\n<i>two dogs</i>\nplay\n\n2\n00:00:03,000 --> 00:00:04,000\nshe waves\n",
    "text": "two dogs play.\n\n  she waves. a man\twalks\n",
}


@pytest.mark.parametrize("format", DOCUMENTS)
def test_documents(format: str) -> None:
    fuzz(
        f"a.{format}",
        DOCUMENTS[format].encode(),
        lambda content: open_document(format, content.decode("utf-8", "replace")),
    )
