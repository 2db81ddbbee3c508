"""Reads what a run wrote about itself while it trained: metrics.jsonl and the validation translations."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seqtool.metrics_log import LARGEST, MAX_BYTES, read_metrics
from seqtool.run_directory import RunDir
from seqtool.verification import read_limited

Record = dict[str, Any]


@dataclass(frozen=True)
class History:
    """The records of metrics.jsonl by kind, each in order of steps."""

    train: tuple[Record, ...] = ()
    valid: tuple[Record, ...] = ()
    notes: tuple[Record, ...] = ()

    @property
    def last_step(self) -> int:
        """The last step that anything was written about."""
        return max((int(record.get("step", 0)) for record in (*self.train, *self.valid)), default=0)

    @property
    def best(self) -> Record | None:
        """The last validation that was the best so far."""
        return next((record for record in reversed(self.valid) if record.get("best")), None)

    def points(self, kind: str, key: str) -> list[tuple[float, float]]:
        """Return (step, value) of the records of a kind ("train" or "valid") that have a finite number under `key`."""
        records = self.train if kind == "train" else self.valid
        return [
            (float(record["step"]), float(record[key]))
            for record in records
            if _is_finite(record.get(key)) and _is_finite(record.get("step"))
        ]


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and abs(value) < LARGEST and math.isfinite(value)


@dataclass(frozen=True)
class TranslatedPair:
    """A validation pair and what the final model makes of it."""

    src: str
    ref: str
    hyp: str


def read_history(run: RunDir) -> History:
    """Read metrics.jsonl; where a step occurs again (after a resume from an earlier one) the later counts."""
    by_kind: dict[str, dict[int, Record]] = {"train": {}, "valid": {}}
    notes: list[Record] = []
    for record in read_metrics(run.metrics)[0]:
        if record["kind"] == "note":
            notes.append(record)
        else:
            by_kind[record["kind"]][record["step"]] = record
    train, valid = ([records[step] for step in sorted(records)] for records in by_kind.values())
    return History(tuple(train), tuple(valid), tuple(notes))


def read_translated_pairs(run: RunDir) -> list[TranslatedPair]:
    """Read valid.jsonl; empty if the run has none."""
    keys = ("src", "ref", "hyp")
    return [
        TranslatedPair(*(record[key] for key in keys))
        for record in _read_json_lines(run.valid_lines)
        if all(isinstance(record.get(key), str) for key in keys)
    ]


def _read_json_lines(path: Path) -> list[Record]:
    """Return the objects of a JSON Lines file; a line cut short by a crash is left out."""
    try:
        lines = read_limited(path, MAX_BYTES).split(b"\n")
    except FileNotFoundError:
        return []
    found = []
    for line in lines:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            found.append(record)
    return found
