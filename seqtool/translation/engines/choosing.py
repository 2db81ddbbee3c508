"""Chooses the engine for a run directory: ctranslate2 where it is at hand and up to date, torch for all else.

The engine is chosen before the device. With the device 'auto', torch computes where training would: on cuda, else mps,
else the CPU; ctranslate2, which cannot use mps, on cuda, else the CPU.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from seqtool.config import Config, load_config
from seqtool.corpus.tokenizer.interface import TokenizerPair
from seqtool.corpus.tokenizer.registry import load_pair
from seqtool.errors import SeqtoolError, suggest
from seqtool.process import choose_device, parse_device, threads_per_process
from seqtool.run_directory import RunDir
from seqtool.translation.engines.ct2_engine import IMPORTS, CTranslate2Engine, is_installed, why_not_here
from seqtool.translation.engines.interface import Engine
from seqtool.translation.export.record import is_current, read_record

ENGINES = ("auto", "torch", "ctranslate2")
FLOATS = ("float32", "bfloat16", "float16")
COMPUTE_TYPES = ("default", "auto", *FLOATS, "int8", *(f"int8_{name}" for name in FLOATS), "int16")


@dataclass(frozen=True)
class TranslatorParts:
    """What a Translator is made of."""

    config: Config
    tokenizers: TokenizerPair
    engine: Engine
    fallback: Callable[[], Engine] | None = None
    notes: list[str] = field(default_factory=list)


def load_parts(
    folders: list[Path],
    engine: str,
    device: str,
    threads: int,
    compute_type: str,
    batch_tokens: int | None,
    compile: bool = False,
) -> TranslatorParts:
    """Open one run directory, or several as an ensemble, with the engine asked for."""
    check_names(engine, device, compute_type)
    if not folders:
        raise SeqtoolError("no model is given; name a run directory with -m DIR")
    runs = [RunDir(folder).require_model() for folder in folders]
    configs = [load_config(run.config) for run in runs]
    config = with_chosen_penalty(with_shortest_limits(configs), runs[0])
    tokenizers = load_pair(runs[0])
    size = batch_tokens or config.decode.batch_tokens
    threads = threads or config.decode.threads or threads_per_process()

    def load_torch() -> Engine:
        with IMPORTS:
            from seqtool.translation.engines.torch_engine import TorchEngine

        return TorchEngine.load(
            runs,
            tokenizers.vocabularies,
            choose_device(device),
            compute_type=compute_type,
            compile=compile,
            batch_tokens=size,
            threads=threads,
        )

    if compile and engine == "ctranslate2":
        raise SeqtoolError("--compile is for the torch engine; leave it out, or use --engine torch")
    if compile or engine == "torch":
        return TranslatorParts(config, tokenizers, load_torch())
    obstacle = why_not_ctranslate2(runs, device, compute_type)
    if obstacle and engine == "ctranslate2":
        raise SeqtoolError(f"{obstacle}; or use --engine torch")
    if obstacle:
        is_news = runs[0].ctranslate2.exists() and len(runs) == 1
        notes = [f"{obstacle}; the slower torch engine is used"] if is_news else []
        return TranslatorParts(config, tokenizers, load_torch(), notes=notes)
    fast = load_ctranslate2(runs[0], tokenizers, device, threads, compute_type, size)
    return TranslatorParts(config, tokenizers, fast, load_torch if engine == "auto" else None)


def with_shortest_limits(configs: list[Config]) -> Config:
    """Return the first model's configuration, with the limits of whichever of an ensemble takes the shortest lines."""
    first = configs[0]
    limited = [config.model for config in configs if config.model.position_limit]
    model = min(limited, key=lambda model: model.position_limit, default=first.model)
    max_tokens = min(config.data.max_tokens for config in configs)
    return replace(first, model=model, data=replace(first.data, max_tokens=max_tokens))


def with_chosen_penalty(config: Config, run: RunDir) -> Config:
    """Fill in the length penalty that training chose by validation, unless the configuration names one."""
    chosen = run.read_manifest().model.length_penalty
    if config.decode.length_penalty != "auto" or chosen is None:
        return config
    return replace(config, decode=replace(config.decode, length_penalty=chosen))


def check_names(engine: str, device: str, compute_type: str) -> None:
    """Raise where there is no such engine, device or type of numbers anywhere."""
    if engine not in ENGINES:
        raise SeqtoolError(f"there is no engine '{engine}'{suggest(engine, ENGINES)}")
    parse_device(device)
    if compute_type not in COMPUTE_TYPES:
        raise SeqtoolError(f"there is no compute type '{compute_type}'{suggest(compute_type, COMPUTE_TYPES)}")


def load_ctranslate2(
    run: RunDir, tokenizers: TokenizerPair, device: str, threads: int, compute_type: str, batch_tokens: int
) -> Engine:
    """Load the exported form of a model."""
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


def why_not_ctranslate2(runs: list[RunDir], device: str, compute_type: str) -> str | None:
    """Return what keeps ctranslate2 from being used and how to change it; None where nothing does."""
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
    return why_not_here(device, compute_type)
