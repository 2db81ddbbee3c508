"""Makes run directories with tiny models, random or trained for a few seconds, to test translation with."""

import dataclasses
import functools
import random
from pathlib import Path
from typing import Any

from special_ids import BOS, EOS, vocabularies

from seqtool.config import Config, DataConfig, DecodeConfig, ModelConfig, TokenizerConfig, config_to_toml
from seqtool.config.model import model_section
from seqtool.corpus.tokenizer.bpe import BpeTokenizer
from seqtool.corpus.tokenizer.registry import load_pair, train_tokenizer
from seqtool.manifest import Manifest
from seqtool.run_directory import RunDir

WORDS = {
    "a": "ein",
    "man": "Mann",
    "in": "in",
    "the": "dem",
    "blue": "blauen",
    "shirt": "Hemd",
    "walks": "läuft",
    "and": "und",
    "two": "zwei",
    "dogs": "Hunde",
    "play": "spielen",
    "at": "bei",
    "night": "Nacht",
    "she": "sie",
    "waves": "winkt",
}
TEXTS = [f"{english} {german}, {german} {english}." for english, german in WORDS.items()] * 3


def make_lines(n_lines: int, longest: int = 8, seed: int = 0) -> list[str]:
    """Return lines of words that the tokenizer knows."""
    draw = random.Random(seed)
    return [" ".join(draw.choices(list(WORDS), k=draw.randint(1, longest))) for _ in range(n_lines)]


def translate_words(line: str) -> str:
    """Translate word by word: what the trained model learns."""
    return " ".join(WORDS[word] for word in line.split())


def make_pairs(n_lines: int, seed: int, *, backwards: bool = False) -> tuple[list[str], list[str]]:
    """Return lines and their translations, from German into English if backwards."""
    lines = make_lines(n_lines, seed=seed)
    pair = (lines, [translate_words(line) for line in lines])
    return pair[::-1] if backwards else pair


def make_run(
    path: Path,
    *,
    trained: bool = False,
    backwards: bool = False,
    steps: int = 200,
    seed: int = 0,
    vocab: int = 340,
    joint: bool = True,
    max_tokens: int = 64,
    kind: str = "transformer",
    **model: Any,
) -> RunDir:
    """Write config, tokenizer, weights and manifest; `trained` weights make sensible sentences that end.

    They translate English words into German, or the other way if `backwards`.
    """
    import torch

    from seqtool.model.kinds import build_model
    from seqtool.model.loading import save_weights, weights_of

    path.mkdir(parents=True, exist_ok=True)
    run = RunDir(path)
    section, width = model_section(kind), 64 if kind == "rnn" else 32  # whole vectors for each direction
    shape = {"d_model": width, "d_ff": 64, "n_heads": 2, "encoder_layers": 1, "decoder_layers": 2, "dropout": 0.0}
    known = {field.name for field in dataclasses.fields(section)}
    shape = {name: value for name, value in shape.items() if name in known}
    config = Config(
        model=section(**{"kind": kind, **shape, "share_embeddings": joint, **model}),
        tokenizer=TokenizerConfig(vocab_size=vocab, joint=joint),
        data=DataConfig(max_tokens=max_tokens),
        decode=DecodeConfig(beam=3),
    )
    run.config.write_text(config_to_toml(config), encoding="utf-8")
    train_tokenizer(TEXTS, config.tokenizer, run.tokenizer)
    if not joint:
        train_tokenizer(TEXTS[4:], config.tokenizer, run.target_tokenizer)
    if trained:
        assert joint
        weights = train_weights(config.model, run.tokenizer.read_bytes(), steps, backwards=backwards)
    else:
        tokenizers = load_pair(run)
        torch.manual_seed(seed)
        net = build_model(config.model, tokenizers.vocabularies)
        with torch.no_grad():
            for weight in net.parameters():
                weight.add_(torch.randn_like(weight), alpha=0.1)
        weights = weights_of(net)
    save_weights(weights, run.weights)
    run.write_manifest(Manifest(files=run.checksums()))
    return run


@functools.cache
def train_weights(config: ModelConfig, tokenizer_model: bytes, steps: int = 200, *, backwards: bool = False) -> Any:
    """Train a model to translate word by word, for a few seconds and once a test session."""
    import torch
    import torch.nn.functional as F
    from special_ids import PAD

    from seqtool.model.kinds import build_model
    from seqtool.model.loading import weights_of

    def pad(rows: list[list[int]]) -> torch.Tensor:
        return torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=PAD)

    tokenizer = BpeTokenizer(tokenizer_model)
    torch.manual_seed(1)
    net = build_model(config, vocabularies(tokenizer.vocab_size))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.0)
    for step in range(steps):
        src, tgt = map(tokenizer.encode_batch, make_pairs(32, 1000 + step, backwards=backwards))
        states = net(pad([[*ids, EOS] for ids in src]), pad([[BOS, *ids] for ids in tgt]))
        wanted = pad([[*ids, EOS] for ids in tgt]).flatten()
        loss = F.cross_entropy(net.project(states).flatten(0, 1), wanted, ignore_index=PAD, label_smoothing=0.1)
        optimizer.param_groups[0]["lr"] = 5e-3 * min(1.0, step / 30) * (1 - step / steps)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return weights_of(net)
