"""seqtool report: write report.html for a run."""

from pathlib import Path
from typing import Annotated

import typer

from seqtool.cli.streams import notify


def report(
    run: Annotated[Path, typer.Argument(metavar="DIR", help="A run directory, trained or still in training.")],
    attention: Annotated[
        bool, typer.Option("--attention/--no-attention", help="Draw attention maps, which loads the model.")
    ] = True,
) -> None:
    """Write report.html for a run: curves, scores, sample translations and attention maps on one page.

    Example: seqtool report checkpoints/demo
    """
    from seqtool.evaluation.report.report import write_report
    from seqtool.run_directory import RunDir
    from seqtool.visible import make_visible

    folder = RunDir(run)
    for note in write_report(folder, attention):
        notify(f"{note}")
    print(make_visible(str(folder.report)))
