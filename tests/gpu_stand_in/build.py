"""Builds hooks.cpp into a library, once for each version of torch and of the source; needs no torch in this process."""

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

SOURCE = Path(__file__).parent / "hooks.cpp"
FLAGS = ("-std=c++20", "-O1", "-shared", "-fPIC", "-D_GLIBCXX_USE_CXX11_ABI=1")


def why_not() -> str | None:
    """Return what keeps the stand-in from being built here, None if nothing does."""
    if sys.platform != "linux":
        return "the GPU stand-in is built on Linux only"
    if find_compiler() is None:
        return "the GPU stand-in needs a C++ compiler; install g++"
    if not (torch_folder() / "include" / "ATen").is_dir():
        return f"{torch_folder()} has no headers of torch"
    return None


def find_compiler() -> str | None:
    """Return the C++ compiler to use."""
    return shutil.which(os.environ.get("CXX", "g++"))


def torch_folder() -> Path:
    """Return where torch is installed."""
    spec = find_spec("torch")
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])


def cache_folder() -> Path:
    """Return where built libraries are kept from one session to the next."""
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "seqtool-gpu-stand-in"


def build() -> Path:
    """Return the library, built unless it is there; several processes may do this at the same time."""
    key = "\n".join((SOURCE.read_text(), str(torch_folder()), version("torch"), sysconfig.get_platform(), *FLAGS))
    library = cache_folder() / f"hooks-{hashlib.sha256(key.encode()).hexdigest()[:16]}.so"
    if not library.exists():
        library.parent.mkdir(parents=True, exist_ok=True)
        unfinished = library.with_suffix(f".{os.getpid()}")
        compile_hooks(unfinished)
        unfinished.rename(library)
    return library


def compile_hooks(library: Path) -> None:
    """Compile the hooks against the headers and libraries of the torch that is installed."""
    torch, compiler = torch_folder(), find_compiler()
    assert compiler is not None, why_not()
    headers = [f"-I{torch / 'include'}", f"-I{torch / 'include' / 'torch' / 'csrc' / 'api' / 'include'}"]
    libraries = [f"-L{torch / 'lib'}", f"-Wl,-rpath,{torch / 'lib'}", "-ltorch_cpu", "-lc10"]
    command = [compiler, *FLAGS, *headers, str(SOURCE), "-o", str(library), *libraries]
    subprocess.run(command, check=True)
