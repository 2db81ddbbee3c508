"""Training speed of seqtool against a plain torch.nn.Transformer loop, measured in turn on the same batches.

    python benchmarks/train_speed.py [--rounds 3] [--seconds 20] [--threads 2] [--profile]

Prints non-padding target tokens per second of both, their ratio, and the share of the machine's float32
matrix-multiply peak that seqtool's matrix products reach.
"""

import argparse
import math
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqtool.config import TrainConfig, TransformerConfig
from seqtool.corpus.batches.batches import Batch, BatchPlan, make_batch
from seqtool.corpus.preparing.token_array import TokenArray
from seqtool.corpus.tokenizer.bpe import SPECIAL
from seqtool.corpus.tokenizer.interface import Vocabularies, Vocabulary
from seqtool.model.counting import count_forward_flops
from seqtool.model.sinusoids import sinusoids
from seqtool.model.transformer import Transformer
from seqtool.training.distributed import Workers
from seqtool.training.optimizer import Updater
from seqtool.training.step import GradientMaker, LossOf, train_step


@dataclass(frozen=True)
class Size:
    """One size to measure."""

    d_model: int
    d_ff: int
    layers: int
    heads: int
    vocab: int
    target_ratio: float


SIZES = (Size(256, 1024, 4, 4, 8000, 1.35), Size(128, 256, 4, 4, 10000, 1.5))
DROPOUT, SMOOTHING, BATCH_TOKENS = 0.1, 0.1, 4096


@dataclass(frozen=True)
class Pairs:
    """Random token ids with the lengths of image captions: a log-normal around 14 tokens."""

    source: TokenArray
    target: TokenArray


def make_pairs(vocab: int, n_pairs: int = 20000, seed: int = 1) -> Pairs:
    rng = np.random.default_rng(seed)
    lengths = np.clip(np.exp(rng.normal(2.6, 0.35, n_pairs)), 3, 60).astype(np.int64)
    others = np.clip(lengths + rng.integers(-3, 4, n_pairs), 2, 64)
    sides = [TokenArray.from_rows([rng.integers(4, vocab, n) for n in side]) for side in (lengths, others)]
    return Pairs(*sides)


class PlainModel(nn.Module):
    """What a tutorial writes: nn.Transformer, tied output layer, sinusoidal positions."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.tokens = nn.Embedding(size.vocab, size.d_model, padding_idx=SPECIAL.pad)
        nn.init.normal_(self.tokens.weight, std=size.d_model**-0.5)
        self.register_buffer("positions", torch.from_numpy(sinusoids(512, size.d_model)))
        self.drop = nn.Dropout(DROPOUT)
        self.transformer = nn.Transformer(
            size.d_model, size.heads, size.layers, size.layers, size.d_ff, DROPOUT, batch_first=True, norm_first=True
        )
        self.output = nn.Linear(size.d_model, size.vocab, bias=False)
        self.output.weight = self.tokens.weight

    def embed(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) * math.sqrt(self.tokens.embedding_dim)
        return self.drop(x + self.positions[: ids.shape[1]])

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        look_back = nn.Transformer.generate_square_subsequent_mask(tgt_in.shape[1], dtype=torch.bool)
        states = self.transformer(
            self.embed(src),
            self.embed(tgt_in),
            tgt_mask=look_back,
            src_key_padding_mask=src == SPECIAL.pad,
            tgt_key_padding_mask=tgt_in == SPECIAL.pad,
            memory_key_padding_mask=src == SPECIAL.pad,
            tgt_is_causal=True,
        )
        return self.output(states)


def plain_stepper(size: Size) -> Callable[[Batch], None]:
    """Return one step of the plain loop."""
    torch.manual_seed(1)
    model = PlainModel(size)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98), eps=1e-9)

    def step(batch: Batch) -> None:
        src, tgt_in, tgt_out = (torch.from_numpy(a) for a in (batch.src, batch.tgt_in, batch.tgt_out))
        optimizer.zero_grad()
        logits = model(src, tgt_in)
        loss = F.cross_entropy(
            logits.flatten(0, 1), tgt_out.flatten(), ignore_index=SPECIAL.pad, label_smoothing=SMOOTHING
        )
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def seqtool_stepper(
    size: Size, threads: int, device: str = "cpu", precision: str = "float32", **settings: Any
) -> tuple[Callable[[Batch], None], TransformerConfig]:
    """Return one step of seqtool's own training, exactly as the trainer does it."""
    torch.manual_seed(1)
    config = TransformerConfig(
        d_model=size.d_model,
        d_ff=size.d_ff,
        n_heads=size.heads,
        encoder_layers=size.layers,
        decoder_layers=size.layers,
        dropout=DROPOUT,
        attention_dropout=0.0,
    )
    train = TrainConfig(**{"batch_tokens": BATCH_TOKENS, "label_smoothing": SMOOTHING, "lr": 1e-3, **settings})
    side = Vocabulary(size.vocab, SPECIAL)
    model = Transformer(config, Vocabularies(side, side)).train().to(device)
    workers = Workers(0, 1, torch.device(device))
    maker = GradientMaker(LossOf(model, train), train, workers, precision, threads)
    updater = Updater(model, train, precision)
    steps = iter(range(10**9))

    def step(batch: Batch) -> None:
        train_step(maker, updater, batch, next(steps), 1e-3)

    return step, config


def endless(pairs: Pairs, batch_tokens: int = BATCH_TOKENS) -> Iterator[Batch]:
    plan = BatchPlan(pairs.source.lengths, pairs.target.lengths, batch_tokens, seed=1)
    epoch = 0
    while True:
        epoch_plan = plan.epoch(epoch)
        for index in range(len(epoch_plan)):
            yield make_batch(pairs, epoch_plan, (SPECIAL, SPECIAL), epoch, index)
        epoch += 1


def measure(step: Callable[[Batch], None], batches: list[Batch], seconds: float) -> tuple[float, int, float]:
    """Run steps for some seconds; return target tokens per second, the number of batches done and the time."""
    start, done = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        step(batches[done % len(batches)])
        done += 1
    elapsed = time.perf_counter() - start
    tokens = sum(batches[i % len(batches)].n_tgt_tokens for i in range(done))
    return tokens / elapsed, done, elapsed


def matmul_peak(seconds: float = 3.0, device: str = "cpu", dtype: torch.dtype = torch.float32, n: int = 1536) -> float:
    """Return the matrix-multiply peak in operations per second: the best of large products."""
    best = 0.0
    a, b = (torch.randn(n, n, device=device, dtype=dtype) for _ in range(2))
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        torch.mm(a, b)
        if a.is_cuda:
            torch.cuda.synchronize()
        best = max(best, 2 * n**3 / (time.perf_counter() - start))
    return best


def flops_of(config: TransformerConfig, vocab: int, batches: list[Batch], done: int) -> float:
    """Return the operations of the matrix products of the first `done` batches, padding not counted."""
    total = 0
    for i in range(done):
        batch = batches[i % len(batches)]
        src, tgt = (batch.src != SPECIAL.pad).sum(1), (batch.tgt_out != SPECIAL.pad).sum(1)
        for s, t in zip(src.tolist(), tgt.tolist(), strict=True):
            total += count_forward_flops(config, vocab, s, t)
    return 3 * total  # each product of the forward pass needs two of its size backward


def compare(size: Size, args: argparse.Namespace) -> None:
    pairs = make_pairs(size.vocab)
    source = endless(pairs)
    batches = [next(source) for _ in range(40)]
    ours, config = seqtool_stepper(size, args.threads)
    plain = plain_stepper(size)
    for step in (ours, plain):
        for batch in batches[:2]:
            step(batch)
    name = f"d_model {size.d_model}, ff {size.d_ff}, {size.layers}+{size.layers} layers, vocabulary {size.vocab:,}"
    print(f"\n{name}")
    ratios, shares = [], []
    for number in range(1, args.rounds + 1):
        peak = matmul_peak()
        theirs = measure(plain, batches, args.seconds)[0]
        speed, done, elapsed = measure(ours, batches, args.seconds)
        share = flops_of(config, size.vocab, batches, done) / elapsed / peak
        ratios.append(speed / theirs)
        shares.append(share)
        print(
            f"  round {number}: seqtool {speed:7,.0f} tokens/s, plain loop {theirs:7,.0f}, ratio {speed / theirs:.2f}, "
            f"{100 * share:.0f} % of the peak of {peak / 1e9:.0f} GFLOP/s"
        )
    print(
        f"  ratio: median {statistics.median(ratios):.2f}, from {min(ratios):.2f} to {max(ratios):.2f} "
        f"(wanted {size.target_ratio}); share of the peak: median {100 * statistics.median(shares):.0f} %"
    )
    if args.profile:
        show_profile(ours, batches)


def show_profile(step: Callable[[Batch], None], batches: list[Batch]) -> None:
    """Print where the time of seqtool's step goes, over all threads."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        for batch in batches[:5]:
            step(batch)
    print(profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=20, max_name_column_width=50))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--size", type=int, default=0, help="only the size with this d_model")
    parser.add_argument("--profile", action="store_true")
    args = parser.parse_args()
    warnings.filterwarnings("ignore", category=UserWarning)
    torch.set_num_threads(args.threads)
    for size in SIZES:
        if args.size in (0, size.d_model):
            compare(size, args)


if __name__ == "__main__":
    main()
