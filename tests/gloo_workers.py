"""Runs a function of a test in several processes joined by gloo, forked from one that has torch loaded."""

import functools
import multiprocessing
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any


@functools.cache
def forking() -> Any:
    """Return the means to fork processes from a server that has the training code loaded."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["seqtool.training.parallel"])
    return context


def run_together(
    function: Callable[..., Any], n_workers: int, *arguments: Any, timeout: float = 120, part_in_peace: bool = True
) -> list[Any]:
    """Call function(workers, *arguments) in every process; return the results by rank.

    Processes wait for each other before they end, unless they do not `part_in_peace`.
    """
    with tempfile.TemporaryDirectory() as folder:
        pipes = [forking().Pipe(duplex=False) for _ in range(n_workers)]
        processes = [
            forking().Process(target=_work, args=(function, rank, n_workers, folder, pipe[1], part_in_peace, arguments))
            for rank, pipe in enumerate(pipes)
        ]
        for process in processes:
            process.start()
        for _, sender in pipes:
            sender.close()
        try:
            results = []
            for receiver, _ in pipes:
                assert receiver.poll(timeout), "a worker has not answered"
                results.append(receiver.recv())
        finally:
            for process in processes:
                process.kill()
                process.join()
        return results


def _work(
    function: Callable[..., Any],
    rank: int,
    size: int,
    folder: str,
    sender: Any,
    part_in_peace: bool,
    arguments: tuple[Any, ...],
) -> None:
    import torch
    import torch.distributed as dist

    from seqtool.training.distributed import Workers

    torch.set_num_threads(1)
    store = dist.FileStore(str(Path(folder) / "store"), size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size)
    result = function(Workers(rank, size, torch.device("cpu")), *arguments)
    if part_in_peace:
        dist.barrier()  # no one leaves while others still talk
        dist.destroy_process_group()
    sender.send(result)
