"""Every kind of model, and every attention score, trained for the same time on the same corpus.

    python benchmarks/architectures.py speed FOLDER [--seconds 8] [--preset demo] [--only rnn-additive decoder ...]
    python benchmarks/architectures.py table FOLDER --minutes 2 [--preset demo] [--only ...]
    python benchmarks/architectures.py lengths FOLDER --minutes 2 [--preset demo] --svg docs/bleu-by-length.svg

FOLDER holds train, valid (or val) and test (or test_2016_flickr), each as .en and .de or .en.gz and .de.gz; the folder
data/ of the demo corpus is one. `speed` measures how fast each system trains, one after the other, on a machine with
nothing else to do; with --one-thread it counts the CPU time of one thread, on which other work has little influence.
`table` then trains each for the steps that it does in the minutes at that speed (by one thread's, twice as many: two
threads each take a part of a batch), so that a machine which is busy meanwhile changes nothing but the wait; without
`speed` it trains by the clock. It prints, for each system, its parameters, target tokens per second in training, steps,
BLEU of the test set and BLEU by source length, and sentences per second in translation (torch, beam 5) if asked for by
--translate. `lengths` trains the recurrent model without and with attention and the Transformer on a corpus in which a
third of the lines are two or three sentences joined, scores joined test sentences of growing length, and draws BLEU
over source length.

Runs stay in checkpoints/architectures/; a run that is finished is only scored again.
"""

import argparse
import gzip
import itertools
import json
import random
import statistics
import subprocess
import sys
import time
from html import escape
from pathlib import Path
from typing import Any

SEQTOOL = [sys.executable, "-m", "seqtool"]
RUNS = Path("checkpoints") / "architectures"
SCORES = ("additive", "dot", "general", "scaled", "location", "cosine")
SYSTEMS: dict[str, list[str]] = {
    "transformer": [],
    "decoder": ["model.kind=decoder"],
    "decoder-causal": ["model.kind=decoder", "model.prefix_attention=false"],
    "conv": ["model.kind=conv"],
    "rnn-none": ["model.kind=rnn", "model.attention=none"],
    **{f"rnn-{score}": ["model.kind=rnn", f"model.attention={score}"] for score in SCORES},
    "rnn-gru": ["model.kind=rnn", "model.cell=gru"],
    "rnn-feeding": ["model.kind=rnn", "model.input_feeding=true"],
}
OVER_LENGTH = ("rnn-none", "rnn-additive", "transformer")
SETS = ("train", "valid", "test")
WARM_STEPS = 3  # before the clock starts
LONGEST_JOIN = 5  # test sentences in one line
COLORS = {"rnn-none": "#b3372c", "rnn-additive": "#c2560a", "transformer": "#1f5fbf"}


def read_set(folder: Path, names: tuple[str, ...]) -> list[tuple[str, str]]:
    """Read the first set of these names that the folder has."""
    for name in names:
        for end, reader in (("", open), (".gz", gzip.open)):
            files = [folder / f"{name}.{side}{end}" for side in ("en", "de")]
            if all(file.exists() for file in files):
                sides = [reader(file, "rt", encoding="utf-8").read().split("\n")[:-1] for file in files]
                return list(zip(*sides, strict=True))
    raise SystemExit(f"{folder}: has none of {', '.join(names)} as .en and .de")


def write_set(pairs: list[tuple[str, str]], place: Path) -> list[str]:
    """Write pairs as two files and return their names."""
    place.parent.mkdir(parents=True, exist_ok=True)
    for side, end in enumerate(("en", "de")):
        place.with_suffix(f".{end}").write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    return [str(place.with_suffix(f".{end}")) for end in ("en", "de")]


def join_pairs(pairs: list[tuple[str, str]], size: int) -> list[tuple[str, str]]:
    """Join each `size` pairs in a row to one."""
    groups = [pairs[i : i + size] for i in range(0, len(pairs) - size + 1, size)]
    return [(" ".join(src for src, _ in group), " ".join(tgt for _, tgt in group)) for group in groups]


def with_joined(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Replace a third of the lines by joined ones of two or three sentences."""
    pairs = random.Random(1).sample(pairs, len(pairs))
    third = len(pairs) // 3
    return pairs[:-third] + join_pairs(pairs[-third:][: third // 2], 2) + join_pairs(pairs[-third:][third // 2 :], 3)


def train_command(name: str, corpus: list[str], args: argparse.Namespace) -> list[str]:
    """Return the command that trains a system."""
    settings = [part for setting in SYSTEMS[name] for part in ("--set", setting)]
    return [*SEQTOOL, "train", *corpus, "--preset", args.preset, *settings]


def train(
    name: str, out: Path, corpus: list[str], valid: list[str], args: argparse.Namespace, speed: dict[str, Any]
) -> dict[str, Any]:
    """Train a system, or continue it, and return its manifest."""
    command = [*train_command(name, corpus, args), "--valid", valid[0], "--valid", valid[1], "-o", str(out)]
    steps = args.steps or round(60 * args.minutes * speed.get("steps_per_second", 0))
    budget = ["--steps", str(steps)] if steps else ["--minutes", f"{args.minutes:g}"]
    subprocess.run([*command, *budget], check=True)
    manifest: dict[str, Any] = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    return manifest


def measure_speed(name: str, prepared: Path, corpus: list[str], args: argparse.Namespace) -> dict[str, float]:
    """Return how fast a system trains: the same steps as in training, on the prepared corpus, without validation."""
    import torch

    from seqtool.config import load_config
    from seqtool.corpus.batches.batches import BatchPlan, iterate_batches
    from seqtool.corpus.preparing.prepared import PreparedCorpus
    from seqtool.corpus.tokenizer.registry import load_pair
    from seqtool.model.kinds import build_model
    from seqtool.process import threads_per_process
    from seqtool.run_directory import RunDir
    from seqtool.training.distributed import Workers
    from seqtool.training.optimizer import Updater
    from seqtool.training.step import GradientMaker, LossOf, train_step

    shown = subprocess.run(
        [*train_command(name, corpus, args), "--print-config"], check=True, stdout=subprocess.PIPE
    ).stdout
    (prepared / "config.toml").write_bytes(shown)
    config, run = load_config(prepared / "config.toml"), RunDir(prepared)
    tokens, clock = config.train.batch_tokens, time.process_time if args.one_thread else time.perf_counter
    assert isinstance(tokens, int)
    torch.set_num_threads(1 if args.one_thread else threads_per_process())
    data, sides = PreparedCorpus.open(run.prepared), load_pair(run).vocabularies
    plan = BatchPlan(data.src_lengths, data.tgt_lengths, tokens, 1, data.ranges)
    model = build_model(config.model, sides).train()
    workers = Workers(0, 1, torch.device("cpu"))
    maker = GradientMaker(LossOf(model, config.train), config.train, workers, "float32", torch.get_num_threads())
    updater = Updater(model, config.train, "float32")
    batches = iterate_batches(data, plan, (sides.source.special, sides.target.special), (0, 0), 0, 1)
    start, done, seen = 0.0, 0, 0
    for step in itertools.count(1):
        if step == WARM_STEPS:
            start = clock()
        batch = next(batches)
        train_step(maker, updater, batch, step, 1e-4)
        if step >= WARM_STEPS and clock() - start > args.seconds:
            break
        done, seen = (done + 1, seen + batch.n_tgt_tokens) if step >= WARM_STEPS else (0, 0)
    maker.close()
    seconds = clock() - start
    count = sum(parameter.numel() for parameter in model.parameters())
    scale = (2 if args.one_thread else 1) / seconds
    return {"tokens_per_second": seen * scale, "steps_per_second": done * scale, "parameters": count}


def measure_speeds(args: argparse.Namespace) -> None:
    """Measure every system and write the figures beside the runs."""
    work = work_folder(args)
    train_set = read_set(args.folder, ("train",))
    corpus, prepared = write_set(train_set, work / "train"), work / "prepared"
    subprocess.run([*SEQTOOL, "prepare", *corpus, "-o", str(prepared), "--preset", args.preset], check=True)
    for name in args.only or SYSTEMS:
        found = measure_speed(name, prepared, corpus, args)
        (work / "speeds.json").write_text(json.dumps(read_speeds(work) | {name: found}, indent=1), encoding="utf-8")
        print(
            f"{name}: {found['parameters']:,} parameters, {found['tokens_per_second']:,.0f} target tokens and "
            f"{found['steps_per_second']:.2f} steps per second",
            flush=True,
        )


def read_speeds(work: Path) -> dict[str, dict[str, float]]:
    """Return what `speed` measured, by system."""
    file = work / "speeds.json"
    found: dict[str, dict[str, float]] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return found


def work_folder(args: argparse.Namespace) -> Path:
    """Return where the runs on a corpus are, and make it."""
    work = RUNS / f"{args.folder.resolve().name}-{args.preset}"
    work.mkdir(parents=True, exist_ok=True)
    return work


def evaluate(out: Path, files: list[str], tokenized: bool) -> dict[str, Any]:
    """Score a system with the torch engine, which all kinds have."""
    options = ["--engine", "torch", "--beam", "5", "--metrics", "bleu", "--json"]
    options += ["--tokenize", "none"] if tokenized else []
    command = [*SEQTOOL, "eval", "-m", str(out), *files, *options]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return found


def sentences_per_second(out: Path, source: str) -> float:
    """Time the translation of the test set, without the start of the program: all lines less a single one."""
    lines = Path(source).read_bytes().split(b"\n")[:-1]
    seconds = []
    for text in (lines[:1], lines):
        start = time.monotonic()
        command = [*SEQTOOL, "translate", "-m", str(out), "--engine", "torch", "--beam", "5"]
        subprocess.run(command, check=True, input=b"\n".join(text) + b"\n", stdout=subprocess.DEVNULL)
        seconds.append(time.monotonic() - start)
    return (len(lines) - 1) / (seconds[1] - seconds[0])


def make_table(args: argparse.Namespace) -> None:
    """Train and measure every system, and print a row of a Markdown table for each as it is done."""
    work = work_folder(args)
    sets = train_set, valid_set, test_set = all_sets(args.folder)
    tokenized = valid_set == [(src.lower(), tgt.lower()) for src, tgt in valid_set]
    files = {name: write_set(pairs, work / name) for name, pairs in zip(SETS, sets, strict=True)}
    speeds = read_speeds(work)
    columns = ["system", "parameters", "tokens/s in training", "steps", "BLEU", "BLEU by source length"]
    columns += ["sentences/s"] if args.translate else []
    print("| " + " | ".join(columns) + " |\n" + "| --- " * len(columns) + "|", flush=True)
    for name in args.only or SYSTEMS:
        out, speed = work / f"{name}-{args.minutes:g}-minutes", speeds.get(name, {})
        manifest = train(name, out, files["train"], files["valid"], args, speed)
        scores = evaluate(out, files["test"], tokenized)
        by_length = ", ".join(f"{one['low']}-{one['high']}: {one['bleu']['score']:.1f}" for one in scores["by_length"])
        tokens = f"{speed['tokens_per_second']:,.0f}" if speed else "not measured"
        row = [name, f"{manifest['model']['parameters']:,}", tokens, f"{manifest['training']['steps']:,}"]
        row += [f"{scores['bleu']['score']:.1f}", by_length]
        row += [f"{sentences_per_second(out, files['test'][0]):.0f}"] if args.translate else []
        print("| " + " | ".join(row) + " |", flush=True)
    print(f"\n{len(train_set):,} training and {len(test_set):,} test pairs; {scores['bleu']['signature']}")


def all_sets(folder: Path) -> list[list[tuple[str, str]]]:
    """Read the three sets of a folder."""
    return [read_set(folder, names) for names in (("train",), ("valid", "val"), ("test", "test_2016_flickr"))]


def draw_lengths(args: argparse.Namespace) -> None:
    """Train three systems on lines of some lengths, score joined test lines, and draw BLEU over source length."""
    work, speeds = work_folder(args) / f"joined-{args.minutes:g}-minutes", read_speeds(work_folder(args))
    train_set, valid_set, test_set = all_sets(args.folder)
    corpus = write_set(with_joined(train_set), work / "train")
    valid = write_set(with_joined(valid_set), work / "valid")
    joined = {size: join_pairs(test_set, size) for size in range(1, LONGEST_JOIN + 1)}
    curves: dict[str, list[tuple[float, float]]] = {}
    for name in OVER_LENGTH:
        train(name, work / name, corpus, valid, args, speeds.get(name, {}))
        curves[name] = []
        for size, pairs in joined.items():
            scores = evaluate(work / name, write_set(pairs, work / f"test-{size}"), tokenized=False)
            words = statistics.mean(len(src.split()) for src, _ in pairs)
            curves[name].append((words, scores["bleu"]["score"]))
            print(f"{name}: {size} joined, {words:.1f} words, BLEU {scores['bleu']['score']:.1f}", flush=True)
    args.svg.write_text(curves_svg(curves), encoding="utf-8")
    print(f"drawn in {args.svg}; {scores['bleu']['signature']}")


def curves_svg(curves: dict[str, list[tuple[float, float]]]) -> str:
    """Draw curves over one pair of axes, with their names at their ends."""
    width, height, left, bottom, right, top = 720, 360, 52, 44, 150, 34
    longest = max(x for points in curves.values() for x, _ in points)
    highest = 10 * -(-max(y for points in curves.values() for _, y in points) // 10)

    def place(x: float, y: float) -> tuple[float, float]:
        return left + (width - left - right) * x / longest, height - bottom - (height - bottom - top) * y / highest

    parts = [f'<text x="{left}" y="18" class="title">BLEU over the number of source words</text>']
    for tick in range(0, int(highest) + 1, 20):
        x, y = place(0, tick)
        parts.append(
            f'<path d="M{x:.1f} {y:.1f}H{width - right}"/><text x="{x - 8:.1f}" y="{y + 4:.1f}" class="r">{tick}</text>'
        )
    for tick in range(0, int(longest) + 1, 10):
        x, y = place(tick, 0)
        parts.append(f'<text x="{x:.1f}" y="{y + 18:.1f}" class="m">{tick}</text>')
    for name, points in curves.items():
        placed = [place(*point) for point in points]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        parts.append(f'<polyline points="{line}" style="stroke:{COLORS[name]}"/>')
        for (x, y), (_, bleu) in zip(placed, points, strict=True):
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" style="fill:{COLORS[name]}">'
                f"<title>{bleu:.1f}</title></circle>"
            )
        x, y = placed[-1]
        parts.append(
            f'<text x="{x + 10:.1f}" y="{y + 4:.1f}" style="fill:{COLORS[name]}">'
            f"{escape(name)} {points[-1][1]:.1f}</text>"
        )
    style = "text{font:13px system-ui,sans-serif;fill:#5b6575}.title{font-weight:600}"
    style += ".r{text-anchor:end}.m{text-anchor:middle}"
    style += "path{stroke:#e3e7ed}polyline{fill:none;stroke-width:2.5}rect{fill:#fff}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
        f'<style>{style}</style><rect width="{width}" height="{height}"/>{"".join(parts)}</svg>\n'
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True)
    for name, work in (("speed", measure_speeds), ("table", make_table), ("lengths", draw_lengths)):
        command = commands.add_parser(name)
        command.add_argument("folder", type=Path)
        command.add_argument("--preset", default="auto")
        command.set_defaults(work=work)
        if name == "speed":
            command.add_argument("--seconds", type=float, default=8.0, help="for each system")
            command.add_argument("--one-thread", action="store_true", help="count the CPU time of one thread")
        else:
            command.add_argument("--minutes", type=float, default=6.0, help="of training for each system")
            command.add_argument("--steps", type=int, default=0, help="for each system, instead of the minutes")
        if name == "lengths":
            command.add_argument("--svg", type=Path, default=Path("docs/bleu-by-length.svg"))
        else:
            command.add_argument("--only", nargs="*", choices=SYSTEMS, help="these systems alone")
        if name == "table":
            command.add_argument("--translate", action="store_true", help="measure the speed of translation too")
    args = parser.parse_args()
    args.work(args)


if __name__ == "__main__":
    main()
