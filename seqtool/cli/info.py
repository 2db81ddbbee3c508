"""seqtool info: the model card of a run directory, and whether its files are whole."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seqtool.cli.options import JsonOption
from seqtool.errors import SeqtoolError

if TYPE_CHECKING:
    from seqtool.evaluation.report.card import Card


def info(
    run: Annotated[Path, typer.Argument(metavar="DIR", help="A model or run directory.")],
    json_: JsonOption = False,
    verify: Annotated[
        bool, typer.Option("--verify/--no-verify", help="Compare the files with their checksums.")
    ] = True,
) -> None:
    """Show what a model or run is: sizes, data, training history, scores, and whether its files are whole.

    Exits with 1 if a file is damaged or missing. Works for a run that is still in training too.

    Example: seqtool info checkpoints/demo
    """
    from seqtool.evaluation.report.card import read_card
    from seqtool.files import to_json
    from seqtool.run_directory import RunDir

    card = read_card(RunDir(run), verify)
    if json_:
        print(to_json(card.to_json()), end="")
    else:
        print_card(card)
    if card.problems:
        raise SeqtoolError(f"{run}: {'; '.join(card.problems)}. Restore from a copy, or train or export again.")


def print_card(card: "Card") -> None:
    """Print the card for people; plain text if stdout is no terminal."""
    from rich.console import Console
    from rich.markup import escape

    from seqtool.evaluation.report.card_text import fact_rows, file_rows, score_rows
    from seqtool.visible import make_visible

    console = Console(highlight=False)
    console.print(f"[bold]{escape(make_visible(card.path))}[/bold]  {card.state}", soft_wrap=True)
    for name, value in fact_rows(card):
        console.print(f"[dim]{name:<20}[/dim] {escape(make_visible(value))}", soft_wrap=True)
    if card.scores:
        console.print("\n[bold]scores[/bold]")
    for name, metric, score, signature, decoding in score_rows(card):
        made = f" ({decoding})" if decoding else ""
        console.print(escape(make_visible(f"{name}: {metric}|{signature} = {score}{made}")), soft_wrap=True)
    if card.files:
        console.print("\n[bold]files[/bold]")
    for name, size, state, checksum in file_rows(card):
        style = "bold red" if state in ("damaged", "missing") else "dim"
        name, checksum = escape(make_visible(name)), escape(make_visible(checksum[:16]))
        console.print(f"{name:<24} {size:>8}  [{style}]{state}[/{style}]  {checksum}", soft_wrap=True)
