"""The model card of a run directory: what it is, what it was trained on, its scores, and whether its files are whole.

Needs no torch: sizes come from the configuration, the tokenizer and the header of the weights.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from seqtool.config import Config, load_config
from seqtool.corpus.tokenizer.registry import load_pair
from seqtool.errors import SeqtoolError
from seqtool.evaluation.report.history import History, read_history
from seqtool.manifest import DataFacts, Manifest, ScoreEntry, TrainingFacts, to_plain
from seqtool.model.header import count_weights
from seqtool.model.kinds import kind_of
from seqtool.run_directory import RunDir
from seqtool.translation.export.record import find_damage, read_record
from seqtool.unfinished import read_state
from seqtool.verification import checksum, require_regular


@dataclass(frozen=True)
class FileCheck:
    """A file that the manifest names, and what became of it."""

    name: str
    sha256: str
    n_bytes: int
    state: str  # "whole", "damaged", "missing", "changed in [decode]" or "not checked"
    cause: str = ""  # where it is more than that


@dataclass(frozen=True)
class Card:
    """All that is known of a run directory."""

    path: str
    state: str  # "trained" or "in training"
    manifest: Manifest
    history: History
    config: Config | None
    n_parameters: int | None
    vocabulary: tuple[int, int] | None  # source and target
    data: DataFacts = DataFacts()
    files: tuple[FileCheck, ...] = ()
    saved: Mapping[str, Any] = field(default_factory=dict)  # where a training stands by its newest checkpoint

    @property
    def problems(self) -> list[str]:
        """The files that are not as the manifest says."""
        return [
            check.cause or f"{check.name} is {check.state}"
            for check in self.files
            if check.state in ("damaged", "missing")
        ]

    @property
    def scores(self) -> tuple[ScoreEntry, ...]:
        """The recorded scores, or those of the best validation if the run has not recorded any yet."""
        if self.manifest.scores:
            return self.manifest.scores
        best = self.history.best or (self.history.valid[-1] if self.history.valid else None)
        return tuple(
            ScoreEntry(set="valid", metric=name, score=best[name], signature=best[f"{name}_signature"])
            for name in ("bleu", "chrf")
            if best and name in best and f"{name}_signature" in best
        )

    @property
    def training(self) -> TrainingFacts:
        """How long and how far it was trained, from the manifest or from the history so far."""
        if self.manifest.training:
            return self.manifest.training
        last = self.history.train[-1] if self.history.train else {}
        saved = self.saved
        if saved.get("step", 0) > self.history.last_step:
            last = {"epoch": saved["epoch"], "minutes": saved["seconds"] / 60}
        return TrainingFacts(
            steps=max(self.history.last_step, saved.get("step", 0)),
            epochs=last.get("epoch"),
            minutes=last.get("minutes"),
            finished=self.state == "trained",  # an averaged model has no history of its own
        )

    def to_json(self) -> dict[str, Any]:
        """Return the card for programs."""
        manifest = self.manifest
        return {
            "path": self.path,
            "state": self.state,
            "whole": not self.problems,
            "problems": self.problems,
            "seqtool": manifest.seqtool,
            "created": manifest.created,
            "versions": manifest.versions,
            "model": {**to_plain(manifest.model), "parameters": self.n_parameters},
            "vocabulary": dict(zip(("source", "target"), self.vocabulary, strict=True)) if self.vocabulary else None,
            "data": to_plain(self.data),
            "training": to_plain(self.training),
            "parent": to_plain(manifest.parent),
            "scores": to_plain(self.scores),
            "config": asdict(self.config) if self.config else None,
            "files": [
                {"name": check.name, "sha256": check.sha256, "bytes": check.n_bytes, "state": check.state}
                for check in self.files
            ],
        }


def read_card(run: RunDir, verify: bool = True) -> Card:
    """Read the card of a run directory, trained or still in training; `verify` reads every file to check its sum."""
    if not run.path.is_dir():
        raise SeqtoolError(f"{run.path}: no such run directory; train one with 'seqtool train -o {run.path}'")
    manifest = run.read_manifest()
    if not run.manifest.is_file() and not run.config.is_file():
        raise SeqtoolError(f"{run.path}: not a run directory (it has no config.toml); give the folder of a training")
    training = manifest.training or TrainingFacts()
    finished = run.manifest.is_file() and training.finished is not False
    files = check_files(run, find_recorded(run, manifest), verify)
    files = [accept_changes(run, manifest, check) for check in files]
    damaged = {check.name for check in files if check.state in ("damaged", "missing")}
    if verify and not damaged:
        files += check_export(run)
    config = None if run.config.name in damaged or not run.config.is_file() else load_config(run.config)
    vocabulary = None if damaged & {run.tokenizer.name, run.target_tokenizer.name} else read_vocabulary(run)
    n_parameters = count_weights(run) or manifest.model.parameters
    if n_parameters is None and config and vocabulary:
        n_parameters = kind_of(config.model).count_parameters(config.model, *vocabulary).total
    return Card(
        path=str(run.path),
        state="trained" if finished and run.weights.is_file() else "in training",
        manifest=manifest,
        history=read_history(run),
        config=config,
        n_parameters=n_parameters,
        vocabulary=vocabulary,
        data=manifest.data if manifest.data != DataFacts() else describe_prepared(run),
        files=tuple(files),
        saved=read_saved(run),
    )


def read_saved(run: RunDir) -> dict[str, Any]:
    """Return where a training stands by its newest checkpoint that can be read."""
    for folder in reversed(run.checkpoint_folders()):
        with contextlib.suppress(SeqtoolError):
            state = read_state(folder).get("run", {})
            if all(isinstance(state.get(name), int | float) for name in ("step", "epoch", "seconds")):
                return dict(state)
    return {}


def check_files(run: RunDir, sums: Mapping[str, str], verify: bool) -> list[FileCheck]:
    """Compare the files of a run directory with the checksums of its manifest."""
    checks = []
    for name, expected in sums.items():
        path = run.path / name
        try:
            size = require_regular(path, run.path).st_size
            state = ("whole" if checksum(path) == expected else "damaged") if verify else "not checked"
        except OSError:
            size, state = 0, "missing"
        except SeqtoolError as error:  # it is no file of this folder
            checks.append(FileCheck(name, expected, 0, "damaged", str(error)))
            continue
        checks.append(FileCheck(name, expected, size, state))
    return checks


def accept_changes(run: RunDir, manifest: Manifest, check: FileCheck) -> FileCheck:
    """Return the check of a file, changed where it is config.toml and only its [decode] differs."""
    if check.name != run.config.name or check.state != "damaged" or check.cause or not manifest.settings_sha256:
        return check
    try:
        return replace(check, state="changed in [decode]") if run.may_differ(manifest) else check
    except SeqtoolError:
        return check


def find_recorded(run: RunDir, manifest: Manifest) -> dict[str, str]:
    """Return the checksums that are recorded of a run's files: of its model, its export and its prepared corpus."""
    from seqtool.corpus.preparing.prepared import FILES
    from seqtool.corpus.preparing.prepared import read_manifest as read_prepared

    exported = (read_record(run.ctranslate2) or {}).get("files")
    prepared = (read_prepared(run.prepared) or {}).get("files")
    found = dict(manifest.files)
    if isinstance(exported, dict):
        plain = {name: str(sha) for name, sha in exported.items() if name == Path(name).name}
        found |= {f"{run.ctranslate2.name}/{name}": sha for name, sha in plain.items()}
    if isinstance(prepared, dict) and all(isinstance(prepared.get(name), dict) for name in FILES):
        found |= {f"{run.prepared.name}/{name}": str(prepared[name].get("sha256")) for name in FILES}
    return found


def check_export(run: RunDir) -> list[FileCheck]:
    """Return what keeps the exported form from being used, beside a damaged file of it."""
    damage = find_damage(run, load_pair(run)) if run.ctranslate2.exists() and run.weights.exists() else None
    return [FileCheck(run.ctranslate2.name, "", 0, "damaged", damage)] if damage else []


def describe_prepared(run: RunDir) -> DataFacts:
    """Return what is known of the data while a run has no manifest yet: the records of its prepared corpus."""
    from seqtool.corpus.preparing.prepared import PreparedCorpus

    try:
        return PreparedCorpus.open(run.prepared).describe()
    except SeqtoolError:
        return DataFacts()


def read_vocabulary(run: RunDir) -> tuple[int, int] | None:
    """Return the vocabulary sizes of source and target."""
    if not run.tokenizer.is_file():
        return None
    tokenizers = load_pair(run)
    return tokenizers.source.vocab_size, tokenizers.target.vocab_size
