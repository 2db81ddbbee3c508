"""The gradient of several workers is that of one, whatever the kind of model and however the rows fall."""

from typing import Any

import numpy as np
import pytest
import torch
from gloo_workers import run_together
from special_ids import vocabularies

from seqtool.config import ConvConfig, DecoderConfig, RnnConfig, TrainConfig, TransformerConfig
from seqtool.corpus.batches.batches import Batch, BatchPlan, make_batch
from seqtool.corpus.preparing.token_array import TokenArray
from seqtool.corpus.tokenizer.bpe import SPECIAL
from seqtool.model.kinds import build_model
from seqtool.model.layers import EncoderLayer
from seqtool.training.distributed import Workers
from seqtool.training.parallel import make_gradient_maker, megabytes_of_message
from seqtool.training.sharding import gathered, like
from seqtool.training.step import LossOf, MicroBatch

VOCAB = 40
SHAPE: dict[str, Any] = {"d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}
KINDS = {
    "transformer": TransformerConfig(d_ff=24, n_heads=2, **SHAPE),
    "rnn": RnnConfig(kind="rnn", **SHAPE),
    "conv": ConvConfig(kind="conv", **SHAPE),
    "decoder": DecoderConfig(
        kind="decoder",
        d_ff=24,
        n_heads=2,
        d_model=16,
        decoder_layers=2,
        dropout=0.0,
        source_loss=0.5,
        prefix_attention=False,
    ),
}
CASES = {
    "one part": {},
    "several parts": {"micro_tokens": 12},
    "recomputed": {"activation_checkpointing": True, "micro_tokens": 30},
    "r-drop": {"r_drop": 1.0},
}


class Pairs:
    """A corpus in memory."""

    def __init__(self, n_pairs: int) -> None:
        rng = np.random.default_rng(n_pairs)
        lengths = rng.integers(1, 9, (2, n_pairs))
        self.source, self.target = (
            TokenArray.from_rows([rng.integers(4, VOCAB, length).tolist() for length in side]) for side in lengths
        )


def batch_of(n_pairs: int, workers: Workers) -> Batch:
    """Return a worker's rows of a global batch with all pairs of a corpus."""
    corpus = Pairs(n_pairs)
    plan = BatchPlan(corpus.source.lengths, corpus.target.lengths, 10_000, 1)
    return make_batch(corpus, plan.epoch(0), (SPECIAL, SPECIAL), 0, 0, workers.rank, workers.size)


def gradient(
    workers: Workers, kind: str, n_pairs: int, settings: dict[str, Any], n_times: int = 2, precision: str = "float32"
) -> tuple[list[np.ndarray], list[float]]:  # type: ignore[type-arg]
    torch.manual_seed(0)
    model = build_model(KINDS[kind], vocabularies(VOCAB)).train()
    maker = make_gradient_maker(model, TrainConfig(**settings), workers, precision, 1)
    parameters = list(model.parameters())
    for step in range(n_times):  # the second one finds gradients of the first, and parts that are known to fit
        found, sums = maker.run(batch_of(n_pairs, workers), step)
    maker.close()
    whole = [gathered(like(p, g), workers) for p, g in zip(parameters, found, strict=True)]
    return [g.numpy().copy() for g in whole], sums.tolist()


def all_gradients(workers: Workers, shard: str) -> dict[tuple[str, str, int], Any]:
    found = {}
    for kind in KINDS:
        for case in CASES if kind == "transformer" else ["several parts"]:
            found[kind, case, 13] = gradient(workers, kind, 13, {"shard": shard, **CASES[case]})
    found["transformer", "workers without rows", 2] = gradient(
        workers, "transformer", 2, {"shard": shard, "micro_tokens": 12}
    )
    return found


@pytest.mark.parametrize("shard", ["none", "model"])
def test_the_gradient_of_three_workers_is_that_of_one_for_every_kind_of_model(shard: str) -> None:
    one = all_gradients(Workers(0, 1, torch.device("cpu")), shard)
    several = run_together(all_gradients, 3, shard)
    for case, (expected, sums) in one.items():
        for found in several:
            for ours, theirs in zip(found[case][0], expected, strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6, err_msg=str(case))
            np.testing.assert_allclose(found[case][1], sums, rtol=1e-5, err_msg=str(case))
    for case in one:  # what the workers have is the same to the last bit
        for ours, theirs in zip(several[0][case][0], several[1][case][0], strict=True):
            assert np.array_equal(ours, theirs)


@pytest.mark.parametrize(("mebibytes", "message"), [(0.1, 1), (16, 1), (48, 3), (400, 25), (4000, 25)])
def test_what_is_sent_after_the_backward_pass_is_a_small_part_of_a_gradient(mebibytes: float, message: float) -> None:
    parameters = [torch.empty(round(mebibytes * 2**17), device="meta") for _ in range(2)]
    assert megabytes_of_message(parameters) == pytest.approx(message)


def half_precision(workers: Workers, shard: str, precision: str) -> Any:
    """Compute a gradient, and note the types of a layer's weights while it computes."""
    seen, real = set(), EncoderLayer.forward

    def forward(self: EncoderLayer, *arguments: Any) -> Any:
        seen.update(str(weight.dtype) for weight in self.parameters())
        return real(self, *arguments)

    EncoderLayer.forward = forward  # type: ignore[method-assign]
    found, _ = gradient(workers, "transformer", 13, {"shard": shard, "micro_tokens": 40}, precision=precision)
    return found, seen


@pytest.mark.parametrize(("precision", "n_bits"), [("bf16", 8), ("fp16", 11)])
def test_in_half_precision_a_shared_out_model_computes_with_rounded_weights_and_sums_in_float32(
    precision: str, n_bits: int
) -> None:
    expected, _ = gradient(Workers(0, 1, torch.device("cpu")), "transformer", 13, {})
    whole, shared = (run_together(half_precision, 2, shard, precision) for shard in ("none", "model"))
    assert whole[0][1] == {"torch.float32"}  # each operation rounds them
    assert shared[0][1] == {{"bf16": "torch.bfloat16", "fp16": "torch.float16"}[precision]}
    for found, _ in (*whole, *shared):
        assert {g.dtype for g in found} == {np.dtype(np.float32)}
        apart = sum(float(((a - b) ** 2).sum()) for a, b in zip(found, expected, strict=True))
        assert (apart / sum(float((b**2).sum()) for b in expected)) ** 0.5 < 16 * 2.0**-n_bits


def run_out_of_memory(workers: Workers, when: str) -> Any:
    """Compute a gradient where the last worker has no room for more than two rows at a time."""
    real = LossOf.forward
    tries = []

    def forward(self: LossOf, part: MicroBatch) -> tuple[torch.Tensor, torch.Tensor]:
        if workers.rank == workers.size - 1:
            tries.append(len(part.src))
            if len(part.src) > 2:
                raise torch.OutOfMemoryError("not enough room")
        return real(self, part)

    LossOf.forward = forward  # type: ignore[method-assign]
    return gradient(workers, "transformer", 13, {}, n_times=3), tries


def test_a_worker_that_runs_out_of_memory_repeats_its_part_and_the_others_wait() -> None:
    expected, sums = gradient(Workers(0, 1, torch.device("cpu")), "transformer", 13, {})
    results = run_together(run_out_of_memory, 2, "forward")
    assert max(results[1][1]) > 2
    for (found, found_sums), _ in results:
        np.testing.assert_allclose(found_sums, sums, rtol=1e-5)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
