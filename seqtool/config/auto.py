"""The `auto` preset: settings that follow from the size of the corpus and the device, with the reason in words."""

import tomllib
from importlib import resources

from seqtool.config.reading import Layer

GUESS = 100_000  # pairs, while their number is unknown


def choose_preset(pairs: int | None, device: str) -> tuple[Layer, str]:
    """Return the first tier of auto.toml that holds this many pairs, and in words what it was chosen for and why."""
    text = (resources.files("seqtool.config") / "presets" / "auto.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    size = pairs if pairs is not None else GUESS
    tier = next(tier for tier in table["tier"] if size <= tier["up_to_pairs"])
    values = {name: dict(section) for name, section in tier.items() if isinstance(section, dict)}
    if device != "cpu":
        for name, section in table["gpu"].items():
            values.setdefault(name, {}).update(section)
    return Layer("preset auto", values), f"{size:,} pairs on {device}: {tier['reason']}"
