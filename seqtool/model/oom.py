"""Out-of-memory detection."""

import torch

# What errors say that are not of torch's own class for this: of a CPU, of CUDA itself, and of its libraries.
SIGNS = (
    "can't allocate memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that a device's, or the machine's, memory ran out."""
    return isinstance(error, torch.OutOfMemoryError) or any(sign in str(error) for sign in SIGNS)
