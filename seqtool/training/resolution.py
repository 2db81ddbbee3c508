"""Resolves the configuration of a run from what is in its folder, and what 'auto' stands for on this machine."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqtool.config import (
    Config,
    ConfigRequest,
    Fixed,
    Resolved,
    RunFacts,
    TrainConfig,
    load_config,
    resolve_config,
)
from seqtool.corpus.preparing.prepared import PreparedCorpus
from seqtool.corpus.preparing.run_corpus import count_each, given_tokenizers, load_tokenizers
from seqtool.corpus.reading.corpus import Corpus
from seqtool.corpus.scripts import name_writing
from seqtool.corpus.tokenizer.interface import TokenizerPair
from seqtool.errors import SeqtoolError
from seqtool.process import threads_per_process
from seqtool.run_directory import RunDir
from seqtool.training.request import TrainRequest

if TYPE_CHECKING:
    from seqtool.model.interface import TranslationModel
    from seqtool.training.distributed import Workers

# What may change from one session of a run to the next: budgets, and what has no influence on the weights.
FREE = {
    "train.steps",
    "train.minutes",
    "train.epochs",
    "train.patience",
    "train.parent_share",
    "train.keep",
    "train.report_every",
    "train.tensorboard",
    "train.device",
    "train.shard",
    "train.activation_checkpointing",
    "data.workers",
    "train.max_bad_steps",
    "decode.beam",
    "decode.length_penalty",
    "decode.coverage_penalty",
    "decode.max_length_ratio",
    "decode.split",
    "decode.batch_tokens",
    "decode.threads",
}


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """What a run is prepared with: its configuration, and what was found out to resolve it."""

    resolved: Resolved
    tokenizers: TokenizerPair | None = None  # given ones; without them, some are trained on the corpora
    pairs: int | None = None  # in the corpora, if they had to be counted

    @property
    def config(self) -> Config:
        return self.resolved.config


def resolve_training(request: TrainRequest, run: RunDir, device: str) -> RunSettings:
    """Return what `train` will use; a folder that it starts over in has no say."""
    is_new, fixed, tokenizers = request.starts_over, None, tokenizers_of(request, run)
    if tokenizers and not request.start_from:
        owner = f"{run.path}: was prepared with a given tokenizer, which"
        fixed = describe_tokenizers(tokenizers, owner, "start over with `fresh=True`")
    counts = count_for(request.settings, run, request.corpora)
    pairs = None if counts is None else round_pairs(request, counts)
    earlier = None if is_new else earlier_config(run)
    is_mixed = len(request.corpora) > 1
    facts = RunFacts(pairs=pairs, is_mixed=is_mixed, device=device, tokenizers=fixed, earlier=earlier)
    total = None if counts is None else sum(counts)
    return RunSettings(resolved=resolve_config(request.settings, facts), tokenizers=tokenizers, pairs=total)


def tokenizers_of(request: TrainRequest, run: RunDir) -> TokenizerPair | None:
    """Return the tokenizers that were made elsewhere, if training uses such."""
    if request.start_from:
        return load_tokenizers(request.start_from)
    return None if request.starts_over else given_tokenizers(run)


def round_pairs(request: TrainRequest, counts: Sequence[int]) -> int:
    """Return the number of pairs that settings depend on: in the corpora, or in an epoch of fine-tuning."""
    if not request.start_from:
        return sum(counts)
    return round(sum(pairs * corpus.weight for pairs, corpus in zip(counts, request.corpora, strict=True)))


def resolve_preparation(
    settings: ConfigRequest, run: RunDir, corpora: Iterable[Corpus], tokenizer: Path | None
) -> RunSettings:
    """Return what `prepare` will use: the same as training with these settings."""
    tokenizers = load_tokenizers(tokenizer) if tokenizer else None
    fixed = describe_tokenizers(tokenizers, f"{tokenizer}", "leave out `tokenizer`") if tokenizers else None
    counts = count_for(settings, run, corpora)
    pairs = None if counts is None else sum(counts)
    resolved = resolve_config(settings, RunFacts(pairs=pairs, tokenizers=fixed))
    return RunSettings(resolved=resolved, tokenizers=tokenizers, pairs=pairs)


def count_for(settings: ConfigRequest, run: RunDir, corpora: Iterable[Corpus]) -> list[int] | None:
    """Return the number of pairs in each of the corpora if the preset, or fine-tuning, depends on it."""
    return count_each(run, tuple(corpora)) if settings.preset == "auto" or settings.parent else None


def describe_tokenizers(tokenizers: TokenizerPair, owner: str, way_out: str) -> Fixed:
    """Return what tokenizers fix that were made elsewhere."""
    values = {"vocab_size": tokenizers.source.vocab_size, "joint": tokenizers.joint}
    return Fixed(origin="the given tokenizer", values={"tokenizer": values}, owner=owner, way_out=way_out)


def earlier_config(run: RunDir) -> Config | None:
    """Return the configuration of a run that is under way."""
    return load_config(run.config) if run.config.exists() and run.checkpoint_folders() else None


def check_unchanged(run: RunDir, resolved: Resolved) -> None:
    """Raise if a run that is under way was begun with other settings, naming them and what to do."""
    earlier = earlier_config(run)
    changed = [] if earlier is None else [c for c in changes(earlier, resolved.config) if c[0] not in FREE]
    if changed:
        listed = "; ".join(
            f"{name} was {old!r} and is now {new!r} ({resolved.origin(name)})" for name, old, new in changed[:3]
        )
        more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        raise SeqtoolError(
            f"{run.path}: this run was begun with other settings: {listed}{more}. "
            f"Give those again to continue it (`config_file` with {run.config} gives all of them), "
            "`out` for a new run, or `fresh=True` to start over"
        )


def with_tokenizer_of_bleu(config: Config, corpus: PreparedCorpus) -> tuple[Config, str]:
    """Choose sacreBLEU's tokenizer by the target's script unless one is given, once for the run; return a note too."""
    from seqtool.evaluation.scores.tokenizers import choose_tokenizer

    if config.train.bleu_tokenize != "auto":
        return config, ""
    tokenize, note = choose_tokenizer(name_writing((corpus.text or {}).get("scripts", {}).get("target", {})))
    return replace(config, train=replace(config.train, bleu_tokenize=tokenize)), note


def changes(before: Config, after: Config) -> Iterable[tuple[str, Any, Any]]:
    """Yield (name, old, new) of every setting that differs; those that only one of two kinds of model has do not."""
    new = after.settings()
    for name, old in before.settings().items():
        if name in new and old != new[name]:
            yield name, old, new[name]


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What the settings 'auto' and 0 stand for on the machine at hand."""

    device: str
    precision: str
    threads: int
    decode_threads: int

    def remarks(self, config: Config) -> dict[str, str]:
        """Return a remark for each setting that leaves the choice to the machine."""
        open_ = {
            "train.device": (config.train.device == "auto", self.device),
            "train.precision": (config.train.precision == "auto", self.precision),
            "train.threads": (config.train.threads == 0, self.threads),
            "decode.threads": (config.decode.threads == 0, self.decode_threads),
        }
        return {name: f"here {value}" for name, (is_open, value) in open_.items() if is_open}


def resolve_machine(config: Config, device: str) -> Machine:
    """Return what training, on this type of device, will use of the machine."""
    return Machine(
        device=device,
        precision=choose_precision(config.train.precision, device),
        threads=config.train.threads or threads_per_process(),
        decode_threads=config.decode.threads or config.train.threads or threads_per_process(),
    )


def choose_precision(wanted: str, device: str) -> str:
    """Return the arithmetic to use: half precision if the device is made for it, never on a CPU by default."""
    import torch

    if wanted != "auto":
        return wanted
    if device != "cuda":
        return "float32"
    return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp16"


def choose_shard(config: TrainConfig, model: "TranslationModel", workers: "Workers") -> str:
    """Return whether workers share out the model: by 'auto', if it takes too much of a GPU's memory in training."""
    if workers.size == 1:
        return "none"
    if config.shard != "auto":
        return config.shard
    import torch

    from seqtool.training.memory import SHARE_OF_STATE, state_bytes

    if workers.device.type != "cuda":
        return "none"
    memory = torch.cuda.get_device_properties(workers.device).total_memory
    return "model" if state_bytes(model, config, 1) > SHARE_OF_STATE * memory else "none"
