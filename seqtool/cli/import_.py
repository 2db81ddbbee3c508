"""seqtool import: a model made elsewhere becomes a run directory."""

from pathlib import Path
from typing import Annotated

import typer

from seqtool.cli.streams import notify


def import_(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="The folder of a Hugging Face MarianMT (OPUS-MT) model.")
    ],
    out: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="The run directory to make.")],
) -> None:
    """Turn a Hugging Face MarianMT (OPUS-MT) model into a run directory.

    It can then be used like a model trained here: to translate, to export, and to fine-tune on your own pairs with
    [bold]seqtool train my.tsv --from DIR -o tuned[/bold]. Nothing that is in the folder is run.

    Example: seqtool import opus-mt-en-de -o en-de
    """
    from seqtool.translation.interchange.importing import import_huggingface

    report = import_huggingface(path, out)
    for note in report.notes:
        notify(f"warning: {note}")
    notify(f"{report.run.path}: {report.description}, {report.parameters:,} parameters")
    notify(f"translate with: seqtool translate -m {report.run.path} < input.txt")
