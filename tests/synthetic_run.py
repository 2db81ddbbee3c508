"""Makes a run directory as training leaves it, with a tiny random model, for tests that need no real training."""

import json
import math
import random
from pathlib import Path
from typing import Any

from special_ids import vocabularies

from seqtool.config import Config, DecodeConfig, TokenizerConfig, TransformerConfig, config_to_toml
from seqtool.corpus.preparing.prepare import prepare_corpus
from seqtool.corpus.preparing.prepared import PrepareRequest
from seqtool.corpus.reading.corpus import parse_corpus
from seqtool.corpus.tokenizer.registry import load_pair, load_tokenizer, train_tokenizer
from seqtool.files import to_json
from seqtool.run_directory import RunDir

BLEU_SIGNATURE = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"
CHRF_SIGNATURE = "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0"

SUBJECTS = [("The old teacher", "Der alte Lehrer"), ("My sister", "Meine Schwester"), ("The child", "Das Kind")]
OBJECTS = [("the red book", "das rote Buch"), ("a small house", "ein kleines Haus"), ("the dog", "den Hund")]
VERBS = [("bought", "gekauft"), ("seen", "gesehen"), ("found", "gefunden")]
TIMES = [
    ("yesterday", "gestern"),
    ("in the garden of the large hotel near the river", "im Garten des großen Hotels am Fluss"),
]


def make_pairs(n_pairs: int, seed: int = 3) -> list[tuple[str, str]]:
    """English and German sentences whose verb stands in another place."""
    rng = random.Random(seed)
    pairs = []
    for _ in range(n_pairs):
        subject, verb, thing = rng.choice(SUBJECTS), rng.choice(VERBS), rng.choice(OBJECTS)
        time = rng.choice([*TIMES, ("", "")])
        english = f"{subject[0]} has {verb[0]} {thing[0]} {time[0]}".strip() + "."
        german = " ".join(f"{subject[1]} hat {thing[1]} {time[1]} {verb[1]}".split()) + "."
        pairs.append((english, german))
    return pairs


def make_config() -> Config:
    return Config(
        model=TransformerConfig(d_model=32, d_ff=64, n_heads=4, encoder_layers=2, decoder_layers=3),
        tokenizer=TokenizerConfig(vocab_size=400),
        decode=DecodeConfig(beam=2),
    )


def make_metrics(n_steps: int = 6000, seed: int = 5) -> list[dict[str, Any]]:
    """Records of a plausible training."""
    rng = random.Random(seed)
    records: list[dict[str, Any]] = []
    best = 0.0
    for step in range(50, n_steps + 1, 50):
        progress = 1 - math.exp(-step / 1500)
        nll = 8.4 - 6.6 * progress + rng.gauss(0, 0.06)
        lr = 7e-4 * min(step / 1000, (1000 / step) ** 0.5)
        train = {"step": step, "epoch": step // 900, "loss": nll + 0.9, "nll": nll, "lr": lr}
        train |= {"tokens_per_s": 5200 + rng.gauss(0, 180), "grad_norm": 0.8, "minutes": step / 200}
        records.append({"kind": "train", **train, "seen_tokens": step * 4000})
        if step % 500 == 0:
            loss, bleu = 8.1 - 6.4 * progress + rng.gauss(0, 0.05), 38 * progress**2 + rng.gauss(0, 0.6)
            scores = {"bleu": bleu, "bleu_signature": BLEU_SIGNATURE}
            scores |= {"chrf": 20 + bleu, "chrf_signature": CHRF_SIGNATURE}
            valid = {"step": step, "minutes": step / 200, "loss": loss, "perplexity": math.exp(loss)}
            records.append({"kind": "valid", **valid, **scores, "best": bleu > best})
            best = max(best, bleu)
    records.append({"kind": "note", "step": 2400, "text": "resumed from checkpoints/step-000002000 <after a signal>"})
    return records


def make_translated(n_pairs: int = 120, seed: int = 9) -> list[dict[str, str]]:
    """Validation pairs with hypotheses that lose or exchange words."""
    rng = random.Random(seed)
    records = []
    for src, ref in make_pairs(n_pairs, seed):
        words = [word if rng.random() > 0.12 else rng.choice(["", "Katze", "<b>"]) for word in ref.split()]
        records.append({"src": src, "ref": ref, "hyp": " ".join(word for word in words if word)})
    records[7]["hyp"] = ""
    records[8]["hyp"] = records[8]["src"]
    records[9]["hyp"] = "das das das das das das"
    return records


def make_run(path: Path, finished: bool = True, prepared: bool = False) -> RunDir:
    """Write a whole run directory; an unfinished one has no weights and no manifest."""
    import torch

    from seqtool.model.loading import save_weights, weights_of
    from seqtool.model.transformer import Transformer

    path.mkdir(parents=True)
    run = RunDir(path)
    config = make_config()
    run.config.write_text(config_to_toml(config), encoding="utf-8")
    train_tokenizer((text for pair in make_pairs(300) for text in pair), config.tokenizer, run.tokenizer)
    records = make_metrics()
    if not finished:
        records = [record for record in records if record["step"] <= 3000]
    run.metrics.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    if not finished:
        return run
    size = load_tokenizer(run.tokenizer).vocab_size
    torch.manual_seed(1)
    model = Transformer(config.model, vocabularies(size))
    save_weights(weights_of(model), run.weights)
    translated = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in make_translated())
    run.valid_lines.write_text(translated, encoding="utf-8")
    if prepared:
        prepare(run)
    write_manifest(run)
    return run


def prepare(run: RunDir) -> None:
    """Write the prepared corpus that the model would have been trained on."""
    file = run.path.parent / f"{run.path.name}.tsv"
    file.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in make_pairs(300)), encoding="utf-8")
    prepare_corpus(PrepareRequest.of(make_config(), [parse_corpus([file])], None, ()), load_pair(run), run.prepared)


def write_manifest(run: RunDir) -> None:
    decoding = {"beam": 5, "length_penalty": 1.0, "engine": "torch"}
    common = {"set": "valid", "decoding": decoding}
    manifest = {
        "format": 1,
        "seqtool": "0.1.0",
        "created": "2026-11-16T04:00:00Z",
        "files": run.checksums(),
        "versions": {"torch": "2.13.0", "sentencepiece": "0.2.2", "python": "3.11.7"},
        "data": {
            "fingerprint": "5b1f0c0a9be7d2b66f3f4f1c2a0d9e885b1f0c0a9be7d2b66f3f4f1c2a0d9e88",
            "pairs": 29000,
            "read": 29352,
            "text": {"single_sentences": 0.98, "lines": 5000, "noise": {"numbers": 130, "swapped": 4}},
            "cleaning": {"empty": 12, "duplicate": 340, "max_ratio": 0},
            "sources": ["data/train.en data/train.de"],
        },
        "model": {"parameters": 123456, "source": "average of 5", "step": 6000},
        "scores": [
            {**common, "metric": "bleu", "score": 37.412, "signature": BLEU_SIGNATURE},
            {**common, "metric": "chrf", "score": 57.913, "signature": CHRF_SIGNATURE},
        ],
        "training": {"steps": 6000, "epochs": 6.7, "minutes": 30.0, "finished": True},
    }
    run.manifest.write_text(to_json(manifest), encoding="utf-8")
