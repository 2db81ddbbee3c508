"""Configuration: precedence, checks, and messages that name the culprit."""

import dataclasses
from pathlib import Path

import pytest

from seqtool.config import Config, config_to_toml, load_config, resolve_config
from seqtool.config.auto import choose_settings
from seqtool.config.resolve import PRESETS, SECTIONS
from seqtool.errors import SeqtoolError


def test_a_later_layer_wins_over_an_earlier_one(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text("[model]\nd_model = 64\nd_ff = 96\n")
    config = resolve_config("tiny", file, ["model.d_ff=128"])
    assert config.model.d_ff == 128  # --set
    assert config.model.d_model == 64  # the file
    assert config.model.encoder_layers == 3  # the preset
    assert config.train.beta1 == 0.9  # the default


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_a_valid_configuration(preset: str) -> None:
    assert isinstance(resolve_config(preset), Config)


def test_a_printed_configuration_reads_back_as_itself(tmp_path: Path) -> None:
    config = resolve_config("small", None, ['tokenizer.user_symbols=["<de>", "a\\"b"]', "train.batch_tokens=auto"])
    file = tmp_path / "config.toml"
    file.write_text(config_to_toml(config), encoding="utf-8")
    assert load_config(file) == config
    assert resolve_config("big", file) == config


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("train.word_dropout=0.1", "--set: [train] has no key 'word_dropout'; did you mean model.word_dropout?"),
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
        resolve_config("tiny", None, [override])
    assert message in str(caught.value)


def test_a_mistake_in_a_file_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text("[train]\nwarmpu = 3\n")
    with pytest.raises(SeqtoolError, match=r"run\.toml: \[train\] has no key 'warmpu'; did you mean 'warmup'\?"):
        resolve_config("tiny", file)
    file.write_text("[train\n")
    with pytest.raises(SeqtoolError, match=r"run\.toml: not valid TOML"):
        resolve_config("tiny", file)
    file.write_text("train = 3\n")
    with pytest.raises(SeqtoolError, match=r"run\.toml: \[train\] must be a section"):
        resolve_config("tiny", file)


def test_a_whole_number_serves_where_a_number_is_wanted() -> None:
    assert resolve_config("tiny", None, ["train.minutes=3"]).train.minutes == 3.0


def test_auto_grows_with_the_corpus_and_tells_why() -> None:
    sizes = [1_000, 29_000, 500_000, 50_000_000]
    configs = [resolve_config("auto", pairs=pairs) for pairs in sizes]
    assert [config.model.d_model for config in configs] == [128, 128, 256, 512]
    assert [config.tokenizer.vocab_size for config in configs] == [2_000, 6_000, 16_000, 32_000]
    assert [config.model.dropout for config in configs] == [0.3, 0.3, 0.2, 0.1]
    assert all(config.train.schedule == "cosine" for config in configs)  # it ends with the steps, or the minutes
    assert "29,000 pairs" in choose_settings(29_000, "cpu").reason


def test_a_file_wins_over_what_auto_picks(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text("[model]\nd_model = 48\nn_heads = 2\n")
    assert resolve_config("auto", file, pairs=29_000).model.d_model == 48


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
    train = resolve_config("auto", None, overrides, pairs=2_000).train
    assert (train.both_ways, train.word_dropout_after) == (both_ways, word_dropout_after)


def test_two_vocabularies_cannot_be_trained_both_ways() -> None:
    with pytest.raises(SeqtoolError, match="'both_ways' needs one vocabulary"):
        resolve_config("auto", None, [*TWO_VOCABULARIES, "train.both_ways=0.1"], pairs=2_000)


def test_every_setting_has_a_help_text() -> None:
    for section in SECTIONS.values():
        for field in dataclasses.fields(section):
            assert field.metadata["help"], field.name
