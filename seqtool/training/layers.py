"""What training makes of a model's layers: each compiled, or computed again in the backward pass, by itself."""

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from torch.utils.checkpoint import checkpoint

from seqtool.config import TrainConfig
from seqtool.model.dropout import current_generator, drawing_from
from seqtool.model.interface import TranslationModel


def wrap_layers(model: TranslationModel, config: TrainConfig, n_workers: int) -> Callable[..., Any]:
    """Wrap the layers as the settings ask; return what to call for a pass over a training batch.

    A model that is compiled as a whole gives all its gradients at once, at the end of the backward pass: too late to
    exchange them beside it. So several workers compile each layer.
    """
    run = model.compile_for_training(n_workers > 1 or config.activation_checkpointing) if config.compile else model
    if config.activation_checkpointing:
        for layer in model.stack_layers():
            layer.forward = partial(recompute, layer.forward)
    return run


def recompute(forward: Callable[..., Any], *arguments: Any) -> Any:
    """Call a layer and keep only what went in; the backward pass calls it once more, with the same random numbers."""
    return checkpoint(forward, *arguments, use_reentrant=False, context_fn=_same_draws)


def _same_draws() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """Return the contexts of the first pass and of the second; torch sees to its default generator itself."""
    generator = current_generator()
    if generator is None:
        return contextlib.nullcontext(), contextlib.nullcontext()
    return contextlib.nullcontext(), drawing_from(generator.clone_state())
