"""seqtool eval as people and programs run it."""

import gzip
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from command_line import run_command, run_text
from synthetic_run import make_pairs, make_run
from vouching import vouch

from seqtool import __version__
from seqtool.evaluation.scores.systems import name_differences
from seqtool.files import sha256_of
from seqtool.run_directory import RunDir

REFERENCE = ["Das ist ein Haus.", "Ich sehe den Hund.", "Er geht nach Hause, weil es regnet.", "Ja.", "Nein, danke."]
SOURCE = ["This is a house.", "I see the dog.", "He goes home because it rains.", "Yes.", "No, thank you."]
HYPOTHESIS = ["Das ist Haus.", "Ich sehe den Hund.", "He goes home because it rains.", "", "Nein, danke."]
OTHER = ["Das Haus ist.", "Ich sehe.", "Er regnet.", "Ja!", "Nein nein nein nein nein."]


def run_eval(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_text("eval", *arguments, env=environment)


def run_sacrebleu(*arguments: object) -> str:
    command = [sys.executable, "-m", "sacrebleu", *map(str, arguments), "--no-color", "--quiet"]
    return run_command(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("eval")
    for name, lines in (("src", SOURCE), ("ref", REFERENCE), ("hyp", HYPOTHESIS), ("other", OTHER)):
        (folder / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    (folder / "ref.gz").write_bytes(gzip.compress((folder / "ref").read_bytes()))
    (folder / "empty").write_text("")
    return folder


def test_the_first_lines_are_those_of_the_sacrebleu_command(folder: Path) -> None:
    found = run_eval("--hyp", folder / "hyp", folder / "ref")
    assert found.returncode == 0, found.stderr
    lines = found.stdout.split("\n")
    theirs = run_sacrebleu(folder / "ref", "-i", folder / "hyp", "-m", "bleu", "chrf", "ter", "--format", "text")
    assert [lines[0], lines[1], lines[3]] == [line.strip() for line in theirs.strip().split("\n")]
    assert lines[2].startswith("chrF2++|nrefs:1|case:mixed|eff:yes|nc:6|nw:2")
    assert "outputs: 1 empty (line 4), 0 looping, 0 over-short" in found.stdout
    assert found.stderr == ""


def test_json_has_a_key_per_metric_equal_to_the_sacrebleu_command(folder: Path) -> None:
    flags = ["--lowercase", "--tokenize", "intl"]
    found = run_eval("--hyp", folder / "hyp", folder / "ref", folder / "other", "--json", "--width", "4", *flags)
    ours = json.loads(found.stdout)
    theirs = json.loads(
        run_sacrebleu(folder / "ref", folder / "other", "-i", folder / "hyp", "-m", "bleu", "chrf", "-w", "4", *flags)
    )
    assert [(ours[key]["score"], ours[key]["signature"]) for key in ("bleu", "chrf")] == [
        (one["score"], one["signature"]) for one in theirs
    ]
    assert ours["references"] == 2
    assert ours["ter"]["signature"].startswith("nrefs:2|case:lc|tok:tercom")


def test_tokenized_text_is_remarked_on_once_unless_the_user_says_that_it_is(tmp_path: Path) -> None:
    for name in ("hyp.de", "ref.de"):
        (tmp_path / name).write_text("ein mann geht .\n" * 100, encoding="utf-8")
    files = ["--hyp", tmp_path / "hyp.de", tmp_path / "ref.de"]
    assert run_eval(*files).stderr.count("forgot to detokenize") == 1
    assert run_eval(*files, "--tokenize", "none").stderr == ""


def test_the_source_shows_copies_and_sets_the_buckets(folder: Path) -> None:
    ours = json.loads(run_eval("--hyp", folder / "hyp", folder / "ref.gz", "--source", folder / "src", "--json").stdout)
    assert ours["outputs"]["copied"] == {"count": 1, "lines": [3]}
    assert [(bucket["low"], bucket["high"], bucket["lines"]) for bucket in ours["by_length"]] == [(0, 5, 4), (6, 10, 1)]
    assert ours["worst"][0] == {
        "line": 4,
        "source": "Yes.",
        "references": ["Ja."],
        "hypothesis": "",
        "chrf": 0.0,
        "bleu": 0.0,
    }


def test_per_sentence_writes_a_row_for_each_line(folder: Path, tmp_path: Path) -> None:
    table = tmp_path / "rows.tsv"
    found = run_eval("--hyp", folder / "hyp", folder / "ref", "--source", folder / "src", "--per-sentence", table)
    assert found.returncode == 0, found.stderr
    rows = [line.split("\t") for line in table.read_text(encoding="utf-8").split("\n")[:-1]]
    assert rows[0] == ["line", "source", "reference", "hypothesis", "chrf", "bleu", "model_score", "length_ratio"]
    assert len(rows) == 6
    assert rows[2] == [
        "2",
        "I see the dog.",
        "Ich sehe den Hund.",
        "Ich sehe den Hund.",
        "100.00",
        "100.00",
        "",
        "1.000",
    ]
    assert rows[1][7] == "0.750"


def test_vs_tests_each_difference_as_sacrebleu_does(folder: Path) -> None:
    arguments = ["--hyp", folder / "hyp", folder / "ref", "--vs", folder / "other", "--metrics", "bleu,chrf"]
    found = run_eval(*arguments, "--paired-ar", "--paired-ar-n", "200", "--json", SACREBLEU_SEED="5")
    ours = json.loads(found.stdout)
    command = [sys.executable, "-m", "sacrebleu", str(folder / "ref"), "-i", str(folder / "hyp"), str(folder / "other")]
    command += ["-m", "bleu", "chrf", "--paired-ar", "--paired-ar-n", "200", "--quiet"]
    theirs = json.loads(run_command(command, capture_output=True, env={**os.environ, "SACREBLEU_SEED": "5"}).stdout)
    assert [one["metric"] for one in ours["comparison"]] == ["bleu", "chrf"]
    for one, title in zip(ours["comparison"], ("BLEU", "chrF2"), strict=True):
        assert [(system["score"], system["p_value"]) for system in one["systems"]] == [
            (system[title]["score"], system[title]["p_value"]) for system in theirs
        ]
        assert "ar:200|seed:5" in one["signature"]
    assert ours["systems"][0]["system"] == str(folder / "other")
    text = run_eval(*arguments, "--paired-bs", "--paired-bs-n", "50").stdout
    assert f"paired bootstrap test against {folder / 'hyp'}" in text
    assert "randomization" not in text
    better, worse = text.split("lines that are better in ")[1].split("lines that are worse in ")
    assert "line 4: chrF 0.0 in " in better
    assert "    translation  \n    the other's  Ja!\n    reference    Ja.\n" in better
    assert "line 2: chrF 100.0 in " in worse
    last = text.rstrip("\n").split("\n")[-1]
    assert last.startswith(f"{folder / 'other'} ")
    assert last == ours_said(folder, "--paired-bs", "--paired-bs-n", "50")


def ours_said(folder: Path, *options: str) -> str:
    """Return the conclusion in the JSON form of the same comparison."""
    arguments = ["--hyp", folder / "hyp", folder / "ref", "--vs", folder / "other", "--metrics", "bleu,chrf"]
    said: str = json.loads(run_eval(*arguments, *options, "--json").stdout)["systems"][0]["conclusion"]
    return said


def test_settings_that_differ_between_two_systems_are_named() -> None:
    one = {"beam": 5, "length_penalty": 1.0, "quantization": "int8", "model": "a", "seqtool": "1"}
    other = {**one, "length_penalty": 1.5, "quantization": "float32", "model": "b"}
    assert name_differences(one, other) == ["length penalty 1.0 and 1.5", "quantization int8 and float32"]
    assert name_differences(one, {**one, "model": "b"}) == []
    assert name_differences(one, None) == []  # made elsewhere


def test_models_that_were_searched_otherwise_are_not_compared_in_silence(model: RunDir, folder: Path) -> None:
    other = Path(shutil.copytree(model.path, folder / "penalised"))
    config = (other / "config.toml").read_text(encoding="utf-8")
    (other / "config.toml").write_text(re.sub("length_penalty = .*", "length_penalty = 0.25", config), encoding="utf-8")
    arguments = ["-m", model.path, folder / "src", folder / "ref", "--vs", other, "--engine", "torch"]
    found = run_eval(*arguments, "--paired-ar", "--paired-ar-n", "100", "--metrics", "chrf", "--worst", "0")
    assert found.returncode == 0, found.stderr
    warning, conclusion = found.stdout.rstrip("\n").split("\n")[-2:]
    assert "were made with other settings (length penalty " in warning
    assert conclusion.startswith(f"{other} ")


def test_confidence_intervals_are_those_of_sacrebleu(folder: Path) -> None:
    flags = ["--confidence", "--confidence-n", "40"]
    ours = run_eval("--hyp", folder / "hyp", folder / "ref", "--metrics", "chrf", *flags).stdout.split("\n")[0]
    theirs = run_sacrebleu(folder / "ref", "-i", folder / "hyp", "-m", "chrf", *flags, "--format", "text").strip()
    assert "μ" in ours
    assert ours == theirs


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (["hyp", "empty"], "empty: the file is empty"),
        (["empty", "ref"], "empty: the file is empty"),
        (["hyp", "none"], "none: no such file"),
        (["none", "ref"], "none: no such file"),
        (["short", "ref"], "short has 2 lines but the reference of ref has 5"),
        (["hyp", "ref", "short"], "ref has 5 lines but"),
        (["latin1", "ref"], "latin1: line 2 is not UTF-8"),
    ],
)
def test_bad_files_are_named_with_exit_code_1(folder: Path, files: list[str], message: str) -> None:
    (folder / "short").write_text("a\nb\n")
    (folder / "latin1").write_bytes(b"a\nStra\xdfe\n")
    hyp, *refs = [folder / name for name in files]
    found = run_eval("--hyp", hyp, *refs)
    assert (found.returncode, found.stdout) == (1, "")
    assert message in found.stderr
    assert len(found.stderr.strip().split("\n")) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--hyp", "hyp"], "at least one reference"),
        (["-m", "run", "src"], "a source and at least one reference"),
        (["src", "ref"], "either -m DIR"),
        (["-m", "run", "--hyp", "hyp", "ref"], "either -m DIR"),
        (["--hyp", "hyp", "--test-set", "wmt14"], "--langpair"),
        (["--hyp", "hyp", "ref", "--record"], "exactly one -m"),
    ],
)
def test_wrong_usage_is_explained_with_exit_code_2(arguments: list[str], message: str) -> None:
    found = run_eval(*arguments)
    assert (found.returncode, found.stdout) == (2, "")
    assert message in found.stderr


def test_a_model_that_is_none_and_a_bad_metric_are_named_before_anything_is_translated(folder: Path) -> None:
    found = run_eval("-m", folder / "no-model", folder / "src", folder / "ref")
    assert found.returncode == 1
    assert "no such model folder" in found.stderr
    found = run_eval("--hyp", folder / "hyp", folder / "ref", "--metrics", "bleau")
    assert found.returncode == 2
    assert "did you mean 'bleu'" in found.stderr
    found = run_eval("--hyp", folder / "hyp", folder / "ref", "--per-sentence", folder / "none" / "rows.tsv")
    assert found.returncode == 1
    assert "cannot be written" in found.stderr


def test_a_named_test_set_is_read_from_sacrebleus_cache(folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "wmt14"
    (cache / "raw").mkdir(parents=True)
    for field, lines in (
        ("src", SOURCE),
        ("ref", REFERENCE),
        ("docid", SOURCE),
        ("genre", SOURCE),
        ("origlang", SOURCE),
    ):
        (cache / f"wmt14.en-de.{field}").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    arguments = ["--hyp", folder / "hyp", "--test-set", "wmt14", "--langpair", "en-de", "--json"]
    found = run_eval(*arguments, SACREBLEU=str(tmp_path))
    assert found.returncode == 0, found.stderr
    ours = json.loads(found.stdout)
    assert ours["test_set"] == "wmt14/en-de"
    assert ours["outputs"]["copied"]["count"] == 1


def test_a_named_test_set_without_network_is_a_clear_error(folder: Path, tmp_path: Path) -> None:
    nowhere = "http://127.0.0.1:9"
    environment = {"SACREBLEU": str(tmp_path), "https_proxy": nowhere, "http_proxy": nowhere, "no_proxy": ""}
    arguments = ["--hyp", folder / "hyp", "--test-set", "wmt14", "--langpair", "en-de"]
    found = run_eval(*arguments, **environment)
    assert (found.returncode, found.stdout) == (1, "")
    assert "cannot download the test set wmt14" in found.stderr
    found = run_eval("--hyp", folder / "hyp", "--test-set", "wnt14", "--langpair", "en-de", **environment)
    assert "did you mean 'wmt14" in found.stderr
    found = run_eval("--hyp", folder / "hyp", "--test-set", "wmt14", "--langpair", "en-xx", **environment)
    assert "no language pair 'en-xx'" in found.stderr


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    return make_run(tmp_path_factory.mktemp("models") / "run")


def test_a_model_is_scored_as_its_own_translation_and_the_decoding_is_recorded(model: RunDir, tmp_path: Path) -> None:
    pairs = make_pairs(8, seed=21)
    source, reference, output = (tmp_path / name for name in ("src", "ref", "out"))
    source.write_text("".join(src + "\n" for src, _ in pairs), encoding="utf-8")
    reference.write_text("".join(tgt + "\n" for _, tgt in pairs), encoding="utf-8")
    arguments = ["-m", model.path, source, reference, "--engine", "torch", "--beam", "3", "--length-penalty", "0.6"]
    table = tmp_path / "rows.tsv"
    found = run_eval(*arguments, "--json", "--output", output, "--record", "--per-sentence", table)
    assert found.returncode == 0, found.stderr
    ours = json.loads(found.stdout)
    again = json.loads(run_eval("--hyp", output, reference, "--json").stdout)
    assert [ours[key] for key in ("bleu", "chrf", "chrf++", "ter")] == [
        again[key] for key in ("bleu", "chrf", "chrf++", "ter")
    ]
    decoding = ours["decoding"]
    assert (decoding["beam"], decoding["length_penalty"], decoding["engine"]) == (3, 0.6, "torch")
    assert decoding["quantization"] == "float32"
    assert decoding["model"] == sha256_of(model.weights)
    assert float(table.read_text(encoding="utf-8").split("\n")[1].split("\t")[6]) < 0  # the model's score

    recorded = model.read_manifest().scores
    assert [score.metric for score in recorded if score.set == "ref"] == ["bleu", "chrf", "chrf++", "ter"]
    assert recorded[-1].decoding == decoding
    run_eval(*arguments, "--record")
    assert model.read_manifest().scores == recorded  # the same again takes its own place
    other = tmp_path / "other"
    other.mkdir()
    (other / "ref").write_text("".join(tgt.upper() + "\n" for _, tgt in pairs), encoding="utf-8")
    run_eval("-m", model.path, source, other / "ref", *arguments[4:], "--record")
    assert len(model.read_manifest().scores) == len(recorded) + 4  # another set of the same name has its own


def test_scores_are_shown_even_where_a_file_cannot_be_written(folder: Path) -> None:
    found = run_eval("--hyp", folder / "hyp", folder / "ref", "--output", "/dev/full")
    assert found.returncode == 1
    assert found.stdout.startswith("BLEU|")
    assert "No space left on device; check the path" in found.stderr
    assert "Traceback" not in found.stderr


def test_sentence_scores_come_with_their_signatures(folder: Path) -> None:
    found = run_eval("--hyp", folder / "hyp", folder / "ref", "--worst", "1", "--metrics", "bleu")
    assert "worst lines by sentence chrF|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:" in found.stdout
    found = run_eval("--hyp", folder / "hyp", folder / "ref", folder / "other", "--worst", "1", "--json")
    signatures = json.loads(found.stdout)["sentence_signatures"]
    assert signatures["chrf"].startswith("nrefs:2|case:mixed|eff:yes|nc:6")
    assert signatures["bleu"].startswith("nrefs:2|case:mixed|eff:yes|tok:13a")


def test_a_model_is_compared_with_a_translation_given_its_source(model: RunDir, folder: Path) -> None:
    found = run_eval("--hyp", folder / "hyp", folder / "ref", "--vs", model.path)
    assert found.returncode == 2
    assert "--source" in found.stderr
    arguments = ["--hyp", folder / "hyp", folder / "ref", "--source", folder / "src", "--vs", model.path]
    found = run_eval(*arguments, "--paired-ar", "--paired-ar-n", "100", "--beam", "1", "--metrics", "chrf")
    assert found.returncode == 0, found.stderr
    assert f"{model.path}:\nchrF2|" in found.stdout
    assert "decoding: beam 1," in found.stdout


def test_what_vs_names_is_checked_before_anything_is_translated(model: RunDir, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "short").write_text("a\nb\n")
    (tmp_path / "nothing").mkdir()
    damaged = Path(shutil.copytree(model.path, tmp_path / "damaged"))
    (damaged / "model.safetensors").write_bytes(b"junk")
    vouch(RunDir(damaged))
    for name, message in (
        ("none", "none: no such file"),
        ("short", "short has 2 lines but the reference of ref has 5"),
        ("nothing", "nothing: config.toml is missing, so this is not the folder of a model"),
    ):
        # A damaged model would be reported first, if it were loaded.
        found = run_eval("-m", damaged, folder / "src", folder / "ref", "--vs", tmp_path / name)
        assert (found.returncode, found.stdout) == (1, "")
        assert message in found.stderr


def test_a_pipe_is_written_into_and_not_replaced(folder: Path, tmp_path: Path) -> None:
    lines, rows = tmp_path / "lines", tmp_path / "rows"
    found: dict[Path, bytes] = {}
    readers = []
    for pipe in (lines, rows):
        os.mkfifo(pipe)
        # daemons: a pipe that nobody writes into would hold its reader for ever
        reader = threading.Thread(target=lambda pipe=pipe: found.update({pipe: pipe.read_bytes()}), daemon=True)
        reader.start()
        readers.append(reader)
    done = run_eval("--hyp", folder / "hyp", folder / "ref", "--output", lines, "--per-sentence", rows)
    assert done.returncode == 0, done.stderr
    assert all(stat.S_ISFIFO(pipe.stat().st_mode) for pipe in (lines, rows))
    for reader in readers:
        reader.join(timeout=30)
    assert found[lines] == (folder / "hyp").read_bytes()
    assert found[rows].count(b"\n") == 6


def test_the_settings_of_the_decoding_are_told_whole(tmp_path: Path) -> None:
    from tiny_run import make_run as make_tiny

    from seqtool.evaluation.scores.reference_set import ReferenceSet
    from seqtool.evaluation.scores.systems import translate_set
    from seqtool.translation.engines.settings import EngineSettings

    run = make_tiny(tmp_path / "run")
    settings = EngineSettings(engine="torch", compute_type="bfloat16")
    search = {"beam": 4, "coverage_penalty": 0.2, "no_repeat_ngram": 3}
    found = translate_set([run.path], ReferenceSet("ref", ["a man"], [["ein Mann"]]), settings, search).decoding
    assert found == {
        "beam": 4,
        "length_penalty": 1.0,
        "coverage_penalty": 0.2,
        "max_length_ratio": 2.0,
        "no_repeat_ngram": 3,
        "engine": "torch",
        "quantization": "bfloat16",
        "model": sha256_of(run.weights),
        "seqtool": __version__,
    }
