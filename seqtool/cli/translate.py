"""seqtool translate: one line out for each line in."""

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from seqtool.cli import translate_options as opt
from seqtool.cli.options import (
    BatchTokensOption,
    BeamOption,
    ComputeTypeOption,
    DeviceOption,
    EngineOption,
    LengthPenaltyOption,
    MaxLengthRatioOption,
    ModelOption,
    ThreadsOption,
)
from seqtool.cli.streams import notify, quiet_if_closed
from seqtool.errors import OptionError, SeqtoolError
from seqtool.process import rank

CACHE_BYTES = 32 << 20  # of translations that are remembered, for lines that come again

if TYPE_CHECKING:
    from seqtool.cli.bar import ProgressBar
    from seqtool.translation.engines.interface import Engine
    from seqtool.translation.lines.stream import LineTranslator, Summary


def translate(
    model: ModelOption,
    input: opt.Input = None,
    output: opt.Output = None,
    resume: opt.Resume = False,
    json_: opt.Json = False,
    token_scores: opt.TokenScores = False,
    n_best: opt.NBest = 1,
    show_attention: opt.ShowAttention = None,
    beam: BeamOption = None,
    length_penalty: LengthPenaltyOption = None,
    coverage_penalty: opt.CoveragePenalty = None,
    max_length_ratio: MaxLengthRatioOption = None,
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
    engine: EngineOption = "auto",
    device: DeviceOption = "auto",
    threads: ThreadsOption = 0,
    batch_tokens: BatchTokensOption = None,
    compute_type: ComputeTypeOption = "default",
    compile_: opt.Compile = False,
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
        "alignment": json_,
        "token_scores": token_scores,
    }
    from seqtool.cli.attention import FirstTranslation, check_picture, draw_attention
    from seqtool.translation.engines.settings import EngineSettings

    settings = EngineSettings(
        engine=engine,
        device=device,
        threads=threads,
        batch_tokens=batch_tokens,
        compute_type=compute_type,
        compile=compile_,
    )
    if token_scores and not json_:
        raise OptionError("--token-scores are part of the objects that --json prints; add --json")
    check_files(input, output, resume)
    check_picture(show_attention, resume)
    from seqtool.translation.lines.stream import LineTranslator, json_form, n_best_form, plain_form
    from seqtool.translation.translator import Translator

    translator = Translator.with_engine(model, settings, cache_bytes=CACHE_BYTES, notify=notify)
    options = translator.make_options(**search)  # a bad value fails here, before any input is read
    used = translator.engine_for(options)
    bar = make_bar(input, output)
    form = json_form(n_best) if json_ else n_best_form if n_best > 1 else plain_form
    first = FirstTranslation(form)
    worker = LineTranslator(translator, options, first if show_attention else form, prefix, note_beside(bar))
    identity = fingerprint(model, used, [options, prefix, json_]) if output else ""
    run(worker, input, output, resume, identity, bar)
    if show_attention:
        draw_attention(model[0], first, show_attention)


def run(
    worker: "LineTranslator",
    input: Path | None,
    output: Path | None,
    resume: bool,
    identity: str,
    bar: "ProgressBar | None",
) -> None:
    """Send the input through the translator, to where it is wanted, and say what was odd about it."""
    from seqtool.files import is_stream
    from seqtool.process import is_restarted
    from seqtool.translation.lines.output import FileSink, StreamSink
    from seqtool.translation.lines.sharding import Shard, ShardedFile, refuse_other_parts
    from seqtool.translation.lines.stream import translate_blocks

    shard = Shard.current()
    try:
        if output is None or is_stream(output):
            with quiet_if_closed(), open_stream(output) as stream:
                translate_blocks(worker, read_input(input, live=True), StreamSink(stream), progress=bar)
        elif shard is None:
            refuse_other_parts(output, 1)
            sink = FileSink(output, identity, resume or is_restarted())
            translate_blocks(worker, read_input(input, live=False), sink, progress=bar)
            sink.finish()
        else:
            file = ShardedFile(output, shard, identity, resume or is_restarted())
            blocks = read_input(input, live=False)
            translate_blocks(worker, blocks, file.sink, is_mine=shard.is_mine, progress=bar)
            file.finish()
    finally:
        if bar:
            bar.clear()
    report(worker.summary)


def open_stream(output: Path | None) -> AbstractContextManager[BinaryIO]:
    """Open stdout, a device or a pipe to write into."""
    if output is None:
        return nullcontext(sys.stdout.buffer)
    try:
        return open(output, "wb", buffering=0)
    except OSError as error:
        raise SeqtoolError(f"{output}: cannot be written ({error.strerror}); give another --output") from None


def check_files(input: Path | None, output: Path | None, resume: bool) -> None:
    """Refuse what cannot work, before a model is loaded."""
    from seqtool.files import is_stream
    from seqtool.translation.lines.sharding import Shard

    if resume and (output is None or is_stream(output)):
        raise OptionError("--resume continues a file; name it with --output FILE")
    if output is not None and output.is_dir():
        raise SeqtoolError(f"{output}: is a folder; give --output the name of a file")
    if input is not None and not input.exists():
        raise SeqtoolError(f"{input}: no such file; check the path given to -i")
    if input is None and sys.stdin is None:
        raise SeqtoolError("stdin is closed; give -i FILE")
    if output is None and sys.stdout is None:
        raise SeqtoolError("stdout is closed; give --output FILE")
    if input is not None and input.is_dir():
        raise SeqtoolError(f"{input}: is a folder; give -i the name of a file")
    if input is None and stat.S_ISDIR(os.fstat(sys.stdin.fileno()).st_mode):
        raise SeqtoolError("stdin is a folder; give -i FILE")
    if Shard.current() and any(path is None or is_stream(path) for path in (input, output)):
        raise OptionError("several processes cannot share stdin, stdout or a pipe; give -i FILE and --output FILE")


def read_input(input: Path | None, live: bool) -> Iterator[list[bytes]]:
    """Yield the blocks of a file or of stdin; a terminal or pipe is read as it comes where `live`."""
    from seqtool.corpus.reading.opening import read_chunks, readable
    from seqtool.files import is_stream
    from seqtool.translation.lines.reading import file_blocks, live_blocks, read_pieces

    if input is not None and not (live and is_stream(input)):
        yield from file_blocks(read_chunks(input))
        return
    with readable(input or Path("stdin")):
        handle = sys.stdin.fileno() if input is None else os.open(input, os.O_RDONLY)
        is_file = not live or stat.S_ISREG(os.fstat(handle).st_mode)
        if not is_file and os.isatty(handle) and sys.stderr.isatty():
            notify("type lines to translate; Ctrl-D ends")
        yield from note_compressed(file_blocks(read_pieces(handle)) if is_file else live_blocks(handle))


def note_compressed(blocks: Iterator[list[bytes]]) -> Iterator[list[bytes]]:
    """Pass blocks of lines on, and say so where they are those of a compressed file."""
    from seqtool.corpus.reading.opening import MAGIC

    for number, block in enumerate(blocks):
        if number == 0 and block[0].startswith(tuple(MAGIC)):
            notify(
                "the input seems to be compressed, and a pipe is read as it is; "
                "give -i the file itself, or decompress it on the way in"
            )
        yield block


def make_bar(input: Path | None, output: Path | None) -> "ProgressBar | None":
    """Return a progress bar for a file where someone can see it; what a compressed one comes to is not known."""
    if not sys.stderr.isatty() or rank() != 0:
        return None
    if output is None and sys.stdout.isatty():
        return None  # the translations are what is seen there
    status = input.stat() if input is not None else os.fstat(sys.stdin.fileno())
    if not stat.S_ISREG(status.st_mode):
        return None
    from seqtool.cli.bar import ProgressBar

    is_compressed = input is not None and input.suffix in (".gz", ".xz", ".zst")
    return ProgressBar(0 if is_compressed else status.st_size)


def note_beside(bar: "ProgressBar | None") -> Callable[[str], None]:
    """Return how to tell the user something while a bar may be on the screen."""

    def tell(message: str) -> None:
        if bar:
            bar.clear()
        notify(message)

    return tell


def fingerprint(models: list[Path], engine: "Engine", identity: list[Any]) -> str:
    """Return a text that changes when a translation would: by its model, its arithmetic, its options or its form."""
    import hashlib

    from seqtool.run_directory import RunDir
    from seqtool.translation.export.record import read_record

    runs = [RunDir(path) for path in models]
    exported = read_record(runs[0].ctranslate2) if engine.name == "ctranslate2" else None
    parts = [[run.checksums() for run in runs], engine.name, engine.compute_type, exported, *identity]
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def report(summary: "Summary") -> None:
    """Say on stderr what became of hypotheses that no one would want."""
    if summary.n_replaced:
        notify(f"{summary.n_replaced:,} empty or looping translations were replaced by the next best")
