"""`seqtool split`: a seeded division of a corpus into training, validation and test sets without overlap."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from seqtool.cli.options import ConfigOption, CorpusArgument, SetOption
from seqtool.cli.streams import notify
from seqtool.config import ConfigRequest, resolve_config
from seqtool.errors import OptionError


class Documents(StrEnum):
    """Whether documents are kept whole."""

    auto = "auto"
    always = "always"
    never = "never"


def split(
    corpus: CorpusArgument = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="The folder for the three sets.")
    ] = None,
    valid: Annotated[int, typer.Option("--valid", metavar="N", min=0, help="Pairs for validation.")] = 1000,
    test: Annotated[int, typer.Option("--test", metavar="N", min=0, help="Pairs for the test.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Random seed.")] = 1,
    documents: Annotated[
        Documents, typer.Option("--documents", help="Keep documents whole; a blank line ends one.")
    ] = Documents.auto,
    config: ConfigOption = None,
    set_: SetOption = None,
) -> None:
    """Split a corpus into training, validation and test sets without overlap.

    No source and no target is in two of the sets; the sets for validation and test hold clean pairs only (see the
    clean.* settings), and whole documents if blank lines mark them.

    Example: [bold]seqtool split corpus.en corpus.de -o data --valid 1000 --test 1000[/bold]
    """
    clean = resolve_config(ConfigRequest(file=config, overrides=tuple(set_ or ()))).config.clean
    if not corpus:
        raise OptionError("which corpus? Give one file with pairs, or two aligned files, source then target")
    if out is None:
        raise OptionError("where should the sets go? Name a folder with -o DIR")
    from seqtool.corpus.reading.corpus import parse_corpus
    from seqtool.corpus.splitting.split import split_corpus

    found = split_corpus(parse_corpus(corpus), out, (valid, test), seed, documents.value, clean)
    for name, paths in found.files.items():
        notify(f"{' '.join(map(str, paths))}: {found.pairs[name]:,} pairs")
    if found.documents:
        notify("documents, separated by blank lines, were kept whole")
    if found.overlapping:
        notify(f"{found.overlapping:,} pairs are in no set, since their source or target is in another one")
