"""Opening a model or a checkpoint that someone sends you runs no code of theirs."""

import json
import os
import pickle  # noqa: TID251
import shutil
from pathlib import Path

import pytest
from tiny_run import make_run

from seqtool.errors import SeqtoolError
from seqtool.files import sha256_of
from seqtool.run_directory import RunDir
from seqtool.translation.average import average
from seqtool.translation.translator import Translator


class Payload:
    """Makes a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    return make_run(tmp_path_factory.mktemp("run"))


def test_the_payload_works(tmp_path: Path) -> None:
    pickle.loads(pickle.dumps(Payload(tmp_path / "made")))
    assert (tmp_path / "made").exists()


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.model", "config.toml"])
def test_a_pickle_in_place_of_a_models_file_is_refused_and_not_run(run: RunDir, tmp_path: Path, name: str) -> None:
    sent = RunDir(shutil.copytree(run.path, tmp_path / "sent"))
    (sent.path / name).write_bytes(pickle.dumps(Payload(tmp_path / "made")))
    manifest = sent.read_manifest()
    manifest.files[name] = sha256_of(sent.path / name)  # whoever plants it writes its checksum too
    sent.write_manifest(manifest)
    with pytest.raises(SeqtoolError):
        Translator.load(sent.path)
    assert not (tmp_path / "made").exists()


def test_a_pickle_in_place_of_a_checkpoint_is_refused_and_not_run(tmp_path: Path) -> None:
    folder = tmp_path / "step-000000010"
    folder.mkdir()
    file = folder / "model.safetensors"
    file.write_bytes(pickle.dumps(Payload(tmp_path / "made")))
    (folder / "state.json").write_text(json.dumps({"files": {file.name: sha256_of(file)}}))
    with pytest.raises(SeqtoolError):
        average([folder, folder], tmp_path / "mean")
    assert not (tmp_path / "made").exists()
