"""The memory that a model takes in training, by formula: the weights and what the optimizer keeps for each.

Beside it there are the activations of a pass, the validation's copy of the model, and what a layer needs while it is
whole.
"""

from seqtool.config import TrainConfig
from seqtool.model.interface import TranslationModel

FLOAT = 4  # bytes
SHARE_OF_STATE = 0.6  # of a device's memory, beyond which a model is shared out


def bytes_per_parameter(config: TrainConfig) -> int:
    """Return the bytes of weight, gradient, optimizer state and moving average; Muon keeps one moment, AdamW two."""
    moments = 1 if config.optimizer == "muon" else 2
    return FLOAT * (2 + moments + (config.ema > 0))


def state_bytes(model: TranslationModel, config: TrainConfig, n_workers: int) -> int:
    """Return the bytes of a worker's state; when the model is shared out, with the largest piece that is put together.

    That piece stands twice: its weights, and its gradients before they are summed and taken apart.
    """
    sizes = [parameter.numel() for parameter in model.parameters()]
    if config.shard != "model" or n_workers == 1:
        return bytes_per_parameter(config) * sum(sizes)
    layers = [sum(p.numel() for p in layer.parameters()) for layer in model.stack_layers()]
    rest = sum(sizes) - sum(layers)
    return bytes_per_parameter(config) * -(-sum(sizes) // n_workers) + 2 * FLOAT * (rest + max(layers, default=0))
