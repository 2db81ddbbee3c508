"""What an exported folder says of the weights that it was made from. Light: read at every start of `translate`."""

import json
from pathlib import Path
from typing import Any

from seqtool.files import RunDir, sha256_of

RECORD = "seqtool.json"
FORMAT = 1


def read_record(folder: Path) -> dict[str, Any] | None:
    """Return what an exported folder says of itself; None where it is not one of seqtool's."""
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) and record.get("format") == FORMAT else None


def make_record(run: RunDir, quantization: str, n_positions: int, n_learned: int) -> dict[str, Any]:
    """Return the record of an export that is being made."""
    return {
        "format": FORMAT,
        "weights_sha256": sha256_of(run.weights),
        "weights_bytes": run.weights.stat().st_size,
        "quantization": quantization,
        "positions": n_positions,
        "learned_positions": n_learned,
    }


def is_current(run: RunDir, record: dict[str, Any]) -> bool:
    """Tell whether an export was made from the weights that are there now.

    The manifest says what they are, so that a large file need not be read.
    """
    if record.get("weights_bytes") != run.weights.stat().st_size:
        return False
    return bool(record.get("weights_sha256") == file_sums(run)[run.weights.name])


def file_sums(run: RunDir) -> dict[str, str]:
    """Return the checksums of a model's files: those of its manifest, unless it has none or the weights are newer."""
    files = run.read_manifest().get("files")
    recorded: dict[str, str] = files if isinstance(files, dict) else {}
    if run.weights.name in recorded and run.weights.stat().st_mtime_ns <= run.manifest.stat().st_mtime_ns:
        return recorded
    paths = (run.config, run.tokenizer, run.target_tokenizer, run.weights)
    return {path.name: sha256_of(path) for path in paths if path.exists()}
