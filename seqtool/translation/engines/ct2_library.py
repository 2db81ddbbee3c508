"""The library ctranslate2: whether it is installed, its import without torch, and what it can do on this machine."""

import sys
import threading
from typing import Any

from seqtool.process import local_rank, parse_device


def is_installed() -> bool:
    """Return whether ctranslate2 is there, without importing it."""
    from importlib.util import find_spec

    try:
        return find_spec("ctranslate2") is not None
    except (ImportError, ValueError):
        return False


IMPORTS = threading.Lock()  # held while torch is hidden, and where another thread may import it


def import_ctranslate2() -> Any:
    """Import ctranslate2 without torch, which some releases load for converters that nobody needs here."""
    with IMPORTS:
        if "torch" in sys.modules or "ctranslate2" in sys.modules:
            import ctranslate2
        else:
            sys.modules["torch"] = None  # type: ignore[assignment]
            try:
                import ctranslate2
            finally:
                del sys.modules["torch"]
    return ctranslate2


def why_not_here(device: str, compute_type: str) -> str | None:
    """Return what ctranslate2 lacks on this machine and what to give instead; None if it lacks nothing."""
    try:
        ctranslate2 = import_ctranslate2()
        n_gpus = ctranslate2.get_cuda_device_count()
    except (ImportError, OSError, AttributeError) as error:
        return (
            f"ctranslate2 cannot be loaded ({error}); install it again with: pip install --force-reinstall ctranslate2"
        )
    kind, number = choose_place(device)
    if kind == "cuda" and number >= n_gpus:
        name = f"device {device}" if ":" in device else "CUDA device for each process" if n_gpus else "CUDA device"
        return f"ctranslate2 finds no {name} here; give `device='cpu'`" + (" or start fewer" if n_gpus else "")
    known = sorted(ctranslate2.get_supported_compute_types(kind))
    if compute_type not in ("default", "auto", *known):
        return f"ctranslate2 has no `compute_type='{compute_type}'` on this {kind}; it has {', '.join(known)}"
    return None


def choose_place(device: str) -> tuple[str, int]:
    """Return the kind and the number of the device that ctranslate2 is to use; it can use no mps, so auto never is."""
    ctranslate2 = import_ctranslate2()
    kind, number = parse_device(device)
    if kind == "auto":
        kind = "cuda" if ctranslate2.get_cuda_device_count() else "cpu"
    return kind, local_rank() if kind == "cuda" and number is None else number or 0
