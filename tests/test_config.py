"""Configuration: precedence, checks, and messages that name the culprit."""

import dataclasses
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import run_text

from seqtool.cli.commands import COMMANDS
from seqtool.config import (
    Config,
    ConfigRequest,
    Fixed,
    RunFacts,
    TrainConfig,
    config_to_toml,
    load_config,
    peers,
    resolve_config,
)
from seqtool.config.configuration import SECTIONS, section_classes
from seqtool.config.reading import PRESETS, Layer, merge
from seqtool.errors import SeqtoolError


def resolve(
    preset: str = "auto",
    file: Path | None = None,
    overrides: Sequence[str] = (),
    parent: Fixed | None = None,
    **facts: Any,
) -> Config:
    """Return the configuration that a request means, given some facts."""
    request = ConfigRequest(preset=preset, file=file, overrides=tuple(overrides), parent=parent)
    return resolve_config(request, RunFacts(**facts)).config


def test_a_later_layer_wins_over_an_earlier_one(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text("[model]\nd_model = 64\nd_ff = 96\n")
    config = resolve("tiny", file, ["model.d_ff=128"])
    assert config.model.d_ff == 128  # --set
    assert config.model.d_model == 64  # the file
    assert config.model.encoder_layers == 3  # the preset
    assert config.train.beta1 == 0.9  # the default


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_a_valid_configuration(preset: str) -> None:
    assert isinstance(resolve(preset), Config)


def test_a_printed_configuration_reads_back_as_itself(tmp_path: Path) -> None:
    config = resolve("small", None, ['tokenizer.user_symbols=["<de>", "a\\"b"]', "train.batch_tokens=auto"])
    file = tmp_path / "config.toml"
    file.write_text(config_to_toml(config), encoding="utf-8")
    assert load_config(file) == config
    assert resolve("big", file) == config


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("train.word_dropout=0.1", "--set: [train] has no key 'word_dropout'; did you mean model.word_dropout?"),
        ("train.learning_rate=1", "--set: [train] has no key 'learning_rate'; did you mean train.lr?"),
        ("train.early_stopping=3", "--set: [train] has no key 'early_stopping'; did you mean train.patience?"),
        ("model.ffn_dim=512", "--set: [model] has no key 'ffn_dim'; did you mean model.d_ff?"),
        ("beam=3", "--set beam=3: write it as section.key=value, for example decode.beam=3"),
        ("model.d_modl=3", "--set: [model] has no key 'd_modl'; did you mean 'd_model'?"),
        ("modle.d_model=3", "--set: there is no section [modle]; did you mean 'model'?"),
        ("model.d_model=-4", "--set: [model] 'd_model' must be from 2 to 65536, not -4"),
        ("model.d_model=big", "--set: [model] 'd_model' must be a whole number, not 'big'"),
        ("model.d_model=12.5", "--set: [model] 'd_model' must be a whole number, not 12.5"),
        ("model.dropout=1.5", "--set: [model] 'dropout' must be from 0.0 to 0.95, not 1.5"),
        ("model.dropout=nan", "--set: [model] 'dropout' must be from 0.0 to 0.95, not nan"),
        ("train.minutes=inf", "--set: [train] 'minutes' must be from 0.0 to 10000000.0, not inf"),
        ("decode.max_length_ratio=inf", "--set: [decode] 'max_length_ratio' must be at least 0.1 and finite, not inf"),
        ("model.norm=pree", "--set: [model] 'norm' has no choice 'pree'; did you mean 'pre'?"),
        ("train.steps=true", "--set: [train] 'steps' must be a whole number, not True"),
        ("train.batch_tokens=many", "--set: [train] 'batch_tokens' must be a whole number or 'auto', not 'many'"),
        ("train.compile=1", "--set: [train] 'compile' must be true or false, not 1"),
        ("model.n_heads=7", "[model] 'n_heads' must divide 'd_model', but 7 does not divide 128"),
        ("tokenizer.joint=false", "[model] 'share_embeddings' needs one vocabulary"),
        ("nonsense", "--set nonsense: write it as section.key=value"),
    ],
)
def test_a_mistake_is_named_with_its_place_and_the_nearest_valid_one(override: str, message: str) -> None:
    with pytest.raises(SeqtoolError) as caught:
        resolve("tiny", None, [override])
    assert message in str(caught.value)


def test_a_mistake_in_a_file_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text("[train]\nwarmpu = 3\n")
    with pytest.raises(SeqtoolError, match=r"run\.toml: \[train\] has no key 'warmpu'; did you mean 'warmup'\?"):
        resolve("tiny", file)
    file.write_text("[train\n")
    with pytest.raises(SeqtoolError, match=r"run\.toml: not valid TOML"):
        resolve("tiny", file)
    file.write_text("train = 3\n")
    with pytest.raises(SeqtoolError, match=r"run\.toml: \[train\] must be a section"):
        resolve("tiny", file)


def test_a_whole_number_serves_where_a_number_is_wanted() -> None:
    assert resolve("tiny", None, ["train.minutes=3"]).train.minutes == 3.0


def test_auto_grows_with_the_corpus_and_tells_why() -> None:
    sizes = [1_000, 29_000, 500_000, 50_000_000]
    configs = [resolve("auto", pairs=pairs) for pairs in sizes]
    assert [config.model.d_model for config in configs] == [128, 128, 256, 512]
    assert [config.tokenizer.vocab_size for config in configs] == [2_000, 6_000, 16_000, 32_000]
    assert [config.model.dropout for config in configs] == [0.3, 0.3, 0.2, 0.1]
    assert all(config.train.schedule == "cosine" for config in configs)  # it ends with the steps, or the minutes
    resolved = resolve_config(facts=RunFacts(pairs=29_000))
    assert resolved.preset.startswith("preset auto, for 29,000 pairs on cpu: small corpus")
    assert resolved.origin("model.d_model") == "preset auto"


def test_a_file_wins_over_what_auto_picks(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text("[model]\nd_model = 48\nn_heads = 2\n")
    assert resolve("auto", file, pairs=29_000).model.d_model == 48


TWO_VOCABULARIES = ["tokenizer.joint=false", "model.share_embeddings=false"]


@pytest.mark.parametrize(
    ("overrides", "both_ways", "word_dropout_after"),
    [
        ([], 0.35, 20),
        (TWO_VOCABULARIES, 0, 20),
        (['tokenizer.user_symbols=["<de>"]'], 0, 20),
        (['tokenizer.user_symbols=["<de>"]', "train.both_ways=0.2"], 0.2, 20),
        (["model.word_dropout=0.2"], 0.35, 0),
        (["model.word_dropout=0.2", "train.word_dropout_after=3"], 0.35, 3),
    ],
)
def test_auto_gives_way_to_what_goes_against_it(
    overrides: list[str], both_ways: float, word_dropout_after: int
) -> None:
    train = resolve("auto", None, overrides, pairs=2_000).train
    assert (train.both_ways, train.word_dropout_after) == (both_ways, word_dropout_after)


def test_each_setting_tells_where_it_came_from(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text("[train]\nlr = 0.1\nwarmup = 7\n")
    flags, overrides = ("train.seed=3", "train.steps=9"), ("train.seed=4", "train.warmup=8")
    resolved = resolve_config(ConfigRequest(preset="tiny", file=file, flags=flags, overrides=overrides))
    names = ("beta1", "batch_tokens", "lr", "warmup", "seed", "steps")
    assert [resolved.origin(f"train.{name}") for name in names] == [
        "the default", "preset tiny", str(file), "--set", "--set", "--steps"
    ]  # fmt: skip
    assert resolved.config.train.seed == 4


PARENT = Fixed(
    origin="the model runs/de",
    values={
        "model": {"kind": "transformer", "d_model": 32},
        "tokenizer": {"vocab_size": 700, "user_symbols": ("<de>",)},
    },
    owner="runs/de: its model",
    way_out="train from the start without --from",
)


def test_a_model_to_start_from_wins_over_the_preset_and_agrees_with_what_is_asked_for() -> None:
    request = ConfigRequest(overrides=("model.d_model=32", 'tokenizer.user_symbols=["<de>"]'), parent=PARENT)
    resolved = resolve_config(request, RunFacts(pairs=2_000))
    assert resolved.config.model.d_model == 32
    assert resolved.config.tokenizer.vocab_size == 700
    assert resolved.config.train.both_ways == 0  # auto has it, and the model would unlearn what it can
    assert resolved.origin("tokenizer.vocab_size") == "the model runs/de"
    assert resolved.preset.startswith("fine-tuning runs/de on 2,000 pairs per epoch: few pairs")


def test_fine_tuning_has_settings_of_its_own_over_any_preset_and_under_what_is_given() -> None:
    for preset in ("auto", "base", "demo"):
        request = ConfigRequest(preset=preset, overrides=("train.patience=2",), parent=PARENT)
        resolved = resolve_config(request, RunFacts(pairs=1_000))
        train, scratch = resolved.config.train, resolve("auto", pairs=1_000).train
        assert train.lr <= scratch.lr / 5
        assert train.warmup < scratch.warmup
        assert train.validate_every < scratch.validate_every
        assert resolved.config.model.dropout <= 0.2
        assert resolved.origin("train.lr") == "fine-tuning"
        assert (train.patience, resolved.origin("train.patience")) == (2, "--set")
        assert train.epochs > 0


def test_a_mixture_with_old_pairs_is_fine_tuned_with_a_higher_learning_rate() -> None:
    alone, mixed = (
        resolve_config(ConfigRequest(parent=PARENT), RunFacts(pairs=4_000, is_mixed=is_mixed)).config.train
        for is_mixed in (False, True)
    )
    assert alone.lr < mixed.lr < resolve("auto", pairs=4_000).train.lr
    assert replace(mixed, lr=alone.lr) == alone


@pytest.mark.parametrize("budget", ["train.steps=500", "train.minutes=3", "train.epochs=2"])
def test_any_budget_takes_the_place_of_the_epochs_of_fine_tuning(budget: str) -> None:
    resolved = resolve_config(ConfigRequest(flags=(budget,), parent=PARENT), RunFacts(pairs=1_000))
    assert resolved.config.train.epochs == (2 if "epochs" in budget else 0)


def fitted_settings(*flags: str, preset: str = "auto") -> tuple[int, int, int, int]:
    train = resolve_config(ConfigRequest(preset=preset, flags=flags), RunFacts(pairs=29_000)).config.train
    return train.warmup, train.validate_every, train.save_every, train.report_every


def test_a_number_of_steps_fits_warm_up_validation_checkpoints_and_reports() -> None:
    assert fitted_settings() == (300, 500, 500, 50)
    assert fitted_settings("train.steps=200") == (20, 40, 40, 10)
    assert fitted_settings("train.steps=20000") == (300, 500, 500, 50)
    assert fitted_settings("train.steps=1") == (0, 1, 1, 1)
    assert fitted_settings("train.steps=200", preset="base") == (20, 40, 40, 10)
    assert fitted_settings("train.steps=200", "train.warmup=300", "train.save_every=7") == (300, 40, 7, 10)
    assert fitted_settings("train.steps=50", preset="demo") == (150, 325, 325, 50)


def test_what_was_fitted_to_the_steps_of_a_run_stays_when_it_gets_more() -> None:
    def resolved(steps: int, earlier: Config | None = None, **train: int) -> TrainConfig:
        request = ConfigRequest(flags=(f"train.steps={steps}", *(f"train.{k}={v}" for k, v in train.items())))
        return resolve_config(request, RunFacts(pairs=29_000, earlier=earlier)).config.train

    short = Config(train=resolved(200))
    assert resolved(20_000, short) == replace(short.train, steps=20_000)
    assert resolved(20_000, short, warmup=300).warmup == 300
    unfitted = Config(train=replace(short.train, warmup=300, validate_every=500, save_every=500))  # by an early version
    assert resolved(200, unfitted) == unfitted.train
    other = Config(train=replace(short.train, warmup=11))  # given by hand, and not given again
    assert resolved(200, other).warmup == 20


def test_a_setting_that_a_model_to_start_from_does_not_have_is_refused() -> None:
    with pytest.raises(SeqtoolError) as caught:
        resolve("tiny", None, ["model.d_model=64"], parent=PARENT)
    assert str(caught.value) == (
        "runs/de: its model has model.d_model = 32, but --set asks for 64; "
        "leave that setting out, or train from the start without --from"
    )


def test_two_given_vocabularies_take_training_both_ways_back() -> None:
    values = {"tokenizer": {"vocab_size": 700, "joint": False}}
    given = Fixed(origin="the given tokenizer", values=values, owner="run: its tokenizer", way_out="use --fresh")
    config = resolve("auto", None, ["model.share_embeddings=false"], pairs=2_000, tokenizers=given)
    assert (config.train.both_ways, config.tokenizer.joint) == (0, False)
    overrides = ["model.share_embeddings=false", "train.both_ways=0.1"]
    with pytest.raises(SeqtoolError, match="'both_ways' needs one vocabulary"):
        resolve("auto", None, overrides, pairs=2_000, tokenizers=given)


@pytest.mark.parametrize(
    ("overrides", "batch_tokens", "micro_tokens"),
    [
        (["train.batch_tokens=auto"], 2048, 1024),  # what it was fitted to
        (["train.batch_tokens=auto", "train.micro_tokens=64"], 2048, 1024),
        (["train.batch_tokens=512"], 512, 1024),  # as many as fit this device
        (["train.batch_tokens=512", "train.micro_tokens=64"], 512, 64),
    ],
)
def test_what_an_earlier_session_fitted_to_the_memory_stays(
    overrides: list[str], batch_tokens: int, micro_tokens: int
) -> None:
    earlier = Config(train=TrainConfig(batch_tokens=2048, micro_tokens=1024))
    train = resolve("tiny", None, overrides, earlier=earlier).train
    assert (train.batch_tokens, train.micro_tokens) == (batch_tokens, micro_tokens)


def test_two_vocabularies_cannot_be_trained_both_ways() -> None:
    with pytest.raises(SeqtoolError, match="'both_ways' needs one vocabulary"):
        resolve("auto", None, [*TWO_VOCABULARIES, "train.both_ways=0.1"], pairs=2_000)


def test_every_setting_has_a_help_text() -> None:
    for section in SECTIONS.values():
        for field in dataclasses.fields(section):
            assert field.metadata["help"], field.name


def test_a_value_that_an_earlier_version_had_is_read_as_what_replaced_it() -> None:
    layer = Layer("config.toml", {"train": {"shard": "optimizer"}})
    assert merge([layer], "transformer")["train.shard"].value == "model"


def test_the_words_of_other_toolkits_stand_for_settings_and_options_that_exist() -> None:
    classes = section_classes("transformer")
    settings = {f"{name}.{field.name}" for name, part in classes.items() for field in dataclasses.fields(part)}
    help_texts = "".join(run_text(command, "--help").stdout for command in ("train", "translate", "eval"))
    for name, words in peers.WORDS.items():
        assert name in settings or name in help_texts, name
        for word in words.split():
            assert f"{name.partition('.')[0]}.{word}" not in settings  # it would be found as it is
    assert len(peers.KNOWN) == sum(len(words.split()) for words in peers.WORDS.values())  # no word means two things
    assert set(peers.OPTIONS) <= settings
    assert all(option in help_texts for option in peers.OPTIONS.values())
    assert set(peers.COMMANDS) <= set(COMMANDS)
    assert not set(peers.KNOWN_COMMANDS) & set(COMMANDS)


def test_a_command_or_a_key_of_another_toolkit_is_answered_with_ours() -> None:
    called = run_text("generate", "-m", "run")
    assert called.returncode == 2
    assert "No such command 'generate'; did you mean 'seqtool translate'?" in called.stderr
    resumed = run_text("train", "--set", "train.resume=true", "--print-config")
    assert "[train] has no key 'resume'; the same command again continues where it stopped" in resumed.stderr


def test_an_option_is_suggested_only_where_the_command_has_it() -> None:
    assert peers.advise("--beam-size", {"--beam", "--set"}) == "did you mean --beam?"
    assert peers.advise("--beam-size", {"--set"}) == "did you mean --set decode.beam=...?"
    assert peers.advise("--beam-size", {"--json"}) == ""
    assert peers.advise("--Epochs", {"--set"}) == "did you mean --set train.epochs=...?"
    assert peers.advise("--restore-file", {"--output"}) == ""
    assert peers.advise("--nonsense", {"--set"}) == ""
