"""Writes a trained model in the form of CTranslate2, checks it against the torch engine, and puts it in place.

The conversion itself reads safetensors as numpy arrays and needs no torch; the check does. A folder that does not give
the same probabilities never takes the place of an older one.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqtool.config import Config, ModelConfig, load_config
from seqtool.corpus.tokenizer.bpe import TokenizerPair
from seqtool.errors import SeqtoolError, suggest
from seqtool.files import make_folder, sync_folder, to_json, write_whole
from seqtool.run_directory import RunDir
from seqtool.translation.export.record import RECORD, make_record, read_record

QUANTIZATIONS = ("int8", "int8_float32", "float16", "bfloat16", "float32")

# How far the mean log-probability of a token may lie from the torch engine's, by how weights are stored.
TOLERANCES = {"float32": 1e-3, "float16": 2e-2, "bfloat16": 1e-1, "int8": 1.5e-1}

NUMPY_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}

INT8_LIMIT = 64  # see quantize_matrix

Weights = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True)
class ExportReport:
    """What was written, and how near it comes to the model it was made from."""

    folder: Path
    quantization: str
    n_bytes: int
    difference: float | None  # mean difference of a token's log-probability; None where it was not checked


def export_ctranslate2(
    run: RunDir, quantization: str = "int8", out: Path | None = None, check: bool = True
) -> ExportReport:
    """Convert the model of a run directory into `out` (by default its ctranslate2 folder), whole or not at all."""
    if quantization not in QUANTIZATIONS:
        raise SeqtoolError(f"there is no quantization '{quantization}'{suggest(quantization, QUANTIZATIONS)}")
    require_ctranslate2()
    run.require_model()
    folder = out or run.ctranslate2
    check_place(folder)  # before the work
    config = load_config(run.config)
    tokenizers = TokenizerPair.load(run)
    n_positions = count_positions(config)
    record = make_record(run, quantization, n_positions, n_positions if config.model.positions == "learned" else 0)
    spec = make_spec(config.model, read_float32(run.weights), tokenizers, n_positions)
    quantize(spec, quantization)
    with replaced_folder(folder) as temporary:
        spec.save(str(temporary))
        write_whole(temporary / RECORD, to_json(record))
        difference = check_export(run, temporary, tokenizers, quantization) if check else None
    n_bytes = sum(path.stat().st_size for path in folder.iterdir())
    return ExportReport(folder, quantization, n_bytes, difference)


def require_ctranslate2() -> None:
    """Raise where ctranslate2 is not installed."""
    from seqtool.translation.engines.ct2_engine import is_installed

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
        weights[name] = array.astype(np.float32).reshape(tensor["shape"])
    return weights


def count_positions(config: Config) -> int:
    """Return how many positions the exported model tells apart; 0 where there is no limit."""
    if config.model.positions == "learned":
        return config.model.max_positions
    return max(1024, 4 * config.data.max_tokens) if config.model.positions == "sinusoidal" else 0


def check_place(folder: Path) -> None:
    """Raise where an export would take the place of something that is no export."""
    if not os.path.lexists(folder) or read_record(folder) is not None:
        return
    if not folder.is_dir() or any(folder.iterdir()):
        raise SeqtoolError(
            f"{folder}: is there already and is no export of seqtool, so it is left as it is; "
            "remove it yourself, or give another folder with -o"
        )


@contextmanager
def replaced_folder(folder: Path) -> Iterator[Path]:
    """Give a temporary folder to fill; when all went well it takes the place of `folder`."""
    folder = folder.absolute()  # where "." is meant, it has a name
    check_place(folder)
    make_folder(folder.parent)
    workshop = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", suffix=".tmp", dir=folder.parent))
    temporary, old = workshop / "new", workshop / "old"
    try:
        temporary.mkdir()
        yield temporary
        for path in temporary.iterdir():
            with open(path, "rb") as file:
                os.fsync(file.fileno())
        sync_folder(temporary)
        if folder.exists():
            os.rename(folder, old)
        os.rename(temporary, folder)
        sync_folder(folder.parent)
    except OSError as error:
        cause = error.strerror or error
        raise SeqtoolError(f"{folder}: cannot be written ({cause}); make room or give another -o") from None
    finally:
        if old.exists() and not folder.exists():  # what was moved aside goes back where nothing took its place
            os.rename(old, folder)
        shutil.rmtree(workshop, ignore_errors=True)


def check_export(run: RunDir, folder: Path, tokenizers: TokenizerPair, quantization: str) -> float:
    """Translate a few made-up sentences with torch and score them with both engines; raise where they disagree."""
    from seqtool.translation.engines.ct2_engine import CTranslate2Engine
    from seqtool.translation.engines.interface import SearchOptions
    from seqtool.translation.engines.torch_engine import TorchEngine

    reference = TorchEngine.load([run], "cpu")
    converted = CTranslate2Engine(folder, tokenizers, device="cpu", threads=1)
    draw = np.random.default_rng(0)
    lengths = [min(length, reference.max_tokens or length) for length in (3, 5, 8, 12, 17, 23)]
    sources = [draw.integers(4, tokenizers.source.vocab_size, length).tolist() for length in lengths]
    targets = [ranked[0].ids for ranked in reference.translate(sources, SearchOptions(beam=1, max_length_ratio=1.0))]
    pairs = zip(reference.score(sources, targets), converted.score(sources, targets), strict=True)
    differences = [abs(ours - theirs) for row, other in pairs for ours, theirs in zip(row, other, strict=True)]
    difference = float(np.mean(differences))
    tolerance = TOLERANCES["int8" if quantization.startswith("int8") else quantization]
    if not difference <= tolerance:
        raise SeqtoolError(
            f"{run.path}: the {quantization} export does not match the model (log-probabilities differ by "
            f"{difference:.3g} a token, at most {tolerance:g} is accepted); try --quantization float32"
        )
    return difference


def make_spec(config: ModelConfig, weights: Weights, tokenizers: TokenizerPair, n_positions: int) -> Any:
    """Describe the model with ctranslate2's own classes."""
    from ctranslate2 import specs

    activations = {"relu": specs.Activation.RELU, "gelu": specs.Activation.GELU, "swiglu": specs.Activation.SWISH}
    shared = {
        "pre_norm": config.norm == "pre",
        "activation": activations[config.activation],
        "relative_position": config.positions == "relative",
        "ffn_glu": config.activation == "swiglu",
        "rms_norm": config.norm_kind == "rms",
        "rotary_dim": 0 if config.positions == "rotary" else None,
        "rotary_interleave": False,
    }
    spec = specs.TransformerSpec(
        specs.TransformerEncoderSpec(config.encoder_layers, config.n_heads, **shared),
        specs.TransformerDecoderSpec(
            config.decoder_layers,
            config.n_heads,
            alignment_layer=config.decoder_layers - 1,  # the same as in TorchEngine.attend
            alignment_heads=config.n_heads,
            **shared,
        ),
    )
    spec.config.layer_norm_epsilon = 1e-5 if config.norm_kind == "layer" else 1e-6
    spec.config.add_source_eos = True
    spec.register_source_vocabulary(tokenizers.source.piece_list)
    spec.register_target_vocabulary(tokenizers.target.piece_list)
    fill_spec(spec, config, weights, n_positions)
    return spec


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


def fill_spec(spec: Any, config: ModelConfig, weights: Weights, n_positions: int) -> None:
    """Put every weight into its place."""
    target = weights["src_embedding.tokens.weight" if config.share_embeddings else "tgt_embedding.tokens.weight"]
    spec.encoder.embeddings[0].weight = weights["src_embedding.tokens.weight"]
    spec.decoder.embeddings.weight = target
    spec.decoder.projection.weight = target
    for side, stack, name in ((spec.encoder, "encoder", "src_embedding"), (spec.decoder, "decoder", "tgt_embedding")):
        if config.positions == "sinusoidal":
            side.position_encodings.encodings = sinusoids(n_positions, config.d_model)
        elif config.positions == "learned":
            side.position_encodings.encodings = weights[f"{name}.positions.table"]
        if config.norm == "pre":
            fill_norm(side.layer_norm, weights, f"{stack}_norm")
        for index, layer in enumerate(side.layer):
            fill_layer(layer, weights, f"{stack}.{index}")


def fill_layer(layer: Any, weights: Weights, name: str) -> None:
    """Put one layer's weights into its place; ctranslate2 keeps a sublayer's norm inside the sublayer."""
    attention = layer.self_attention
    fill_norm(attention.layer_norm, weights, f"{name}.self_norm")
    fill_linear(attention.linear[0], weights, f"{name}.self_attention.qkv")
    fill_linear(attention.linear[1], weights, f"{name}.self_attention.out")
    if f"{name}.self_attention.relative.keys" in weights:
        attention.relative_position_keys = weights[f"{name}.self_attention.relative.keys"]
        attention.relative_position_values = weights[f"{name}.self_attention.relative.values"]
    if f"{name}.cross_attention.qkv.weight" in weights:
        cross = layer.attention
        width = weights[f"{name}.cross_attention.out.bias"].shape[0]
        fill_norm(cross.layer_norm, weights, f"{name}.cross_norm")
        fill_linear(cross.linear[0], weights, f"{name}.cross_attention.qkv", slice(0, width))
        fill_linear(cross.linear[1], weights, f"{name}.cross_attention.qkv", slice(width, 3 * width))
        fill_linear(cross.linear[2], weights, f"{name}.cross_attention.out")
    fill_norm(layer.ffn.layer_norm, weights, f"{name}.ff_norm")
    inner, outer = f"{name}.feed_forward.inner", f"{name}.feed_forward.outer"
    width = weights[f"{outer}.weight"].shape[1]
    fill_linear(layer.ffn.linear_0, weights, inner, slice(0, width))  # where gated, the gate comes first
    if hasattr(layer.ffn, "linear_0_noact"):
        fill_linear(layer.ffn.linear_0_noact, weights, inner, slice(width, 2 * width))
    fill_linear(layer.ffn.linear_1, weights, outer)


def fill_linear(spec: Any, weights: Weights, name: str, rows: slice = slice(None)) -> None:
    """Put a matrix and its bias, or some rows of them, into their place."""
    spec.weight = np.ascontiguousarray(weights[f"{name}.weight"][rows])
    spec.bias = np.ascontiguousarray(weights[f"{name}.bias"][rows])


def fill_norm(spec: Any, weights: Weights, name: str) -> None:
    """Put a normalisation's scale, and its shift if it has one, into their place."""
    spec.gamma = weights[f"{name}.weight"]
    if f"{name}.bias" in weights:
        spec.beta = weights[f"{name}.bias"]


def sinusoids(n_positions: int, width: int) -> NDArray[np.float32]:
    """Return the paper's encodings (positions, width), sin on even and cos on odd places."""
    rates = 10000.0 ** (np.arange(0, width, 2, dtype=np.float64) / width)
    angles = np.arange(n_positions, dtype=np.float64)[:, None] / rates
    return np.stack((np.sin(angles), np.cos(angles)), axis=-1).reshape(n_positions, width).astype(np.float32)
