"""`seqtool check`: parses, calls the checker, and hands its report to the printer."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from seqtool.cli.options import AgainstOption, ConfigOption, JsonOption, SetOption
from seqtool.config import ConfigRequest, resolve_config
from seqtool.errors import SeqtoolError

CheckedCorpus = Annotated[
    list[Path],
    typer.Argument(
        metavar="CORPUS...",
        help="One file with pairs (TSV, TMX, CSV, JSONL, PO, zip or tgz; columns as in a.csv:en:de), or two aligned "
        "files, source then target; also .gz, .xz or .zst.",
        show_default=False,
    ),
]
ExamplesOption = Annotated[int, typer.Option("--examples", metavar="N", min=0, help="Examples of each finding.")]
DroppedOption = Annotated[
    Path | None,
    typer.Option(
        "--dropped",
        metavar="FILE.tsv",
        help="Write the pairs that cleaning would drop: rule, line number, source, target.",
        show_default=False,
    ),
]


def check(
    corpus: CheckedCorpus,
    against: AgainstOption = None,
    examples: ExamplesOption = 3,
    dropped: DroppedOption = None,
    config: ConfigOption = None,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Examine a corpus: line counts, encoding, repetition, odd pairs, and what cleaning would drop.

    Exits with 1 if the corpus is not fit for training.

    Example: [bold]seqtool check train.en train.de --against test.en --against test.de[/bold]
    """
    settings = resolve_config(ConfigRequest(file=config, overrides=tuple(set_ or ()))).config.clean
    from seqtool.corpus.checking.checker import check_corpus
    from seqtool.corpus.reading.corpus import parse_against, parse_corpus
    from seqtool.progress import ProgressLine

    with _open_dropped(dropped) as file, ProgressLine("terminal") as line:
        report = check_corpus(
            parse_corpus(corpus),
            settings,
            parse_against(against or ()),
            n_examples=examples,
            dropped=file,
            show=line,
        )
    if json:
        from seqtool.files import to_json

        print(to_json(report.to_dict()), end="")
    else:
        from rich.console import Console

        from seqtool.corpus.checking.report_text import write_report

        write_report(report, Console(highlight=False))
    if report.problems:
        raise SeqtoolError(" ".join(report.problems))


@contextlib.contextmanager
def _open_dropped(path: Path | None) -> Iterator[BinaryIO | None]:
    if path is None:
        yield None
        return
    from seqtool.files import open_whole

    if path.is_dir():
        raise SeqtoolError(f"{path}: is a folder; give --dropped a file to write to")
    try:
        with open_whole(path) as file:
            yield file
    except OSError as error:
        raise SeqtoolError(f"{path}: cannot be written ({error.strerror}); give --dropped another path") from None
