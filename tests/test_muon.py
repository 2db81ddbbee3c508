"""Muon against singular value decomposition and against torch's own implementation."""

import torch
from special_ids import vocabularies
from torch import Tensor, nn

from seqtool.config import TrainConfig, TransformerConfig
from seqtool.model.transformer import Transformer
from seqtool.training.muon import CUBIC, LINEAR, QUINTIC, ROUNDS, Muon, orthogonalise
from seqtool.training.optimizer import Updater

SIZES = {"d_model": 16, "d_ff": 24, "n_heads": 2, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}


def make_model(**more: object) -> Transformer:
    torch.manual_seed(0)
    return Transformer(TransformerConfig(**{**SIZES, **more}), vocabularies(30))  # type: ignore[arg-type]


def expected_from_svd(x: Tensor) -> Tensor:
    """Apply the polynomial to the singular values, in double precision."""
    u, s, vh = torch.linalg.svd(x.double(), full_matrices=False)
    s = s / s.norm()
    for _ in range(ROUNDS):
        s = LINEAR * s + CUBIC * s**3 + QUINTIC * s**5
    return (u * s) @ vh


def test_orthogonalising_moves_singular_values_only() -> None:
    torch.manual_seed(1)
    for rows, columns in ((8, 8), (6, 20), (20, 6)):
        x = torch.randn(3, rows, columns)
        found = orthogonalise(x)
        expected = torch.stack([expected_from_svd(one) for one in x]).float()
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
    values = torch.linalg.svdvals(orthogonalise(torch.randn(2, 32, 64)))
    assert 0.6 < float(values.min()) < float(values.max()) < 1.3


def test_zero_gradients_move_nothing() -> None:
    assert torch.equal(orthogonalise(torch.zeros(2, 4, 4)), torch.zeros(2, 4, 4))


def test_the_matrices_of_layers_are_muons_and_all_else_is_adamws() -> None:
    for kind in ("sinusoidal", "learned", "relative", "rotary"):
        names = make_model(positions=kind).muon_matrices()
        assert len(names) == 4 + 6  # attention has two, of which the decoder has one more, and the feed-forward two
        assert not any("embedding" in name or "relative" in name or "bias" in name for name in names)


def test_the_two_matrices_of_a_gated_layer_move_apart() -> None:
    torch.manual_seed(3)
    both, gradient = nn.Parameter(torch.randn(48, 16)), torch.randn(48, 16)
    single = [nn.Parameter(part.detach().clone()) for part in both.split(24)]
    Muon({0: both}, {0: 2}).step([gradient], torch.tensor(1.0), torch.tensor(True), 0.1, 0.0)
    for parameter, part in zip(single, gradient.split(24), strict=True):
        Muon({0: parameter}, {0: 1}).step([part], torch.tensor(1.0), torch.tensor(True), 0.1, 0.0)
    torch.testing.assert_close(both.detach(), torch.cat(single).detach())
    updater = Updater(make_model(activation="swiglu"), TrainConfig(optimizer="muon"), "float32")
    assert set(updater.muon._groups) == {(16, 16), (24, 16), (16, 24)}


def test_steps_are_those_of_torchs_muon_on_each_matrix() -> None:
    torch.manual_seed(2)
    parameters = [nn.Parameter(torch.randn(48, 16)), nn.Parameter(torch.randn(16, 24))]
    before = [p.detach().clone() for p in parameters]
    twins = [nn.Parameter(part.detach().clone()) for part in (*parameters[0].split(16), parameters[1])]
    muon = Muon(dict(enumerate(parameters)), {0: 3, 1: 1})
    reference = torch.optim.Muon(twins, lr=0.02, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")
    for _ in range(5):
        gradients = [torch.randn_like(p) for p in parameters]
        muon.step(gradients, torch.tensor(1.0), torch.tensor(True), 0.02, 0.1)
        for twin, gradient in zip(twins, (*gradients[0].split(16), gradients[1]), strict=True):
            twin.grad = gradient
        reference.step()
    for found, start, expected in zip(parameters, before, (torch.cat(twins[:3]), twins[3]), strict=True):
        # torch computes in bfloat16, with 8 bits
        assert (found - expected).norm() < 0.01 * (expected - start).norm()


def test_a_step_that_is_not_finite_changes_nothing() -> None:
    model = make_model()
    updater = Updater(model, TrainConfig(optimizer="muon", weight_decay=0.1), "float32")
    gradients = [torch.randn_like(p) for p in model.parameters()]
    assert updater.update([g.clone() for g in gradients], torch.ones(2), 1, 0.01)[3] == 1

    def everything() -> list[torch.Tensor]:
        kept = [tensor for name, tensor in updater.state_tensors().items() if name != "counts"]
        return [tensor.detach().clone() for tensor in (*model.parameters(), *kept)]

    before = everything()
    bad = [torch.full_like(g, float("nan")) for g in gradients]
    assert updater.update(bad, torch.ones(2), 2, 0.01)[3] == 0
    assert all(torch.equal(one, other) for one, other in zip(before, everything(), strict=True))


def test_a_saved_state_continues_exactly_and_holds_one_tensor_for_each_of_muons_parameters() -> None:
    model, other = make_model(), make_model()
    config = TrainConfig(optimizer="muon")
    updater, resumed = Updater(model, config, "float32"), Updater(other, config, "float32")
    torch.manual_seed(3)
    gradients = [[torch.randn_like(p) for p in model.parameters()] for _ in range(4)]
    for step in range(2):
        updater.update([g.clone() for g in gradients[step]], torch.ones(2), step + 1, 0.01)
    state = {name: tensor.clone() for name, tensor in updater.state_tensors().items()}
    assert len([name for name in state if name.endswith("encoder.0.feed_forward.inner.weight")]) == 1
    assert len([name for name in state if name.endswith("encoder.0.feed_forward.inner.bias")]) == 3
    other.load_state_dict(model.state_dict())
    resumed.restore(state, {name: tensor.clone() for name, tensor in updater.ema_weights().items()})
    for step in range(2, 4):
        for one in (updater, resumed):
            one.update([g.clone() for g in gradients[step]], torch.ones(2), step + 1, 0.01)
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), other.parameters(), strict=True))
