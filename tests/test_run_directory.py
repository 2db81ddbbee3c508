"""The names in a run directory, the files of its model, and its manifest."""

from pathlib import Path

import pytest

from seqtool.errors import SeqtoolError
from seqtool.run_directory import RunDir


@pytest.mark.parametrize(
    "content", ["[]", '{"files": []}', '{"training": "x"}', '{"scores": [{}]}', '{"scores": {}}', "{"]
)
def test_what_is_no_manifest_is_named(tmp_path: Path, content: str) -> None:
    run = RunDir(tmp_path)
    run.manifest.write_text(content, encoding="utf-8")
    with pytest.raises(SeqtoolError, match=r"manifest\.json: .*; restore it from a copy"):
        run.read_manifest()


def test_only_folders_with_the_names_of_checkpoints_are_checkpoints(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    for name in ("step-000000020", "step-000000003", "step-000000020-good", "step-000000030.tmp", "best"):
        (run.checkpoints / name).mkdir(parents=True)
    assert [path.name for path in run.checkpoint_folders()] == ["step-000000003", "step-000000020"]


def test_removing_a_run_leaves_what_is_not_its_own(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    for folder in (run.best, run.prepared, run.ctranslate2):
        folder.mkdir(parents=True)
    files = ["config.toml", "tokenizer.model", "tokenizer.target.model", "model.safetensors"]
    for name in (*files, "manifest.json", "metrics.jsonl", "valid.jsonl", "report.html", "notes.txt"):
        (tmp_path / name).write_text(name)
    assert [path.name for path in run.model_files] == files
    run.target_tokenizer.unlink()
    assert set(run.checksums()) == {"config.toml", "tokenizer.model", "model.safetensors"}
    run.remove()
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
