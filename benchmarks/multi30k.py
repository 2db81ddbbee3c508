"""Multi30k from its files to scores in one command: what a recipe reaches in N minutes.

    python benchmarks/multi30k.py FOLDER --minutes 60 [--pairs N] [--seed 1] [--out DIR] [--set ...]

FOLDER holds train, val and test_2016_flickr as .en.gz and .de.gz (multi30k.md says where they come from). Where they
are in lower case, they are taken to be tokenized too, as in the literature: BLEU is then computed on the tokens as they
are (tokenization none, which is what multi-bleu.perl does). All else is ordinary text, scored with case by sacreBLEU's
defaults. English to German, beam 5.

Trains with the preset `auto`, or --preset, and nothing else but what --set names, prints validation BLEU over the
minutes, and scores test 2016 with both engines. Within a run the validation set decides everything; test 2016 is for
the final figure. With --no-test it is not even read, as is right while settings are being compared. --pairs takes the
first N training pairs. The same command continues a run that was interrupted, and scores a finished one again.
"""

import argparse
import gzip
import itertools
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SEQTOOL = [sys.executable, "-m", "seqtool"]
SIDES = ("en", "de")


def run(command: list[str], **more: Any) -> subprocess.CompletedProcess[bytes]:
    """Run a command, and end with its exit code where it fails: it has said why."""
    done = subprocess.run(command, check=False, **more)
    if done.returncode:
        raise SystemExit(done.returncode)
    return done


def is_tokenized(folder: Path) -> bool:
    """Return whether the corpus is the lowercased and tokenized form."""
    text = gzip.decompress((folder / "val.de.gz").read_bytes()).decode("utf-8")
    return text == text.lower()


def training_files(args: argparse.Namespace) -> list[str]:
    """Return the training pairs' files, or new files with the first of them."""
    files = [args.folder / f"train.{side}.gz" for side in SIDES]
    if args.pairs:
        args.out.mkdir(parents=True, exist_ok=True)
        for file, side in zip(files, SIDES, strict=True):
            with gzip.open(file, "rb") as lines:
                (args.out / f"first.{side}").write_bytes(b"".join(itertools.islice(lines, args.pairs)))
        files = [args.out / f"first.{side}" for side in SIDES]
    return [str(file) for file in files]


def train(args: argparse.Namespace) -> None:
    """Train on the training pairs and validate on the validation pairs."""
    valid = [argument for side in SIDES for argument in ("--valid", str(args.folder / f"val.{side}.gz"))]
    command = [*SEQTOOL, "train", *training_files(args), *valid, "-o", str(args.out)]
    command += ["--minutes", f"{args.minutes:g}", "--seed", str(args.seed), "--preset", args.preset]
    for change in args.set:
        command += ["--set", change]
    start = time.monotonic()
    run(command)
    print(f"\n{(time.monotonic() - start) / 60:.1f} minutes from the files to the finished model")


def show_curve(out: Path) -> None:
    """Print validation BLEU over the minutes, and which weights became the model."""
    entries = [json.loads(line) for line in (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    valid = [entry for entry in entries if entry["kind"] == "valid"]
    print("\nminutes   step  valid loss  valid BLEU (greedy)")
    for entry in valid:
        print(f"{entry['minutes']:7.1f} {entry['step']:6,} {entry['loss']:11.3f} {entry['bleu']:11.2f}")
    if valid:
        print(valid[-1]["bleu_signature"])
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    print(f"\nchosen by validation: {manifest['model']['source']} ({manifest['model']['parameters']:,} parameters)")
    for name, score in manifest["model"]["candidates"].items():
        print(f"  {score:6.2f}  {name}")
    print(f"  length penalty {manifest['model']['length_penalty']}: {manifest['scores'][0]['score']:.2f}")
    tokens, minutes = manifest["training"]["tokens"], manifest["training"]["minutes"]
    print(f"{manifest['training']['steps']:,} steps, {tokens:,} target tokens, {minutes:.1f} minutes of training")


def evaluate(args: argparse.Namespace, engine: str) -> dict[str, Any]:
    """Return the scores of test 2016."""
    files = [str(args.folder / f"test_2016_flickr.{side}.gz") for side in SIDES]
    options = [
        "--beam",
        "5",
        "--engine",
        engine,
        "--metrics",
        "bleu,chrf",
        "--json",
        *(["--tokenize", "none"] if is_tokenized(args.folder) else []),
    ]
    command = [*SEQTOOL, "eval", "-m", str(args.out), *files, *options]
    result: dict[str, Any] = json.loads(run(command, stdout=subprocess.PIPE).stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, required=True, help="of training")
    parser.add_argument("--pairs", type=int, default=0, help="train on the first N pairs only")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--preset", default="auto")
    parser.add_argument("--set", action="append", default=[], help="a setting to compare with what auto chooses")
    parser.add_argument("--no-test", action="store_true", help="leave the test set alone")
    parser.add_argument("--out", type=Path, help="a folder of its own in checkpoints/, unless given")
    args = parser.parse_args()
    name = f"{args.folder.name}-{args.preset}-{args.pairs or 'all'}-pairs-{args.minutes:g}-minutes-seed-{args.seed}"
    args.out = args.out or Path("checkpoints") / "-".join([name, *args.set])
    train(args)
    show_curve(args.out)
    if not args.no_test:
        exported = (args.out / "ctranslate2").is_dir()  # CTranslate2 has the Transformer alone
        for engine in ("torch", "ctranslate2") if exported else ("torch",):
            scores = evaluate(args, engine)
            print(f"\ntest 2016, {engine}: {json.dumps(scores.get('decoding', {}))}")
            for name in ("bleu", "chrf"):
                print(f"  {name} {scores[name]['score']:.2f}  {scores[name]['signature']}")


if __name__ == "__main__":
    main()
