"""Breaks the code in ways that users would suffer from, one at a time, and sees whether the quick tests notice.

    python tests/deep/mutations.py             # all of them, as `make mutation-test` does
    python tests/deep/mutations.py attention   # those with this in their name

Each mutation is made in a copy of the tree of its own. To add one, append it to MUTATIONS, or to PROTECTIONS if it
takes away what protects from damage, kills or strangers: the old text must occur exactly once in its file, and some of
the named tests must fail with the new text in its place.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from mutation import Mutation
from protections import PROTECTIONS
from serving_mutations import SERVING

ROOT = Path(__file__).resolve().parent.parent.parent
COPIED = ("seqtool", "tests", "data", "benchmarks", "pyproject.toml")
PATIENCE = 600  # seconds for the tests of one mutation
PATIENCE_UNTOUCHED = 6 * PATIENCE  # for all of these tests together, with no mutation


MUTATIONS = (
    *PROTECTIONS,
    *SERVING,
    Mutation(
        name="attention: the look-ahead mask counts from the wrong end",
        file="seqtool/model/attention.py",
        old=".tril(K - Q)",
        new=".tril(Q - K)",
        tests=("test_attention.py",),
    ),
    Mutation(
        name="attention: scores of relative positions have the wrong sign",
        file="seqtool/model/attention.py",
        old="scores = scores + relative.key_scores(q, k.shape[2])",
        new="scores = scores - relative.key_scores(q, k.shape[2])",
        tests=("test_positions.py",),
    ),
    Mutation(
        name="cache: beams keep the past of others when they are exchanged",
        file="seqtool/model/cache.py",
        old="self.lineage = self.lineage.gather(1, parents[:, :, None].expand(-1, -1, P))",
        new="self.lineage = self.lineage.gather(1, parents.flip(1)[:, :, None].expand(-1, -1, P))",
        tests=("test_cache.py", "test_search.py"),
    ),
    Mutation(
        name="files: a file takes its name before it is on disk",
        file="seqtool/files.py",
        old="""            os.fsync(file.fileno())
        os.replace(temporary, path)
""",
        new="""            os.replace(temporary, path)
            os.fsync(file.fileno())
""",
        tests=("test_files.py",),
    ),
    Mutation(
        name="checkpoints: a folder takes its name before its state is on disk",
        file="seqtool/files.py",
        old="""            for entry in new.rglob("*"):
                sync(entry)
            sync(new)
            if os.path.lexists(path):
                os.rename(path, old)
            os.rename(new, path)
""",
        new="""            if os.path.lexists(path):
                os.rename(path, old)
            os.rename(new, path)
            for entry in path.rglob("*"):
                sync(entry)
            sync(path)
""",
        tests=("test_files.py", "test_checkpoint.py"),
    ),
    Mutation(
        name="checkpoints: checksums of the tensors are not compared",
        file="seqtool/training/checkpoint.py",
        old="if sha256_of(path / name) != expected:",
        new="if not (path / name).exists():",
        tests=("test_checkpoint.py",),
    ),
    Mutation(
        name="batches: they come in the same order in every epoch",
        file="seqtool/corpus/batches/planning.py",
        old="random_bits(len(starts) - 1, self.seed, epoch, 2)",
        new="random_bits(len(starts) - 1, self.seed, 0, 2)",
        tests=("test_batches.py",),
    ),
    Mutation(
        name="batches: a worker's rows are those of the one before it",
        file="seqtool/corpus/batches/batches.py",
        old="mine = slice(rank, None, n_workers)",
        new="mine = slice(max(0, rank - 1), None, n_workers)",
        tests=("test_batches.py",),
    ),
    Mutation(
        name="loss: the smoothed target has too little of its share",
        file="seqtool/training/loss.py",
        old="smoothing - 1.0)",
        new="-(1.0 - smoothing) ** 2)",
        tests=("test_loss.py",),
    ),
    Mutation(
        name="step: a gradient is divided by the sentences instead of the tokens",
        file="seqtool/training/step.py",
        old="factor = scale / batch.n_tgt_tokens",
        new="factor = scale / len(batch)",
        tests=("test_step.py",),
    ),
    Mutation(
        name="schedule: the learning rate does not fall with the root of the step",
        file="seqtool/training/schedule.py",
        old="math.sqrt(warmup / step)",
        new="(warmup / step)",
        tests=("test_schedule.py",),
    ),
    Mutation(
        name="search: the length penalty does not count the end symbol",
        file="seqtool/translation/search/beam_search.py",
        old="weight = 1 / length_penalty(length + 1, options.length_penalty)",
        new="weight = 1 / length_penalty(length, options.length_penalty)",
        tests=("test_search.py",),
    ),
    Mutation(
        name="search: it ends while a better hypothesis may still come",
        file="seqtool/translation/search/beam_step.py",
        old="bound = log_probs.amax(-1) * last_weight[:, None]",
        new="bound = log_probs.amin(-1) * last_weight[:, None]",
        tests=("test_search.py",),
    ),
    Mutation(
        name="translate: the lines of a batch change places",
        file="seqtool/translation/engines/torch_engine.py",
        old="for row, result in zip(batch, part, strict=True)",
        new="for row, result in zip(sorted(batch), part, strict=True)",
        tests=("test_torch_engine.py",),
    ),
    Mutation(
        name="average: the sum is not divided by the number of checkpoints",
        file="seqtool/translation/average.py",
        old="return total / len(tensors)",
        new="return total",
        tests=("test_average.py",),
    ),
    Mutation(
        name="lines: a line ends at a carriage return too",
        file="seqtool/translation/lines/reading.py",
        old=r"""piece.split(b"\n")""",
        new=r"""piece.replace(b"\r", b"\n").split(b"\n")""",
        tests=("test_lines.py",),
    ),
    Mutation(
        name="comparison: the worse system is called the better one",
        file="seqtool/evaluation/scores/comparison.py",
        old="(self.difference(index) > 0)",
        new="(self.difference(index) < 0)",
        tests=("test_comparison.py",),
    ),
    Mutation(
        name="gpu: a batch's targets stay on the host",
        file="seqtool/training/step.py",
        old="targets=sent[3]",
        new="targets=torch.from_numpy(tgt_out[real].astype(np.int64))",
        tests=("test_gpu_stand_in.py",),
    ),
    Mutation(
        name="gpu: the model that validates stays on the host",
        file="seqtool/training/validation.py",
        old="self.model.to(device).eval()",
        new="self.model.eval()",
        tests=("test_gpu_stand_in.py",),
    ),
    Mutation(
        name="gpu: the search numbers its beams on the host",
        file="seqtool/translation/search/beam_search.py",
        old="torch.arange(0, G * K, K, device=parents.device)",
        new="torch.arange(0, G * K, K)",
        tests=("test_gpu_stand_in.py",),
    ),
    Mutation(
        name="gpu: copies to the device are from memory that is not pinned, so that the host waits for each",
        file="seqtool/model/transfer.py",
        old="tensor.pin_memory().to(device, non_blocking=True)",
        new="tensor.to(device, non_blocking=True)",
        tests=("test_gpu_stand_in.py",),
    ),
    Mutation(
        name="gpu: the host asks in every step whether the gradient is good",
        file="seqtool/training/optimizer.py",
        old="        self._count(good)\n",
        new="        if bool(good):\n            self._count(good)\n",
        tests=("test_gpu_stand_in.py",),
    ),
    Mutation(
        name="gpu: the counters of skipped steps stay on the host",
        file="seqtool/training/optimizer.py",
        old="torch.zeros(3, dtype=torch.int64, device=device)",
        new="torch.zeros(3, dtype=torch.int64)",
        tests=("test_gpu_stand_in.py",),
    ),
)


@dataclass(frozen=True)
class Outcome:
    """The result of the tests of a tree: whether some failed, and what to print."""

    exit_code: int
    seconds: float
    first_failure: str
    output: str

    @property
    def verdict(self) -> str:
        """Only a test that ran and failed counts as having noticed."""
        return {0: "MISSED", 1: "caught"}.get(self.exit_code, "NO ANSWER")


def copy_tree(into: Path) -> Path:
    """Copy what tests need into a new folder."""
    root = Path(tempfile.mkdtemp(dir=into))
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, root / name)
    return root


def run_tests(root: Path, files: Sequence[str], patience: int = PATIENCE) -> Outcome:
    """Run test files in a copy of the tree until one test fails."""
    stacks = f"faulthandler_timeout={PATIENCE // 2}"  # a test that hangs says where
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-rfE", "-o", stacks, *(f"tests/{name}" for name in files)]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    start = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=patience
        )
        exit_code, output = done.returncode, done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired as expired:
        ended = f"\nstopped after {patience} s"
        exit_code, output = -1, (expired.output or b"").decode(errors="replace") + ended
    failed = re.search(r"^(?:FAILED|ERROR) \S+::(\S+)", output, re.MULTILINE)
    return Outcome(exit_code, time.monotonic() - start, failed[1] if failed else "", output)


def try_mutation(mutation: Mutation, folder: Path) -> Outcome:
    """Run the tests of a mutation in a copy that has it."""
    root = copy_tree(folder)
    mutation.apply(root)
    outcome = run_tests(root, mutation.tests)
    print(f"{outcome.verdict:9}  {outcome.seconds:4.0f} s  {mutation.name}", file=sys.stderr)
    shutil.rmtree(root)
    return outcome


def print_table(rows: Sequence[tuple[Mutation, Outcome]]) -> None:
    """Print a Markdown table of mutations and what noticed them."""
    print("| mutation | file | verdict | noticed by |\n| --- | --- | --- | --- |")
    for mutation, outcome in rows:
        noticed = f"{outcome.first_failure} ({', '.join(mutation.tests)})" if outcome.first_failure else ""
        print(f"| {mutation.name} | {mutation.file} | {outcome.verdict} | {noticed} |")


def main() -> int:
    """Check the untouched tree, then try each mutation; return 1 if a test is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="only mutations whose name has one of these in it")
    parser.add_argument("--jobs", type=int, default=2, help="mutations tried at once")
    arguments = parser.parse_args()
    chosen = [m for m in MUTATIONS if not arguments.names or any(name in m.name for name in arguments.names)]
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder, ThreadPoolExecutor(arguments.jobs) as pool:
        files = sorted({name for mutation in chosen for name in mutation.tests})
        untouched = run_tests(copy_tree(Path(folder)), files, PATIENCE_UNTOUCHED)
        if untouched.exit_code:
            print(f"{untouched.output}\nwithout any mutation these tests do not pass; mend that first", file=sys.stderr)
            return 1
        outcomes = list(pool.map(lambda mutation: try_mutation(mutation, Path(folder)), chosen))
    print_table(list(zip(chosen, outcomes, strict=True)))
    caught = sum(outcome.verdict == "caught" for outcome in outcomes)
    print(f"\n{caught} of {len(chosen)} mutations caught")
    return 0 if caught == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
