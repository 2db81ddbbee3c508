"""seqtool score: the log-probability of given translations, one a line."""

import itertools
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqtool.cli.options import JsonOption, ModelOption
from seqtool.cli.streams import notify, quiet_if_closed
from seqtool.corpus.text import clean_text
from seqtool.errors import SeqtoolError

if TYPE_CHECKING:
    from seqtool.translation.translator import Translator

BLOCK = 4096  # pairs scored at once; batches are made of those of like length


def score(
    source: Annotated[Path, typer.Argument(metavar="SRC", help="The source lines.")],
    target: Annotated[Path, typer.Argument(metavar="TGT", help="Their translations, as many lines.")],
    model: ModelOption,
    normalize: Annotated[bool, typer.Option("--normalize", help="Divide by the tokens, the end included.")] = False,
    json_: JsonOption = False,
    engine: Annotated[str, typer.Option("--engine", help="auto, torch or ctranslate2.")] = "auto",
    device: Annotated[str, typer.Option("--device", help="auto, cpu, cuda or mps.")] = "auto",
    threads: Annotated[int, typer.Option("--threads", min=0, help="CPU threads (0: all cores).")] = 0,
    batch_tokens: Annotated[int | None, typer.Option("--batch-tokens", min=1, help="Source tokens at once.")] = None,
    compute_type: Annotated[
        str, typer.Option("--compute-type", help="Arithmetic, as in 'seqtool translate'.")
    ] = "default",
) -> None:
    """Print the log-probability of each translation, one number a line.

    It is the sum over its tokens and its end, in nats. An empty line has the score of saying nothing. With --json,
    each line is an object with log_prob, tokens and token_scores (the end's last); --normalize adds log_prob_per_token.

    Example: seqtool score -m run source.en translation.de
    """
    check_files(source, target)
    from seqtool.translation.translator import Translator

    translator = Translator.load(model, engine, device, threads, compute_type, batch_tokens, notify)
    first = 1
    with quiet_if_closed():
        for pairs in read_pairs(source, target):
            for line in score_pairs(translator, pairs, first, normalize, json_):
                print(line)
            first += len(pairs)


def check_files(source: Path, target: Path) -> None:
    """Refuse files that are missing or do not match, before a model is loaded."""
    for path in (source, target):
        if not path.is_file():
            reason = "is no file that can be read twice" if path.exists() else "no such file"
            raise SeqtoolError(f"{path}: {reason}; check the path")
    n_source, n_target = (sum(1 for _ in read_lines(path)) for path in (source, target))
    if n_source != n_target:
        raise SeqtoolError(
            f"{source} has {n_source:,} lines but {target} has {n_target:,}; give one translation for each source line"
        )


def read_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file, split at line feeds only."""
    from seqtool.corpus.reading.opening import read_chunks
    from seqtool.translation.lines.reading import file_blocks

    for block in file_blocks(read_chunks(path)):
        yield from block


def read_pairs(source: Path, target: Path) -> Iterator[list[tuple[str, str]]]:
    """Yield blocks of pairs; invalid UTF-8 is read as the replacement character, and told by its line."""
    numbered = enumerate(zip(read_lines(source), read_lines(target), strict=True), 1)
    while block := list(itertools.islice(numbered, BLOCK)):
        yield list(
            zip(
                decode_lines(source, [(number, src) for number, (src, _) in block]),
                decode_lines(target, [(number, tgt) for number, (_, tgt) in block]),
                strict=True,
            )
        )


def decode_lines(path: Path, numbered: list[tuple[int, bytes]]) -> list[str]:
    """Return the texts of a file's lines, and name those that are not valid UTF-8."""
    from seqtool.translation.lines.reading import decode_line, name_lines

    decoded = [decode_line(line) for _, line in numbered]
    invalid = [number for (number, _), (_, is_valid) in zip(numbered, decoded, strict=True) if not is_valid]
    if invalid:
        notify(f"{path}: {name_lines(invalid)}: not valid UTF-8; the bad bytes were read as U+FFFD")
    return [text for text, _ in decoded]


def score_pairs(
    translator: "Translator", pairs: list[tuple[str, str]], first_line: int, normalize: bool, json_: bool
) -> Iterator[str]:
    """Yield what is printed for each pair."""
    scores = translator.score([src for src, _ in pairs], [tgt for _, tgt in pairs], first_line)
    for (_, target), token_scores in zip(pairs, scores, strict=True):
        log_prob = math.fsum(token_scores)
        mean = log_prob / len(token_scores)
        if not json_:
            yield f"{mean if normalize else log_prob:.6f}"
            continue
        tokenizer = translator.tokenizers.target
        tokens = tokenizer.pieces(tokenizer.encode(clean_text(target)))
        answer: dict[str, Any] = {"log_prob": log_prob, "tokens": tokens, "token_scores": token_scores}
        if normalize:
            answer["log_prob_per_token"] = mean
        yield json.dumps(answer, ensure_ascii=False)
