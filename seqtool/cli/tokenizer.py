"""`seqtool tokenizer train|encode|decode`: the byte-pair tokenizer by itself, on standard input and output."""

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seqtool.cli.options import ConfigOption, SetOption
from seqtool.cli.streams import notify
from seqtool.config import ConfigRequest, resolve_config
from seqtool.errors import SeqtoolError

if TYPE_CHECKING:
    from seqtool.corpus.tokenizer.interface import Tokenizer

tokenizer = typer.Typer(
    name="tokenizer",
    help="Train a byte-pair tokenizer, or use one, by itself.\n\n"
    "Example: [bold]cat train.en train.de | seqtool tokenizer train -o t.model[/bold]",
    no_args_is_help=True,
)

TokenizerOption = Annotated[
    Path, typer.Option("-m", "--model", metavar="FILE|DIR", help="A tokenizer file, or a run directory that has one.")
]
TargetOption = Annotated[
    bool, typer.Option("--target", help="Of a run directory with two vocabularies, take the target side's.")
]
IdsOption = Annotated[bool, typer.Option("--ids", help="Numbers in place of pieces.")]


@tokenizer.command()
def train(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE]...", help="Text files, or files with pairs, plain or compressed; none: standard input."
        ),
    ] = None,
    out: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The model file to write.")] = Path(
        "tokenizer.model"
    ),
    vocab_size: Annotated[
        int | None, typer.Option("--vocab-size", metavar="N", help="Tokens in the vocabulary.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Chooses the sample of a large text.")] = 1,
    config: ConfigOption = None,
    set_: SetOption = None,
) -> None:
    """Train a tokenizer on text with one sentence per line.

    Example: [bold]seqtool tokenizer train train.en train.de --vocab-size 8000 -o t.model[/bold]
    """
    flags = (f"tokenizer.vocab_size={vocab_size}",) if vocab_size is not None else ()
    asked = ConfigRequest(preset="small", file=config, flags=flags, overrides=tuple(set_ or ()))
    settings = resolve_config(asked).config.tokenizer
    from seqtool.corpus.reading.blocks import read_all_lines
    from seqtool.corpus.tokenizer.registry import load_tokenizer, train_tokenizer
    from seqtool.files import make_folder

    lines = (line for path in files for line in read_all_lines(path)) if files else _input_lines()
    if out.is_dir():
        raise SeqtoolError(f"{out}: is a folder; give the name of a file with -o, such as {out / 'tokenizer.model'}")
    make_folder(out.parent)
    for note in train_tokenizer((line.decode("utf-8", "replace") for line in lines), settings, out, seed):
        notify(note)
    notify(f"wrote {out} with {load_tokenizer(out).vocab_size:,} tokens")


@tokenizer.command()
def encode(model: TokenizerOption, ids: IdsOption = False, target: TargetOption = False) -> None:
    """Turn text into pieces, or ids, separated by spaces: one line out for each line in.

    Example: [bold]echo 'A small house.' | seqtool tokenizer encode -m t.model[/bold]
    """
    used = _load(model, target)

    def encode_line(number: int, line: bytes) -> str:
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError:
            notify(f"line {number}: not valid UTF-8; what is not is replaced by U+FFFD")
            text = line.decode("utf-8", "replace")
        found = used.encode(text)
        return " ".join(map(str, found) if ids else used.pieces(found))

    _convert_lines(encode_line)


@tokenizer.command()
def decode(model: TokenizerOption, ids: IdsOption = False, target: TargetOption = False) -> None:
    """Turn pieces, or ids, back into text: one line out for each line in.

    Example: [bold]echo '▁A ▁small ▁house .' | seqtool tokenizer decode -m t.model[/bold]
    """
    used = _load(model, target)

    def decode_line(number: int, line: bytes) -> str:
        tokens = [token for token in line.decode("utf-8", "replace").split(" ") if token]
        return used.decode(_parse_ids(tokens, number, used.vocab_size) if ids else used.ids_of(tokens))

    _convert_lines(decode_line)


def _parse_ids(tokens: Iterable[str], number: int, vocab_size: int) -> list[int]:
    found = []
    for token in tokens:
        if not (token.isascii() and token.isdigit() and len(token) < 10 and int(token) < vocab_size):
            raise SeqtoolError(
                f"line {number}: '{token}' is no token id from 0 to {vocab_size - 1}; for pieces omit --ids"
            )
        found.append(int(token))
    return found


def _load(path: Path, target: bool) -> "Tokenizer":
    from seqtool.corpus.tokenizer.registry import load_tokenizer
    from seqtool.run_directory import RunDir

    if not path.is_dir():
        return load_tokenizer(path)
    run = RunDir(path)
    return load_tokenizer(run.target_tokenizer if target and run.target_tokenizer.is_file() else run.tokenizer)


def _input_lines() -> Iterator[bytes]:
    """Yield the lines of standard input as they arrive, without their ends."""
    for line in sys.stdin.buffer:
        yield line.removesuffix(b"\n").removesuffix(b"\r")


def _convert_lines(convert: Callable[[int, bytes], str]) -> None:
    for number, line in enumerate(_input_lines(), 1):
        sys.stdout.buffer.write(convert(number, line).encode("utf-8", "replace") + b"\n")
        sys.stdout.buffer.flush()
