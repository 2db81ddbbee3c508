"""`seqtool prepare`: cleans and tokenizes a corpus and writes it as memory-mapped arrays, by itself."""

from pathlib import Path
from typing import Annotated

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
from seqtool.cli.streams import notify
from seqtool.config import ConfigRequest, resolve_config
from seqtool.errors import OptionError


def prepare(
    corpus: CorpusArgument = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="DIR", help="The run directory; 'seqtool train -o DIR' continues from it."
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
        typer.Option("--dropped", metavar="FILE", help="Write the dropped pairs: rule, file and line, source, target."),
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

    A corpus that is prepared already and has not changed is not prepared again. An interruption leaves no partial
    files.

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
    from seqtool.corpus.reading.corpus import parse_against, parse_corpus, parse_corpus_option, parse_sets
    from seqtool.progress import ProgressLine
    from seqtool.run_directory import RunDir
    from seqtool.training.resolution import resolve_preparation

    corpora = (*([parse_corpus(corpus)] if corpus else []), *map(parse_corpus_option, more or []))
    sets = parse_sets(valid or (), "valid")
    held_apart = sets[0] if sets else None, (*sets[1:], *parse_against(against or ()))
    run = RunDir(out)
    settings = resolve_preparation(asked, run, corpora, tokenizer)
    with ProgressLine() as line:
        _, notes = prepare_run(
            run,
            PrepareRequest.of(settings.config, corpora, *held_apart),
            settings.config.tokenizer,
            tokenizers=settings.tokenizers,
            pairs=settings.pairs,
            show=line,
            dropped=dropped,
        )
    for note in notes:
        notify(note)
