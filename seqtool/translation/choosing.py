"""Chooses the engine for a run directory: ctranslate2 where it is at hand and up to date, torch for all else."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from seqtool.config import Config, load_config
from seqtool.corpus.tokenizer import TokenizerPair
from seqtool.errors import SeqtoolError, suggest
from seqtool.files import RunDir
from seqtool.translation.engine import Engine
from seqtool.translation.export_record import is_current, read_record

ENGINES = ("auto", "torch", "ctranslate2")
DEVICES = ("auto", "cpu", "cuda", "mps")


@dataclass(frozen=True)
class TranslatorParts:
    """What a Translator is made of."""

    config: Config
    tokenizers: TokenizerPair
    engine: Engine
    fallback: Callable[[], Engine] | None = None
    notes: list[str] = field(default_factory=list)


def load_parts(
    folders: list[Path], engine: str, device: str, threads: int, compute_type: str, batch_tokens: int | None
) -> TranslatorParts:
    """Open one run directory, or several as an ensemble, with the engine asked for."""
    if engine not in ENGINES:
        raise SeqtoolError(f"there is no engine '{engine}'{suggest(engine, ENGINES)}")
    if device.partition(":")[0] not in DEVICES:
        raise SeqtoolError(f"there is no device '{device}'{suggest(device, DEVICES)}")
    if not folders:
        raise SeqtoolError("no model is given; name a run directory with -m DIR")
    runs = [RunDir(folder).require_model() for folder in folders]
    config = load_config(runs[0].config)
    tokenizers = TokenizerPair.load(runs[0])
    size = batch_tokens or config.decode.batch_tokens
    threads = threads or config.decode.threads or threads_per_process()

    def load_torch() -> Engine:
        from seqtool.translation.engines.torch_engine import TorchEngine

        return TorchEngine.load(runs, torch_device(device), batch_tokens=size, threads=threads)

    obstacle = None if engine == "torch" else why_not_ctranslate2(runs, device)
    if engine == "ctranslate2" and obstacle:
        raise SeqtoolError(f"{obstacle}; or use --engine torch")
    if engine == "torch" or obstacle:
        stale = [f"{obstacle}; the slower torch engine is used"] if obstacle and runs[0].ctranslate2.exists() else []
        return TranslatorParts(config, tokenizers, load_torch(), notes=stale if len(runs) == 1 else [])
    fast = load_ctranslate2(runs[0], tokenizers, device, threads, compute_type, size)
    return TranslatorParts(config, tokenizers, fast, load_torch if engine == "auto" else None)


def load_ctranslate2(
    run: RunDir, tokenizers: TokenizerPair, device: str, threads: int, compute_type: str, batch_tokens: int
) -> Engine:
    """Load the exported form of a model."""
    from seqtool.translation.engines.ct2_engine import CTranslate2Engine

    record = read_record(run.ctranslate2) or {}
    return CTranslate2Engine(
        run.ctranslate2,
        tokenizers,
        device=device,
        threads=threads,
        compute_type=compute_type,
        batch_tokens=batch_tokens,
        n_positions=int(record.get("positions", 0)),
        n_learned=int(record.get("learned_positions", 0)),
    )


def why_not_ctranslate2(runs: list[RunDir], device: str) -> str | None:
    """Return what keeps ctranslate2 from being used and how to change it; None where nothing does."""
    from seqtool.translation.engines.ct2_engine import is_installed

    run = runs[0]
    if len(runs) > 1:
        return "the ctranslate2 engine takes one model, not an ensemble; give one -m"
    if device == "mps":
        return "the ctranslate2 engine does not run on mps; give --device cpu"
    if not is_installed():
        return "ctranslate2 is not installed; install it with: pip install 'seqtool[fast]'"
    if not run.ctranslate2.is_dir():
        return f"{run.ctranslate2}: no such folder; make it with 'seqtool export -m {run.path} --to ctranslate2'"
    record = read_record(run.ctranslate2)
    if record is None or not is_current(run, record):
        return (
            f"{run.ctranslate2} was not made from the present {run.weights.name}; "
            f"make it again with 'seqtool export -m {run.path} --to ctranslate2'"
        )
    return None


def torch_device(device: str) -> str:
    """Return the torch device that a user's word stands for; each process of torchrun takes its own GPU."""
    import torch

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda" and not torch.cuda.is_available():
        raise SeqtoolError("there is no CUDA device here; give --device cpu")
    if device == "mps" and not torch.backends.mps.is_available():
        raise SeqtoolError("there is no MPS device here; give --device cpu")
    if device == "cuda" and "LOCAL_RANK" in os.environ:
        return f"cuda:{os.environ['LOCAL_RANK']}"
    return device


def threads_per_process() -> int:
    """Return 0 (all cores), or this process's share of them where torchrun started several."""
    n_local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return max(1, (os.cpu_count() or 1) // n_local) if n_local > 1 else 0
