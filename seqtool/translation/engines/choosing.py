"""Chooses the engine for a run directory: ctranslate2 if it is installed and its export up to date, else torch.

The engine is chosen before the device. With the device 'auto', torch computes where training would: on cuda, else mps,
else the CPU; ctranslate2, which cannot use mps, on cuda, else the CPU.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from seqtool.config import Config, load_config
from seqtool.corpus.sentences import has_single_sentences
from seqtool.corpus.tokenizer.interface import TokenizerPair
from seqtool.corpus.tokenizer.registry import load_pair
from seqtool.errors import OptionError, SeqtoolError
from seqtool.model.kinds import kind_of
from seqtool.process import threads_per_process
from seqtool.run_directory import RunDir
from seqtool.translation.engines.ct2_engine import CTranslate2Engine
from seqtool.translation.engines.ct2_library import IMPORTS, is_installed, why_not_here
from seqtool.translation.engines.interface import Engine
from seqtool.translation.engines.settings import EngineSettings
from seqtool.translation.export.record import find_damage, read_record
from seqtool.unfinished import use_models


@dataclass(frozen=True)
class TranslatorParts:
    """What a Translator is made of."""

    config: Config
    tokenizers: TokenizerPair
    engine: Engine
    fallback: Callable[[], Engine] | None = None
    notes: list[str] = field(default_factory=list)
    single_sentences: bool = False  # what the first model was trained on
    runs: tuple[RunDir, ...] = ()
    checksums: tuple[dict[str, str], ...] = ()  # of each model's files, as they were read


def load_parts(folders: list[Path], settings: EngineSettings) -> TranslatorParts:
    """Open one run directory, or several as an ensemble, with the engine asked for."""
    if not folders:
        raise OptionError("no model is given; name a run directory with `model`")

    def load(runs: list[RunDir]) -> TranslatorParts:
        single_sentences = has_single_sentences(runs[0].read_manifest().data.text)
        checksums = tuple(run.checksums() for run in runs)
        parts = load_engine(runs, settings)
        return replace(parts, single_sentences=single_sentences, runs=tuple(runs), checksums=checksums)

    return use_models(folders, load)


def load_engine(runs: list[RunDir], settings: EngineSettings) -> TranslatorParts:
    """Choose and load the engine for models that have been verified."""
    configs = [load_config(run.config) for run in runs]
    changes = [note for run in runs for note in run.note_changes()]
    config = with_chosen_penalty(with_shortest_limits(configs), runs[0])
    tokenizers = load_pair(runs[0])
    settings = replace(
        settings,
        batch_tokens=settings.batch_tokens or config.decode.batch_tokens,
        threads=settings.threads or config.decode.threads or threads_per_process(),
    )

    def load_torch() -> Engine:
        with IMPORTS:
            from seqtool.translation.engines.torch_engine import TorchEngine

        return TorchEngine.load(runs, tokenizers.vocabularies, settings)

    if settings.compile or settings.engine == "torch":
        return TranslatorParts(config, tokenizers, load_torch(), notes=changes)
    obstacle = why_not_ctranslate2(runs, config, tokenizers, settings)
    if obstacle and settings.engine == "ctranslate2":
        wrong_usage = len(runs) > 1 or settings.device == "mps"
        raise (OptionError if wrong_usage else SeqtoolError)(
            f"{obstacle}; {'or ' if ';' in obstacle else ''}use `engine='torch'`"
        )
    if obstacle:
        is_news = runs[0].ctranslate2.exists() and len(runs) == 1
        notes = [f"{obstacle}; the slower torch engine is used"] if is_news else []
        return TranslatorParts(config, tokenizers, load_torch(), notes=[*changes, *notes])
    fast = load_ctranslate2(runs[0], tokenizers, settings)
    return TranslatorParts(config, tokenizers, fast, load_torch if settings.engine == "auto" else None, changes)


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


def load_ctranslate2(run: RunDir, tokenizers: TokenizerPair, settings: EngineSettings) -> Engine:
    """Load the exported form of a model."""
    record = read_record(run.ctranslate2) or {}
    n_positions, n_learned = int(record.get("positions", 0)), int(record.get("learned_positions", 0))
    return CTranslate2Engine(run.ctranslate2, tokenizers, settings, n_positions=n_positions, n_learned=n_learned)


def why_not_ctranslate2(
    runs: list[RunDir], config: Config, tokenizers: TokenizerPair, settings: EngineSettings
) -> str | None:
    """Return what keeps ctranslate2 from being used and how to change it; None if nothing does."""
    run = runs[0]
    if len(runs) > 1:
        return "the ctranslate2 engine takes one model, not an ensemble; give one `model`"
    if kind_of(config.model).ctranslate2 is None:
        return f"{run.path}: CTranslate2 has no models of kind '{config.model.kind}'"
    if settings.device == "mps":
        return "the ctranslate2 engine does not run on mps; give `device='cpu'`"
    if not is_installed():
        return "ctranslate2 is not installed; install it with: pip install 'seqtool[fast]'"
    if not run.ctranslate2.is_dir():
        return f"{run.ctranslate2}: no such folder; make it with 'seqtool export -m {run.path} --to ctranslate2'"
    if damage := find_damage(run, tokenizers):
        return f"{damage}; make it again with 'seqtool export -m {run.path} --to ctranslate2'"
    return why_not_here(settings.device, settings.compute_type)
