"""The model card of a run directory: what it is, what it was trained on, its scores, and whether its files are whole.

Needs no torch: sizes come from the configuration, the tokenizer and the header of the weights.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from seqtool.config import Config, load_config
from seqtool.errors import SeqtoolError
from seqtool.evaluation.report.history import History, read_history
from seqtool.files import sha256_of
from seqtool.model.kinds import kind_of
from seqtool.run_directory import RunDir

MAX_HEADER_BYTES = 100_000_000  # the limit of the safetensors format


@dataclass(frozen=True)
class FileCheck:
    """A file that the manifest names, and what became of it."""

    name: str
    sha256: str
    n_bytes: int
    state: str  # "whole", "damaged", "missing" or "not checked"


@dataclass(frozen=True)
class Card:
    """All that is known of a run directory."""

    path: str
    state: str  # "trained" or "in training"
    manifest: Mapping[str, Any]
    history: History
    config: Config | None
    n_parameters: int | None
    vocabulary: tuple[int, int] | None  # source and target
    data: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[FileCheck, ...] = ()

    @property
    def problems(self) -> list[str]:
        """The files that are not as the manifest says."""
        return [f"{check.name} is {check.state}" for check in self.files if check.state in ("damaged", "missing")]

    @property
    def scores(self) -> list[dict[str, Any]]:
        """The recorded scores, or those of the best validation where the run has not recorded any yet."""
        recorded = self.manifest.get("scores")
        if isinstance(recorded, list) and recorded:
            return [score for score in recorded if isinstance(score, dict)]
        best = self.history.best or (self.history.valid[-1] if self.history.valid else None)
        return [
            {"set": "valid", "metric": name, "score": best[name], "signature": best[f"{name}_signature"]}
            for name in ("bleu", "chrf")
            if best and name in best and f"{name}_signature" in best
        ]

    @property
    def training(self) -> dict[str, Any]:
        """How long and how far it was trained, from the manifest or from the history so far."""
        recorded = self.manifest.get("training")
        if isinstance(recorded, dict) and recorded:
            return recorded
        last = self.history.train[-1] if self.history.train else {}
        return {
            "steps": self.history.last_step,
            "epochs": last.get("epoch"),
            "minutes": last.get("minutes"),
            "finished": self.state == "trained",  # an averaged model has no history of its own
        }

    def to_json(self) -> dict[str, Any]:
        """Return the card for programs."""
        manifest = self.manifest
        return {
            "path": self.path,
            "state": self.state,
            "whole": not self.problems,
            "problems": self.problems,
            "seqtool": manifest.get("seqtool"),
            "created": manifest.get("created"),
            "versions": manifest.get("versions", {}),
            "model": {**manifest.get("model", {}), "parameters": self.n_parameters},
            "vocabulary": dict(zip(("source", "target"), self.vocabulary, strict=True)) if self.vocabulary else None,
            "data": self.data,
            "training": self.training,
            "scores": self.scores,
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
    if not manifest and not run.config.is_file():
        raise SeqtoolError(f"{run.path}: not a run directory (it has no config.toml); give the -o folder of a training")
    finished = manifest.get("training", {}).get("finished", True) if manifest else False
    files = check_files(run, manifest.get("files", {}), verify)
    damaged = {check.name for check in files if check.state != "whole"} if verify else set()
    config = None if "config.toml" in damaged or not run.config.is_file() else load_config(run.config)
    vocabulary = None if damaged & {run.tokenizer.name, run.target_tokenizer.name} else read_vocabulary(run)
    n_parameters = count_weights(run) or manifest.get("model", {}).get("parameters")
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
        data=manifest.get("data") or describe_prepared(run),
        files=tuple(files),
    )


def check_files(run: RunDir, sums: Mapping[str, str], verify: bool) -> list[FileCheck]:
    """Compare the files of a run directory with the checksums of its manifest."""
    checks = []
    for name, expected in sums.items():
        path = run.path / name
        if not path.is_file():
            checks.append(FileCheck(name, expected, 0, "missing"))
            continue
        state = "not checked"
        if verify:
            state = "whole" if sha256_of(path) == expected else "damaged"
        checks.append(FileCheck(name, expected, path.stat().st_size, state))
    return checks


def count_weights(run: RunDir) -> int | None:
    """Count the numbers in model.safetensors by its header (a length, then names and shapes as JSON)."""
    try:
        with open(run.weights, "rb") as file:
            size = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(size)) if size <= MAX_HEADER_BYTES else {}
        shapes = [entry["shape"] for name, entry in header.items() if name != "__metadata__"]
        return sum(math.prod(shape) for shape in shapes) or None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def describe_prepared(run: RunDir) -> dict[str, Any]:
    """Return what is known of the data while a run has no manifest yet: what its prepared corpus says of itself."""
    from seqtool.corpus.preparing.prepared import PreparedCorpus

    try:
        corpus = PreparedCorpus.open(run.prepared)
    except SeqtoolError:
        return {}
    return {
        "fingerprint": corpus.fingerprint,
        "pairs": len(corpus),
        "read": corpus.n_read,
        "cleaning": corpus.dropped,
        "sources": [file["path"] for group in corpus.manifest["sources"] for file in group],
    }


def read_vocabulary(run: RunDir) -> tuple[int, int] | None:
    """Return the vocabulary sizes of source and target."""
    if not run.tokenizer.is_file():
        return None
    from seqtool.corpus.tokenizer.registry import load_pair

    tokenizers = load_pair(run)
    return tokenizers.source.vocab_size, tokenizers.target.vocab_size
