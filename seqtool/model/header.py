"""Whether weights can be those of a configuration, by their header alone: no memory is taken for what does not fit."""

import math

from safetensors import SafetensorError, safe_open

from seqtool.config import ModelConfig
from seqtool.corpus.tokenizer.interface import Vocabularies
from seqtool.errors import SeqtoolError
from seqtool.model.kinds import kind_of
from seqtool.run_directory import RunDir

MOST_TIMES = 2


def count_weights(run: RunDir) -> int | None:
    """Count the numbers in model.safetensors by its header; None if it cannot be read."""
    if not run.weights.is_file():
        return None
    try:
        with safe_open(run.weights, framework="np") as file:
            return sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys()) or None  # noqa: SIM118
    except (OSError, SafetensorError):
        return None


def require_fit(run: RunDir, config: ModelConfig, vocabularies: Vocabularies) -> None:
    """Raise if the model of a configuration is far larger than the weights of a run; what is nearer will be compared
    by name and shape."""
    found = count_weights(run)
    sizes = vocabularies.source.size, vocabularies.target.size
    expected = kind_of(config).count_parameters(config, *sizes).total
    if found is not None and expected > MOST_TIMES * found:
        raise SeqtoolError(
            f"{run.weights}: has {found:,} parameters, but the model of {run.config.name} has {expected:,}; "
            "use the config.toml and tokenizer that the weights were trained with"
        )
