"""A training step: its gradient, its randomness, and what it does when something goes wrong."""

import numpy as np
import pytest
import torch
from special_ids import BOS, EOS, PAD, vocabularies

from seqtool.config import TrainConfig, TransformerConfig
from seqtool.corpus.batches.batches import Batch
from seqtool.corpus.tokenizer.bpe import SPECIAL
from seqtool.model.transformer import Transformer
from seqtool.training import step as module
from seqtool.training.distributed import Workers
from seqtool.training.optimizer import Updater
from seqtool.training.step import GradientMaker, LossOf, part_seed, split_batch, train_step

CPU = Workers(0, 1, torch.device("cpu"))
VOCAB = 40


def make_batch(rows: int = 13, seed: int = 0) -> Batch:
    rng = np.random.default_rng(seed)
    src_lengths, tgt_lengths = rng.integers(2, 9, rows), rng.integers(1, 8, rows)
    src = np.full((rows, src_lengths.max() + 1), PAD, np.int64)
    tgt_in = np.full((rows, tgt_lengths.max() + 1), PAD, np.int64)
    tgt_out = tgt_in.copy()
    for row in range(rows):
        s, t = src_lengths[row], tgt_lengths[row]
        ids = rng.integers(4, VOCAB, t)
        src[row, :s], src[row, s] = rng.integers(4, VOCAB, s), EOS
        tgt_in[row, 0], tgt_in[row, 1 : t + 1] = BOS, ids
        tgt_out[row, :t], tgt_out[row, t] = ids, EOS
    counts = int((src != PAD).sum()), int((tgt_out != PAD).sum())
    return Batch(src, tgt_in, tgt_out, np.arange(rows), 0, 0, *counts, False, SPECIAL, SPECIAL.pad)


def make_model(dropout: float = 0.0, seed: int = 0) -> Transformer:
    torch.manual_seed(seed)
    config = TransformerConfig(d_model=16, d_ff=24, n_heads=2, encoder_layers=2, decoder_layers=2, dropout=dropout)
    return Transformer(config, vocabularies(VOCAB)).train()


def gradients(
    batch: Batch, model: Transformer, threads: int = 1, step: int = 5, **settings: object
) -> tuple[list[torch.Tensor], torch.Tensor]:
    config = TrainConfig(**settings)  # type: ignore[arg-type]
    maker = GradientMaker(LossOf(model, config), config, CPU, "float32", threads)
    try:
        return maker.run(batch, step)
    finally:
        maker.close()


def test_the_gradient_is_that_of_torchs_own_loss_over_the_whole_batch() -> None:
    batch, model = make_batch(), make_model()
    found, sums = gradients(batch, model, label_smoothing=0.1)
    logits = model.decode(torch.from_numpy(batch.tgt_in), model.encode(torch.from_numpy(batch.src)))
    expected = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), torch.from_numpy(batch.tgt_out).flatten(), ignore_index=PAD, label_smoothing=0.1
    )
    torch.testing.assert_close(sums[0] / batch.n_tgt_tokens, expected.detach())
    for ours, theirs in zip(found, torch.autograd.grad(expected, list(model.parameters())), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("micro_tokens", [1, 20, 10_000])
def test_parts_and_threads_do_not_change_the_gradient(threads: int, micro_tokens: int) -> None:
    batch, model = make_batch(), make_model()
    whole, whole_sums = gradients(batch, model)
    parts, part_sums = gradients(batch, model, threads, micro_tokens=micro_tokens)
    torch.testing.assert_close(part_sums, whole_sums)
    torch.testing.assert_close(parts, whole, rtol=1e-4, atol=1e-6)


def test_every_row_is_in_exactly_one_part() -> None:
    batch = make_batch(13)
    parts = split_batch(batch, 25, 2, torch.device("cpu"))
    assert len(parts) % 2 == 0
    assert sum(len(part.src) for part in parts) == 13
    assert sum(len(part.targets) for part in parts) == batch.n_tgt_tokens


def test_a_worker_without_rows_gives_a_gradient_of_zero() -> None:
    batch = make_batch(3)
    nothing = (batch.src[:0], batch.tgt_in[:0], batch.tgt_out[:0], batch.pairs[:0])
    empty = Batch(*nothing, 0, 0, 19, 17, False, SPECIAL, SPECIAL.pad)
    found, sums = gradients(empty, make_model())
    assert all(gradient.abs().sum() == 0 for gradient in found)
    assert sums.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_dropout_depends_on_seed_and_step_alone(threads: int) -> None:
    batch, model = make_batch(16), make_model(dropout=0.3)
    runs = [gradients(batch, model, threads, step=7, micro_tokens=30) for _ in range(3)]
    for found, sums in runs[1:]:
        assert torch.equal(sums, runs[0][1])
        assert all(torch.equal(a, b) for a, b in zip(found, runs[0][0], strict=True))
    assert not torch.equal(gradients(batch, model, threads, step=8, micro_tokens=30)[1], runs[0][1])
    assert not torch.equal(gradients(batch, model, threads, step=7, micro_tokens=30, seed=2)[1], runs[0][1])


def test_no_two_parts_share_a_seed() -> None:
    seeds = {part_seed(1, step, rank, part) for step in range(20) for rank in range(4) for part in range(4)}
    assert len(seeds) == 320


def test_a_batch_that_does_not_fit_the_memory_is_done_in_smaller_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    batch, model = make_batch(16), make_model()
    expected, _ = gradients(batch, model)
    attempts: list[int] = []
    real = LossOf.forward

    def forward(self: LossOf, part: module.MicroBatch) -> tuple[torch.Tensor, torch.Tensor]:
        attempts.append(len(part.src))
        if len(part.src) > 4:
            raise torch.OutOfMemoryError("not enough room")
        return real(self, part)

    monkeypatch.setattr(LossOf, "forward", forward)
    found, _ = gradients(batch, model)
    assert attempts[0] == 16
    assert max(attempts[-4:]) <= 4
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


def test_other_errors_are_not_taken_for_a_lack_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def forward(self: LossOf, part: module.MicroBatch) -> None:
        raise RuntimeError("shapes do not fit")

    monkeypatch.setattr(LossOf, "forward", forward)
    with pytest.raises(RuntimeError, match="shapes do not fit"):
        gradients(make_batch(), make_model())


def test_r_drop_adds_the_symmetric_divergence_of_two_passes() -> None:
    batch, model = make_batch(4), make_model(dropout=0.3)
    _, plain = gradients(batch, model, r_drop=0.0)
    _, pulled = gradients(batch, model, r_drop=5.0)
    assert pulled[0] > plain[0]
    quiet = make_model(dropout=0.0)  # without dropout both passes agree, and nothing is added
    torch.testing.assert_close(gradients(batch, quiet, r_drop=5.0)[1], gradients(batch, quiet)[1])


def test_a_step_changes_the_weights_as_torchs_adamw_does() -> None:
    model, twin = make_model(), make_model()
    updater = Updater(model, TrainConfig(clip_norm=0.5, weight_decay=0.1, ema=0.9), "float32")
    twins = {
        "decay": [p for p in twin.parameters() if p.dim() > 1],
        "rest": [p for p in twin.parameters() if p.dim() < 2],
    }
    groups = [{"params": twins["decay"], "weight_decay": 0.1}, {"params": twins["rest"], "weight_decay": 0.0}]
    reference = torch.optim.AdamW(groups, betas=(0.9, 0.98), eps=1e-9, fused=False, foreach=False)
    average = [p.detach().clone() for p in twin.parameters()]
    for step in range(4):
        for p in twin.parameters():
            p.grad = torch.randn_like(p)
        result = updater.update(
            [p.grad.clone() for p in twin.parameters() if p.grad is not None], torch.ones(2), step + 1, 0.01
        )
        norm = torch.nn.utils.clip_grad_norm_(twin.parameters(), 0.5)
        for group in reference.param_groups:
            group["lr"] = 0.01
        reference.step()
        decay = min(0.9, (2 + step) / (11 + step))  # of the moving average, gentler in the first steps
        for mean, p in zip(average, twin.parameters(), strict=True):
            mean.mul_(decay).add_(p.detach(), alpha=1 - decay)
        torch.testing.assert_close(result[2], norm)
        assert result[3] == 1
    torch.testing.assert_close(list(model.parameters()), list(twin.parameters()), rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(list(updater.ema.values()), average, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_gradients_that_are_views_count_by_their_values(optimizer: str) -> None:
    """A gradient may be a part of a wider matrix, as those of recurrences are."""
    updated = []
    for as_views in (False, True):
        model = make_model()
        config = TrainConfig(optimizer=optimizer)
        gradients = [torch.randn(p.shape, generator=torch.Generator().manual_seed(1)) for p in model.parameters()]
        if as_views:
            gradients = [torch.cat((g, g[..., :1]), dim=-1)[..., :-1] for g in gradients]
            assert not all(gradient.is_contiguous() for gradient in gradients)
        Updater(model, config, "float32").update(gradients, torch.ones(2), 1, 1e-3)
        updated.append([parameter.detach() for parameter in model.parameters()])
    torch.testing.assert_close(updated[0], updated[1], rtol=0, atol=1e-6)


def test_a_gradient_that_is_not_finite_changes_nothing_and_is_counted() -> None:
    model = make_model()
    config = TrainConfig()
    updater = Updater(model, config, "float32")
    before = [p.detach().clone() for p in model.parameters()]
    good = [torch.randn_like(p) for p in model.parameters()]
    bad = [*good[:-1], torch.full_like(good[-1], float("nan"))]
    sums = torch.tensor([1.0, 1.0])
    assert updater.update([g.clone() for g in bad], sums, 1, 0.1)[3] == 0
    assert all(torch.equal(p, b) for p, b in zip(model.parameters(), before, strict=True))
    assert updater.counts.tolist() == [0, 1, 1]
    assert updater.update([g.clone() for g in good], torch.tensor([float("inf"), 1.0]), 1, 0.1)[3] == 0
    assert updater.counts.tolist() == [0, 2, 2]
    assert updater.update([g.clone() for g in good], sums, 1, 0.1)[3] == 1
    assert updater.counts.tolist() == [1, 2, 0]
    assert not any(torch.equal(p, b) for p, b in zip(model.parameters(), before, strict=True))


def test_loss_scaling_falls_after_an_overflow_and_is_taken_out_of_the_update() -> None:
    plain, scaled = make_model(), make_model()
    config = TrainConfig(clip_norm=0.0)
    updaters = Updater(plain, config, "float32"), Updater(scaled, config, "fp16")
    gradient = [torch.randn_like(p) for p in plain.parameters()]
    updaters[0].update([g.clone() for g in gradient], torch.ones(2), 1, 0.1)
    scale = float(updaters[1].loss_scale)
    assert scale == 2.0**15
    updaters[1].update([g * scale for g in gradient], torch.ones(2), 1, 0.1)
    torch.testing.assert_close(list(plain.parameters()), list(scaled.parameters()))
    updaters[1].update([g * float("inf") for g in gradient], torch.ones(2), 1, 0.1)
    assert float(updaters[1].loss_scale) == scale / 2


def test_an_updater_continues_exactly_from_its_saved_state() -> None:
    batch = make_batch()
    config = TrainConfig()

    def run(model: Transformer, updater: Updater, steps: range) -> None:
        maker = GradientMaker(LossOf(model, config), config, CPU, "float32", 2)
        for step in steps:
            train_step(maker, updater, batch, step, 0.01)
        maker.close()

    model = make_model(dropout=0.2)
    updater = Updater(model, config, "float32")
    run(model, updater, range(3))
    other = make_model(dropout=0.2, seed=9)
    other.load_state_dict(model.state_dict())
    resumed = Updater(other, config, "float32")
    state = {name: tensor.clone() for name, tensor in updater.state_tensors().items()}
    resumed.restore(state, {name: tensor.clone() for name, tensor in updater.ema_weights().items()})
    run(model, updater, range(3, 6))
    run(other, resumed, range(3, 6))
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, other.state_dict()[name])
    assert all(torch.equal(a, b) for a, b in zip(updater.ema.values(), resumed.ema.values(), strict=True))
