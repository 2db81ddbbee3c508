"""Writes a trained model in the form of CTranslate2, checks it against the torch engine, and puts it in place.

The conversion itself reads safetensors as numpy arrays and needs no torch; the check does. A folder that does not give
the same probabilities never takes the place of an older one.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqtool.config import load_config
from seqtool.corpus.tokenizer.interface import TokenizerPair
from seqtool.corpus.tokenizer.registry import load_pair
from seqtool.errors import OptionError, SeqtoolError, suggest
from seqtool.files import make_folder, whole_folder, write_whole
from seqtool.model.header import require_fit
from seqtool.model.kinds import kind_of
from seqtool.run_directory import RunDir
from seqtool.translation.export.made_up import make_up_sentences
from seqtool.translation.export.record import make_record, read_record, write_record

QUANTIZATIONS = ("int8", "int8_float32", "float16", "bfloat16", "float32")

# How far the mean log-probability of a token may lie from the torch engine's, by how weights are stored.
TOLERANCES = {"float32": 1e-3, "float16": 2e-2, "bfloat16": 1e-1, "int8": 1.5e-1}

NUMPY_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}

INT8_LIMIT = 64  # see quantize_matrix

Weights = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True)
class ExportReport:
    """What was written, and how near it comes to the model it was made from."""

    path: Path  # of the folder, or of the file that it went into
    quantization: str
    n_bytes: int
    difference: float | None  # mean difference of a token's log-probability; None if it was not checked

    def __str__(self) -> str:
        size = f"{self.path}: {self.quantization}, {self.n_bytes / 1e6:.1f} MB"
        if self.difference is None:
            return f"{size}; not checked"
        return (
            f"{size}; log-probabilities differ from the model's by {self.difference:.1e} per token on average "
            f"({tolerance_of(self.quantization):g} is accepted)"
        )


def tolerance_of(quantization: str) -> float:
    """Return the largest mean difference of a token's log-probability that is accepted."""
    return TOLERANCES["int8" if quantization.startswith("int8") else quantization]


def export_ctranslate2(
    run: RunDir, quantization: str = "int8", out: Path | None = None, check: bool = True, card: str = ""
) -> ExportReport:
    """Convert the model of a run directory into `out` (by default its ctranslate2 folder), whole or not at all.

    A model card that is given goes with it.
    """
    if quantization not in QUANTIZATIONS:
        raise OptionError(f"there is no quantization '{quantization}'{suggest(quantization, QUANTIZATIONS)}")
    require_ctranslate2()
    run.require_model()
    folder = out or run.ctranslate2
    check_place(folder)  # before the work
    config = load_config(run.config)
    tokenizers = load_pair(run)
    describe = kind_of(config.model).ctranslate2
    if describe is None:
        raise SeqtoolError(
            f"{run.path}: CTranslate2 has no models of kind '{config.model.kind}'; translate with `engine='torch'`"
        )
    require_fit(run, config.model, tokenizers.vocabularies)
    try:
        spec, n_positions = describe(config.model, read_float32(run.weights), tokenizers, config.data.max_tokens)
    except KeyError as error:
        raise SeqtoolError(
            f"{run.weights}: has no weights {error}, which {run.config.name} asks for; use the config.toml that the "
            "weights were trained with"
        ) from None
    record = make_record(run, quantization, n_positions, config.model.position_limit)
    quantize(spec, quantization)
    make_folder(folder.absolute().parent)
    try:
        with whole_folder(folder) as new:
            spec.save(str(new))
            if card:
                write_whole(new / "README.md", card)
            write_record(new, record)
            difference = check_export(run, new, tokenizers, quantization) if check else None
    except OSError as error:
        cause = error.strerror or error
        raise SeqtoolError(f"{folder}: cannot be written ({cause}); make room or give another `out`") from None
    n_bytes = sum(path.stat().st_size for path in folder.iterdir())
    return ExportReport(folder, quantization, n_bytes, difference)


def require_ctranslate2() -> None:
    """Raise if ctranslate2 is not installed."""
    from seqtool.translation.engines.ct2_library import is_installed

    if not is_installed():
        raise SeqtoolError("ctranslate2 is not installed; install it with: pip install 'seqtool[fast]'")


def read_float32(path: Path) -> Weights:
    """Read weights as float32, whatever they are stored in."""
    from safetensors import SafetensorError, deserialize

    try:
        stored = deserialize(path.read_bytes())  # type: ignore[no-untyped-call]
    except (SafetensorError, OSError) as error:
        raise SeqtoolError(f"{path}: damaged or not a safetensors file ({error}); restore it from a copy") from None
    weights = {}
    for name, tensor in stored:
        if tensor["dtype"] not in NUMPY_TYPES:
            raise SeqtoolError(f"{path}: {name} has type {tensor['dtype']}, which is no float; restore it from a copy")
        array = np.frombuffer(tensor["data"], NUMPY_TYPES[tensor["dtype"]])
        if tensor["dtype"] == "BF16":  # the upper half of a float32
            array = (array.astype(np.uint32) << 16).view(np.float32)
        with np.errstate(over="ignore"):  # of float64: what is too large becomes infinite
            weights[name] = array.astype(np.float32).reshape(tensor["shape"])
    return weights


def check_place(folder: Path) -> None:
    """Raise if an export would take the place of something that is no export."""
    if not os.path.lexists(folder) or read_record(folder) is not None:
        return
    if not folder.is_dir() or any(folder.iterdir()):
        raise SeqtoolError(
            f"{folder}: is there already and is no export of seqtool, so it is left as it is; "
            "remove it yourself, or give another folder as `out`"
        )


def check_export(run: RunDir, folder: Path, tokenizers: TokenizerPair, quantization: str) -> float:
    """Translate a few made-up sentences with torch and score them with both engines; raise if they disagree."""
    from seqtool.translation.engines.ct2_engine import CTranslate2Engine
    from seqtool.translation.engines.interface import SearchOptions
    from seqtool.translation.engines.settings import EngineSettings
    from seqtool.translation.engines.torch_engine import TorchEngine

    settings = EngineSettings(device="cpu", threads=1)
    reference = TorchEngine.load([run], tokenizers.vocabularies, settings)
    converted = CTranslate2Engine(folder, tokenizers, settings)
    sources = make_up_sentences(tokenizers.source, reference.max_tokens)
    targets = [ranked[0].ids for ranked in reference.translate(sources, SearchOptions(beam=1, max_length_ratio=1.0))]
    pairs = zip(reference.score(sources, targets), converted.score(sources, targets), strict=True)
    differences = [abs(ours - theirs) for row, other in pairs for ours, theirs in zip(row, other, strict=True)]
    difference = float(np.mean(differences))
    tolerance = tolerance_of(quantization)
    if not difference <= tolerance:
        raise SeqtoolError(
            f"{run.path}: the {quantization} export does not match the model (log-probabilities differ by "
            f"{difference:.3g} per token, at most {tolerance:g} is accepted); try `quantization='float32'`"
        )
    return difference


def quantize(spec: Any, quantization: str) -> None:
    """Bring the weights into the type they are stored in, and store equal ones once."""
    from ctranslate2.specs.model_spec import visit_spec

    if quantization.startswith("int8"):
        visit_spec(spec, quantize_matrix)
    spec.validate()
    spec.optimize(quantization=None if quantization.startswith("int8") else quantization)


def quantize_matrix(spec: Any, name: str, value: Any) -> None:
    """Replace a float matrix by integers with a scale for each row.

    Processors without VNNI add pairs of products, each of an unsigned and a signed byte, in 16 bits that saturate.
    With integers up to 127, as ctranslate2 itself would write them, large sums are cut off there and log-probabilities
    are off by several tenths; with integers up to 64 no sum can overflow (2 * 255 * 64 < 2 ** 15).
    """
    attribute = name.rsplit("/", 1)[-1]
    if not hasattr(spec, f"{attribute}_scale"):
        return
    largest = np.abs(value).max(axis=1)
    scale = (INT8_LIMIT / np.where(largest > 0, largest, 1.0)).astype(np.float32)
    setattr(spec, attribute, np.rint(value * scale[:, None]).astype(np.int8))
    setattr(spec, f"{attribute}_scale", scale)
