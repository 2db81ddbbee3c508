"""seqtool export: a model in the form of another program."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seqtool.cli.streams import notify
from seqtool.errors import OptionError, suggest

if TYPE_CHECKING:
    from seqtool.run_directory import RunDir

FORMATS = ("ctranslate2", "huggingface", "argos")


def export(
    model: Annotated[Path, typer.Option("-m", "--model", metavar="DIR", help="A run directory with a trained model.")],
    to: Annotated[
        str, typer.Option("--to", metavar="NAME", help="What to export to: ctranslate2, huggingface or argos.")
    ] = "ctranslate2",
    quantization: Annotated[
        str | None,
        typer.Option(
            "--quantization",
            metavar="NAME",
            help="int8, int8_float32, float16, bfloat16 or float32; not for huggingface.",
            show_default="int8",
        ),
    ] = None,
    languages: Annotated[
        str | None, typer.Option("--languages", metavar="SRC-TGT", help="Codes of the languages, as en-de.")
    ] = None,
    names: Annotated[
        str | None, typer.Option("--names", metavar="SRC-TGT", help="Names of the languages, as English-German.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="PATH", help="Where to put it; without it, ctranslate2 goes into DIR."),
    ] = None,
) -> None:
    """Convert a model for another program: CTranslate2, Hugging Face's transformers, or Argos Translate.

    CTranslate2 translates several times faster, and `seqtool translate` uses its form by itself; int8 is the smallest
    and, on a CPU, the fastest. LibreTranslate serves the packages of Argos Translate. Every export is checked against
    the model before it takes the place of an older one.

    Example: [bold]seqtool export -m run --to ctranslate2 --quantization int8[/bold]
    """
    if to not in FORMATS:
        raise OptionError(f"cannot export to '{to}'{suggest(to, FORMATS)}")
    if to == "huggingface" and quantization:
        raise OptionError("--quantization is for ctranslate2 and argos; Hugging Face's form is float32")
    from seqtool.unfinished import CheckpointRun, find_model

    run = find_model(model)
    if isinstance(run, CheckpointRun):
        for note in run.note_changes():
            notify(note)
        if out is None:
            raise OptionError(f"{run.folder}: where should the export of a checkpoint go? Name a place with -o")
    if out is None and to != "ctranslate2":
        raise OptionError(f"where should the export to {to} go? Name a place with -o")
    if out is None and (languages or names):
        raise OptionError("--languages and --names are for the model card, which only an export with -o has")
    for line in write_export(run, to, out, quantization or "int8", languages, names):
        notify(line)


def write_export(
    run: "RunDir", to: str, out: Path | None, quantization: str, languages: str | None, names: str | None
) -> list[str]:
    """Write an export and return the lines that report it."""
    from seqtool.translation.export.ctranslate2 import export_ctranslate2
    from seqtool.translation.export.languages import choose_languages

    if out is None:
        return [str(export_ctranslate2(run, quantization))]
    chosen = choose_languages(run, languages, names)
    if to == "ctranslate2":
        from seqtool.translation.export.model_card import write_card

        usage = "It is a model for `ctranslate2.Translator`. The tokenizer is that of the model it was made from."
        return [str(export_ctranslate2(run, quantization, out, card=write_card(run, chosen, to, usage)))]
    if to == "argos":
        from seqtool.translation.export.argos import export_argos

        return [str(export_argos(run, out, chosen, quantization))]
    from seqtool.translation.export.huggingface import export_huggingface

    report = export_huggingface(run, out, chosen)
    return [str(report), *(f"note: {note}" for note in report.notes)]
