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
from seqtool.translation.engines.ct2_engine import CTranslate2Engine
from seqtool.translation.engines.interface import SearchOptions
from seqtool.translation.export.argos import export_argos
from seqtool.translation.export.ctranslate2 import export_ctranslate2
from seqtool.translation.export.languages import Languages
from seqtool.translation.export.sentence_splitter import make_splitter

pytest.importorskip("argostranslate")

PROGRAM = """
import socket, sys
def refuse(*arguments, **options): raise OSError("no network here")
socket.socket.connect = socket.getaddrinfo = refuse
from argostranslate import package, translate
package.install_from_path(sys.argv[1])
for line in sys.stdin.read().splitlines():
    print(translate.translate(line, "en", "de"))
"""


def test_the_real_argos_installs_and_translates_without_a_network(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", trained=True)
    languages = Languages(("en", "de"), ("English", "German"))
    report = export_argos(run, languages, "float32", tmp_path / "en-de.argosmodel")
    lines = make_lines(200, seed=7)
    places = {f"XDG_{name}_HOME": str(tmp_path / name) for name in ("DATA", "CACHE", "CONFIG")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(report.file)],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        env={**os.environ, **places, "HOME": str(tmp_path)},
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    export_ctranslate2(run, "float32", check=False)
    pair = load_pair(run)
    engine = CTranslate2Engine(run.ctranslate2, pair, device="cpu")
    found = engine.translate(pair.source.encode_batch(lines), SearchOptions(beam=4, length_penalty=0.2))
    assert done.stdout.splitlines() == [pair.target.decode(best[0].ids) for best in found]


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
