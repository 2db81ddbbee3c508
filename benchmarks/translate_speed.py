"""Translation speed of seqtool against bare CTranslate2 and Hugging Face, measured in turn on the same lines.

    python benchmarks/translate_speed.py MODEL_DIR SOURCE_FILE [--lines 1000] [--rounds 3] [--no-hugging-face]

(a) `seqtool translate --engine ctranslate2`, from the shell and with everything that takes, against nothing but
    `ctranslate2.Translator.translate_batch` on ready tokens, at the best of several settings of threads and batch.
(b) `seqtool translate --engine torch`, in the same way, against nothing but `MarianMTModel.generate` of Hugging Face on
    ready ids. That model has the same sizes but random weights, because Marian cannot express a pre-norm Transformer;
    so that it does the same work, each of its batches is made to write as many tokens as seqtool's longest translation
    in it has. It is installed into an environment of its own, which borrows this one's torch.
(c) One sentence from the shell against `python -c "import torch"`, medians of 7.

Peak memory is that of each program as a whole.
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "seqtool" / "benchmark-translate"
BEAM = 5


@dataclass
class Contestant:
    """A program, and what was measured of it."""

    name: str
    run: Callable[[], tuple[float, float]]  # seconds and peak mebibytes
    seconds: list[float] = field(default_factory=list)
    mebibytes: list[float] = field(default_factory=list)

    def measure(self) -> None:
        seconds, mebibytes = self.run()
        self.seconds.append(seconds)
        self.mebibytes.append(mebibytes)


def run_program(command: list[str], **more: Any) -> tuple[str, float, float]:
    """Run a program to its end; return its output, its seconds and its peak memory in mebibytes."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **more)
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status:
        raise SystemExit(f"failed: {' '.join(command)}")
    return output, seconds, usage.ru_maxrss / 1024


def seqtool_runner(model: Path, source: Path, engine: str) -> Callable[[], tuple[float, float]]:
    """Return a run of `seqtool translate` from the shell."""
    command = [sys.executable, "-m", "seqtool", "translate", "-m", str(model), "-i", str(source)]

    def run() -> tuple[float, float]:
        _, seconds, mebibytes = run_program([*command, "--engine", engine, "--beam", str(BEAM)])
        return seconds, mebibytes

    return run


def run_worker(python: Path, task: dict[str, Any]) -> tuple[str, float]:
    """Run this file as a worker; return what it prints and its peak memory.

    All work is done in workers: a program's peak memory counts that of the one which started it.
    """
    output, _, mebibytes = run_program([str(python), __file__, "--worker", json.dumps(task)])
    return output, mebibytes


def worker_runner(python: Path, task: dict[str, Any]) -> Callable[[], tuple[float, float]]:
    """Return a run of a worker that prints the seconds of the part that counts."""

    def run() -> tuple[float, float]:
        output, mebibytes = run_worker(python, task)
        return float(output.strip().splitlines()[-1]), mebibytes

    return run


def bare_ctranslate2(task: dict[str, Any]) -> float:
    """Translate ready tokens with nothing but ctranslate2; return the seconds of that."""
    import ctranslate2

    tokens = json.loads(Path(task["tokens"]).read_text(encoding="utf-8"))
    model = ctranslate2.Translator(
        task["folder"], device="cpu", inter_threads=task["workers"], intra_threads=task["threads"]
    )
    model.translate_batch(tokens[:2], beam_size=BEAM)
    start = time.perf_counter()
    model.translate_batch(tokens, beam_size=BEAM, max_batch_size=task["batch"])
    return time.perf_counter() - start


def hugging_face(task: dict[str, Any]) -> float:
    """Translate ready ids with MarianMTModel.generate, sorted by length; return the seconds of that."""
    import torch
    from transformers import MarianConfig, MarianMTModel

    rows = json.loads(Path(task["ids"]).read_text(encoding="utf-8"))  # [source ids with end, length of the translation]
    size = task["size"]
    config = MarianConfig(
        vocab_size=size["vocab"],
        d_model=size["d_model"],
        encoder_layers=size["encoder_layers"],
        decoder_layers=size["decoder_layers"],
        encoder_attention_heads=size["n_heads"],
        decoder_attention_heads=size["n_heads"],
        encoder_ffn_dim=size["d_ff"],
        decoder_ffn_dim=size["d_ff"],
        activation_function="relu",
        pad_token_id=0,
        eos_token_id=3,
        decoder_start_token_id=2,
        forced_eos_token_id=None,
        max_position_embeddings=1024,
    )
    torch.manual_seed(0)
    torch.set_num_threads(task["threads"])
    model = MarianMTModel(config).eval()
    rows.sort(key=lambda row: len(row[0]))
    batches = [rows[start : start + task["batch"]] for start in range(0, len(rows), task["batch"])]

    def generate(batch: list[Any]) -> None:
        width = max(len(ids) for ids, _ in batch)
        ids = torch.tensor([row + [0] * (width - len(row)) for row, _ in batch])
        steps = max(length for _, length in batch) + 1
        model.generate(
            input_ids=ids,
            attention_mask=(ids != 0).long(),
            num_beams=BEAM,
            do_sample=False,
            min_new_tokens=steps,
            max_new_tokens=steps,
        )

    with torch.inference_mode():
        generate(batches[0][:2])
        start = time.perf_counter()
        for batch in batches:
            generate(batch)
        return time.perf_counter() - start


def make_environment() -> Path:
    """Make the benchmark's own environment with transformers in it, once; return its Python."""
    python = CACHE / "bin" / "python"
    if not (CACHE / "ready").exists():
        print(f"installing transformers into {CACHE} ...", file=sys.stderr)
        venv.create(CACHE, with_pip=True, clear=True)
        found = importlib.util.find_spec("torch")
        assert found is not None
        assert found.origin is not None
        borrowed = Path(found.origin).parent.parent
        (packages,) = (CACHE / "lib").glob("python*/site-packages")
        (packages / "borrowed.pth").write_text(f"{borrowed}\n", encoding="utf-8")
        install = [str(python), "-m", "pip", "install", "--quiet", "transformers", "sentencepiece"]
        subprocess.run(install, check=True, stdout=sys.stderr)
        (CACHE / "ready").touch()
    return python


def prepare_inputs(task: dict[str, Any]) -> None:
    """Write the lines, their tokens, and their ids with the lengths of their translations."""
    from seqtool import Translator

    lines = Path(task["source"]).read_text(encoding="utf-8").split("\n")[: task["lines"]]
    lines = [line for line in lines if line.strip()]
    translator = Translator.load(task["model"], engine="ctranslate2")
    tokenizer = translator.tokenizers.source
    found = translator.translate(lines, beam=BEAM)
    paths = [Path(path) for path in task["paths"]]
    paths[0].write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    paths[1].write_text(json.dumps([tokenizer.pieces(tokenizer.encode(line)) for line in lines]), encoding="utf-8")
    ids = [[[*tokenizer.encode(line), 3], len(one.tokens)] for line, one in zip(lines, found, strict=True)]
    paths[2].write_text(json.dumps(ids), encoding="utf-8")


def best_setting(python: Path, tasks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the quickest of several settings, each tried once."""
    timed = [(worker_runner(python, task)()[0], index) for index, task in enumerate(tasks)]
    for seconds, index in timed:
        setting = {key: tasks[index][key] for key in ("workers", "threads", "batch") if key in tasks[index]}
        print(f"    {setting}: {seconds:.2f} s", file=sys.stderr)
    return tasks[min(timed)[1]]


def compare(model: Path, source: Path, args: argparse.Namespace, folder: Path) -> None:
    lines, tokens, ids = paths = folder / "lines", folder / "tokens.json", folder / "ids.json"
    task = {"task": "prepare", "model": str(model), "source": str(source), "lines": args.lines}
    run_worker(Path(sys.executable), {**task, "paths": [str(path) for path in paths]})
    n_lines = len(lines.read_text(encoding="utf-8").splitlines())
    cores = len(os.sched_getaffinity(0))
    here = Path(sys.executable)
    bare_tasks = [
        {"task": "bare", "tokens": str(tokens), "folder": str(model / "ctranslate2"), **setting}
        for setting in (
            {"workers": cores, "threads": 1, "batch": 8},
            {"workers": cores, "threads": 1, "batch": 16},
            {"workers": cores, "threads": 1, "batch": 32},
            {"workers": 1, "threads": cores, "batch": 32},
        )
    ]
    print("  settings of bare ctranslate2:", file=sys.stderr)
    bare = best_setting(here, bare_tasks)
    contestants = [
        Contestant("seqtool translate, ctranslate2 engine", seqtool_runner(model, lines, "ctranslate2")),
        Contestant("bare ctranslate2 translate_batch", worker_runner(here, bare)),
        Contestant("seqtool translate, torch engine", seqtool_runner(model, lines, "torch")),
    ]
    if args.hugging_face:
        python = make_environment()
        size = json.loads(run_worker(here, {"task": "size", "model": str(model)})[0])
        hugging_tasks = [
            {"task": "hugging_face", "ids": str(ids), "size": size, "threads": cores, "batch": batch}
            for batch in (16, 32, 64)
        ]
        print("  settings of Hugging Face:", file=sys.stderr)
        quickest = best_setting(python, hugging_tasks)
        contestants.append(Contestant("Hugging Face MarianMTModel.generate", worker_runner(python, quickest)))
    for number in range(args.rounds):
        for contestant in contestants:
            contestant.measure()
            print(f"  round {number + 1}: {contestant.name}: {contestant.seconds[-1]:.2f} s", file=sys.stderr)
    show(contestants, n_lines)


def read_size(task: dict[str, Any]) -> dict[str, int]:
    from seqtool.config import load_config
    from seqtool.corpus.tokenizer.registry import load_pair
    from seqtool.run_directory import RunDir

    run = RunDir(Path(task["model"]))
    config = load_config(run.config).model
    names = ("d_model", "d_ff", "n_heads", "encoder_layers", "decoder_layers")
    return {**{name: getattr(config, name) for name in names}, "vocab": load_pair(run).target.vocab_size}


def show(contestants: list[Contestant], n_lines: int) -> None:
    speeds = [n_lines / statistics.median(contestant.seconds) for contestant in contestants]
    for contestant, speed in zip(contestants, speeds, strict=True):
        print(f"{contestant.name:42} {speed:7.1f} sentences/s, peak {max(contestant.mebibytes):6.0f} MiB")
    for name, first in (("(a) ctranslate2 engine / bare", 0), ("(b) torch engine / Hugging Face", 2)):
        if first + 1 < len(contestants):
            pairs = zip(contestants[first + 1].seconds, contestants[first].seconds, strict=True)
            ratios = [theirs / ours for theirs, ours in pairs]
            wanted = 0.9 if first == 0 else 2.0
            print(
                f"{name}: median {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f}), wanted {wanted}"
            )


def compare_start(model: Path) -> None:
    """Time one sentence from the shell against the import of torch."""
    command = f"echo 'A man walks.' | {sys.executable} -m seqtool translate -m {model} --engine ctranslate2"
    ours, torch = [], []
    for _ in range(7):
        ours.append(run_program(["sh", "-c", command])[1])
        torch.append(run_program([sys.executable, "-c", "import torch"])[1])
    print(f"(c) one sentence: {statistics.median(ours):.2f} s; import torch: {statistics.median(torch):.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("source", type=Path, nargs="?")
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-hugging-face", dest="hugging_face", action="store_false")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        task = json.loads(args.worker)
        tasks = {"prepare": prepare_inputs, "bare": bare_ctranslate2, "hugging_face": hugging_face, "size": read_size}
        print(json.dumps(tasks[task["task"]](task)))
        return
    if args.model is None or args.source is None:
        parser.error("give a model folder (with its ctranslate2 export) and a source file")
    compare_start(args.model)
    with tempfile.TemporaryDirectory() as folder:
        compare(args.model, args.source, args, Path(folder))


if __name__ == "__main__":
    main()
