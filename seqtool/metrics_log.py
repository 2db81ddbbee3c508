"""The run's metrics.jsonl: one JSON object per report, written as training goes and read with care."""

import json
from pathlib import Path
from typing import Any

from seqtool.files import write_whole
from seqtool.verification import MIB, read_limited

NEEDED = {  # in an entry of each kind, by those who read it
    "train": {"step": int, "epoch": int, "loss": float, "nll": float, "lr": float, "tokens_per_s": float},
    "valid": {
        "step": int,
        "loss": float,
        "perplexity": float,
        "bleu": float,
        "bleu_signature": str,
        "chrf": float,
        "chrf_signature": str,
        "best": bool,
    },
    "note": {"step": int, "text": str},
}
OTHERS = ("loss", "bleu", "chrf")
LARGEST = 1 << 63
MAX_BYTES = 1024 * MIB


class MetricsLog:
    """The run's metrics.jsonl: one JSON object per report."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.n_damaged = 0  # lines that were left out when it was last read

    def keep_up_to(self, step: int) -> list[dict[str, Any]]:
        """Forget reports after a step that the run goes back to; return the others."""
        entries, self.n_damaged = read_metrics(self.path)
        whole = [entry for entry in entries if entry.keys() >= NEEDED[entry["kind"]].keys()]
        self.n_damaged += len(entries) - len(whole)
        kept = [entry for entry in whole if entry["step"] <= step]
        write_whole(self.path, "".join(json.dumps(entry) + "\n" for entry in kept))
        return kept

    def add(self, entry: dict[str, Any]) -> None:
        """Append one report."""
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


def read_metrics(path: Path) -> tuple[list[dict[str, Any]], int]:
    """Return the whole entries of metrics.jsonl, and how many lines are damaged.

    A last line without an end is of a run that was killed while writing it, and counts as neither.
    """
    try:
        lines = read_limited(path, MAX_BYTES).split(b"\n")
    except FileNotFoundError:
        return [], 0
    entries, n_damaged = [], 0
    for line in filter(None, lines[:-1]):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            entry = None
        if _is_entry(entry):
            entries.append(entry)
        else:
            n_damaged += 1
    return entries, n_damaged


def _is_entry(entry: Any) -> bool:
    """Return whether a value is an entry of metrics.jsonl, each value in it of the type that it needs."""
    if not isinstance(entry, dict) or not isinstance(entry.get("kind"), str):
        return False
    needed = NEEDED.get(entry["kind"])
    if needed is None or "step" not in entry:
        return False
    if not all(_fits(entry[name], kind) for name, kind in needed.items() if name in entry):
        return False
    others = entry.get("others", {})  # scores on further validation sets
    return isinstance(others, dict) and all(
        isinstance(scores, dict) and all(_fits(scores.get(name), float) for name in OTHERS)
        for scores in others.values()
    )


def _fits(value: Any, kind: type) -> bool:
    if type(value) is int:
        return kind in (int, float) and 0 <= value < LARGEST
    return type(value) is kind
