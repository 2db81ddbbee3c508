"""The names in a run directory, the files of its model, and its manifest."""

import json
from pathlib import Path

import pytest

from seqtool.errors import SeqtoolError
from seqtool.manifest import DataFacts, Manifest, ModelFacts
from seqtool.run_directory import RunDir


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("[]", "it is no object"),
        ("{", "Expecting property name"),
        ("[" * 100_000, "recursion"),
        ('{"files": []}', r"files is \[\]"),
        ('{"files": {"config.toml": 1}}', r"files\.config\.toml is 1"),
        ('{"training": "x"}', "training is no object"),
        ('{"training": {"steps": true}}', r"training\.steps is True"),
        ('{"training": {"minutes": "long"}}', r"training\.minutes is 'long'"),
        ('{"model": {"length_penalty": [1]}}', r"model\.length_penalty is \[1\]"),
        ('{"scores": {}}', "scores is {}"),
        ('{"scores": [{"metric": "bleu"}]}', r"scores\[0\]\.score is missing"),
        ('{"scores": [{"score": 1}, {"score": null}]}', r"scores\[1\]\.score is None"),
        ('{"complete": 1}', "complete is 1"),
    ],
)
def test_what_is_no_manifest_is_named(tmp_path: Path, content: str, place: str) -> None:
    run = RunDir(tmp_path)
    run.manifest.write_text(content, encoding="utf-8")
    with pytest.raises(SeqtoolError, match=rf"manifest\.json: .*{place}.*; restore it from a copy"):
        run.read_manifest()


def test_a_manifest_that_is_written_again_keeps_what_is_not_known(tmp_path: Path) -> None:
    content = {
        "format": 1,
        "licence": {"name": "CC0"},
        "files": {"config.toml": "abc", "extra": "def"},
        "data": {"pairs": 3, "sources": ["a", ["b", {"path": "c"}]], "owner": "me"},
        "model": {"candidates": {"last": 1, "best": 2.5}, "length_penalty": None, "colour": ["blue"]},
        "scores": [{"metric": "bleu", "score": 1, "signature": "s", "decoding": {"beam": 5, "x": None}, "by": "hand"}],
        "training": {"epochs": 6.5, "minutes": 1, "finished": True, "watts": 9},
        "complete": False,
    }
    run = RunDir(tmp_path)
    run.manifest.write_text(json.dumps(content), encoding="utf-8")
    run.write_manifest(run.read_manifest())
    written = json.loads(run.manifest.read_text(encoding="utf-8"))
    assert len(written.pop("sha256")) == 64
    assert written == {**content, "versions": {}}
    run.config.write_text("[model]\n", encoding="utf-8")
    made = run.make_manifest(ModelFacts(), DataFacts())
    assert made.others == {"licence": {"name": "CC0"}}  # what someone wrote into it is not lost when it is made anew
    assert (made.files, made.scores) == (run.checksums(), ())


def test_without_a_manifest_nothing_is_known(tmp_path: Path) -> None:
    assert RunDir(tmp_path).read_manifest() == Manifest()


def test_a_changed_configuration_stays_true_to_the_manifest(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    run.write_config("one")
    assert not run.manifest.exists()
    run.write_manifest(Manifest(files=run.checksums(), created="now"))
    run.write_config("two")
    assert run.read_manifest() == Manifest(files=run.checksums(), created="now")


def test_only_folders_with_the_names_of_checkpoints_are_checkpoints(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    for name in ("step-000000020", "step-000000003", "step-000000020-good", "step-000000030.tmp", "best"):
        (run.checkpoints / name).mkdir(parents=True)
    assert [path.name for path in run.checkpoint_folders()] == ["step-000000003", "step-000000020"]


def test_removing_a_run_leaves_what_is_not_its_own(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    for folder in (run.best, run.prepared, run.ctranslate2, run.tensorboard):
        folder.mkdir(parents=True)
    files = ["config.toml", "tokenizer.model", "tokenizer.target.model", "model.safetensors"]
    for name in (*files, "manifest.json", "metrics.jsonl", "valid.jsonl", "report.html", "notes.txt"):
        (tmp_path / name).write_text(name)
    assert [path.name for path in run.model_files] == files
    run.target_tokenizer.unlink()
    assert set(run.checksums()) == {"config.toml", "tokenizer.model", "model.safetensors"}
    run.remove()
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
