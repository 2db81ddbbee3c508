"""`seqtool prepare`: cleans and tokenizes a corpus and writes it as memory-mapped arrays, by itself."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seqtool.cli.options import (
    AgainstOption,
    ConfigOption,
    CorpusArgument,
    MoreCorporaOption,
    PresetOption,
    SetOption,
    ValidOption,
)
from seqtool.config import ConfigRequest, resolve_config
from seqtool.durations import format_seconds
from seqtool.errors import OptionError

if TYPE_CHECKING:
    from seqtool.corpus.progress import Progress

_SECONDS_BETWEEN_LINES = 10.0  # of progress, where it does not go to a terminal


def prepare(
    corpus: CorpusArgument = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="DIR", help="The run directory; 'seqtool train -o DIR' goes on from it."
        ),
    ] = None,
    more: MoreCorporaOption = None,
    valid: ValidOption = None,
    against: AgainstOption = None,
    tokenizer: Annotated[
        Path | None,
        typer.Option("--tokenizer", metavar="FILE|DIR", help="Use this tokenizer, or a run's, in place of a new one."),
    ] = None,
    dropped: Annotated[
        Path | None,
        typer.Option("--dropped", metavar="FILE", help="Write what is dropped: rule, file and line, source, target."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", help="Chooses the pairs that are held out, and the tokenizer's sample."),
    ] = None,
    config: ConfigOption = None,
    preset: PresetOption = "auto",
    set_: SetOption = None,
) -> None:
    """Clean and tokenize a corpus and write it in the form that training reads.

    What is prepared already and has not changed is not done again; interrupted, it leaves nothing half-made.

    Example: [bold]seqtool prepare train.en train.de -o run[/bold]
    """
    flags = (f"train.seed={seed}",) if seed is not None else ()
    asked = ConfigRequest(preset=preset, file=config, flags=flags, overrides=tuple(set_ or ()))
    resolve_config(asked)  # a bad value fails here, before anything is read
    if not corpus and not more:
        raise OptionError("which corpus? Give one file with pairs, or two aligned files, source then target")
    if out is None:
        raise OptionError("where should the prepared corpus go? Name a folder with -o DIR")

    from seqtool.corpus.preparing.prepared import PrepareRequest
    from seqtool.corpus.preparing.run_corpus import prepare_run
    from seqtool.corpus.reading.corpus import parse_against, parse_corpus, parse_corpus_option
    from seqtool.run_directory import RunDir
    from seqtool.training.resolution import resolve_preparation

    corpora = (*([parse_corpus(corpus)] if corpus else []), *map(parse_corpus_option, more or []))
    held_apart = parse_corpus(valid) if valid else None, tuple(parse_against(against or ()))
    run = RunDir(out)
    settings = resolve_preparation(asked, run, corpora, tokenizer)
    display = ProgressLine()
    try:
        _, notes = prepare_run(
            run,
            PrepareRequest.of(settings.config, corpora, *held_apart),
            settings.config.tokenizer,
            tokenizers=settings.tokenizers,
            pairs=settings.pairs,
            report=display.report,
            dropped=dropped,
        )
    finally:
        display.end()
    for note in notes:
        print(f"seqtool: {note}", file=sys.stderr)


class ProgressLine:
    """Shows progress on stderr: in place on a terminal, elsewhere as a line now and then."""

    def __init__(self) -> None:
        from seqtool.corpus.progress import Stopwatch

        self._stopwatch = Stopwatch()
        self._in_place = sys.stderr.isatty()
        self._pause = 0.2 if self._in_place else _SECONDS_BETWEEN_LINES
        self._shown = time.monotonic() if not self._in_place else 0.0
        self._width = 0

    def report(self, progress: "Progress") -> None:
        """Show how far it is, unless that was just done."""
        left = self._stopwatch.seconds_left(progress)
        if time.monotonic() - self._shown < self._pause:
            return
        self._shown = time.monotonic()
        text = progress.stage
        if progress.done:
            text += f": {progress.done:,} pairs"
        if progress.fraction is not None:
            text += f", {progress.fraction:.0%}"
        if left is not None:
            text += f", {format_seconds(left)} left"
        self._show(text)

    def end(self) -> None:
        """Clear the line."""
        if self._in_place and self._width:
            self._show("")

    def _show(self, text: str) -> None:
        if self._in_place:
            print("\r" + text.ljust(self._width) + ("" if text else "\r"), end="", file=sys.stderr, flush=True)
            self._width = len(text)
        else:
            print(f"seqtool: {text}", file=sys.stderr, flush=True)
