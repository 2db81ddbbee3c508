"""Resolves a configuration, here and nowhere else: one value from all that was asked for and all that is known.

defaults < preset < settings of fine-tuning < TOML file < flags < --set; a model to start from, or tokenizers that were
given, leave no choice of what they fix; what nobody gave fits the length of the run; and what an earlier session of the
run fitted to its length and to the machine stays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from seqtool.config.auto import choose_finetuning, choose_preset
from seqtool.config.budget import FITTED, find_fitted, fit_to_steps, withdraw_budgets
from seqtool.config.configuration import Config, build_config
from seqtool.config.reading import (
    Entry,
    Layer,
    find_kind,
    merge,
    parse_flag,
    parse_override,
    preset_for_kind,
    read_preset,
    read_toml,
)
from seqtool.config.sections import TrainConfig
from seqtool.errors import SeqtoolError

EARLIER = "an earlier session of this run"


@dataclass(frozen=True, kw_only=True)
class Fixed:
    """Settings of a model or a tokenizer that is there already and is used as it is: no others can be asked for."""

    origin: str
    values: Mapping[str, Mapping[str, Any]]  # by section and key
    owner: str  # begins the message when others are asked for: "runs/de: its model"
    way_out: str  # ends it


@dataclass(frozen=True, kw_only=True)
class ConfigRequest:
    """The settings that a user asks for.

    Overrides are the texts of --set; flags are like them, but came from an option of the same name as the key.
    """

    preset: str = "auto"
    file: Path | None = None
    flags: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    parent: Fixed | None = None  # the model to start from

    def layers(self) -> list[Layer]:
        """Return what was given beside the preset, the strongest last."""
        file = [read_toml(self.file, stream=True)] if self.file is not None else []
        overrides = [Layer("--set", parse_override(override)) for override in self.overrides]
        return [*file, *map(parse_flag, self.flags), *overrides]


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """What is known of a run beside what the user asks for."""

    pairs: int | None = None  # in an epoch; while it is unknown, `auto` and fine-tuning take a guess
    is_mixed: bool = False  # whether an epoch holds pairs of several corpora
    device: str = "cpu"
    tokenizers: Fixed | None = None  # those that were given, and not trained for the run
    earlier: Config | None = None  # the configuration of a run that is under way


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """A configuration, and where each of its settings came from."""

    config: Config
    origins: Mapping[str, str]  # by name; a setting that is not here has its default
    preset: str = ""  # what preset auto or fine-tuning was chosen for, in words; empty with another preset
    fitted: tuple[str, ...] = ()  # settings of [train] that follow the number of steps once that is known

    def origin(self, name: str) -> str:
        """Return where a setting came from."""
        return self.origins.get(name, "the default")


def resolve_config(request: ConfigRequest | None = None, facts: RunFacts | None = None) -> Resolved:
    """Return the configuration that a request means for a run of which these facts are known."""
    request, facts = request or ConfigRequest(), facts or RunFacts()
    presets, reason = choose_presets(request, facts)
    layers, sources = request.layers(), [source for source in (request.parent, facts.tokenizers) if source]
    fixed_layers = [Layer(source.origin, source.values) for source in sources]
    kind = find_kind([presets[0], *fixed_layers, *layers])
    given = merge(layers, kind)
    for source in sources:
        check_fixed(source, given)
    fixed = merge(fixed_layers, kind)
    chosen = merge([preset_for_kind(preset, kind) for preset in presets], kind)
    withdraw(chosen, given, fixed, is_trained=request.parent is not None)
    entries = {**chosen, **given, **fixed}
    is_fixed = request.preset == "demo" and request.parent is None
    fitted = find_fitted(given, is_fixed=is_fixed)
    kept = find_kept(entries, given, fitted, facts.earlier.train) if facts.earlier else {}
    if not is_fixed:
        entries.update(fit_budget(entries, given, fitted))
    now = training_settings(entries)
    entries.update({f"train.{name}": Entry(kept[name], EARLIER) for name in kept if kept[name] != now[name]})
    return Resolved(
        config=build_config({name: entry.value for name, entry in entries.items()}),
        origins={name: entry.origin for name, entry in entries.items()},
        preset=reason,
        fitted=fitted,
    )


def choose_presets(request: ConfigRequest, facts: RunFacts) -> tuple[list[Layer], str]:
    """Return the presets of a run, the strongest last, and in words what they were chosen for."""
    preset, reason = (
        choose_preset(facts.pairs, facts.device) if request.preset == "auto" else (read_preset(request.preset), "")
    )
    if request.parent:
        finetuning, why = choose_finetuning(facts.pairs, is_mixed=facts.is_mixed)
        return [preset, finetuning], f"fine-tuning {request.parent.origin.removeprefix('the model ')} on {why}"
    if reason and facts.tokenizers:  # which take most of the choice, and so the reason, away
        return [preset], f"preset auto, with {facts.tokenizers.origin}"
    return [preset], f"preset auto, for {reason}" if reason else ""


def fit_budget(entries: Mapping[str, Entry], given: Mapping[str, Entry], fitted: Sequence[str]) -> dict[str, Entry]:
    """Return the settings that fit a number of steps that the user gave; other budgets show theirs in training."""
    if "train.steps" not in given or entries.get("train.minutes", Entry(0, "")).value:
        return {}
    steps, now = given["train.steps"].value, training_settings(entries)
    train = asdict(fit_to_steps(TrainConfig(**now), steps, fitted))
    origin = f"fits {steps:,} steps"
    return {f"train.{name}": Entry(train[name], origin) for name in FITTED if train[name] != now[name]}


def check_fixed(source: Fixed, given: Mapping[str, Entry]) -> None:
    """Raise if the user asked for something else than what is there."""
    for section, settings in source.values.items():
        for key, value in settings.items():
            asked = given.get(f"{section}.{key}")
            if asked is not None and asked.value != value:
                raise SeqtoolError(
                    f"{source.owner} has {section}.{key} = {value!r}, but {asked.origin} asks for {asked.value!r}; "
                    f"leave that setting out, or {source.way_out}"
                )


def withdraw(
    chosen: dict[str, Entry], given: Mapping[str, Entry], fixed: Mapping[str, Entry], *, is_trained: bool
) -> None:
    """Take back what a preset chose and what the user gave, or what is there, rules out."""
    joint = {**chosen, **given, **fixed}.get("tokenizer.joint", Entry(True, ""))
    symbols = given.get("tokenizer.user_symbols", Entry((), ""))
    if is_trained or not joint.value or symbols.value:
        # A model that is trained would unlearn one way; the rest are two vocabularies, or symbols of one side.
        chosen.pop("train.both_ways", None)
    if "model.word_dropout" in given:
        chosen.pop("train.word_dropout_after", None)  # it is meant for the whole run
    withdraw_budgets(chosen, given)


def find_kept(
    entries: Mapping[str, Entry], given: Mapping[str, Entry], names: Sequence[str], earlier: TrainConfig
) -> dict[str, Any]:
    """Return what an earlier session fitted to the run's length, corpus, memory and device, unless it is given."""
    kept: dict[str, Any] = {}
    now = training_settings(entries)
    if now["batch_tokens"] == "auto" and earlier.batch_tokens != "auto":
        kept = {name: getattr(earlier, name) for name in ("batch_tokens", "micro_tokens")}
    elif "train.micro_tokens" not in given:
        kept = {"micro_tokens": earlier.micro_tokens}
    if now["bleu_tokenize"] == "auto":
        kept["bleu_tokenize"] = earlier.bleu_tokenize
    fitted = asdict(fit_to_steps(TrainConfig(**now), earlier.steps, names))
    for name in set(FITTED).intersection(names):
        value = getattr(earlier, name)
        if value in (fitted[name], now[name]):  # an early version fitted nothing to the number of steps
            kept[name] = value
    return kept


def training_settings(entries: Mapping[str, Entry]) -> dict[str, Any]:
    """Return the settings of [train], with the default of each that has no entry."""
    default = asdict(TrainConfig())
    return {name: entries.get(f"train.{name}", Entry(value, "")).value for name, value in default.items()}


def with_batch(train: TrainConfig, tokens: int, workers: int) -> TrainConfig:
    """Return the settings for this many target tokens in a forward pass of each worker."""
    return replace(train, batch_tokens=tokens * workers, micro_tokens=tokens)
