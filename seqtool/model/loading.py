"""Weights to and from safetensors files, and models from run directories."""

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from seqtool.config import load_config
from seqtool.corpus.tokenizer.interface import Vocabularies
from seqtool.errors import SeqtoolError
from seqtool.files import write_whole
from seqtool.model.header import require_fit
from seqtool.model.interface import TranslationModel
from seqtool.model.kinds import build_model
from seqtool.run_directory import RunDir


def weights_of(model: TranslationModel) -> dict[str, Tensor]:
    """Return the model's weights by name, each once: shared embeddings have the source's name."""
    seen: dict[int, str] = {}
    weights = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen[id(tensor)] = name
            weights[name] = tensor.detach()
    return weights


def save_weights(weights: dict[str, Tensor], path: Path) -> None:
    """Write weights as safetensors, whole or not at all."""
    write_whole(path, save({name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}))


def read_weights(path: Path) -> dict[str, Tensor]:
    """Read a safetensors file; nothing in it is ever run."""
    try:
        return load_file(path)
    except FileNotFoundError:
        raise SeqtoolError(f"{path}: no such file; is this a model folder?") from None
    except (SafetensorError, OSError) as error:
        raise SeqtoolError(f"{path}: damaged or not a safetensors file ({error}); restore it from a copy") from None


def put_weights(model: TranslationModel, weights: Mapping[str, Tensor], origin: Path) -> None:
    """Copy weights into a model, or say which of them do not fit."""
    expected = weights_of(model)
    check_names(expected, weights, origin)
    for name, tensor in expected.items():
        tensor.copy_(fitting(weights[name], name, tensor.shape, origin))


def check_names(expected: Mapping[str, Tensor], weights: Mapping[str, Tensor], origin: Path) -> None:
    """Raise if weights have other names than the model's."""
    missing, unknown = sorted(expected.keys() - weights.keys()), sorted(weights.keys() - expected.keys())
    if missing or unknown:
        raise SeqtoolError(
            f"{origin}: the weights do not fit the configuration (first odd name: {(missing + unknown)[0]}); "
            "use the config.toml that the weights were trained with"
        )


def fitting(weight: Tensor, name: str, shape: torch.Size, origin: Path) -> Tensor:
    """Return a weight if it has the shape that the model needs."""
    if weight.shape != shape:
        raise SeqtoolError(
            f"{origin}: {name} has shape {tuple(weight.shape)}, but the configuration and vocabulary "
            f"need {tuple(shape)}; use the config.toml and tokenizer the weights were trained with"
        )
    if not weight.is_floating_point():
        raise SeqtoolError(f"{origin}: {name} has type {weight.dtype}, which is no float; restore it from a copy")
    return weight


def load_model(run: RunDir, vocabularies: Vocabularies, device: str | torch.device = "cpu") -> TranslationModel:
    """Build the model of a run directory, ready to translate."""
    run.require_model()
    config = load_config(run.config).model
    require_fit(run, config, vocabularies)
    model = build_model(config, vocabularies)
    with torch.no_grad():
        put_weights(model, read_weights(run.weights), run.weights)
    return model.to(device).eval()
