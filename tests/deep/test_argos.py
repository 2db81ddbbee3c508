"""Packages in the real Argos Translate: installed and used without a network.

Needs argostranslate: make interchange-test.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

from tiny_run import make_lines, make_run

from seqtool.corpus.tokenizer.registry import load_pair
from seqtool.run_directory import RunDir
from seqtool.translation.export.argos import export_argos
from seqtool.translation.export.ctranslate2 import export_ctranslate2
from seqtool.translation.export.languages import Languages
from seqtool.translation.export.sentence_splitter import make_splitter
from seqtool.translation.interchange.importing import import_huggingface
from seqtool.translation.translator import Translator

pytest.importorskip("argostranslate")
ctranslate2 = pytest.importorskip("ctranslate2")

POWER = 0.2  # of the length, by which Argos divides the score of a translation
PROGRAM = """
import socket, sys
def refuse(*arguments, **options): raise OSError("no network here")
socket.socket.connect = socket.getaddrinfo = refuse
from argostranslate import package, translate
package.install_from_path(sys.argv[1])
for line in sys.stdin.read().splitlines():
    print(translate.translate(line, "en", "de"))
"""


@pytest.fixture(params=["our own", "imported"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> RunDir:
    """Make a trained model with one tokenizer, or with two that came from Hugging Face."""
    if request.param == "our own":
        return make_run(tmp_path / "run", trained=True)
    pytest.importorskip("transformers")
    from trained_marian import SHAPES, make_model

    make_model(tmp_path / "theirs", SHAPES["swish"])
    return import_huggingface(tmp_path / "theirs", tmp_path / "run").run


def test_the_real_argos_installs_and_translates_without_a_network(run: RunDir, tmp_path: Path) -> None:
    languages = Languages(("en", "de"), ("English", "German"))
    report = export_argos(run, tmp_path / "en-de.argosmodel", languages)
    lines = make_lines(200, seed=7)
    places = {f"XDG_{name}_HOME": str(tmp_path / name) for name in ("DATA", "CACHE", "CONFIG")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(report.path)],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        env={**os.environ, **places, "HOME": str(tmp_path)},
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    export_ctranslate2(run, check=False)
    pair = load_pair(run)
    tokenizer = pair.source
    engine = ctranslate2.Translator(str(run.ctranslate2), device="cpu", compute_type="auto")  # as Argos does
    found = engine.translate_batch(
        [tokenizer.pieces(ids) for ids in tokenizer.encode_batch(lines)], beam_size=4, length_penalty=POWER
    )
    assert done.stdout.splitlines() == [pair.target.decode(pair.target.ids_of(best.hypotheses[0])) for best in found]
    # seqtool divides by the penalty of GNMT, which for translations of n tokens ranks as the power p if it is as here;
    # which of its four is the best is for Argos's own rule to say, as two may be as good as equal.
    seqtool = Translator.load(run.path, engine="ctranslate2", device="cpu")
    ours = []
    for line, best in zip(lines, found, strict=True):
        n = len(best.hypotheses[0])
        ranked = seqtool.translate([line], beam=4, n_best=4, length_penalty=POWER * (n + 6) / (n + 1))[0].hypotheses
        ours.append(max(ranked, key=lambda one: one.log_prob / (len(one.tokens) + 1) ** POWER).text)
    same = sum(one == other for one, other in zip(ours, done.stdout.splitlines(), strict=True))
    print(f"\nArgos: {len(lines)} lines as CTranslate2 with its settings, {same} as seqtool translate")
    assert same == len(lines)


def test_the_splitter_is_a_valid_model_that_minisbd_reads(tmp_path: Path) -> None:
    onnx, minisbd = pytest.importorskip("onnx"), pytest.importorskip("minisbd")
    content = make_splitter()
    onnx.checker.check_model(onnx.load_from_string(content), full_check=True)
    (tmp_path / "en.onnx").write_bytes(content)
    splitter = minisbd.SBDetect(str(tmp_path / "en.onnx"), use_gpu=False)
    assert splitter.sentences("A man walks. She sleeps! Is it 3.5 km? Yes… No, e.g. this.") == [
        "A man walks.",
        "She sleeps!",
        "Is it 3.5 km?",
        "Yes…",
        "No, e.g. this.",
    ]
    assert splitter.sentences("什么。再见。好") == ["什么。", "再见。", "好"]
    assert splitter.sentences("no end, but www.a.com and 3.5") == ["no end, but www.a.com and 3.5"]
