"""A toy architecture and a toy tokenizer, registered here, go through every command without a change anywhere else."""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from small_run import write_corpus
from torch import Tensor, nn

from seqtool.cli.main import main
from seqtool.config import ModelConfig, TokenizerConfig
from seqtool.config.model import KINDS as SECTIONS
from seqtool.config.sections import TOKENIZER_KINDS
from seqtool.config.setting import setting
from seqtool.corpus.tokenizer import registry
from seqtool.corpus.tokenizer.interface import SPACE, SpecialIds, Tokenizer, Vocabularies
from seqtool.corpus.tokenizer.registry import MARK, TokenizerKind, load_tokenizer, register_tokenizer
from seqtool.model import kinds
from seqtool.model.counting import ParameterCount
from seqtool.model.embedding import Embedding, token_tables
from seqtool.model.interface import TranslationModel
from seqtool.model.kinds import ModelKind, register_model


class Bag(NamedTuple):
    """The mean of a source's token vectors."""

    mean: Tensor  # (B, D)

    def select(self, sentences: Tensor) -> "Bag":
        return Bag(self.mean.index_select(0, sentences))


class Count:
    """A cache for a model that remembers nothing but how far it is."""

    length = 0

    def reorder(self, rows: Tensor) -> None: ...

    def select(self, sentences: Tensor, beams: int) -> None: ...

    def expand(self, beams: int) -> None: ...


@dataclass(frozen=True, kw_only=True)
class ToyConfig(ModelConfig):
    width: int = setting(8, "units of the hidden layer", low=1)


class Toy(TranslationModel):
    """Predicts the next token from the last one and the bag of source tokens."""

    has_attention = False

    def __init__(self, config: ToyConfig, vocabularies: Vocabularies) -> None:
        super().__init__(config, vocabularies)
        src, tgt = token_tables(config, vocabularies)
        self.source, self.target = Embedding(config, src), Embedding(config, tgt)
        self.hidden = nn.Sequential(nn.Linear(config.d_model, config.width), nn.Tanh())
        self.out = nn.Linear(config.width, vocabularies.target.size)

    def encode(self, src: Tensor) -> Bag:
        mask = (src != self.vocabularies.source.special.pad)[..., None]
        return Bag((self.source(src) * mask).sum(1) / mask.sum(1))

    def start_cache(self, memory: Bag) -> Count:
        return Count()

    def decode_states(
        self, tgt: Tensor, memory: Bag, cache: Count | None = None, attention: list[Tensor] | None = None
    ) -> Tensor:
        if cache is not None:
            cache.length += tgt.shape[1]
        mean = memory.mean.repeat_interleave(len(tgt) // len(memory.mean), 0)
        return self.hidden(self.target(tgt) + mean[:, None])

    @property
    def output_weight(self) -> Tensor:
        return self.out.weight

    @property
    def output_bias(self) -> Tensor:
        return self.out.bias

    def bytes_per_token(self) -> int:
        return 16 * self.config.d_model


def count_toy(config: ToyConfig, src_vocab: int, tgt_vocab: int) -> ParameterCount:
    hidden = config.d_model * config.width + config.width
    return ParameterCount(src_vocab * config.d_model, 0, hidden + tgt_vocab * (config.width + 1))


class Characters(Tokenizer):
    """A token for each character; the begin is the padding, as in Marian's vocabularies, and the end is token 0."""

    def __init__(self, model: bytes, name: str = "tokenizer") -> None:
        self.model = model
        letters = json.loads(model.partition(b"\n")[2])
        self.piece_list = ["</s>", "<unk>", *(letter.replace(" ", SPACE) for letter in letters), "<pad>"]
        pad = len(self.piece_list) - 1
        self.special = SpecialIds(pad=pad, unk=1, bos=pad, eos=0)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [self.ids_of(text.replace(" ", SPACE)) for text in texts]

    def decode(self, ids: Iterable[int]) -> str:
        pieces = [self.piece_list[index] for index in ids if index not in self.special]
        return "".join(pieces).replace(SPACE, " ")


def train_characters(texts: Iterable[str], config: TokenizerConfig) -> bytes:
    letters = sorted({letter for text in texts for letter in text})
    return MARK + b"characters\n" + json.dumps(letters).encode()


@pytest.fixture
def registered() -> Iterator[None]:
    """Register both, and forget them afterwards."""
    kind = ModelKind(build=Toy, count_parameters=count_toy, count_forward_flops=lambda config, v, s, t: t * v)
    register_model("toy", ToyConfig, kind)
    register_tokenizer("characters", lambda: TokenizerKind(Characters, train_characters))
    yield
    for table, name in (
        (SECTIONS, "toy"),
        (kinds.KINDS, "toy"),
        (registry._KINDS, "characters"),
        (TOKENIZER_KINDS, "characters"),
    ):
        del table[name]  # type: ignore[attr-defined]


def run_here(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    """Run a command in this process, where the toys are registered; return its exit code."""
    monkeypatch.setattr(sys, "argv", ["seqtool", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


COMMON = ["--preset", "tiny", "--set", "train.steps=12", "--set", "train.validate_every=6", "--set", "train.ema=0.5"]
COMMON += ["--set", "train.save_every=6", "--set", "train.batch_tokens=200", "--set", "decode.beam=3"]
COMMON += ["--set", "train.threads=1", "--set", "decode.max_length_ratio=0.2"]
TOY = ["--set", "model.kind=toy", "--set", "model.width=6", "--set", "model.d_model=8"]
TWO = ["tokenizer.kind=characters", "tokenizer.joint=false", "model.share_embeddings=false"]
TINY = [f"model.{name}" for name in ("d_model=16", "d_ff=16", "n_heads=2", "encoder_layers=1", "decoder_layers=1")]


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(
    "settings",
    [
        [*TOY, "--set", "tokenizer.vocab_size=400"],
        ["--set", "tokenizer.kind=characters", *(part for name in TINY for part in ("--set", name))],
        [*TOY, *(part for name in TWO for part in ("--set", name))],
    ],
    ids=["toy architecture", "toy tokenizer", "both, two vocabularies"],
)
def test_it_goes_through_every_command(
    settings: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    corpus, run = write_corpus(tmp_path), tmp_path / "run"
    src, tgt = corpus[3], corpus[5]
    assert run_here(monkeypatch, "train", *corpus, "-o", run, *COMMON, *settings) == 0
    assert "this run is finished" in capfd.readouterr().err or (run / "report.html").is_file()
    assert run_here(monkeypatch, "train", *corpus, "-o", run, *COMMON, *settings, "--steps", 15) == 0
    assert "continuing at step 12" in capfd.readouterr().err

    average = tmp_path / "average"
    checkpoints = sorted((run / "checkpoints").glob("step-*"))
    assert run_here(monkeypatch, "average", "-o", average, *checkpoints) == 0
    for model in (run, average):
        assert run_here(monkeypatch, "translate", "-m", model, "-i", src, "--n-best", 2, "--engine", "torch") == 0
        rows = [line.split("\t") for line in capfd.readouterr().out.splitlines()]
        assert [row[0] for row in rows] == ["1", "1", "2", "2", "3", "3", "4", "4"]
        assert all(float(one[1]) >= float(two[1]) for one, two in zip(rows[::2], rows[1::2], strict=True))

    assert run_here(monkeypatch, "translate", "-m", run, "-i", src, "--json", "--engine", "torch") == 0
    found = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    has_attention = "model.kind=toy" not in settings
    assert all(len(one["alignment"]) == (len(one["tokens"]) if has_attention else 0) for one in found)

    assert run_here(monkeypatch, "score", "-m", run, src, tgt, "--json", "--engine", "torch") == 0
    scored = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert all(len(one["token_scores"]) == len(one["tokens"]) + 1 for one in scored)
    assert run_here(monkeypatch, "eval", "-m", run, src, tgt, "--json", "--engine", "torch") == 0
    assert "bleu" in json.loads(capfd.readouterr().out)
    assert run_here(monkeypatch, "info", run, "--json") == 0
    facts = json.loads(capfd.readouterr().out)
    assert facts["whole"]
    assert facts["model"]["parameters"] > 0
    assert run_here(monkeypatch, "report", run) == 0
    assert ("this kind of model has no attention" in capfd.readouterr().err) != has_attention
    if settings[: len(TOY)] == TOY and "tokenizer.joint=false" not in settings:
        check_refusals(monkeypatch, capfd, run, src)


def check_refusals(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], run: Path, src: str) -> None:
    """What other programs have no such model for is named before anything else that may be missing."""
    owners = {"ctranslate2": "CTranslate2", "argos": "CTranslate2", "huggingface": "Hugging Face"}
    for target, owner in owners.items():
        assert run_here(monkeypatch, "export", "-m", run, "--to", target, "-o", run / target) == 1
        assert f"{run}: {owner} has no models of kind 'toy'" in capfd.readouterr().err
    assert run_here(monkeypatch, "translate", "-m", run, "-i", src, "--engine", "ctranslate2") == 1
    assert "CTranslate2 has no models of kind 'toy'; use --engine torch" in capfd.readouterr().err


@pytest.mark.usefixtures("registered")
def test_the_same_translation_is_found_in_any_batch_and_with_cached_decoding(tmp_path: Path) -> None:
    model = Characters(train_characters(["a b c d e"], TokenizerConfig()))
    vocabularies = Vocabularies(model.vocabulary, model.vocabulary)
    toy = Toy(ToyConfig(kind="toy", d_model=8, dropout=0.0), vocabularies).eval()
    pad, eos = model.special.pad, model.special.eos
    src = torch.tensor([[2, 3, eos, pad], [4, 5, 6, eos]])
    tgt = torch.tensor([[pad, 3, 4], [pad, 2, 2]])
    whole = toy.decode(tgt, toy.encode(src))
    cache: Any = toy.start_cache(toy.encode(src))
    steps = [toy.decode(tgt[:, i : i + 1], toy.encode(src), cache) for i in range(3)]
    torch.testing.assert_close(torch.cat(steps, 1), whole)
    torch.testing.assert_close(toy.decode(tgt[:1], toy.encode(src[:1, :3])), whole[:1])


@pytest.mark.usefixtures("registered")
def test_a_tokenizer_file_says_of_what_kind_it_is(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.model"
    path.write_bytes(train_characters(["ab c"], TokenizerConfig()))
    tokenizer = load_tokenizer(path)
    assert isinstance(tokenizer, Characters)
    assert tokenizer.decode(tokenizer.encode("cab c")) == "cab c"


@pytest.mark.usefixtures("registered")
def test_settings_of_another_kind_are_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_here(monkeypatch, "train", "--print-config", "--preset", "tiny", *TOY, "--set", "model.n_heads=2") == 1
    assert "--set: [model] has no key 'n_heads' when kind is 'toy'; it is a setting of transformer" in (
        capfd.readouterr().err
    )
    assert run_here(monkeypatch, "train", "--print-config", "--set", "model.kind=toi") == 1
    assert "'kind' has no choice 'toi'; did you mean 'toy'?" in capfd.readouterr().err
