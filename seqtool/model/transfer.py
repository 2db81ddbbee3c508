"""Copies from the host to the device a model is on, without making the host wait for the device."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor


def to_device(values: Tensor | np.ndarray | Sequence[int], device: torch.device) -> Tensor:  # type: ignore[type-arg]
    """Return values of the host on a device.

    A GPU copies from ordinary memory only while the host waits, and only after all that it was given before; from
    pinned memory it copies by itself, in its turn.
    """
    tensor = torch.as_tensor(values)
    if device.type == "cuda":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)
