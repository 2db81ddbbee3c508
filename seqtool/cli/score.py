"""seqtool score: the log-probability of given translations, one a line."""

import itertools
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqtool.cli.options import (
    BatchTokensOption,
    ComputeTypeOption,
    DeviceOption,
    EngineOption,
    JsonOption,
    ModelOption,
    ThreadsOption,
)
from seqtool.cli.streams import notify, quiet_if_closed
from seqtool.corpus.text import clean_text
from seqtool.errors import OptionError, SeqtoolError

if TYPE_CHECKING:
    from seqtool.corpus.reading.corpus import Corpus
    from seqtool.translation.translator import Translator

BLOCK = 4096  # pairs scored at once; batches are made of those of like length


def score(
    source: Annotated[Path, typer.Argument(metavar="SRC", help="The source lines, or one file with pairs.")],
    model: ModelOption,
    target: Annotated[
        Path | None, typer.Argument(metavar="[TGT]", help="Their translations, as many lines.", show_default=False)
    ] = None,
    normalize: Annotated[bool, typer.Option("--normalize", help="Divide by the tokens, the end included.")] = False,
    json_: JsonOption = False,
    engine: EngineOption = "auto",
    device: DeviceOption = "auto",
    threads: ThreadsOption = 0,
    batch_tokens: BatchTokensOption = None,
    compute_type: ComputeTypeOption = "default",
) -> None:
    """Print the log-probability of each translation, one number a line.

    It is the sum over its tokens and its end, in nats. An empty line has the score of saying nothing. With --json,
    each line is an object with log_prob, tokens and token_scores (the end's last); --normalize adds log_prob_per_token.

    Example: seqtool score -m run source.en translation.de
    """
    from seqtool.corpus.reading.blocks import count_pairs
    from seqtool.corpus.reading.corpus import names_pairs, parse_corpus, require_files
    from seqtool.translation.engines.settings import EngineSettings

    settings = EngineSettings(
        engine=engine,
        device=device,
        threads=threads,
        batch_tokens=batch_tokens,
        compute_type=compute_type,
    )
    if target is None and not names_pairs(source):
        raise OptionError(
            f"{source}: no translations to score; give SRC and TGT, or one file with pairs, such as a TSV"
        )
    corpus = parse_corpus([source] if target is None else [source, target])
    require_files([corpus])
    count_pairs(corpus)  # files that do not match are refused before a model is loaded
    from seqtool.translation.translator import Translator

    translator = Translator.with_engine(model, settings, notify=notify)
    first = 1
    with quiet_if_closed():
        for pairs in read_numbered(corpus):
            for line in score_pairs(translator, pairs, first, normalize, json_):
                print(line)
            first += len(pairs)


def read_numbered(corpus: "Corpus") -> Iterator[list[tuple[str, str]]]:
    """Yield blocks of pairs; invalid UTF-8 is read as the replacement character, and told by its line."""
    from seqtool.corpus.reading.blocks import read_pairs
    from seqtool.translation.lines.reading import decode_line, name_lines

    pairs = read_pairs(corpus)
    while block := list(itertools.islice(pairs, BLOCK)):
        missing = [pair.number for pair in block if pair.tgt is None]
        if missing:
            raise SeqtoolError(f"{corpus}: {name_lines(missing)}: no target to score; each pair needs both sides")
        decoded = [[decode_line(pair.src) for pair in block], [decode_line(pair.tgt or b"") for pair in block]]
        for path, side in zip(corpus.paths * 2, decoded, strict=False):
            if invalid := [pair.number for pair, (_, is_valid) in zip(block, side, strict=True) if not is_valid]:
                notify(f"{path}: {name_lines(invalid)}: not valid UTF-8; the bad bytes were read as U+FFFD")
        yield [(src, tgt) for (src, _), (tgt, _) in zip(*decoded, strict=True)]


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
