"""Fine-tuning: what a model gains on a new domain, and what it loses on its old one.

    python benchmarks/fine_tuning.py FOLDER [--steps 900] [--pairs 1000] [--out DIR] [--set ...]

FOLDER holds Multi30k as in multi30k.py. A parent is trained on its captions for --steps, and then trained further on
the first --pairs of the demo corpus in data/, once with each of

- scratch: the settings that `auto` chooses for a new model of this many pairs, which is how not to fine-tune,
- fine-tuned: what `--from` chooses by itself,
- mixed: the same, with a sample of the captions beside the new pairs (`--corpus train.en,train.de@SHARE`).

The demo's validation set chooses the model, and the captions' validation set is reported beside it. Scores are those of
the test sets of both: BLEU by sacreBLEU, beam 5. --set changes a setting of the last two. The same command continues
what was interrupted; with --prepare-only nothing but the parent is trained.
"""

import argparse
import json
import subprocess
import sys
import tomllib
from pathlib import Path

SEQTOOL = [sys.executable, "-m", "seqtool"]
SIDES = ("en", "de")
DEMO = Path(__file__).parent.parent / "data"


def run(command: list[str]) -> bytes:
    """Run a command and return what it prints, and end with its exit code where it fails: it has said why."""
    done = subprocess.run([*SEQTOOL, *command], stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise SystemExit(done.returncode)
    return done.stdout


def captions(args: argparse.Namespace, name: str) -> list[str]:
    """Return both files of a part of the captions."""
    return [str(args.folder / f"{name}.{side}.gz") for side in SIDES]


def demo(name: str) -> list[str]:
    """Return both files of a part of the demo corpus."""
    return [str(DEMO / f"{name}.{side}") for side in SIDES]


def validation(files: list[str]) -> list[str]:
    return [argument for file in files for argument in ("--valid", file)]


def first_pairs(args: argparse.Namespace) -> list[str]:
    """Write the first pairs of the demo corpus, and return both files."""
    args.out.mkdir(parents=True, exist_ok=True)
    files = []
    for side, file in zip(SIDES, demo("train"), strict=True):
        lines = Path(file).read_text(encoding="utf-8").split("\n")[: args.pairs]
        files.append(args.out / f"new.{side}")
        files[-1].write_text("\n".join(lines) + "\n", encoding="utf-8")
    return list(map(str, files))


def scratch_settings(new: list[str], steps: int) -> list[str]:
    """Return the settings of [train] and the dropout that `auto` chooses for a new model of these pairs."""
    command = ["train", *new, *validation(demo("valid")), "--steps", str(steps), "--print-config"]
    config = tomllib.loads(run(command).decode())
    chosen = {f"train.{name}": value for name, value in config["train"].items()}
    chosen |= {f"model.{name}": config["model"][name] for name in ("dropout", "word_dropout")}
    chosen["train.both_ways"] = 0.0  # a trained model would unlearn one way
    return [part for name, value in chosen.items() for part in ("--set", f"{name}={json.dumps(value)}")]


def score(args: argparse.Namespace, model: Path) -> tuple[float, float]:
    """Return BLEU on the new domain and on the old one."""
    found = []
    for files in (demo("test"), captions(args, "test_2016_flickr")):
        result = json.loads(run(["eval", "-m", str(model), *files, "--metrics", "bleu", "--worst", "0", "--json"]))
        found.append(result["bleu"]["score"])
        args.signature = result["bleu"]["signature"]
    return found[0], found[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=900, help="of the parent")
    parser.add_argument("--pairs", type=int, default=1000, help="of the new domain")
    parser.add_argument("--share", type=float, default=0.1, help="of the captions, in each epoch of the mixture")
    parser.add_argument("--scratch-steps", type=int, default=300, help="of the training with settings of a new model")
    parser.add_argument("--set", action="append", default=[], help="a setting of the fine-tuning")
    parser.add_argument("--out", type=Path, default=Path("checkpoints/fine-tuning"))
    parser.add_argument("--only", choices=("parent", "scratch", "fine-tuned", "mixed"), help="train this one alone")
    args = parser.parse_args()
    args.signature = ""
    new, parent = first_pairs(args), args.out / "parent"
    old_train = captions(args, "train")
    changes = [part for change in args.set for part in ("--set", change)]
    sets = [*validation(demo("valid")), *validation(captions(args, "val"))]
    fine = ["train", *new, *sets, "--from", str(parent)]
    mixture = ["--corpus", f"{','.join(old_train)}@{args.share:g}"]
    scratch = scratch_settings(new, args.scratch_steps)
    ways = {
        "parent": ["train", *old_train, *validation(captions(args, "val")), "--steps", str(args.steps)],
        "scratch": [*fine, *scratch],
        "fine-tuned": [*fine, *changes],
        "mixed": [*fine, *mixture, *changes],
    }
    for name, command in ways.items():
        if args.only in (None, name):
            run(
                [
                    *command,
                    "-o",
                    str(args.out / "-".join([name, *(args.set if name in ("fine-tuned", "mixed") else [])])),
                ]
            )
    if args.only:
        return
    print("| model | new domain | gain | share of the gain | old domain | change |")
    print("| --- | --- | --- | --- | --- | --- |")
    first = best = (0.0, 0.0)
    for name in ways:
        folder = args.out / "-".join([name, *(args.set if name in ("fine-tuned", "mixed") else [])])
        bleu = score(args, folder)
        first = bleu if name == "parent" else first
        best = bleu if name == "scratch" else best
        gain, whole = bleu[0] - first[0], best[0] - first[0]
        share = f"{100 * gain / whole:.0f} %" if name not in ("parent",) and whole else ""
        print(f"| {name} | {bleu[0]:.1f} | {gain:+.1f} | {share} | {bleu[1]:.1f} | {bleu[1] - first[1]:+.1f} |")
    print(f"\n{args.signature}")


if __name__ == "__main__":
    main()
