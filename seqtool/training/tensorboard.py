"""Writes a run's figures as TensorBoard files too, if that is asked for."""

from pathlib import Path
from typing import Any

from seqtool.errors import SeqtoolError


class TensorboardLog:
    """The figures of every report, one curve per figure: train/loss, valid/bleu, ..."""

    def __init__(self, folder: Path, step: int) -> None:
        """Continue the files in a folder after a step; what they hold of later steps is no longer shown."""
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise SeqtoolError(
                "train.tensorboard needs the tensorboard package: pip install tensorboard, or leave the setting out"
            ) from None
        self._writer = SummaryWriter(str(folder), purge_step=step + 1)

    def add(self, entry: dict[str, Any]) -> None:
        """Add the figures of one report."""
        for name, value in entry.items():
            if isinstance(value, int | float) and name != "step":
                self._writer.add_scalar(f"{entry['kind']}/{name}", value, entry["step"])

    def close(self) -> None:
        """Write what is left to disk."""
        self._writer.close()
