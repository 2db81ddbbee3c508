"""Out-of-memory detection."""

import torch


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether an error means that a device's, or the machine's, memory ran out."""
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)
