"""seqtool report: write report.html for a run, or one page that compares several."""

from pathlib import Path
from typing import Annotated

import typer

from seqtool.cli.streams import notify
from seqtool.errors import OptionError


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR...", help="A run directory, trained or still in training; several are put side by side."
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="The page of several runs.", show_default="DIR/side-by-side.html"
        ),
    ] = None,
    attention: Annotated[
        bool, typer.Option("--attention/--no-attention", help="Draw attention maps, which loads the model.")
    ] = True,
) -> None:
    """Write report.html for a run: curves, scores, sample translations and attention maps on one page.

    Several runs become one page: their curves in the same charts, their scores with significance tests, the settings
    and the translations in which they differ.

    Example: seqtool report checkpoints/demo

    Example: seqtool report run-a run-b -o comparison.html
    """
    from seqtool.run_directory import RunDir
    from seqtool.visible import make_visible

    folders = [RunDir(run) for run in runs]
    if len(folders) == 1:
        if output is not None:
            raise OptionError("the report of one run is its report.html; `out` is for the page of several")
        from seqtool.evaluation.report.report import write_report

        notes, page = write_report(folders[0], attention), folders[0].report
    else:
        from seqtool.evaluation.report.side_by_side import write_side_by_side

        page = output or folders[0].path / "side-by-side.html"
        notes = write_side_by_side(folders, page)
    for note in notes:
        notify(note)
    print(make_visible(str(page)))
