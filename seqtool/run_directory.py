"""A run directory: the names in it, the files that make its model, and its manifest."""

import datetime
import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from seqtool import __version__
from seqtool.errors import SeqtoolError
from seqtool.files import restore_folders, sha256_of, to_json, write_whole
from seqtool.manifest import FORMAT, DataFacts, Manifest, ModelFacts, from_plain, to_plain


@dataclass(frozen=True)
class RunDir:
    """The names inside a run directory."""

    path: Path

    @property
    def config(self) -> Path:
        return self.path / "config.toml"

    @property
    def tokenizer(self) -> Path:
        return self.path / "tokenizer.model"

    @property
    def target_tokenizer(self) -> Path:
        """The target side's tokenizer; it exists only where the vocabularies are separate."""
        return self.path / "tokenizer.target.model"

    @property
    def weights(self) -> Path:
        return self.path / "model.safetensors"

    @property
    def manifest(self) -> Path:
        return self.path / "manifest.json"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def valid_lines(self) -> Path:
        """The validation set with the model's translations, as JSON Lines."""
        return self.path / "valid.jsonl"

    @property
    def ctranslate2(self) -> Path:
        return self.path / "ctranslate2"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def best(self) -> Path:
        """The checkpoint with the best validation score."""
        return self.checkpoints / "best"

    @property
    def prepared(self) -> Path:
        return self.path / "prepared"

    @property
    def report(self) -> Path:
        return self.path / "report.html"

    @property
    def tensorboard(self) -> Path:
        return self.path / "tensorboard"

    @property
    def lock(self) -> Path:
        """The file that a training locks while it is at work in the folder."""
        return self.path / ".lock"

    @property
    def model_files(self) -> list[Path]:
        """The files that make the model, those of them that are there: a copy of these translates alike."""
        files = (self.config, self.tokenizer, self.target_tokenizer, self.weights)
        return [file for file in files if file.exists()]

    def checksums(self) -> dict[str, str]:
        """Return the checksum of each of the model's files by its name."""
        return {file.name: sha256_of(file) for file in self.model_files}

    def restore(self) -> None:
        """Put right what a killed process left half-written: former folders have their names again."""
        for parent in (self.path, self.checkpoints):
            restore_folders(parent)

    def remove(self) -> None:
        """Remove what a run left in the folder, and nothing else."""
        for folder in (self.checkpoints, self.prepared, self.ctranslate2, self.tensorboard):
            shutil.rmtree(folder, ignore_errors=True)
        for file in (*self.model_files, self.manifest, self.metrics, self.valid_lines, self.report):
            file.unlink(missing_ok=True)

    def checkpoint_folders(self) -> list[Path]:
        """Return the run's checkpoints that were written to their end, oldest first."""
        folders = self.checkpoints.glob("step-*")
        return sorted(path for path in folders if path.name.removeprefix("step-").isdecimal() and path.is_dir())

    def require_model(self) -> "RunDir":
        """Return self, or raise if this is not a folder that can translate."""
        if not self.path.exists():
            raise SeqtoolError(f"{self.path}: no such model folder; train one with 'seqtool train -o {self.path}'")
        for needed in (self.config, self.tokenizer, self.weights):
            if not needed.is_file():
                raise SeqtoolError(
                    f"{self.path}: not a trained model ({needed.name} is missing); name the folder of a training"
                )
        return self

    def read_manifest(self) -> Manifest:
        """Return the manifest, an empty one if there is none."""
        try:
            return from_plain(Manifest, json.loads(self.manifest.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return Manifest()
        except (OSError, ValueError, RecursionError) as error:
            raise SeqtoolError(f"{self.manifest}: not a whole manifest ({error}); restore it from a copy") from None

    def write_manifest(self, manifest: Manifest) -> None:
        """Write the manifest, whole or not at all."""
        write_whole(self.manifest, to_json(to_plain(manifest)))

    def make_manifest(self, model: ModelFacts, data: DataFacts) -> Manifest:
        """Return a new manifest that vouches for the model's files as they are now."""
        return Manifest(
            format=FORMAT,
            seqtool=__version__,
            created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            files=self.checksums(),
            versions=_versions(),
            data=data,
            model=model,
            others=self.read_manifest().others,
        )

    def write_config(self, text: str) -> None:
        """Write config.toml if it changes, and keep the manifest of a model that is there already true to it."""
        if self.config.exists() and self.config.read_text(encoding="utf-8") == text:
            return
        write_whole(self.config, text)
        manifest = self.read_manifest()
        if self.config.name in manifest.files:
            files = {**manifest.files, self.config.name: sha256_of(self.config)}
            self.write_manifest(replace(manifest, files=files))


def _versions() -> dict[str, str]:
    """Return the versions of what a model is made with."""
    import importlib.metadata
    import platform

    names = ("torch", "sentencepiece", "numpy", "safetensors", "sacrebleu")
    return {"python": platform.python_version(), **{name: importlib.metadata.version(name) for name in names}}
