"""Multi30k from its files to scores in one command: what a recipe reaches in so many minutes.

    python benchmarks/multi30k.py FOLDER --minutes 60 [--form tokenized|raw] [--seed 1] [--out DIR] [--set ...]

FOLDER holds train, val and test_2016_flickr as .en.gz and .de.gz. `tokenized` says that they are lowercased and
tokenized, as in the literature: BLEU is then computed on the tokens as they are (tokenization none, which is what
multi-bleu.perl does). `raw` is ordinary text, scored with case by sacreBLEU's defaults. English to German, beam 5.

Trains with `--preset auto` and nothing else but what --set names, prints validation BLEU over the minutes, and scores
test 2016 with both engines. Nothing but the validation set decides anything; test 2016 is for the final figure. With
--no-test it is not even read, as is right while settings are being compared.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

SEQTOOL = [sys.executable, "-m", "seqtool"]
SCORING = {"tokenized": ["--tokenize", "none"], "raw": []}


def train(args: argparse.Namespace) -> None:
    """Train on the training pairs and validate on the validation pairs."""
    sides = [[str(args.folder / f"{name}.{side}.gz") for side in ("en", "de")] for name in ("train", "val")]
    command = [*SEQTOOL, "train", *sides[0], "--valid", sides[1][0], "--valid", sides[1][1], "-o", str(args.out)]
    command += ["--minutes", f"{args.minutes:g}", "--seed", str(args.seed), "--preset", args.preset]
    for change in args.set:
        command += ["--set", change]
    subprocess.run(command, check=True)


def show_curve(out: Path) -> None:
    """Print validation BLEU over the minutes, and which weights became the model."""
    entries = [json.loads(line) for line in (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    print("\nminutes   step  valid loss  valid BLEU (greedy)")
    for entry in entries:
        if entry["kind"] == "valid":
            print(f"{entry['minutes']:7.1f} {entry['step']:6,} {entry['loss']:11.3f} {entry['bleu']:11.2f}")
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    print(f"\nchosen by validation: {manifest['model']['source']} ({manifest['model']['parameters']:,} parameters)")
    for name, score in manifest["model"]["candidates"].items():
        print(f"  {score:6.2f}  {name}")
    print(f"  length penalty {manifest['model']['length_penalty']}: {manifest['scores'][0]['score']:.2f}")
    tokens, minutes = manifest["training"]["tokens"], manifest["training"]["minutes"]
    print(f"{manifest['training']['steps']:,} steps, {tokens:,} target tokens, {minutes:.1f} minutes of training")


def evaluate(args: argparse.Namespace, engine: str) -> dict[str, Any]:
    """Return the scores of test 2016."""
    files = [str(args.folder / f"test_2016_flickr.{side}.gz") for side in ("en", "de")]
    options = ["--beam", "5", "--engine", engine, "--metrics", "bleu,chrf", "--json", *SCORING[args.form]]
    command = [*SEQTOOL, "eval", "-m", str(args.out), *files, *options]
    result: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, required=True, help="of training")
    parser.add_argument("--form", choices=sorted(SCORING), default="tokenized")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--preset", default="auto")
    parser.add_argument("--set", action="append", default=[], help="a setting to compare with what auto chooses")
    parser.add_argument("--no-test", action="store_true", help="leave the test set alone")
    parser.add_argument("--out", type=Path, default=Path("checkpoints/multi30k"))
    args = parser.parse_args()
    train(args)
    show_curve(args.out)
    if not args.no_test:
        for engine in ("torch", "ctranslate2"):
            scores = evaluate(args, engine)
            print(f"\ntest 2016, {engine}: {json.dumps(scores.get('decoding', {}))}")
            for name in ("bleu", "chrf"):
                print(f"  {name} {scores[name]['score']:.2f}  {scores[name]['signature']}")


if __name__ == "__main__":
    main()
