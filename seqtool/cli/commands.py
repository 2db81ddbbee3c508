"""Registers every command with the application, in the order in which the help lists them."""

import typer


def register(app: typer.Typer) -> None:
    """Add the commands; each lives in its own file and imports what is heavy only when it runs."""
    from seqtool.cli.average import average
    from seqtool.cli.check import check
    from seqtool.cli.eval import eval
    from seqtool.cli.export import export
    from seqtool.cli.info import info
    from seqtool.cli.prepare import prepare
    from seqtool.cli.report import report
    from seqtool.cli.score import score
    from seqtool.cli.tokenizer import tokenizer
    from seqtool.cli.train import train
    from seqtool.cli.translate import translate

    app.command()(train)
    app.command()(translate)
    app.command()(eval)
    app.add_typer(tokenizer)
    app.command()(prepare)
    app.command()(check)
    app.command()(score)
    app.command()(average)
    app.command()(export)
    app.command()(report)
    app.command()(info)
