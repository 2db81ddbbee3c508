"""Tensors of a pretend GPU: they say that they are on cuda, and their values are computed on the CPU.

As on a real device, an operation on tensors of different devices is an error, the host cannot look at a value without
waiting for it, and copies that are not from pinned memory make the host wait. Unlike on a real one, everything is done
at once: an error in the order of asynchronous work does not show.
"""

import functools
from collections.abc import Iterable
from typing import Any

import torch
from gpu_stand_in.cells import SUBSTITUTES
from gpu_stand_in.ledger import Allocation, Ledger
from torch.utils._mode_utils import no_dispatch
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map

aten = torch.ops.aten
LEDGER = Ledger()

COPIES = {aten.copy_.default, aten._to_copy.default}
INDEXING = {aten.index.Tensor, aten.index_put.default, aten.index_put_.default, aten._index_put_impl_.default}
LEARNS_A_SIZE = {  # how large the result is depends on values, so that the host has to wait for them
    aten.nonzero.default,
    aten.masked_select.default,
    aten.repeat_interleave.Tensor,
    aten._unique2.default,
    aten.unique_consecutive.default,
    aten.unique_dim.default,
    aten.bincount.default,
}
READS_A_VALUE = {aten._local_scalar_dense.default, aten.equal.default, aten.is_nonzero.default}
# Operations that make a tensor without being given one.
FACTORIES = (
    "arange",
    "arange.start",
    "arange.start_step",
    "empty.memory_format",
    "empty_strided",
    "eye",
    "eye.m",
    "full",
    "linspace",
    "ones",
    "rand",
    "randint",
    "randint.low",
    "randn",
    "randperm",
    "scalar_tensor",
    "tril_indices",
    "triu_indices",
    "zeros",
)


class DeviceTensor(torch.Tensor):
    """A tensor on a pretend GPU."""

    values: torch.Tensor  # on the CPU
    memory: Allocation

    @staticmethod
    def __new__(cls, values: torch.Tensor, device: torch.device, memory: Allocation | None = None) -> "DeviceTensor":
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            values.shape,
            strides=values.stride(),
            storage_offset=values.storage_offset(),
            dtype=values.dtype,
            device=device,
        )
        made.values = values
        made.memory = memory or Allocation(LEDGER, device.index, values.untyped_storage().nbytes())
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(func, args, kwargs or {})

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"DeviceTensor({self.values!r}, device={self.device})"

    def numpy(self, *, force: bool = False) -> Any:
        """Refuse, as CUDA tensors do."""
        raise TypeError(f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() first")

    def tolist(self) -> Any:
        """Copy to the host, then list."""
        return self.detach().cpu().tolist()


def compute(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Carry out one operation of torch, at least one of whose tensors is on a pretend device."""
    if is_composite(func):  # arrives whole in inference mode; elsewhere its parts arrive
        return func.decompose(*args, **kwargs)
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    on_device = [tensor for tensor in tensors if isinstance(tensor, DeviceTensor)]
    check_placement(func, args, tensors)
    target = place_of_result(func, args, kwargs, on_device)
    note_traffic(func, args, kwargs, target)
    on_cpu = SUBSTITUTES.get(func, func)
    result = on_cpu(*tree_map(on_host, args), **{name: tree_map(on_host, value) for name, value in kwargs.items()})
    if target.type != "cuda":
        return result
    if torch.Tag.inplace_view in func.tags:  # transpose_ and the like: the shape of what stands for it changes too
        with no_dispatch():
            func(*args, **kwargs)
    known = {id(tensor.values): tensor for tensor in on_device}
    bases = {tensor.values.untyped_storage().data_ptr(): tensor for tensor in on_device if tensor.values.numel()}

    def onto_device(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) in known:  # changed in place, or handed through
            return known[id(value)]
        base = bases.get(value.untyped_storage().data_ptr())
        if base is None:
            return DeviceTensor(value, target)
        with torch.inference_mode(base.is_inference()):  # a view counts as made where its base was
            return DeviceTensor(value, target, base.memory)

    leaves, shape = tree_flatten(result)
    return shape.unflatten([onto_device(leaf) for leaf in leaves])


@functools.cache
def is_composite(func: Any) -> bool:
    """Return whether an operation is only a sequence of others."""
    return torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd")


def on_host(value: Any) -> Any:
    """Return what stands for a tensor, or a device, on the host."""
    if isinstance(value, DeviceTensor):
        return value.values
    return torch.device("cpu") if isinstance(value, torch.device) and value.type == "cuda" else value


def check_placement(func: Any, args: tuple[Any, ...], tensors: list[torch.Tensor]) -> None:
    """Raise where a GPU would: for tensors of several devices, except single numbers of the host, and indices."""
    if func in COPIES:
        return
    devices = {tensor.device for tensor in tensors if isinstance(tensor, DeviceTensor)}
    host = [tensor for tensor in tensors if not isinstance(tensor, DeviceTensor)]
    if func in INDEXING:
        indices = {id(index) for index in args[1] if index is not None}
        host = [tensor for tensor in host if id(tensor) not in indices]
    if takes_numbers_of_the_host(func):
        host = [tensor for tensor in host if tensor.dim()]
    if host or len(devices) > 1:
        names = ", ".join(sorted({str(tensor.device) for tensor in tensors}))
        raise RuntimeError(f"Expected all tensors to be on the same device, but found {names} in {func}")


def takes_numbers_of_the_host(func: Any) -> bool:
    """Return whether an operation takes a tensor without dimensions from the host."""
    return torch.Tag.pointwise in func.tags or func in INDEXING or "_foreach" in func.name()


def place_of_result(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], on_device: list[DeviceTensor]
) -> torch.device:
    """Return where the result of an operation is."""
    if func is aten.copy_.default:
        return args[0].device
    if (wanted := kwargs.get("device")) is not None:
        return with_index(torch.device(wanted))
    return on_device[0].device


def with_index(device: torch.device) -> torch.device:
    """Return a device with its number; without one, the current device of this thread is meant."""
    if device.type != "cuda" or device.index is not None:
        return device
    return torch.device("cuda", torch.cuda.current_device())


def note_traffic(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], target: torch.device) -> None:
    """Record what an operation moves between host and device, and whether the host waits for it."""
    if func in COPIES:
        source = args[1] if func is aten.copy_.default else args[0]
        to_host = source.device.type == "cuda" and target.type == "cpu"
        if source.device.type != target.type:
            asynchronous = kwargs.get("non_blocking") or (func is aten.copy_.default and any(args[2:]))
            pinned = is_pinned(args[0] if to_host else source)
            LEDGER.note("d2h" if to_host else "h2d", waits=not (asynchronous and pinned))
    elif func in READS_A_VALUE:
        LEDGER.note("value", waits=True)
    elif func in LEARNS_A_SIZE and kwargs.get("output_size") is None:
        LEDGER.note("shape", waits=True)
    elif func in INDEXING:
        note_indices(func, args, [index for index in args[1] if index is not None])


def note_indices(func: Any, args: tuple[Any, ...], indices: Iterable[torch.Tensor]) -> None:
    """Indices on the host are copied; masks have to be counted, except where one number is put everywhere."""
    for index in indices:
        if not isinstance(index, DeviceTensor):
            LEDGER.note("h2d", waits=True)
        elif index.dtype in (torch.bool, torch.uint8) and (func is aten.index.Tensor or args[2].numel() > 1):
            LEDGER.note("shape", waits=True)


def is_pinned(tensor: torch.Tensor) -> bool:
    """Return whether a tensor of the host is in pinned memory; a view of such a one counts as not."""
    return bool(getattr(tensor, "pinned", False))


def register_factories() -> torch.library.Library:
    """Let operations that make tensors make them on pretend devices too; valid as long as the result is kept."""
    library = torch.library.Library("aten", "IMPL")

    def factory(name: str) -> Any:
        packet, _, overload = name.partition(".")
        func = getattr(getattr(aten, packet), overload or "default")

        def make(*args: Any, **kwargs: Any) -> DeviceTensor:
            device = with_index(torch.device(kwargs.pop("device", None) or "cuda"))
            kwargs.pop("pin_memory", None)
            return DeviceTensor(func(*args, **kwargs, device="cpu"), device)

        return make

    for name in FACTORIES:
        library.impl(name, factory(name), "CUDA")
    return library
