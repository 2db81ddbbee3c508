"""seqtool translate: one line out for each line in."""

import os
import stat
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from seqtool.cli import translate_options as opt
from seqtool.cli.options import EngineGroup, ModelOption
from seqtool.cli.streams import notify, quiet_if_closed
from seqtool.errors import OptionError, SeqtoolError
from seqtool.process import rank
from seqtool.progress import ProgressLine

if TYPE_CHECKING:
    from seqtool.translation.lines.stream import LineTranslator
    from seqtool.translation.results import Translation

LONGEST_DRAWN = 1000  # characters of a line whose attention is drawn
CACHE_BYTES = 32 << 20  # of translations that are remembered, for lines that come again


def translate(
    model: ModelOption,
    input: opt.Input = None,
    output: opt.Output = None,
    resume: opt.Resume = False,
    json_: opt.Json = False,
    token_scores: opt.TokenScores = False,
    n_best: opt.NBest = 1,
    show_attention: opt.ShowAttention = None,
    *,
    search: opt.FullSearchGroup,
    prefix: opt.Prefix = "",
    ban: opt.Ban = None,
    require: opt.Require = None,
    engine: EngineGroup,
    compile_: opt.Compile = False,
) -> None:
    """Translate lines from stdin (or a file) to stdout (or a file).

    One line out for each line in, in order; an empty line gives an empty line. Lines that are typed or piped are
    translated as they arrive. Settings that are not given are those of the model's own \\[decode] section. With
    torchrun, several processes share out a file (needs -i and --output).

    Example: [bold]echo 'A man walks.' | seqtool translate -m run[/bold]
    """
    settings = engine.settings(compile_)
    check_options(input, output, resume, show_attention)
    if token_scores and not json_:
        raise OptionError("--token-scores are part of the objects that --json prints; add --json")
    check_files(input, output, show_attention)
    from seqtool.translation.lines.output import fingerprint
    from seqtool.translation.lines.stream import FirstTranslation, LineTranslator, json_form, n_best_form, plain_form
    from seqtool.translation.translator import Translator

    line = ProgressLine(where_to_show(input, output))

    def report(message: str) -> None:
        line.clear()
        notify(message)

    translator = Translator.with_engine(model, settings, cache_bytes=CACHE_BYTES, notify=report)
    options = translator.make_options(  # a bad value fails here, before any input is read
        **vars(search),
        banned=ban or None,
        required=require or None,
        n_best=n_best,
        alignment=json_,
        token_scores=token_scores,
    )
    used = translator.engine_for(options)
    form = json_form(n_best) if json_ else n_best_form if n_best > 1 else plain_form
    first = FirstTranslation(form, LONGEST_DRAWN)
    worker = LineTranslator(translator, options, first if show_attention else form, prefix, report)
    identity = fingerprint(translator, used, [options, prefix, json_]) if output else ""
    with line:
        run(worker, input, output, resume, identity, line)
    if worker.summary.n_replaced:
        notify(f"{worker.summary.n_replaced:,} empty or looping translations were replaced by the next best")
    if show_attention and rank() == 0:  # of several processes the first has the first line
        draw_attention(model[0], first.found, show_attention)


def check_options(input: Path | None, output: Path | None, resume: bool, picture: Path | None) -> None:
    """Refuse options that do not go together."""
    from seqtool.files import is_stream
    from seqtool.translation.lines.sharding import Shard

    if resume and (output is None or is_stream(output)):
        raise OptionError("--resume continues a file; name it with -o FILE")
    if Shard.current() and any(path is None or is_stream(path) for path in (input, output)):
        raise OptionError("several processes cannot share stdin, stdout or a pipe; give -i FILE and -o FILE")
    if picture is not None and resume:
        raise OptionError("--show-attention draws the first line, which --resume may not see; leave out one of them")
    if picture is not None and str(picture) != "-" and picture.suffix.lower() != ".svg":
        raise OptionError(f"{picture}: attention is drawn as SVG; give --show-attention a name that ends in .svg, or -")


def check_files(input: Path | None, output: Path | None, picture: Path | None) -> None:
    """Refuse what cannot be read or written, before a model is loaded."""
    from seqtool.files import is_same_file

    if output is not None and output.is_dir():
        raise SeqtoolError(f"{output}: is a folder; give -o the name of a file")
    if input is not None and output is not None and is_same_file(input, output):
        raise SeqtoolError(f"{output}: is the input itself, which the translation would replace; give -o another name")
    if input is not None and not input.exists():
        raise SeqtoolError(f"{input}: no such file; check the path given to -i")
    if input is None and sys.stdin is None:
        raise SeqtoolError("stdin is closed; give -i FILE")
    if output is None and sys.stdout is None:
        raise SeqtoolError("stdout is closed; give -o FILE")
    if input is not None and input.is_dir():
        raise SeqtoolError(f"{input}: is a folder; give -i the name of a file")
    if input is None and stat.S_ISDIR(os.fstat(sys.stdin.fileno()).st_mode):
        raise SeqtoolError("stdin is a folder; give -i FILE")
    if picture is None or str(picture) == "-":
        return
    if picture.is_dir() or not picture.parent.is_dir() or not os.access(picture.parent, os.W_OK):
        raise SeqtoolError(
            f"{picture}: cannot be written; give --show-attention a file in a folder that exists, to write to"
        )


def where_to_show(input: Path | None, output: Path | None) -> Literal["terminal", "nowhere"]:
    """Return where to show progress: on a terminal that shows neither the input nor the translations."""
    status = input.stat() if input is not None else os.fstat(sys.stdin.fileno())
    is_busy = output is None and sys.stdout.isatty()
    return "nowhere" if is_busy or rank() != 0 or not stat.S_ISREG(status.st_mode) else "terminal"


def input_size(input: Path | None) -> int:
    """Return the bytes of the input; 0 if they are not known, or those of a compressed file."""
    status = input.stat() if input is not None else os.fstat(sys.stdin.fileno())
    is_compressed = input is not None and input.suffix in (".gz", ".xz", ".zst")
    return 0 if is_compressed or not stat.S_ISREG(status.st_mode) else status.st_size


def run(
    worker: "LineTranslator",
    input: Path | None,
    output: Path | None,
    resume: bool,
    identity: str,
    line: ProgressLine,
) -> None:
    """Translate the input to the output."""
    from seqtool.files import is_stream
    from seqtool.translation.lines.output import StreamSink
    from seqtool.translation.lines.reading import input_blocks
    from seqtool.translation.lines.sharding import translate_to_file
    from seqtool.translation.lines.stream import translate_blocks

    source = sys.stdin.fileno() if input is None else input
    live = output is None or is_stream(output)
    blocks = input_blocks(source, live, notify)
    shown: dict[str, Any] = {"show": line, "total_bytes": input_size(input)}
    if output is not None and not live:
        translate_to_file(worker, blocks, output, identity, resume, **shown)
        return
    if input is None and sys.stdin.isatty() and sys.stderr.isatty():
        notify("type lines to translate; Ctrl-D ends")
    with quiet_if_closed(), open_stream(output) as stream:
        translate_blocks(worker, blocks, StreamSink(stream), **shown)


def open_stream(output: Path | None) -> AbstractContextManager[BinaryIO]:
    """Open stdout, a device or a pipe to write into."""
    if output is None:
        return nullcontext(sys.stdout.buffer)
    try:
        return open(output, "wb", buffering=0)
    except OSError as error:
        raise SeqtoolError(f"{output}: cannot be written ({error.strerror}); give another -o") from None


def draw_attention(model: Path, translation: "Translation | None", out: Path) -> None:
    """Write the map of a translation as SVG, or print it as text on stderr if `out` is "-"."""
    if translation is None:
        raise SeqtoolError(
            "--show-attention: there is no line to draw; "
            f"give a line that is neither blank nor longer than {LONGEST_DRAWN:,} characters"
        )
    from seqtool.evaluation.report.attention_map import attention_svg, attention_text
    from seqtool.evaluation.report.attention_reading import AttentionReader
    from seqtool.files import write_whole

    found = AttentionReader(model).read(translation.source, translation.text)
    drawn = found.src_tokens, found.tgt_tokens, found.average()
    if str(out) == "-":
        print(attention_text(*drawn), file=sys.stderr)
        return
    try:
        write_whole(out, attention_svg(*drawn))
    except OSError as error:
        raise SeqtoolError(
            f"{out}: cannot be written ({error.strerror}); the translation is complete, only the picture is missing"
        ) from None
    notify(f"the attention of the first line is drawn in {out}")
