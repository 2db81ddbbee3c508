"""Settings that follow from the size of the corpus: the preset `auto`, and those of fine-tuning."""

import tomllib
from importlib import resources
from typing import Any

from seqtool.config.reading import Layer

GUESS = 100_000  # pairs, while their number is unknown


def choose_preset(pairs: int | None, device: str) -> tuple[Layer, str]:
    """Return the first tier of auto.toml that holds this many pairs, and in words what it was chosen for and why."""
    table = _read_table("auto")
    size = pairs if pairs is not None else GUESS
    tier, values = _choose_tier(table, size)
    if device != "cpu":
        for name, section in table["gpu"].items():
            values.setdefault(name, {}).update(section)
    return Layer("preset auto", values), f"{size:,} pairs on {device}: {tier['reason']}"


def choose_finetuning(pairs: int | None, *, is_mixed: bool = False) -> tuple[Layer, str]:
    """Return the settings to fine-tune with if an epoch has this many pairs, and what for and why, in words.

    In a mixture of corpora the old one keeps what the model could, so that the new one may be learnt faster.
    """
    size, table = pairs if pairs is not None else GUESS, _read_table("finetune")
    tier, values = _choose_tier(table, size)
    if is_mixed:
        values["train"] |= table["mixed"]["train"]
    return Layer("fine-tuning", values), f"{size:,} pairs per epoch: {tier['reason']}"


def _read_table(name: str) -> dict[str, Any]:
    return tomllib.loads((resources.files("seqtool.config") / "presets" / f"{name}.toml").read_text(encoding="utf-8"))


def _choose_tier(table: dict[str, Any], size: int) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return the first tier that holds this many pairs, and its settings over those that all tiers have."""
    tier = next(tier for tier in table["tier"] if size <= tier["up_to_pairs"])
    values: dict[str, dict[str, Any]] = {name: dict(section) for name, section in table.get("all", {}).items()}
    for name, section in tier.items():
        if isinstance(section, dict):
            values.setdefault(name, {}).update(section)
    return tier, values
