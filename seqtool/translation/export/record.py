"""What an exported folder says of the weights that it was made from. Light: read at every start of `translate`."""

import json
from pathlib import Path
from typing import Any

from seqtool.files import sha256_of
from seqtool.run_directory import RunDir

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
        "weights_modified": run.weights.stat().st_mtime_ns,
        "quantization": quantization,
        "positions": n_positions,
        "learned_positions": n_learned,
    }


def is_current(run: RunDir, record: dict[str, Any]) -> bool:
    """Tell whether an export was made from the weights that are there now.

    Weights of the same size and time are the same; where only the time differs (a copy), their bytes decide.
    """
    facts = run.weights.stat()
    if record.get("weights_bytes") != facts.st_size:
        return False
    return record.get("weights_modified") == facts.st_mtime_ns or record.get("weights_sha256") == sha256_of(run.weights)
