"""Resolves a configuration, here and nowhere else: one value from all that was asked for and all that is known.

defaults < preset < TOML file < flags < --set; a model to start from, or tokenizers that were given, leave no choice of
what they fix; and what an earlier session of the run fitted to the machine stays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from seqtool.config.auto import choose_preset
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
WARMUP_SHARE = 0.1  # the most of a run with a time budget that is warm-up


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

    pairs: int | None = None  # in the corpora; while it is unknown, `auto` takes a guess
    device: str = "cpu"
    tokenizers: Fixed | None = None  # those that were given, and not trained for the run
    earlier: Config | None = None  # the configuration of a run that is under way


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """A configuration, and where each of its settings came from."""

    config: Config
    origins: Mapping[str, str]  # by name; a setting that is not here has its default
    preset: str = ""  # the preset auto and what it went by, in words; empty with another preset

    def origin(self, name: str) -> str:
        """Return where a setting came from."""
        return self.origins.get(name, "the default")


def resolve_config(request: ConfigRequest | None = None, facts: RunFacts | None = None) -> Resolved:
    """Return the configuration that a request means for a run of which these facts are known."""
    request, facts = request or ConfigRequest(), facts or RunFacts()
    is_auto = request.preset == "auto"
    preset, reason = choose_preset(facts.pairs, facts.device) if is_auto else (read_preset(request.preset), "")
    layers, sources = request.layers(), [source for source in (request.parent, facts.tokenizers) if source]
    fixed_layers = [Layer(source.origin, source.values) for source in sources]
    kind = find_kind([preset, *fixed_layers, *layers])
    given = merge(layers, kind)
    for source in sources:
        check_fixed(source, given)
    fixed = merge(fixed_layers, kind)
    chosen = merge([preset_for_kind(preset, kind)], kind)
    withdraw(chosen, given, fixed, is_trained=request.parent is not None)
    entries = {**chosen, **given, **fixed}
    if facts.earlier:
        entries.update(keep_fitted(entries, given, facts.earlier))
    return Resolved(
        config=build_config({name: entry.value for name, entry in entries.items()}),
        origins={name: entry.origin for name, entry in entries.items()},
        preset=describe_preset(reason, sources) if is_auto else "",
    )


def describe_preset(reason: str, sources: Sequence[Fixed]) -> str:
    """Return what preset auto went by; what is there already takes most of the choice, and so the reason, away."""
    return f"preset auto, for {reason}" if not sources else f"preset auto, with {sources[0].origin}"


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


def keep_fitted(entries: Mapping[str, Entry], given: Mapping[str, Entry], earlier: Config) -> dict[str, Entry]:
    """Return what an earlier session of the run fitted to the memory, the device and the corpus, unless the user asks
    for another."""
    fitted: dict[str, Any] = {}
    wanted, before = entries.get("train.batch_tokens"), earlier.train
    if wanted and wanted.value == "auto" and before.batch_tokens != "auto":
        fitted = {"train.batch_tokens": before.batch_tokens, "train.micro_tokens": before.micro_tokens}
    elif "train.micro_tokens" not in given:
        fitted = {"train.micro_tokens": before.micro_tokens}
    if before.bleu_tokenize != "auto" and entries.get("train.bleu_tokenize", Entry("auto", "")).value == "auto":
        fitted["train.bleu_tokenize"] = before.bleu_tokenize
    default = Config().settings()
    now = {name: entries[name].value if name in entries else default[name] for name in fitted}
    return {name: Entry(value, EARLIER) for name, value in fitted.items() if value != now[name]}


def with_steps(train: TrainConfig, steps: int) -> TrainConfig:
    """Return the settings for a run of so many steps, planned from its time; the warm-up takes a tenth at most."""
    return replace(train, steps=steps, warmup=min(train.warmup, int(WARMUP_SHARE * steps)))


def with_batch(train: TrainConfig, tokens: int, workers: int) -> TrainConfig:
    """Return the settings for so many target tokens in a forward pass of each worker, fitted to the memory."""
    return replace(train, batch_tokens=tokens * workers, micro_tokens=tokens)
