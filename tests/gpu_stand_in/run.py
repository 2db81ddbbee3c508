"""Runs a seqtool command, unchanged, with pretend GPUs.

    python tests/gpu_stand_in/run.py [--ledger FILE] [--memory BYTES] [...] seqtool train ... --device cuda
    python tests/gpu_stand_in/run.py [...] FILE.py [ARGUMENT...]

The ledger says, as JSON, what went between host and device and which lines of seqtool caused it.
"""

import argparse
import os
import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[0:1] = [str(ROOT), str(ROOT.parent), str(ROOT.parent / "benchmarks")]


def main() -> None:
    """Parse the arguments before the command, put the pretend GPUs in place and run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ledger", type=Path, help="where to write what happened")
    parser.add_argument("--memory", type=int, default=0, help="bytes of memory of a GPU (0: no limit)")
    parser.add_argument("--capability", type=int, default=8, help="compute capability; below 8 there is no bfloat16")
    parser.add_argument("--devices", type=int, default=1, help="how many GPUs there are")
    parser.add_argument("--count", action="append", default=[], metavar="MODULE:CLASS.METHOD", help="count its calls")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    os.environ["GPU_STAND_IN_DEVICES"] = str(arguments.devices)
    from gpu_stand_in.torch_cuda import LEDGER, install  # imports torch

    install(capacity=arguments.memory, major=arguments.capability)
    for name in arguments.count:
        count_calls(name, LEDGER.calls)
    sys.argv = arguments.command
    try:
        if sys.argv[0] == "seqtool":
            from seqtool.cli.main import main as run_seqtool

            run_seqtool()
        else:
            runpy.run_path(sys.argv[0], run_name="__main__")
    finally:
        if arguments.ledger:
            LEDGER.write(arguments.ledger)


def count_calls(name: str, calls: dict[str, int]) -> None:
    """Count the calls of a method under its name."""
    import functools
    import importlib

    module, _, place = name.partition(":")
    owner_name, _, method_name = place.rpartition(".")
    owner = getattr(importlib.import_module(module), owner_name)
    method = getattr(owner, method_name)

    @functools.wraps(method)
    def counting(*args: object, **kwargs: object) -> object:
        calls[name] += 1
        return method(*args, **kwargs)

    setattr(owner, method_name, counting)


if __name__ == "__main__":
    main()
