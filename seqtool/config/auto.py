"""The `auto` preset: settings that follow from the size of the corpus and the device, with the reason in words."""

import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import Any


@dataclass(frozen=True)
class Choice:
    """What `auto` picked, and why."""

    values: dict[str, dict[str, Any]]
    reason: str


def choose_settings(pairs: int | None, device: str) -> Choice:
    """Pick the first tier of auto.toml that holds this many pairs; while the number is unknown, the middle one."""
    text = (resources.files("seqtool.config") / "presets" / "auto.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    tiers = table["tier"]
    size = pairs if pairs is not None else 100_000
    tier = next(tier for tier in tiers if size <= tier["up_to_pairs"])
    values = {name: dict(section) for name, section in tier.items() if isinstance(section, dict)}
    if device != "cpu":
        for name, section in table["gpu"].items():
            values.setdefault(name, {}).update(section)
    return Choice(values, f"{size:,} pairs on {device}: {tier['reason']}")
