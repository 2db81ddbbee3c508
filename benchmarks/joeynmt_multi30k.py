"""Joey NMT on tokenized Multi30k for N minutes: the peer that benchmarks/multi30k.py is compared with.

    python benchmarks/joeynmt_multi30k.py FOLDER --model RUN --minutes 20 [--warmup 200] [--out DIR]

FOLDER as in multi30k.py; RUN is a finished seqtool run, whose vocabulary and sizes Joey NMT gets too. The training
settings are those of Joey NMT's own transformer_small.yaml (Adam 0.9/0.98, "noam" with factor 0.5, dropout 0.1), but
for the label smoothing of 0.1 that seqtool has too, 4,096 tokens per batch where that toy has 250 (it counts padding,
so that about as many real tokens come together as the 2,048 of seqtool), and --warmup: the 1,000 steps of that file are
more than it makes in 20 minutes on two cores. It trains to the first validation after its time,
so that nothing of that is lost, and the checkpoint with its best validation BLEU is tested with beam 5. Its minutes
begin with its first line of log, when the corpus is not loaded yet. The validation scores are of greedy search and
sacreBLEU's default tokenization, as in multi30k.py; the test score is on the tokens as they are. It is installed into
an environment of its own that borrows this torch.
"""

import argparse
import datetime
import gzip
import json
import re
import subprocess
import sys
import time
import venv
from pathlib import Path
from typing import Any

import torch
from sentencepiece import SentencePieceProcessor

JOEY = ["joeynmt==2.3.0", "importlib_metadata", "sentencepiece==0.2.0"]  # it needs them, without saying so
VALIDATE_EVERY = 250  # updates, about every eight minutes where seqtool was measured
DONE = "Evaluation result (greedy)"


def make_environment(folder: Path) -> Path:
    """Make an environment with Joey NMT in it, once; return its Python."""
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        venv.create(folder, with_pip=True, clear=True)
        (packages,) = (folder / "lib").glob("python*/site-packages")
        (packages / "borrowed.pth").write_text(f"{Path(torch.__file__).parent.parent}\n", encoding="utf-8")
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *JOEY], check=True)
        (folder / "ready").touch()
    return python


def unpack(folder: Path, out: Path) -> None:
    """Write the corpus as plain text, which is what Joey NMT reads."""
    for name in ("train", "val", "test_2016_flickr"):
        for side in ("en", "de"):
            (out / f"{name}.{side}").write_bytes(gzip.decompress((folder / f"{name}.{side}.gz").read_bytes()))


def write_vocabulary(model: Path, out: Path) -> None:
    """Write the pieces of a run's tokenizer, without its control symbols, as Joey NMT's vocabulary."""
    pieces = SentencePieceProcessor(model_file=str(model / "tokenizer.model"))
    kept = [i for i in range(pieces.vocab_size()) if not (pieces.is_control(i) or pieces.is_unknown(i))]
    (out / "vocabulary").write_text("".join(f"{pieces.id_to_piece(i)}\n" for i in kept), encoding="utf-8")


def make_config(model: Path, out: Path, seed: int, warmup: int) -> dict[str, Any]:
    """Return Joey NMT's configuration with the sizes of a seqtool run."""
    import tomllib

    size = tomllib.loads((model / "config.toml").read_text(encoding="utf-8"))["model"]
    language = {
        "level": "bpe",
        "lowercase": False,
        "max_length": 256,
        "voc_file": str(out / "vocabulary"),
        "tokenizer_type": "sentencepiece",
        "tokenizer_cfg": {"model_file": str(model / "tokenizer.model")},
    }

    def half(layers: int) -> dict[str, Any]:
        return {
            "type": "transformer",
            "num_layers": layers,
            "num_heads": size.get("n_heads", 1),
            "embeddings": {"embedding_dim": size["d_model"], "scale": True, "dropout": 0.0},
            "hidden_size": size["d_model"],
            "ff_size": size.get("d_ff", 1),
            "dropout": 0.1,
            "layer_norm": "pre",
        }

    return {
        "name": "multi30k",
        "joeynmt_version": "2.3.0",
        "model_dir": str(out / "model"),
        "use_cuda": False,
        "random_seed": seed,
        "data": {
            **{name: str(out / file) for name, file in (("train", "train"), ("dev", "val"))},
            "test": str(out / "test_2016_flickr"),
            "dataset_type": "plain",
            "src": {"lang": "en", **language},
            "trg": {"lang": "de", **language},
        },
        "testing": {
            "beam_size": 5,
            "beam_alpha": 1.0,
            "batch_size": 64,
            "batch_type": "sentence",
            "max_output_length": 60,
            "eval_metrics": ["bleu"],
            "sacrebleu_cfg": {"tokenize": "13a"},
        },
        "training": {
            "optimizer": "adam",
            "adam_betas": [0.9, 0.98],
            "normalization": "tokens",
            "learning_rate": 0.001,
            "learning_rate_min": 0.0,
            "learning_rate_factor": 0.5,
            "learning_rate_warmup": warmup,
            "scheduling": "noam",
            "label_smoothing": 0.1,
            "loss": "crossentropy",
            "batch_size": 4096,
            "batch_type": "token",
            "early_stopping_metric": "bleu",
            "epochs": 1000,
            "validation_freq": VALIDATE_EVERY,
            "logging_freq": 50,
            "overwrite": True,
            "shuffle": True,
            "keep_best_ckpts": 1,
        },
        "model": {
            "initializer": "xavier_uniform",
            "bias_initializer": "zeros",
            "embed_initializer": "xavier_uniform",
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": half(size["encoder_layers"]),
            "decoder": half(size["decoder_layers"]),
        },
    }


def train(python: Path, config: Path, log: Path, minutes: float) -> None:
    """Train until the first validation after the time is over, and its checkpoint."""
    end = time.monotonic() + 60 * minutes
    with log.open("w") as file:
        process = subprocess.Popen(
            [str(python), "-m", "joeynmt", "train", str(config), "--skip-test"], stdout=file, stderr=subprocess.STDOUT
        )
        while process.poll() is None and time.monotonic() < end:
            time.sleep(1)
        n_done = log.read_text(encoding="utf-8").count(DONE)
        while process.poll() is None and log.read_text(encoding="utf-8").count(DONE) == n_done:
            time.sleep(1)
        time.sleep(10)  # it writes the checkpoint after the score
    if process.poll() is not None:
        raise SystemExit(f"Joey NMT ended before its time; see {log}")
    process.kill()
    process.wait()


def show_curve(out: Path) -> None:
    """Print validation BLEU over the minutes, from Joey NMT's log."""
    text = (out / "model" / "train.log").read_text(encoding="utf-8")
    stamped = re.findall(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d+ - (.*)", text, re.MULTILINE)
    start = datetime.datetime.fromisoformat(stamped[0][0])
    print("\nminutes   step  valid BLEU (greedy)")
    step = 0
    for stamp, line in stamped:
        if found := re.search(rf"{re.escape(DONE)}: bleu: +([\d.]+)", line):
            step += VALIDATE_EVERY
            minutes = (datetime.datetime.fromisoformat(stamp) - start).total_seconds() / 60
            print(f"{minutes:7.1f} {step:6,} {float(found[1]):11.2f}")


def test(python: Path, config: Path, args: argparse.Namespace, out: Path) -> None:
    """Translate test 2016 with the best checkpoint and score it as seqtool's translation is scored."""
    settings = json.loads(config.read_text())
    settings["testing"]["load_model"] = str(out / "model" / "best.ckpt")
    config.write_text(json.dumps(settings))
    command = [str(python), "-m", "joeynmt", "test", str(config), "-o", str(out / "hyp")]
    with (out / "test.log").open("w") as log:
        subprocess.run(command, check=True, stdout=log, stderr=subprocess.STDOUT)
    score = [sys.executable, "-m", "seqtool", "eval", "--hyp", str(out / "hyp.test"), "--tokenize", "none"]
    subprocess.run([*score, str(args.folder / "test_2016_flickr.de.gz"), "--worst", "0"], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--warmup", type=int, default=200, help="steps")
    parser.add_argument("--out", type=Path, default=Path("checkpoints/joeynmt"))
    args = parser.parse_args()
    out = args.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    python = make_environment(out / "environment")
    unpack(args.folder, out)
    write_vocabulary(args.model.resolve(), out)
    config = out / "config.yaml"  # JSON is YAML
    config.write_text(json.dumps(make_config(args.model.resolve(), out, args.seed, args.warmup), indent=1))
    train(python, config, out / "train.out", args.minutes)
    show_curve(out)
    test(python, config, args, out)


if __name__ == "__main__":
    main()
