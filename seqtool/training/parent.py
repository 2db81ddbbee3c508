"""The model that a training starts from (--from), as far as it bears on the configuration; torch is not needed."""

from dataclasses import asdict
from pathlib import Path

from seqtool.config import Fixed, load_config
from seqtool.run_directory import RunDir


def describe_parent(path: Path) -> Fixed:
    """Return what the model in a run directory fixes: its shape and its tokenizer, but no rate of dropout."""
    config = load_config(RunDir(path).require_files().config)
    return Fixed(
        origin=f"the model {path}",
        values={
            "model": {key: value for key, value in asdict(config.model).items() if "drop" not in key},
            "tokenizer": {key: value for key, value in asdict(config.tokenizer).items() if "drop" not in key},
        },
        owner=f"{path}: its model",
        way_out="train from the start without `start_from`",
    )
