"""Puts the pretend GPUs in the place of torch.cuda. To be imported before torch."""

import contextlib
import ctypes
import os
import types
from collections.abc import Iterator
from typing import Any

from gpu_stand_in.build import build

HOOKS = ctypes.CDLL(str(build()), mode=ctypes.RTLD_LOCAL)

import torch  # noqa: E402
from gpu_stand_in.device import LEDGER, register_factories  # noqa: E402

NAME = "pretend GPU"
MEMORY = 8 * 2**30  # bytes that a device claims to have where it has no limit
_kept: list[Any] = []


def install(*, capacity: int = 0, major: int = 8) -> None:
    """Let torch find pretend GPUs with this many bytes of memory (0: no limit) and this compute capability."""
    LEDGER.capacity = capacity
    _kept.append(register_factories())
    torch._C._set_only_lift_cpu_tensors(True)  # else torch.tensor(..., device="cuda") goes past all of this
    torch.__future__.set_swap_module_params_on_conversion(True)  # parameters stay the same objects, as on a GPU
    torch.Tensor.pin_memory = pin_memory  # type: ignore[method-assign,assignment]
    torch.Tensor.is_pinned = lambda self, device=None: getattr(self, "pinned", False)  # type: ignore[method-assign]
    for name, value in replacements(capacity or MEMORY, major).items():
        if not hasattr(torch.cuda, name):
            raise AttributeError(f"torch.cuda has no '{name}' to put another in its place")
        setattr(torch.cuda, name, value)


def pin_memory(self: torch.Tensor, device: Any = None) -> torch.Tensor:
    """Return a copy that counts as pinned."""
    pinned = self.clone()
    pinned.pinned = True  # type: ignore[attr-defined]
    return pinned


def replacements(memory: int, major: int) -> dict[str, Any]:
    """Return what takes the place of functions of torch.cuda."""
    properties = types.SimpleNamespace(
        name=NAME, total_memory=memory, major=major, minor=0, multi_processor_count=1, is_integrated=False
    )

    def reset_peak(device: Any = None) -> None:
        LEDGER.peak[number_of(device)] = LEDGER.allocated[number_of(device)]

    return {
        "_lazy_init": lambda: None,
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "device_count": lambda: int(os.environ.get("GPU_STAND_IN_DEVICES", "1")),
        "current_device": lambda: int(HOOKS.gpu_stand_in_current_device()),
        "set_device": lambda device: HOOKS.gpu_stand_in_set_device(number_of(device)),
        "device": chosen_device,
        "manual_seed_all": lambda seed: None,  # the values are drawn on the CPU
        "synchronize": lambda device=None: LEDGER.note("value", waits=True),
        "empty_cache": lambda: None,
        "get_device_properties": lambda device=None: properties,
        "get_device_name": lambda device=None: NAME,
        "get_device_capability": lambda device=None: (major, 0),
        "mem_get_info": lambda device=None: (memory - LEDGER.allocated[number_of(device)], memory),
        "memory_allocated": lambda device=None: LEDGER.allocated[number_of(device)],
        "memory_reserved": lambda device=None: LEDGER.allocated[number_of(device)],
        "max_memory_allocated": lambda device=None: LEDGER.peak[number_of(device)],
        "reset_peak_memory_stats": reset_peak,
        "_check_bf16_tensor_supported": lambda device: True,  # by emulation
    }


@contextlib.contextmanager
def chosen_device(device: Any) -> Iterator[None]:
    """Make a device the current one for a while."""
    before = HOOKS.gpu_stand_in_current_device()
    HOOKS.gpu_stand_in_set_device(number_of(device))
    try:
        yield
    finally:
        HOOKS.gpu_stand_in_set_device(before)


def number_of(device: Any) -> int:
    """Return the number of a device, however it is named."""
    if device is None or (index := torch.device(device).index if not isinstance(device, int) else device) is None:
        return int(HOOKS.gpu_stand_in_current_device())
    return int(index)
