"""Models of trainings that have not ended: the newest whole checkpoint is used, verified, while others come and go."""

import json
import re
import shutil
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import run_seqtool
from small_run import start, stop, train_command, wait_for_step
from vouching import vouch

from seqtool import Translator
from seqtool.errors import SeqtoolError
from seqtool.evaluation.scores.reference_set import ReferenceSet
from seqtool.evaluation.scores.systems import translate_set
from seqtool.files import sha256_of
from seqtool.run_directory import RunDir
from seqtool.training.checkpoint import read_checkpoint, write_checkpoint
from seqtool.translation.engines.interface import SearchOptions
from seqtool.translation.engines.settings import EngineSettings
from seqtool.unfinished import find_model

LINES = ["The man sees the dog.", "", "She sings."]


@pytest.fixture
def run(tmp_path: Path, finished: Path) -> RunDir:
    """A training that was interrupted at step 36."""
    copy = RunDir(tmp_path / "run")
    shutil.copytree(finished, copy.path)
    for file in (copy.weights, copy.manifest, copy.valid_lines, copy.report):
        file.unlink()
    shutil.rmtree(copy.ctranslate2, ignore_errors=True)
    return copy


def translate(folder: Path, **options: object) -> tuple[list[str], list[str]]:
    """Return translations, and the notes of the translator."""
    notes: list[str] = []
    translator = Translator.load(folder, notify=notes.append)
    return [found.text for found in translator.translate(LINES)], notes


def test_the_moving_average_of_the_newest_checkpoint_translates_and_is_named(run: RunDir, tmp_path: Path) -> None:
    newest = run.checkpoint_folders()[-1]
    same = RunDir(tmp_path / "same")
    same.path.mkdir()
    for file in (run.config, run.tokenizer):
        shutil.copy(file, same.path)
    shutil.copy(newest / "ema.safetensors", same.weights)
    vouch(same)
    expected, _ = translate(same.path)
    texts, notes = translate(run.path)
    assert texts == expected
    assert notes == [f"{newest}: the moving average of the weights at step 36 of this training, not a final model"]


def test_a_checkpoint_is_named_by_its_folder(run: RunDir) -> None:
    before = run.checkpoint_folders()[-2]
    _, notes = translate(before)
    assert notes[0].startswith(f"{before}: the moving average of the weights at step 33 of this training")
    _, notes = translate(run.best)
    assert notes[0].startswith(f"{run.best}: the weights at step ")


def test_a_damaged_checkpoint_gives_way_to_the_one_before(run: RunDir) -> None:
    before, newest = run.checkpoint_folders()[-2:]
    content = bytearray((newest / "ema.safetensors").read_bytes())
    content[-1] ^= 1
    (newest / "ema.safetensors").write_bytes(content)
    _, notes = translate(run.path)
    assert notes[0].startswith(f"warning: {newest}: damaged checkpoint (ema.safetensors does not match its checksum)")
    assert notes[1].startswith(f"{before}: ")
    with pytest.raises(SeqtoolError, match="damaged checkpoint"):
        translate(newest)


def test_a_state_with_a_changed_value_is_not_used(run: RunDir) -> None:
    newest = run.checkpoint_folders()[-1]
    state = newest / "state.json"
    text = state.read_text()
    state.write_text(re.sub(r'"step": *36', '"step": 37', text, count=1))
    assert state.read_text() != text
    with pytest.raises(SeqtoolError, match=r"damaged checkpoint \(state.json does not match its checksum\)"):
        find_model(newest)


@pytest.mark.parametrize("name", ["config.toml", "tokenizer.model"])
def test_a_checkpoint_is_not_used_with_other_settings_or_another_tokenizer(run: RunDir, name: str) -> None:
    file = run.path / name
    file.write_bytes(file.read_bytes().replace(b"n_heads = 2", b"n_heads = 4") + (b"" if "toml" in name else b"\0"))
    with pytest.raises(SeqtoolError, match=f"{name}: is not the one that .*step-000000036 was written with"):
        find_model(run.checkpoint_folders()[-1])


def test_settings_of_decoding_may_change(run: RunDir) -> None:
    run.config.write_text(run.config.read_text().replace("beam = 2", "beam = 1"))
    assert find_model(run.path).weights.name == "ema.safetensors"


def test_a_training_without_a_checkpoint_says_what_is_missing(run: RunDir, tmp_path: Path) -> None:
    shutil.rmtree(run.checkpoints)
    with pytest.raises(SeqtoolError, match="its training has saved no checkpoint yet; wait for the first one"):
        find_model(run.path)
    with pytest.raises(SeqtoolError, match="this is not the folder of a model; give the one that 'seqtool train -o'"):
        find_model(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["eval", "-m", "RUN", "SRC", "TGT", "--json", "--beam", "1"], '"bleu"'),
        (["score", "-m", "CKPT", "SRC", "TGT"], "-"),
        (["export", "-m", "RUN", "--to", "ctranslate2", "-o", "OUT"], ""),
        (["average", "-o", "OUT", "CKPT"], ""),
        (["report", "RUN", "--no-attention"], "report.html"),
    ],
)
def test_commands_take_a_training_that_has_not_ended(
    run: RunDir, corpus: list[str], tmp_path: Path, arguments: list[str], expected: str
) -> None:
    names = {"RUN": run.path, "CKPT": run.checkpoint_folders()[-1], "OUT": tmp_path / "out"}
    names |= {"SRC": Path(corpus[3]), "TGT": Path(corpus[5])}
    done = run_seqtool(*(names.get(word, word) for word in arguments))
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout.decode()
    is_noted = "of this training, not a final model" in done.stderr.decode()
    assert is_noted == (arguments[0] not in ("average", "report"))


def test_an_export_of_a_checkpoint_needs_a_place(run: RunDir) -> None:
    done = run_seqtool("export", "-m", run.path, "--to", "ctranslate2")
    assert done.returncode == 2
    assert b"where should the export of a checkpoint go? Name a place with -o" in done.stderr


def replace_checkpoints(run: RunDir, is_over: threading.Event) -> None:
    """Write newer checkpoints and remove those before, as a training does that keeps one."""
    source = read_checkpoint(run.checkpoint_folders()[-1])
    groups = {name: source.tensors(name) for name in ("model", "ema")}
    state = {name: value for name, value in source.state.items() if name != "files"}
    step = 36
    while not is_over.is_set():
        step += 1
        write_checkpoint(run.checkpoints / f"step-{step:09d}", groups, {**state, "run": {"step": step}})
        for folder in run.checkpoint_folders()[:-1]:
            shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("open_it", [find_model, translate])
def test_checkpoints_that_are_removed_meanwhile_have_newer_ones_after_them(
    run: RunDir, open_it: Callable[[Path], object]
) -> None:
    is_over = threading.Event()
    training = threading.Thread(target=replace_checkpoints, args=(run, is_over))
    training.start()
    try:
        n_opened = 0
        while n_opened < 10 or run.checkpoint_folders()[-1].name < "step-000000042":
            open_it(run.path)
            n_opened += 1
    finally:
        is_over.set()
        training.join()


def test_a_listing_that_misses_both_the_old_and_the_new_checkpoint_is_made_again(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = run.checkpoint_folders()[-1]
    listings = iter([[], [newest.with_name("step-000000001")]])
    glob = Path.glob
    monkeypatch.setattr(Path, "glob", lambda path, pattern: next(listings, None) or glob(path, pattern))
    assert find_model(run.path).weights.parent == newest


def test_a_training_at_work_translates_and_info_knows_how_far_it_is(corpus: list[str], tmp_path: Path) -> None:
    run = tmp_path / "run"
    settings = {"train_steps": 100000, "train_save_every": 1, "train_keep": 1, "train_report_every": 10}
    process = start(train_command(corpus, run, train_validate_every=100000, **settings))
    try:
        assert wait_for_step(run, 10, process)
        for _ in range(3):
            texts, notes = translate(run)
            assert len(texts) == len(LINES)
            assert "of this training, not a final model" in notes[-1]
    finally:
        code, errors = stop(process, signal.SIGINT)
    assert code == 130, errors
    saved = int(errors.partition("stopped at step ")[2].partition(";")[0].replace(",", ""))
    training = json.loads(run_seqtool("info", run, "--json").stdout)["training"]
    assert training["steps"] == saved
    assert training["epochs"] is not None


def test_a_score_names_the_weights_that_translated_though_the_training_went_on(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = run.checkpoint_folders()[-1]
    expected = sha256_of(newest / "ema.safetensors")
    make_options = Translator.make_options

    def go_on(self: Translator, **changes: object) -> SearchOptions:
        (newest / "state.json").rename(newest / "removed")
        shutil.rmtree(newest)
        return make_options(self, **changes)

    monkeypatch.setattr(Translator, "make_options", go_on)
    texts = ReferenceSet("set", LINES, [LINES])
    assert translate_set([run.path], texts, EngineSettings(), {}).decoding["model"] == expected
