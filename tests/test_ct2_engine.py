"""The ctranslate2 engine gives what the torch engine gives, and the same for a line whatever else is in its batch."""

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_run import make_lines, make_run
from vouching import vouch

from seqtool.errors import SeqtoolError
from seqtool.process import choose_device
from seqtool.run_directory import RunDir
from seqtool.translation.engines.ct2_engine import CTranslate2Engine, batches
from seqtool.translation.engines.interface import SearchOptions
from seqtool.translation.engines.settings import EngineSettings
from seqtool.translation.engines.torch_engine import TorchEngine
from seqtool.translation.export.ctranslate2 import export_ctranslate2
from seqtool.translation.translator import Translator

ctranslate2 = pytest.importorskip("ctranslate2")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """A trained model in float32."""
    run = make_run(tmp_path_factory.mktemp("run"), trained=True)
    export_ctranslate2(run, "float32")
    return run


@pytest.fixture(scope="module")
def quantized(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """The same model in int8."""
    run = make_run(tmp_path_factory.mktemp("quantized"), trained=True)
    export_ctranslate2(run, "int8")
    return run


def test_lines_of_one_length_share_a_batch_longest_first() -> None:
    sources = [[5] * length for length in (3, 1, 3, 2, 3, 3)]
    assert list(batches(sources, [()] * 6, range(6), batch_tokens=100)) == [[0, 2, 4, 5], [3], [1]]
    assert list(batches(sources, [()] * 6, range(6), batch_tokens=8)) == [[0, 2], [4, 5], [3], [1]]
    assert list(batches([[5], [5], [5]], [[6], [], [6]], range(3), batch_tokens=100)) == [[0, 2], [1]]


@pytest.mark.parametrize("name", ["run", "quantized"])
def test_batching_never_changes_a_translation(name: str, request: pytest.FixtureRequest) -> None:
    translator = Translator.load(request.getfixturevalue(name).path, engine="ctranslate2")
    lines = make_lines(150 if name == "run" else 400)
    together = translator.translate(lines)
    alone = [translator.translate([line])[0] for line in lines]
    assert [one.text for one in together] == [one.text for one in alone]
    if name == "quantized":  # int8 is exact to the last bit
        assert [one.score for one in together] == [one.score for one in alone]
    for size in (7, 64):
        slices = [translator.translate(lines[start : start + size]) for start in range(0, len(lines), size)]
        assert [one.text for part in slices for one in part] == [one.text for one in together]
    order = random.Random(1).sample(range(len(lines)), len(lines))
    shuffled = translator.translate([lines[index] for index in order])
    assert [one.text for one in shuffled] == [together[index].text for index in order]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"beam": 1},
        {"beam": 5, "length_penalty": 0.0},
        {"beam": 4, "length_penalty": 2.0},
        {"patience": 2.0},
        {"patience": 0.5},
        {"beam": 4, "patience": 1.1},
    ],
    ids=str,
)
def test_float32_gives_what_torch_gives(run: RunDir, options: dict[str, float]) -> None:
    lines = make_lines(200, seed=2)
    ours = Translator.load(run.path, engine="torch").translate(lines, **options)
    theirs = Translator.load(run.path, engine="ctranslate2").translate(lines, **options)
    same = [(a, b) for a, b in zip(ours, theirs, strict=True) if a.text == b.text]
    assert len(same) >= 198
    assert all(abs(a.score - b.score) < 1e-4 for a, b in same)


@pytest.mark.parametrize("length_penalty", [1.0, 3.0])
def test_n_best_lists_are_those_of_torch(run: RunDir, length_penalty: float) -> None:
    """Also where more translations end at once than are wanted, and ctranslate2 chooses by a penalty of its own."""
    lines = make_lines(200, seed=2)
    options = {"beam": 5, "n_best": 5, "length_penalty": length_penalty}
    ours = Translator.load(run.path, engine="torch").translate(lines, **options)
    theirs = Translator.load(run.path, engine="ctranslate2").translate(lines, **options)
    lists = [[[found.text for found in line.hypotheses] for line in lines] for lines in (ours, theirs)]
    assert sum(a == b for a, b in zip(*lists, strict=True)) >= 190


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_progress_is_told_batch_by_batch(run: RunDir, engine: str) -> None:
    shares: list[float] = []
    Translator.load(run.path, engine=engine, batch_tokens=64).translate(make_lines(60), progress=shares.append)
    assert len(shares) > 5
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_a_prefix_counts_as_in_torch(run: RunDir) -> None:
    lines = make_lines(60, seed=3)
    prefixes = ["ein Mann", "", "zwei"] * 20
    ours = Translator.load(run.path, engine="torch").translate(lines, prefixes=prefixes)
    theirs = Translator.load(run.path, engine="ctranslate2").translate(lines, prefixes=prefixes)
    assert all(one.text.startswith(prefix) for one, prefix in zip(theirs, prefixes, strict=True))
    same = [(a, b) for a, b in zip(ours, theirs, strict=True) if a.text == b.text]
    assert len(same) >= 54  # ctranslate2 lets few translations end with their prefix
    assert all(abs(a.log_prob - b.log_prob) < 1e-4 for a, b in [(a.hypotheses[0], b.hypotheses[0]) for a, b in same])


def test_n_best_scores_are_those_of_scoring(run: RunDir) -> None:
    translator = Translator.load(run.path, engine="ctranslate2")
    lines = make_lines(40, seed=4)
    options = translator.make_options(beam=4, n_best=4, token_scores=True)
    for hypotheses in translator.engine.translate(translator.tokenizers.source.encode_batch(lines), options):
        for one in hypotheses:
            assert one.token_scores is not None
            assert len(one.token_scores) == len(one.ids) + 1
            assert sum(one.token_scores) == pytest.approx(one.log_prob, abs=1e-4)
        scores = [one.score for one in hypotheses]
        assert scores == sorted(scores, reverse=True)


def test_alignment_is_that_of_torch(run: RunDir) -> None:
    lines = make_lines(40, seed=5)
    ours = Translator.load(run.path, engine="torch").translate(lines, alignment=True)
    theirs = Translator.load(run.path, engine="ctranslate2").translate(lines, alignment=True)
    same = [(a, b) for a, b in zip(ours, theirs, strict=True) if a.text == b.text]
    assert len(same) >= 39
    assert all(a.alignment == b.alignment and len(b.alignment or []) == len(b.tokens) for a, b in same)


def test_banned_words_and_repeated_phrases_do_not_appear(run: RunDir) -> None:
    translator = Translator.load(run.path, engine="ctranslate2")
    lines = make_lines(60, seed=6)
    plain = translator.translate(lines)
    word = max((token for one in plain for token in one.tokens), key=[t for one in plain for t in one.tokens].count)
    assert all(word not in one.tokens for one in translator.translate(lines, banned=[word]))
    for one in translator.translate(lines, no_repeat_ngram=2):
        pairs = list(zip(one.tokens, one.tokens[1:], strict=False))
        assert len(pairs) == len(set(pairs))


def test_what_it_cannot_do_is_named(run: RunDir) -> None:
    translator = Translator.load(run.path, engine="ctranslate2")
    for options, name in (
        ({"sample": True}, "sample"),
        ({"coverage_penalty": 0.2}, "coverage_penalty"),
        ({"beam": 4, "diverse_groups": 2}, "diverse_groups"),
        ({"required": [7]}, "required"),
        ({"max_length_ratio": 100.0}, "max_length_ratio"),
    ):
        with pytest.raises(SeqtoolError, match=name):
            translator.translate(make_lines(1, longest=40, seed=8), **options)
    with pytest.raises(SeqtoolError, match="takes one model, not an ensemble"):
        Translator.load([run.path, run.path], engine="ctranslate2")


def test_auto_takes_it_where_it_is_able_and_torch_otherwise(run: RunDir, tmp_path: Path) -> None:
    notes: list[str] = []
    translator = Translator.load(run.path, notify=notes.append)
    assert isinstance(translator.engine, CTranslate2Engine)
    assert notes == []
    sampled = translator.translate(["A man"], sample=True, seed=3)[0].text
    assert sampled == Translator.load(run.path, engine="torch").translate(["A man"], sample=True, seed=3)[0].text
    assert notes == ["the ctranslate2 engine does not offer `sample`, so the slower torch engine is used"]
    assert Translator.load([run.path, run.path]).engine.name == "torch"
    assert Translator.load(make_run(tmp_path / "fresh").path, notify=notes.append).engine.name == "torch"
    assert len(notes) == 1


def test_a_length_that_its_table_lacks_is_noticed_before_any_input(run: RunDir) -> None:
    options = {"max_length_ratio": 16.0}  # 16 * 64 + 16 tokens for the longest part, of 1,023
    fast = Translator.load(run.path, engine="ctranslate2")
    with pytest.raises(SeqtoolError, match=r"does not offer max_length_ratio=16 for lines of 64 tokens; use"):
        fast.engine_for(fast.make_options(**options))
    assert fast.engine_for(fast.make_options(max_length_ratio=15.0)) is fast.engine
    notes: list[str] = []
    either = Translator.load(run.path, notify=notes.append)
    assert either.engine_for(either.make_options(**options)).name == "torch"
    assert len(notes) == 1


def test_pairs_longer_than_its_table_are_scored_by_torch(run: RunDir) -> None:
    pairs = [("a man", "ein Mann"), ("she " * 1100, "sie"), ("she", "sie " * 1100)]
    sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
    found = Translator.load(run.path).score(sources, targets)
    expected = Translator.load(run.path, engine="torch").score(sources, targets)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-3)
    with pytest.raises(
        SeqtoolError, match=r"lines 2-3: longer than the 1,023 tokens that the ctranslate2 engine takes"
    ):
        Translator.load(run.path, engine="ctranslate2").score(sources, targets)


@pytest.mark.skipif(ctranslate2.get_cuda_device_count() > 0, reason="there is a GPU")
def test_auto_on_a_machine_with_mps_is_ctranslate2_on_the_cpu_and_torch_on_mps(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    asked: list[str] = []

    def load(runs: list[RunDir], vocabularies: object, settings: EngineSettings) -> Any:
        asked.append(str(choose_device(settings.device)))
        return TorchEngine.__new__(TorchEngine)

    monkeypatch.setattr(TorchEngine, "load", load)
    translator = Translator.load(run.path)
    assert (translator.engine.name, asked) == ("ctranslate2", [])
    Translator.load(run.path, engine="torch")
    Translator.load(run.path, device="mps")
    assert asked == ["mps", "mps"]
    with pytest.raises(SeqtoolError, match="ctranslate2 engine does not run on mps; give device='cpu'"):
        Translator.load(run.path, engine="ctranslate2", device="mps")


@pytest.mark.skipif(ctranslate2.get_cuda_device_count() > 0, reason="there is a GPU")
def test_a_device_that_is_not_there_is_named(run: RunDir) -> None:
    with pytest.raises(SeqtoolError, match="ctranslate2 finds no CUDA device here; give device='cpu'"):
        Translator.load(run.path, engine="ctranslate2", device="cuda")


@pytest.mark.skipif("float16" in ctranslate2.get_supported_compute_types("cpu"), reason="the CPU has float16")
def test_a_type_of_numbers_that_the_processor_lacks_is_named(run: RunDir) -> None:
    lacks = "ctranslate2 has no compute_type='float16' on this cpu; it has float32, int"
    with pytest.raises(SeqtoolError, match=lacks):
        Translator.load(run.path, engine="ctranslate2", device="cpu", compute_type="float16")
    notes: list[str] = []
    engine = Translator.load(run.path, device="cpu", compute_type="float16", notify=notes.append).engine
    assert (engine.name, engine.compute_type) == ("torch", "float16")
    assert lacks in notes[0].replace("`", "")


def test_a_type_of_numbers_that_only_one_engine_has_is_no_secret(run: RunDir) -> None:
    translator = Translator.load(run.path, compute_type="int8")
    assert (translator.engine.name, translator.engine.compute_type) == ("ctranslate2", "int8_float32")
    with pytest.raises(SeqtoolError, match="torch engine has no compute_type='int8'"):
        translator.translate(["a man"], sample=True)
    with pytest.raises(SeqtoolError, match="compile=True is for the torch engine"):
        Translator.load(run.path, engine="ctranslate2", compile=True)
    assert Translator.load(run.path, compile=True).engine.name == "torch"


def test_an_export_of_other_weights_is_not_used(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    export_ctranslate2(run, "int8")
    make_run(tmp_path / "run", seed=5)
    notes: list[str] = []
    assert Translator.load(run.path, notify=notes.append).engine.name == "torch"
    assert "was not made from the present model.safetensors" in notes[0]
    assert "seqtool export" in notes[0]
    with pytest.raises(SeqtoolError, match="was not made from the present"):
        Translator.load(run.path, engine="ctranslate2")


def test_weights_that_were_replaced_under_an_old_manifest_are_noticed(tmp_path: Path) -> None:
    run, other = make_run(tmp_path / "run"), make_run(tmp_path / "other", seed=5)
    export_ctranslate2(run, "int8", check=False)
    run.weights.write_bytes(other.weights.read_bytes())
    with pytest.raises(SeqtoolError, match=r"model.safetensors: is not the file that manifest.json records"):
        Translator.load(run.path)
    vouch(run)
    assert Translator.load(run.path).engine.name == "torch"
    os.utime(run.weights, ns=(1, 1))  # as a copy that keeps the time of the original
    assert Translator.load(run.path).engine.name == "torch"


def test_an_export_is_used_with_a_copy_of_its_weights(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    export_ctranslate2(run, "int8", check=False)
    os.utime(run.weights, ns=(1, 1))
    assert Translator.load(run.path).engine.name == "ctranslate2"


def test_patience_with_a_beam_of_one_is_left_to_torch(run: RunDir) -> None:
    translator = Translator.load(run.path)
    assert translator.engine_for(translator.make_options(beam=1)).name == "ctranslate2"
    assert translator.engine_for(translator.make_options(beam=1, patience=2.0)).name == "torch"


def test_a_library_that_does_not_load_is_an_obstacle_and_no_crash(
    quantized: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    monkeypatch.setattr("seqtool.translation.engines.choosing.is_installed", lambda: True)
    notes: list[str] = []
    assert Translator.load(quantized.path, notify=notes.append).engine.name == "torch"
    assert "ctranslate2 cannot be loaded" in notes[0]


def test_wishes_that_no_translation_can_meet_are_refused(quantized: RunDir) -> None:
    translator = Translator.load(quantized.path, engine="ctranslate2")
    for banned, message in ((["</s>"], "no translation could end"), ([-1], "begin with 0"), ([9999], "not in the voc")):
        with pytest.raises(SeqtoolError, match=message):
            translator.translate(["a man walks"], banned=banned)


def test_a_damaged_export_is_an_error_with_a_cure(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    export_ctranslate2(run, "int8", check=False)
    model = run.ctranslate2 / "model.bin"
    model.write_bytes(model.read_bytes()[:100])
    with pytest.raises(SeqtoolError, match=r"model.bin is not the file that seqtool.json records; .* 'seqtool export"):
        Translator.load(run.path, engine="ctranslate2")


def test_translating_imports_neither_torch_nor_numpy(quantized: RunDir) -> None:
    program = (
        "import sys\n"
        "for name in ('torch', 'numpy', 'sacrebleu', 'safetensors', 'rich.progress'): sys.modules[name] = None\n"
        "from seqtool import Translator\n"
        f"translator = Translator.load({str(quantized.path)!r})\n"
        "print(translator.engine.name, len(translator.translate(['A man walks.', '', 'x' * 500])))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("ctranslate2 3\n", "")


def test_options_reach_the_engine_unchanged(run: RunDir) -> None:
    translator = Translator.load(run.path, engine="ctranslate2")
    options = translator.make_options(beam=2, n_best=2)
    assert options == SearchOptions(beam=2, n_best=2)
    assert [len(one.hypotheses) for one in translator.translate(["A man"], beam=2, n_best=2)] == [2]
