"""seqtool average: several checkpoints become one model."""

from pathlib import Path
from typing import Annotated

import typer

from seqtool.cli.streams import notify


def average(
    checkpoints: Annotated[
        list[Path],
        typer.Argument(metavar="CKPT...", help="Checkpoints (run/checkpoints/step-...) or run directories."),
    ],
    out: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="The new model folder.")],
) -> None:
    """Average the weights of several checkpoints into a new model folder that translates.

    They must be of one configuration and tokenizer. The mean of a training's last few checkpoints often translates a
    little better than each of them.

    Example: seqtool average -o run-average run/checkpoints/step-*
    """
    from seqtool.translation.average import average as work

    run = work(checkpoints, out)
    notify(f"averaged {len(checkpoints)} checkpoints into {run.weights}")
