"""Averaging checkpoints, and scoring from the command line."""

import errno
import json
import math
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from command_line import SEQTOOL, run_command, run_text, start_command
from safetensors.torch import load_file, save_file
from tiny_run import make_run

from seqtool.errors import SeqtoolError
from seqtool.files import sha256_of
from seqtool.run_directory import RunDir
from seqtool.translation.average import average
from seqtool.translation.translator import Translator
from seqtool.unfinished import describe_surroundings
from seqtool.verification import seal


def make_checkpoints(run: RunDir, n: int) -> list[Path]:
    """Put checkpoints into a run directory as training does: weights and a state with their checksum."""
    weights = load_file(run.weights)
    folders = []
    for number in range(n):
        folder = run.checkpoints / f"step-{number:09d}"
        folder.mkdir(parents=True)
        file = folder / "model.safetensors"
        save_file({name: tensor * (1 + number) for name, tensor in weights.items()}, file)
        state = {"files": {file.name: sha256_of(file)}, "step": number, "belongs_to": describe_surroundings(run)}
        (folder / "state.json").write_text(json.dumps({**state, "sha256": seal(state)}))
        folders.append(folder)
    return folders


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> RunDir:
    return make_run(tmp_path_factory.mktemp("model") / "run")


def test_the_average_of_checkpoints_is_their_mean_and_translates(run, tmp_path):
    folders = make_checkpoints(make_copy(run, tmp_path), 3)
    averaged = average(folders, tmp_path / "mean")
    original, mean = load_file(run.weights), load_file(averaged.weights)
    assert original.keys() == mean.keys()
    for name in original:
        assert mean[name].dtype == original[name].dtype
        torch.testing.assert_close(mean[name], original[name] * 2)  # the mean of 1, 2 and 3 times the weights
    manifest = averaged.read_manifest()
    assert manifest.files == {
        file.name: sha256_of(file) for file in (averaged.config, averaged.tokenizer, averaged.weights)
    }
    assert len(manifest.model.averaged) == 3
    assert Translator.load(averaged.path, engine="torch").translate(["a man walks"])[0].source == "a man walks"


def test_the_average_of_one_model_is_that_model(run, tmp_path):
    averaged = average([run.path, run.path, run.weights], tmp_path / "same")
    original, mean = load_file(run.weights), load_file(averaged.weights)
    assert all(torch.equal(original[name], mean[name]) for name in original)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_types_of_numbers_are_kept(run, tmp_path, dtype):
    copy = make_copy(run, tmp_path)
    weights = {name: tensor.to(dtype) for name, tensor in load_file(run.weights).items()}
    save_file(weights, copy.weights)
    copy.manifest.unlink()
    mean = load_file(average([copy.path, copy.path], tmp_path / "mean").weights)
    assert all(torch.equal(mean[name], weights[name]) for name in weights)


def test_different_models_are_named(run, tmp_path):
    wider = make_run(tmp_path / "wider", d_ff=96)
    with pytest.raises(SeqtoolError, match=r"different models: \S+ has shape"):
        average([run.path, wider.path], tmp_path / "out")
    deeper = make_run(tmp_path / "deeper", decoder_layers=3)
    with pytest.raises(SeqtoolError, match=r"only .*deeper.* has decoder\.2"):
        average([run.path, deeper.path], tmp_path / "out")
    turning = make_run(tmp_path / "turning", positions="rotary")  # nothing in its weights tells
    with pytest.raises(SeqtoolError, match="different models: positions is sinusoidal in one and rotary in the other"):
        average([run.path, turning.path], tmp_path / "out")
    other = make_run(tmp_path / "other", vocab=330)
    with pytest.raises(SeqtoolError, match="different tokenizers"):
        average([run.path, other.path], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_damaged_and_missing_checkpoints_are_named(run, tmp_path):
    copy = make_copy(run, tmp_path)
    first, second = make_checkpoints(copy, 2)
    content = bytearray((second / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (second / "model.safetensors").write_bytes(content)
    with pytest.raises(SeqtoolError, match=r"step-000000001.*damaged"):
        average([first, second], tmp_path / "out")
    (second / "state.json").unlink()
    (second / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(SeqtoolError, match="not a safetensors file"):
        average([first, second], tmp_path / "out")
    whole = copy.config.read_text()
    copy.config.write_text(whole.replace("n_heads = 2", "n_heads = 4"))
    for path in (first, copy.path):  # nothing in the weights tells
        with pytest.raises(SeqtoolError, match=r"config\.toml: is not the"):
            average([path], tmp_path / "out")
    copy.config.write_text(whole)
    with pytest.raises(SeqtoolError, match="no such checkpoint"):
        average([tmp_path / "nothing"], tmp_path / "out")
    with pytest.raises(SeqtoolError, match="nothing to average"):
        average([], tmp_path / "out")
    with pytest.raises(SeqtoolError, match="holds a model already"):
        average([first], copy.path)


def test_a_full_disk_is_not_blamed_on_a_checkpoint(run, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("seqtool.translation.average.save_weights", fail)
    with pytest.raises(SeqtoolError, match=r"out: cannot be written \(No space left on device\); make room"):
        average([run.path, run.path], tmp_path / "out")
    monkeypatch.undo()
    assert not (tmp_path / "out").exists()
    average([run.path, run.path], tmp_path / "out")


def make_copy(run: RunDir, folder: Path) -> RunDir:
    return RunDir(Path(shutil.copytree(run.path, folder / "copy")))


def test_average_from_the_command_line(run, tmp_path):
    done = run_text("average", "-o", tmp_path / "mean", run.path, run.path)
    assert (done.returncode, done.stdout) == (0, "")
    assert "averaged 2 checkpoints" in done.stderr
    again = run_text("average", "-o", tmp_path / "mean", run.path)
    assert again.returncode == 1
    assert "holds a model already" in again.stderr
    assert run_text("average", "-o", tmp_path / "none").returncode == 2


def test_score_prints_a_log_probability_a_line(run, tmp_path):
    lines = [("a man walks", "ein Mann läuft"), ("", ""), ("two dogs", ""), ("", "zwei"), ("she\r", "x\u2028y")]
    src, tgt = tmp_path / "src", tmp_path / "tgt"
    src.write_text("".join(f"{line}\n" for line, _ in lines), encoding="utf-8", newline="")
    tgt.write_text("\n".join(line for _, line in lines), encoding="utf-8", newline="")  # no final newline
    translator = Translator.load(run.path, engine="torch")
    expected = translator.score([line for line, _ in lines], [line for _, line in lines])
    plain = run_text("score", "-m", run.path, src, tgt, "--engine", "torch")
    assert plain.returncode == 0, plain.stderr
    assert [float(line) for line in plain.stdout.splitlines()] == pytest.approx(
        [math.fsum(scores) for scores in expected], abs=1e-5
    )
    normal = run_text("score", "-m", run.path, src, tgt, "--engine", "torch", "--normalize")
    assert [float(line) for line in normal.stdout.splitlines()] == pytest.approx(
        [math.fsum(scores) / len(scores) for scores in expected], abs=1e-5
    )
    done = run_text("score", "-m", run.path, src, tgt, "--engine", "torch", "--json", "--normalize")
    objects = [json.loads(line) for line in done.stdout.split("\n")[:-1]]
    assert [one["token_scores"] for one in objects] == expected
    assert [one["log_prob"] for one in objects] == pytest.approx([math.fsum(scores) for scores in expected])
    assert all(len(one["tokens"]) + 1 == len(one["token_scores"]) for one in objects)
    first = objects[0]
    assert first["log_prob_per_token"] == pytest.approx(first["log_prob"] / len(first["token_scores"]))


def test_score_names_lines_by_their_number(run, tmp_path):
    src, tgt = tmp_path / "src", tmp_path / "tgt"
    src.write_bytes(b"a man\nb\xff\nshe\n\xc3\n")
    tgt.write_bytes(b"ein Mann\nzwei\nsie \xff\nzwei\n")
    done = run_text("score", "-m", run.path, src, tgt)
    assert (done.returncode, done.stdout.count("\n")) == (0, 4)
    assert done.stderr == (
        f"seqtool: {src}: lines 2, 4: not valid UTF-8; the bad bytes were read as U+FFFD\n"
        f"seqtool: {tgt}: line 3: not valid UTF-8; the bad bytes were read as U+FFFD\n"
    )
    learned = make_run(tmp_path / "learned", positions="learned", max_positions=40, max_tokens=30)
    tgt.write_text("ein Mann\n\nsie\n" + "zwei Hunde " * 60)
    done = run_text("score", "-m", learned.path, src, tgt)
    assert done.returncode == 1
    assert "line 4: longer than the 39 tokens that the torch engine takes" in done.stderr


def test_score_ends_quietly_when_nobody_reads_on(run, tmp_path):
    (tmp_path / "lines").write_text("she waves\n" * 50_000)
    command = [*SEQTOOL, "score", "-m", str(run.path), "--engine", "torch"]
    with start_command(
        [*command, tmp_path / "lines", tmp_path / "lines"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert float(process.stdout.readline()) < 0
        process.stdout.close()
        assert process.wait(timeout=120) == 141
        assert process.stderr.read() == ""


def test_a_full_disk_behind_scores_is_one_message(run, tmp_path):
    (tmp_path / "lines").write_text("she waves\n")
    command = [*SEQTOOL, "score", "-m", str(run.path), tmp_path / "lines", tmp_path / "lines"]
    with open("/dev/full", "wb") as full:
        done = run_command(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("seqtool: error: the output cannot be written (No space left on device)")
    assert done.stderr.count("\n") == 1


def test_score_refuses_files_of_different_length(run, tmp_path):
    (tmp_path / "src").write_text("a\nb\n")
    (tmp_path / "tgt").write_text("a\n")
    done = run_text("score", "-m", run.path, tmp_path / "src", tmp_path / "tgt")
    assert (done.returncode, done.stdout) == (1, "")
    assert "has 2 lines but" in done.stderr
    missing = run_text("score", "-m", run.path, tmp_path / "src", tmp_path / "none")
    assert missing.returncode == 1
    assert "no such file" in missing.stderr
