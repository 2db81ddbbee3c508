"""Every model that the configuration can describe is exported, checked, and put in place whole."""

import json
import os
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import SEQTOOL, run_command
from tiny_run import make_run

from seqtool.corpus.tokenizer.registry import load_pair
from seqtool.errors import SeqtoolError
from seqtool.files import sha256_of
from seqtool.manifest import Manifest
from seqtool.run_directory import RunDir
from seqtool.translation.engines.ct2_engine import CTranslate2Engine
from seqtool.translation.engines.torch_engine import TorchEngine
from seqtool.translation.export.ctranslate2 import export_ctranslate2, quantize_matrix, read_float32

pytest.importorskip("ctranslate2")

VARIANTS: list[dict[str, Any]] = [
    {},
    {"norm": "post"},
    {"norm_kind": "rms"},
    {"norm": "post", "norm_kind": "rms"},
    {"activation": "gelu"},
    {"activation": "swiglu"},
    {"positions": "learned", "max_positions": 100},
    {"positions": "rotary"},
    {"positions": "relative", "relative_window": 3},
    {"positions": "rotary", "activation": "swiglu", "norm_kind": "rms"},
    {"joint": False},
    {"share_embeddings": False},
    {"activation": "swish", "norm": "post", "output_bias": True},
    {"zero_start": True, "norm": "post"},
    {"scale_embeddings": False},
    {"encoder_layers": 3, "decoder_layers": 1, "n_heads": 4},
]


def scores(run: RunDir, folder: Path) -> tuple[list[float], list[float]]:
    """Return the log-probabilities of torch and of ctranslate2 for the same random pairs."""
    draw = np.random.default_rng(1)
    sources = [draw.integers(4, 300, length).tolist() for length in (1, 4, 9, 40)]
    targets = [draw.integers(4, 300, length).tolist() for length in (2, 6, 1, 30)]
    ours = TorchEngine.load([run], load_pair(run).vocabularies).score(sources, targets)
    theirs = CTranslate2Engine(folder, load_pair(run)).score(sources, targets)
    return list(chain(*ours)), list(chain(*theirs))


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_every_kind_of_model_keeps_its_probabilities(tmp_path: Path, variant: dict[str, Any]) -> None:
    run = make_run(tmp_path, **variant)
    export_ctranslate2(run, "float32", check=False)
    ours, theirs = scores(run, run.ctranslate2)
    assert theirs == pytest.approx(ours, abs=2e-5)


@pytest.mark.parametrize(
    ("quantization", "tolerance"),
    [("float32", 1e-5), ("float16", 1e-2), ("bfloat16", 5e-2), ("int8", 0.1), ("int8_float32", 0.1)],
)
def test_every_quantization_stays_near_the_model(tmp_path: Path, quantization: str, tolerance: float) -> None:
    run = make_run(tmp_path)
    report = export_ctranslate2(run, quantization)
    assert report.difference is not None
    assert report.difference < tolerance
    ours, theirs = scores(run, run.ctranslate2)
    assert float(np.abs(np.subtract(ours, theirs)).mean()) < tolerance
    record = json.loads((run.ctranslate2 / "seqtool.json").read_text())
    assert record["quantization"] == quantization
    assert record["weights_sha256"] == sha256_of(run.weights)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_weights_of_any_float_are_read_as_they_are(tmp_path: Path, dtype: str) -> None:
    import torch
    from safetensors.torch import save_file

    values = {"some": torch.randn(3, 5).to(getattr(torch, dtype)), "none": torch.zeros(0, 2)}
    save_file(values, tmp_path / "weights")
    for name, array in read_float32(tmp_path / "weights").items():
        np.testing.assert_array_equal(array, values[name].float().numpy())
    save_file({"some": torch.ones(3, dtype=torch.int64)}, tmp_path / "weights")
    with pytest.raises(SeqtoolError, match="some has type I64"):
        read_float32(tmp_path / "weights")


def test_int8_rows_cannot_overflow_sixteen_bits() -> None:
    class Matrix:
        weight: Any = None
        weight_scale: Any = None

    spec = Matrix()
    values = np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32)
    values[2] = 0.0
    quantize_matrix(spec, "layer/weight", values)
    assert spec.weight.dtype == np.int8
    assert 2 * 255 * int(np.abs(spec.weight).max()) < 2**15
    # Half a step of the integer grid is the most that rounding can change.
    steps = np.abs(values).max(axis=1, keepdims=True) / 64
    assert (np.abs(spec.weight / spec.weight_scale[:, None] - values) <= 0.5 * steps + 1e-7).all()


def test_an_export_that_fails_its_check_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(tmp_path)
    export_ctranslate2(run, "float32")
    before = {path.name: sha256_of(path) for path in run.ctranslate2.iterdir()}
    monkeypatch.setattr(
        "seqtool.model.ctranslate2_spec.sinusoids", lambda n, width: np.zeros((n, width), np.float32)
    )  # a wrong conversion
    with pytest.raises(SeqtoolError, match="float32 export does not match the model"):
        export_ctranslate2(run, "float32")
    assert {path.name: sha256_of(path) for path in run.ctranslate2.iterdir()} == before
    assert not list(tmp_path.glob(".*"))


def test_a_new_export_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    large = export_ctranslate2(run, "float32", check=False)
    small = export_ctranslate2(run, "int8", check=False)
    assert small.n_bytes < large.n_bytes
    assert sorted(path.name for path in run.ctranslate2.iterdir()) == [
        "config.json",
        "model.bin",
        "seqtool.json",
        "shared_vocabulary.json",
    ]
    assert not list(tmp_path.glob(".*"))


def test_what_is_no_export_is_never_replaced(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    for name in ("thesis", "fast.old", "fast.tmp"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "chapter.tex").write_text("years of work")
    (tmp_path / "note").write_text("a file")
    for name in ("thesis", "note"):
        with pytest.raises(SeqtoolError, match=f"{name}: is there already and is no export of seqtool"):
            export_ctranslate2(run, out=tmp_path / name, check=False)
    (tmp_path / "fast").mkdir()
    for _ in range(2):  # into an empty folder, then in place of an export
        export_ctranslate2(run, out=tmp_path / "fast", check=False)
    assert (tmp_path / "fast" / "model.bin").is_file()
    for name in ("thesis", "fast.old", "fast.tmp"):
        assert (tmp_path / name / "chapter.tex").read_text() == "years of work"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fast", "fast.old", "fast.tmp", "note", "run", "thesis"]


def test_an_export_that_cannot_take_its_place_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path / "run")
    export_ctranslate2(run, out=tmp_path / "fast", check=False)
    rename = os.rename

    def fail(old: Path, new: Path) -> None:
        if Path(old).name == "new":
            raise OSError("as planned")
        rename(old, new)

    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(SeqtoolError, match=r"fast: cannot be written \(as planned\); make room or give another out"):
        export_ctranslate2(run, out=tmp_path / "fast", check=False)
    assert (tmp_path / "fast" / "model.bin").is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fast", "run"]


def test_separate_vocabularies_are_exported_as_two(tmp_path: Path) -> None:
    run = make_run(tmp_path, joint=False)
    export_ctranslate2(run, check=False)
    names = {path.name for path in run.ctranslate2.iterdir()}
    assert {"source_vocabulary.json", "target_vocabulary.json"} <= names


def test_what_cannot_be_exported_is_named(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    with pytest.raises(SeqtoolError, match="no quantization 'int9'; did you mean 'int8'"):
        export_ctranslate2(run, "int9")
    with pytest.raises(SeqtoolError, match="no such model folder"):
        export_ctranslate2(RunDir(tmp_path / "none"))
    run.weights.write_bytes(b"junk")
    with pytest.raises(SeqtoolError, match=r"is not the file that manifest\.json records"):
        export_ctranslate2(run)
    run.write_manifest(Manifest(files=run.checksums()))
    with pytest.raises(SeqtoolError, match="damaged or not a safetensors file"):
        export_ctranslate2(run)


def test_the_command_exports_and_says_what_it_did(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    command = [*SEQTOOL, "export", "-m", str(run.path)]
    done = run_command([*command, "--to", "ctranslate2"], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout == ""
    assert "int8" in done.stderr
    assert run.ctranslate2.is_dir()
    wrong = run_command([*command, "--to", "onnx"], capture_output=True, text=True)
    assert wrong.returncode == 2
    assert "cannot export to 'onnx'" in wrong.stderr
