"""Writes a model as a package for Argos Translate and LibreTranslate, which installs and translates without a network.

The package is a zip file: CTranslate2's form of the model, one SentencePiece model for both sides, a sentence splitter
and a description. It is what `argospm install` and LibreTranslate take.
"""

import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path

from seqtool import __version__
from seqtool.corpus.tokenizer.bpe import BpeTokenizer
from seqtool.corpus.tokenizer.interface import TokenizerPair
from seqtool.corpus.tokenizer.marian import MarianTokenizer
from seqtool.corpus.tokenizer.registry import load_pair
from seqtool.errors import SeqtoolError
from seqtool.files import make_folder, open_whole, to_json
from seqtool.run_directory import RunDir
from seqtool.translation.export.ctranslate2 import ExportReport, export_ctranslate2
from seqtool.translation.export.languages import Languages
from seqtool.translation.export.model_card import write_card
from seqtool.translation.export.record import RECORD
from seqtool.translation.export.sentence_splitter import make_splitter

VERSION = "1.0"
ARGOS_VERSION = "1.9.6"  # the first that looks for a sentence splitter inside a package
_OLDEST = (1980, 1, 1, 0, 0, 0)  # a zip file has times; equal models are to give equal files


def export_argos(
    run: RunDir, file: Path, languages: Languages | None, quantization: str = "int8", check: bool = True
) -> ExportReport:
    """Write the package to `file`, whole or not at all."""
    run.require_model()
    if languages is None:
        raise SeqtoolError(
            f"{run.path}: an Argos package names its languages, which this run does not know; give their codes, for "
            "example `languages='en-de'`"
        )
    segmenter = choose_segmenter(run, load_pair(run))
    name = f"translate-{'_'.join(languages.codes)}-{VERSION.replace('.', '_')}"
    if file.is_dir():
        raise SeqtoolError(f"{file}: is a folder, but an Argos package is a file; give another `out`")
    make_folder(file.absolute().parent)
    with tempfile.TemporaryDirectory(prefix=f"{file.name}.", suffix=".tmp", dir=file.absolute().parent) as workshop:
        report = export_ctranslate2(run, quantization, Path(workshop) / "model", check)
        parts = {f"model/{path.name}": path.read_bytes() for path in report.path.iterdir() if path.name != RECORD}
        parts["metadata.json"] = to_json(describe(languages)).encode()
        parts["sentencepiece.model"] = segmenter
        parts[f"minisbd/{languages.codes[0]}.onnx"] = make_splitter()
        parts["README.md"] = write_card(run, languages, "argos", usage(file, languages)).encode()
        with open_whole(file) as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for part in sorted(parts):
                archive.writestr(zipfile.ZipInfo(f"{name}/{part}", _OLDEST), parts[part], zipfile.ZIP_DEFLATED)
    return replace(report, path=file, n_bytes=file.stat().st_size)


def choose_segmenter(run: RunDir, tokenizers: TokenizerPair) -> bytes:
    """Return the one SentencePiece model that Argos cuts the source with and joins the target with, or raise.

    It joins pieces that the model does not know as they are, so that the source's serves where bytes are no pieces.
    """
    source = tokenizers.source
    if isinstance(source, MarianTokenizer):
        return source.segmenter
    if isinstance(source, BpeTokenizer) and tokenizers.is_one:
        return source.model
    raise SeqtoolError(
        f"{run.path}: an Argos package has one tokenizer for both languages, but this model has two; "
        "train with tokenizer.joint=true, or export to ctranslate2 or huggingface"
    )


def describe(languages: Languages) -> dict[str, object]:
    """Return the content of metadata.json."""
    return {
        "package_version": VERSION,
        "argos_version": ARGOS_VERSION,
        "type": "translate",
        "from_code": languages.codes[0],
        "from_name": languages.names[0],
        "to_code": languages.codes[1],
        "to_name": languages.names[1],
        "target_prefix": "",
        "made_with": f"seqtool {__version__}",
    }


def usage(file: Path, languages: Languages) -> str:
    """Say how the package is used."""
    source, target = languages.codes
    return (
        f"```sh\nargospm install {file.name}\n"
        f"argos-translate --from-lang {source} --to-lang {target} 'A sentence.'\n```"
    )
