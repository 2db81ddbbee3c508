"""seqtool export: a model in the form of a fast engine."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from seqtool.errors import OptionError, suggest

FORMATS = ("ctranslate2",)


def export(
    model: Annotated[Path, typer.Option("-m", "--model", metavar="DIR", help="A run directory with a trained model.")],
    to: Annotated[str, typer.Option("--to", metavar="NAME", help="What to export to: ctranslate2.")] = "ctranslate2",
    quantization: Annotated[
        str, typer.Option("--quantization", metavar="NAME", help="int8, int8_float32, float16, bfloat16 or float32.")
    ] = "int8",
    out: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="Where to put it; without it DIR/ctranslate2.")
    ] = None,
) -> None:
    """Convert a model to CTranslate2, which translates several times faster.

    The converted model is checked against the original before it takes the place of an older one. `seqtool translate`
    then uses it by itself. int8 is the smallest and, on a CPU, the fastest.

    Example: [bold]seqtool export -m run --to ctranslate2 --quantization int8[/bold]
    """
    if to not in FORMATS:
        raise OptionError(f"cannot export to '{to}'{suggest(to, FORMATS)}")
    from seqtool.run_directory import RunDir
    from seqtool.translation.export.ctranslate2 import export_ctranslate2

    report = export_ctranslate2(RunDir(model), quantization, out)
    print(
        f"seqtool: {report.folder}: {report.quantization}, {report.n_bytes / 1e6:.1f} MB; log-probabilities differ "
        f"from the model's by {report.difference:.1e} a token",
        file=sys.stderr,
    )
