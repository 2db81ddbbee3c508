"""Faults in the middle of the work, a few of each kind: `make hard-test` has hundreds of them."""

import json
import os
import shutil
import signal
from pathlib import Path

import pytest
from command_line import SEQTOOL, run_command, run_seqtool, run_text
from faults import DAMAGES, list_moments, run_faulty, strike
from hard_runs import copy_run, make_stopped, make_whole, quick_command
from small_run import assert_same_run, name_corpus, run_to_end, write_corpus
from tiny_run import make_run

from seqtool.config import config_to_toml, load_config
from seqtool.errors import SeqtoolError
from seqtool.run_directory import RunDir
from seqtool.training.display import TrainingDisplay
from seqtool.verification import MIB, read_limited, require_regular


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus, a training of it from beginning to end, and one that was killed after a checkpoint."""
    folder = tmp_path_factory.mktemp("runs")
    corpus = write_corpus(folder)
    make_whole(corpus, folder / "whole")
    make_stopped(corpus, folder / "killed" / "run")
    return folder


@pytest.mark.parametrize(
    ("moment", "number"),
    [
        (("open .prepared.seqtool/new/target.tokens", 1), signal.SIGKILL),
        (("rename checkpoints/.step-#.seqtool/new", 2), signal.SIGKILL),
        (("rename manifest.json.tmp", 1), signal.SIGTERM),
    ],
    ids=["preparing", "checkpoint", "manifest"],
)
def test_a_training_that_is_struck_gives_the_same_model(
    runs: Path, tmp_path: Path, moment: tuple[str, int], number: signal.Signals
) -> None:
    command = quick_command(name_corpus(runs), tmp_path / "run")
    strike(command, tmp_path / "run", moment, number)
    run_to_end(command)
    assert_same_run(tmp_path / "run", runs / "whole")


@pytest.mark.parametrize(
    ("name", "damage", "ends"),
    [
        ("prepared/target.tokens", "values exchanged", 0),
        ("prepared/held_out.jsonl", "pipe", 0),
        ("checkpoints/step-000000009/optimizer.safetensors", "block of zeros", 0),
        ("checkpoints/step-000000009/state.json", "device", 0),
        ("metrics.jsonl", "folder", 1),
        ("tokenizer.model", "bit at 60%", 1),
    ],
)
def test_a_damaged_run_never_trains_another_model(
    runs: Path, tmp_path: Path, name: str, damage: str, ends: int
) -> None:
    run = copy_run(runs / "killed" / "run", tmp_path / "run")
    if not (run / name).exists():
        pytest.skip("this run has no such file")
    DAMAGES[damage](run / name, None)
    done = run_command(quick_command(name_corpus(runs), run), capture_output=True, text=True, timeout=60)
    assert done.returncode == ends, done.stderr
    assert "Traceback" not in done.stderr
    assert Path(name).name in done.stderr or Path(name).parent.name in done.stderr or "prepar" in done.stderr
    if ends == 0:
        assert (run / "model.safetensors").read_bytes() == (runs / "whole" / "model.safetensors").read_bytes()


def test_an_average_that_is_killed_leaves_no_half_of_a_model(tmp_path: Path) -> None:
    run, out = make_run(tmp_path / "run"), tmp_path / "work" / "average"
    out.parent.mkdir()
    command = [*SEQTOOL, "average", "-o", str(out), str(run.path), str(run.path)]
    moments = list_moments(command, out.parent)
    shutil.rmtree(out)
    for name in ("rename .average.seqtool/new/model.safetensors.tmp", "rename .average.seqtool/new"):
        assert name in moments
        strike(command, out.parent, (name, 1), signal.SIGKILL)
        assert not out.exists()
    run_to_end(command)
    assert [path.name for path in out.parent.iterdir()] == ["average"]


def test_a_folder_that_may_not_be_written_is_named(runs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir(mode=0o555)
    done = run_faulty(quick_command(name_corpus(runs), out), unprivileged=True)
    assert done.returncode == 1
    assert f"{out}: cannot write into this folder" in done.stderr


def test_a_file_that_is_mostly_a_hole_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * MIB)
    os.truncate(path, 3 * MIB)
    with pytest.raises(SeqtoolError, match="most of its bytes were never written"):
        require_regular(path)
    path.write_bytes(b"x" * 2 * MIB)
    assert require_regular(path).st_size == 2 * MIB


def test_a_folder_in_the_place_of_a_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SeqtoolError, match=f"{tmp_path}: is not a regular file"):
        read_limited(tmp_path, 10)


def test_info_and_report_open_nothing_that_is_no_file_of_the_model(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    outside = tmp_path / "outside.toml"
    run.config.rename(outside)
    run.config.symlink_to(outside)
    done = run_text("info", run.path, "--json")
    assert done.returncode == 1
    assert "leads out of the folder" in json.loads(done.stdout)["problems"][0]
    run.weights.unlink()
    os.mkfifo(run.weights)
    assert run_seqtool("info", run.path, timeout=60).returncode == 1
    assert b"Traceback" not in run_seqtool("report", run.path, timeout=60).stderr


def test_an_export_that_ctranslate2_stumbles_over_is_named(tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2")
    from seqtool.translation.export.ctranslate2 import export_ctranslate2
    from seqtool.translation.export.record import read_record, write_record

    run = make_run(tmp_path / "run")
    export_ctranslate2(run, "float32", check=False)
    record = read_record(run.ctranslate2) or {}
    (run.ctranslate2 / "model.bin").write_bytes(bytes(10_000))
    (run.ctranslate2 / "seqtool.json").unlink()
    write_record(run.ctranslate2, {name: value for name, value in record.items() if name not in ("files", "sha256")})
    done = run_text("translate", "-m", run.path, "--engine", "ctranslate2", stdin="two dogs\n")
    assert done.returncode == 1
    assert "ctranslate2 cannot load this model" in done.stderr


FORGED = "name\x1b[31m\x9b2J\u202e\nlr = 1"


def test_names_in_what_a_training_prints_are_visible(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    display = TrainingDisplay(live=False)
    display.say(FORGED)
    scores = {"loss": 1.0, "bleu": 1.0, "chrf": 1.0}
    entry = {"kind": "valid", "step": 1, "perplexity": 1.0, "best": True, "bleu_signature": "b", "chrf_signature": "c"}
    display.report({**entry, **scores, "others": {FORGED: scores}}, 10, None)
    said = capsys.readouterr().err
    assert not any(char in said for char in "\x1b\x9b\u202e")
    assert "\nlr" not in said
    run = make_run(tmp_path / "run")
    written = config_to_toml(load_config(run.config), {"train.lr": FORGED})
    assert "\nlr = 1" not in written.replace("\nlr = 1e-", "")
    assert "\x1b" not in written


def test_settings_with_characters_that_do_not_print_are_read_back(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    config = load_config(make_run(tmp_path / "run").config)
    symbols = ("\x9b", "\u202e", "a\u200db", "\U000e0001", "ü")
    import dataclasses

    config = dataclasses.replace(config, tokenizer=dataclasses.replace(config.tokenizer, user_symbols=symbols))
    run.config.write_text(config_to_toml(config), encoding="utf-8")
    assert load_config(run.config).tokenizer.user_symbols == symbols
    assert "\x9b" not in run.config.read_text(encoding="utf-8")
