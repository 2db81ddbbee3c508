"""seqtool translate: one line out for each line in."""

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqtool.cli import translate_options as opt
from seqtool.cli.options import ModelOption
from seqtool.errors import SeqtoolError

if TYPE_CHECKING:
    from seqtool.cli.bar import ProgressBar
    from seqtool.translation.stream import LineTranslator, Summary

BROKEN_PIPE = 141  # what a shell reports of a program that wrote into a closed pipe


def translate(
    model: ModelOption,
    input: opt.Input = None,
    output: opt.Output = None,
    resume: opt.Resume = False,
    json_: opt.Json = False,
    n_best: opt.NBest = 1,
    show_attention: opt.ShowAttention = None,
    beam: opt.Beam = None,
    length_penalty: opt.LengthPenalty = None,
    coverage_penalty: opt.CoveragePenalty = None,
    max_length_ratio: opt.MaxLengthRatio = None,
    patience: opt.Patience = None,
    no_repeat_ngram: opt.NoRepeatNgram = None,
    diverse_groups: opt.DiverseGroups = None,
    diversity: opt.Diversity = None,
    prefix: opt.Prefix = "",
    ban: opt.Ban = None,
    require: opt.Require = None,
    sample: opt.Sample = False,
    temperature: opt.Temperature = None,
    top_k: opt.TopK = None,
    top_p: opt.TopP = None,
    seed: opt.Seed = None,
    engine: opt.Engine = "auto",
    device: opt.Device = "auto",
    threads: opt.Threads = 0,
    batch_tokens: opt.BatchTokens = None,
    compute_type: opt.ComputeType = "default",
) -> None:
    """Translate lines from stdin (or a file) to stdout (or a file).

    One line out for each line in, in order; an empty line gives an empty line. What is typed or piped is answered as
    it comes. Settings that are not given are those of the model's own \\[decode] section. With torchrun, several
    processes share out a file (needs -i and --output).

    Example: [bold]echo 'A man walks.' | seqtool translate -m run[/bold]
    """
    search = {
        "n_best": n_best,
        "beam": beam,
        "length_penalty": length_penalty,
        "coverage_penalty": coverage_penalty,
        "max_length_ratio": max_length_ratio,
        "patience": patience,
        "no_repeat_ngram": no_repeat_ngram,
        "diverse_groups": diverse_groups,
        "diversity": diversity,
        "banned": ban or None,
        "required": require or None,
        "sample": sample,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "seed": seed,
        "attention": json_,
    }
    from seqtool.cli.attention import FirstTranslation, check_picture, draw_attention

    check_files(input, output, resume)
    check_picture(show_attention)
    from seqtool.translation.stream import LineTranslator, json_form, n_best_form, plain_form
    from seqtool.translation.translator import Translator

    translator = Translator.load(
        model, engine, device, threads, compute_type=compute_type, batch_tokens=batch_tokens, notify=notify
    )
    options = translator.make_options(**search)  # a bad value fails here, before any input is read
    form = json_form(n_best) if json_ else n_best_form if n_best > 1 else plain_form
    first = FirstTranslation(form)
    worker = LineTranslator(translator, search, first if show_attention else form, prefix, notify)
    identity = [options, translator.engine.name, [str(path) for path in model], prefix, json_, n_best, compute_type]
    run(worker, input, output, resume, fingerprint(model, identity))
    if show_attention:
        draw_attention(model[0], first, show_attention)


def run(worker: "LineTranslator", input: Path | None, output: Path | None, resume: bool, identity: str) -> None:
    """Send the input through the translator, to where it is wanted, and say what was odd about it."""
    from seqtool.translation.output import FileSink, OutputClosed, StreamSink
    from seqtool.translation.sharding import Shard, ShardedFile
    from seqtool.translation.stream import translate_blocks

    shard = Shard.from_environment()
    bar = make_bar(input)
    progress = bar.update if bar else None
    try:
        if output is None:
            blocks = read_input(input, live=True)
            translate_blocks(worker, blocks, StreamSink(sys.stdout.buffer), progress=progress)
        elif shard is None:
            sink = FileSink(output, identity, resume)
            translate_blocks(worker, read_input(input, live=False), sink, progress=progress)
            sink.finish()
        else:
            file = ShardedFile(output, shard, identity, resume)
            blocks = read_input(input, live=False)
            translate_blocks(worker, blocks, file.sink, is_mine=shard.is_mine, progress=progress)
            file.finish()
    except OutputClosed:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing is left to flush at the end
        raise SystemExit(BROKEN_PIPE) from None
    finally:
        if bar:
            bar.clear()
    report(worker.summary)


def check_files(input: Path | None, output: Path | None, resume: bool) -> None:
    """Refuse what cannot work, before a model is loaded."""
    from seqtool.translation.sharding import Shard

    if resume and output is None:
        raise SeqtoolError("--resume continues a file; name it with --output FILE")
    if output is not None and output.is_dir():
        raise SeqtoolError(f"{output}: is a folder; give --output the name of a file")
    if input is not None and not input.exists():
        raise SeqtoolError(f"{input}: no such file; check the path given to -i")
    if input is None and sys.stdin is None:
        raise SeqtoolError("stdin is closed; give -i FILE")
    if output is None and sys.stdout is None:
        raise SeqtoolError("stdout is closed; give --output FILE")
    if Shard.from_environment() and (input is None or output is None):
        raise SeqtoolError("several processes cannot share stdin and stdout; give -i FILE and --output FILE")


def read_input(input: Path | None, live: bool) -> Iterator[list[bytes]]:
    """Return the blocks of a file or of stdin; a terminal or pipe is read as it comes where `live`."""
    from seqtool.corpus.opening import read_chunks
    from seqtool.translation.lines import file_blocks, live_blocks, read_pieces

    if input is not None:
        return file_blocks(read_chunks(input))
    handle = sys.stdin.fileno()
    if not live or stat.S_ISREG(os.fstat(handle).st_mode):
        return file_blocks(read_pieces(handle))
    if sys.stdin.isatty() and sys.stderr.isatty():
        notify("type lines to translate; Ctrl-D ends")
    return live_blocks(handle)


def make_bar(input: Path | None) -> "ProgressBar | None":
    """Return a progress bar where the size of the input is known and someone can see it."""
    if not sys.stderr.isatty() or os.environ.get("RANK", "0") != "0":
        return None
    status = input.stat() if input is not None else os.fstat(sys.stdin.fileno())
    is_plain = input is None or input.suffix not in (".gz", ".xz", ".zst")
    if not stat.S_ISREG(status.st_mode) or not is_plain:
        return None
    from seqtool.cli.bar import ProgressBar

    return ProgressBar(status.st_size)


def fingerprint(models: list[Path], identity: list[Any]) -> str:
    """Return a text that changes when a translation would: by its model, its options or its form."""
    import hashlib

    from seqtool.files import RunDir

    files = [RunDir(path).read_manifest().get("files") for path in models]
    sizes = [RunDir(path).weights.stat().st_size for path in models]
    return hashlib.sha256(repr([files, sizes, identity]).encode()).hexdigest()


def report(summary: "Summary") -> None:
    """Say on stderr what became of hypotheses that no one would want."""
    if summary.n_replaced:
        notify(f"{summary.n_replaced:,} empty or looping translations were replaced by the next best")
    if summary.n_doubtful:
        notify(f"{summary.n_doubtful:,} translations are empty or looping, and there was no better one in the beam")


def notify(message: str) -> None:
    """Tell the user something on stderr."""
    print(f"seqtool: {message}", file=sys.stderr)
