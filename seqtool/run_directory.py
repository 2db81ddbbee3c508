"""A run directory: the names in it, the files that make its model, and its manifest."""

import contextlib
import datetime
import hashlib
import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from seqtool import __version__
from seqtool.errors import SeqtoolError
from seqtool.files import restore_folders, to_json, write_whole
from seqtool.manifest import FORMAT, DataFacts, Manifest, ModelFacts, from_plain, to_plain
from seqtool.verification import MIB, checksum, read_limited, require_regular, seal

MAX_MANIFEST = 4 * MIB
MOST_LISTINGS = 3  # of checkpoints; one made while a new one takes the place of the old may show neither


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
        """The target side's tokenizer; it exists only if the vocabularies are separate."""
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
    def plan(self) -> Path:
        """The order of the pairs in the present epochs, if the corpus is large."""
        return self.path / "plan"

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
    def begun_by(self) -> Path:
        """The file that names the torchrun that last started the run over."""
        return self.path / ".begun-by"

    @property
    def model_files(self) -> list[Path]:
        """The files that make the model, those of them that are there: a copy of these translates alike."""
        files = (self.config, self.tokenizer, self.target_tokenizer, self.weights)
        return [file for file in files if file.exists()]

    def checksums(self) -> dict[str, str]:
        """Return the checksum of each of the model's files by its name."""
        return {file.name: checksum(file) for file in self.model_files}

    def restore(self) -> None:
        """Put right what a killed process left half-written: former folders have their names again."""
        for parent in (self.path, self.checkpoints):
            restore_folders(parent)

    def remove(self) -> None:
        """Remove what a run left in the folder, and nothing else."""
        for folder in (self.checkpoints, self.prepared, self.plan, self.ctranslate2, self.tensorboard):
            shutil.rmtree(folder, ignore_errors=True)
        for file in (*self.model_files, self.manifest, self.metrics, self.valid_lines, self.report):
            file.unlink(missing_ok=True)

    def checkpoint_folders(self) -> list[Path]:
        """Return the run's checkpoints that were written to their end, oldest first."""
        for _ in range(MOST_LISTINGS):
            folders = self.checkpoints.glob("step-*")
            if found := sorted(
                path for path in folders if path.name.removeprefix("step-").isdecimal() and path.is_dir()
            ):
                return found
        return []

    def require_model(self) -> "RunDir":
        """Return self, or raise if this is not a folder that can translate, each of its files as it was recorded."""
        self.require_files()
        self.verify()
        return self

    def require_files(self) -> "RunDir":
        """Return self, or raise if this is no folder with a model; its files are not verified."""
        if not self.path.exists():
            raise SeqtoolError(f"{self.path}: no such model folder; train one with 'seqtool train -o {self.path}'")
        for needed in (self.config, self.tokenizer, self.weights):
            if not needed.exists():
                raise SeqtoolError(f"{self.path}: {needed.name} is missing, so {self._explain_missing(needed)}")
        return self

    def _explain_missing(self, needed: Path) -> str:
        """Return what it means that a file of the model is missing, and what to do."""
        if needed == self.weights and self.checkpoint_folders():
            return "this training has not ended; give the same 'seqtool train' command again to continue it"
        if needed == self.weights and self.prepared.exists():
            return "its training has saved no checkpoint yet; wait for the first one, or start it again"
        if self.config.exists() and not self.prepared.exists():
            return "the model is not whole; restore it from a copy"
        if (self.path / "config.json").exists():
            return f"this is no model of seqtool; if it is one of Hugging Face: seqtool import {self.path} -o DIR"
        return "this is not the folder of a model; give the one that 'seqtool train -o' was given"

    def verify(self) -> None:
        """Raise if a file of the model is not the one that the manifest records."""
        for file in self.model_files:
            require_regular(file, self.path)
        manifest = self.read_manifest()
        if not self.manifest.exists():
            raise SeqtoolError(f"{self.manifest}: is missing, so the model cannot be verified; restore it from a copy")
        if missing := sorted(name for name in manifest.files if not (self.path / name).exists()):
            raise SeqtoolError(f"{self.path / missing[0]}: is missing; restore it from a copy")
        for file in self.model_files:
            expected = manifest.files.get(file.name)
            if expected is None and manifest.sha256 is None:
                continue  # a manifest that was not written by seqtool, or by an early version
            if expected != checksum(file) and not (file == self.config and self.may_differ(manifest)):
                advice = "; only its [decode] may be changed" if file == self.config else ""
                raise SeqtoolError(
                    f"{file}: is not the file that {self.manifest.name} records{advice}. It is damaged or was "
                    "replaced: restore it from a copy, or run 'seqtool train' again as before"
                )

    def note_changes(self) -> list[str]:
        """Return a note for the user if config.toml is not as it was when the model was made, and may be so."""
        manifest = self.read_manifest()
        expected = manifest.files.get(self.config.name)
        if expected is None or expected == checksum(self.config):
            return []
        what = "[decode] is" if manifest.settings_sha256 else "it is"
        return [f"{self.config}: {what} not as it was when the model was made"]

    def may_differ(self, manifest: Manifest) -> bool:
        """Return whether config.toml, if not as recorded, differs in [decode] only; an early manifest cannot say."""
        return manifest.settings_sha256 in (None, self.sum_settings())

    def sum_settings(self) -> str:
        """Return the checksum of all settings but those of [decode]."""
        from seqtool.config.reading import read_toml

        sections = {name: section for name, section in read_toml(self.config).values.items() if name != "decode"}
        return hashlib.sha256(json.dumps(sections, sort_keys=True, default=str).encode()).hexdigest()

    def read_manifest(self) -> Manifest:
        """Return the manifest, an empty one if there is none."""
        try:
            content = json.loads(read_limited(self.manifest, MAX_MANIFEST))
            manifest = from_plain(Manifest, content)
            if manifest.sha256 is not None and manifest.sha256 != seal({**content, "sha256": None}):
                raise ValueError("it does not match its own checksum")
            if odd := [name for name in manifest.files if name in (".", "..") or "/" in name or "\0" in name]:
                raise ValueError(f"it names a file outside of its folder, {odd[0]!r}")
        except FileNotFoundError:
            return Manifest()
        except (OSError, ValueError, RecursionError) as error:
            raise SeqtoolError(f"{self.manifest}: not a whole manifest ({error}); restore it from a copy") from None
        if manifest.format is not None and manifest.format > FORMAT:
            raise SeqtoolError(f"{self.manifest}: was written by a newer seqtool; use that version, or a newer one")
        return manifest

    def write_manifest(self, manifest: Manifest) -> None:
        """Write the manifest, whole or not at all, with its own checksum."""
        if manifest.settings_sha256 is None and manifest.files.get(self.config.name) == self._sum_config():
            with contextlib.suppress(SeqtoolError):  # what is no configuration has no settings
                manifest = replace(manifest, settings_sha256=self.sum_settings())
        content = to_plain(replace(manifest, sha256=None))
        write_whole(self.manifest, to_json({**content, "sha256": seal({**content, "sha256": None})}))

    def _sum_config(self) -> str:
        return checksum(self.config) if self.config.is_file() else ""

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
        with contextlib.suppress(FileNotFoundError):
            if read_limited(self.config, MAX_MANIFEST).decode("utf-8", "replace") == text:
                return
        write_whole(self.config, text)
        manifest = self.read_manifest()
        if self.config.name in manifest.files:
            files = {**manifest.files, self.config.name: checksum(self.config)}
            self.write_manifest(replace(manifest, files=files, settings_sha256=None))


def _versions() -> dict[str, str]:
    """Return the versions of what a model is made with."""
    import importlib.metadata
    import platform

    names = ("torch", "sentencepiece", "numpy", "safetensors", "sacrebleu")
    return {"python": platform.python_version(), **{name: importlib.metadata.version(name) for name in names}}
