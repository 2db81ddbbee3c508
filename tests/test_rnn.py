"""The recurrent model against torch's own LSTM and GRU, its scores against numbers worked out by hand and numpy."""

from typing import Any

import numpy as np
import pytest
import torch
from special_ids import BOS, EOS, vocabularies
from torch import nn

from seqtool.config import RnnConfig
from seqtool.config.model import SCORES
from seqtool.model.attention_scores import Score
from seqtool.model.recurrence import Recurrence
from seqtool.model.rnn import EncoderLayer, Rnn

VOCAB = 37
CELL_NAMES = ("lstm", "gru")
torch_cells = {"lstm": nn.LSTM, "gru": nn.GRU}


def tiny(**changes: Any) -> Rnn:
    """A tiny model in float64 whose every weight differs from its neutral value."""
    torch.manual_seed(1)
    values: dict[str, Any] = {"kind": "rnn", "d_model": 8, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}
    model = Rnn(RnnConfig(**(values | {"max_positions": 40} | changes)), vocabularies(VOCAB)).double().eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.2)
    return model


def copy_to_torch(ours: Recurrence, theirs: nn.Module, suffix: str = "") -> None:
    with torch.no_grad():
        for name, weight in (
            ("weight_ih_l0", ours.x_gates.weight),
            ("bias_ih_l0", ours.x_gates.bias),
            ("weight_hh_l0", ours.h_gates.weight),
            ("bias_hh_l0", ours.h_gates.bias),
        ):
            getattr(theirs, name + suffix).copy_(weight)


@pytest.mark.parametrize("training", [False, True])  # one position after the other, or by torch's kernels
@pytest.mark.parametrize("cell", CELL_NAMES)
def test_a_recurrence_has_torchs_outputs_states_and_gradients(cell: str, training: bool) -> None:
    torch.manual_seed(2)
    ours = Recurrence(cell, 5, 7).double().train(training)
    theirs = torch_cells[cell](5, 7, batch_first=True).double()
    copy_to_torch(ours, theirs)
    x = torch.randn(3, 6, 5, dtype=torch.double, requires_grad=True)
    start = tuple(torch.randn(3, 7, dtype=torch.double) for _ in range(ours.n_state))
    y, state = ours(x, start)
    given = tuple(part[None] for part in start)
    expected, last = theirs(x, given if cell == "lstm" else given[0])
    torch.testing.assert_close(y, expected)
    for found, part in zip(state, last if cell == "lstm" else (last,), strict=True):
        torch.testing.assert_close(found, part[0])
    weight = torch.randn_like(y)
    found = torch.autograd.grad((y * weight).sum(), [x, *ours.parameters()])
    names = ("weight_ih_l0", "bias_ih_l0", "weight_hh_l0", "bias_hh_l0")
    wanted = torch.autograd.grad((expected * weight).sum(), [x, *(getattr(theirs, name) for name in names)])
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("cell", CELL_NAMES)
def test_a_bidirectional_layer_equals_torchs_on_packed_sequences(cell: str, training: bool) -> None:
    torch.manual_seed(3)
    ours = EncoderLayer(RnnConfig(kind="rnn", cell=cell, d_model=8)).double().train(training)
    theirs = torch_cells[cell](8, 4, batch_first=True, bidirectional=True).double()
    copy_to_torch(ours.forwards, theirs)
    assert ours.backwards is not None
    copy_to_torch(ours.backwards, theirs, "_reverse")
    lengths = torch.tensor([6, 3, 1])
    x = torch.randn(3, 6, 8, dtype=torch.double)
    mask = torch.arange(6) < lengths[:, None]
    y, final = ours(x, mask)
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
    out, last = theirs(packed)
    expected, _ = nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
    torch.testing.assert_close(y * mask[..., None], expected)
    for found, part in zip(final, last if cell == "lstm" else (last,), strict=True):
        torch.testing.assert_close(found, torch.cat((part[0], part[1]), dim=-1))
    weight = torch.randn_like(y) * mask[..., None]
    found = torch.autograd.grad((y * weight).sum() + final[0].sum(), list(ours.parameters()))
    wanted = torch.autograd.grad((expected * weight).sum() + part_sum(last), list(theirs.parameters()))
    ours_by_torch = {"weight_ih": "x_gates.weight", "weight_hh": "h_gates.weight"}
    ours_by_torch |= {"bias_ih": "x_gates.bias", "bias_hh": "h_gates.bias"}
    by_name = dict(zip(dict(ours.named_parameters()), found, strict=True))
    for (name, _), gradient in zip(theirs.named_parameters(), wanted, strict=True):
        side = "backwards" if name.endswith("_reverse") else "forwards"
        torch.testing.assert_close(by_name[f"{side}.{ours_by_torch[name.split('_l0')[0]]}"], gradient)


def part_sum(last: Any) -> torch.Tensor:
    """The sum of the last h, of either cell of torch."""
    return (last[0] if isinstance(last, tuple) else last).sum()


def test_each_score_worked_out_by_hand() -> None:
    # s = (1, 2), h = (3, -1): dot = 1*3 + 2*(-1) = 1; over the root of 2 it is 0.7071068.
    # general with W = ((1, 2), (0, 1)): W s = (1 + 4, 2) = (5, 2), times h = 15 - 2 = 13.
    # additive, W as above, U = identity, v = (1, -1): tanh(5 + 3) - tanh(2 - 1) = 0.9999998 - 0.7615942 = 0.2384056.
    # cosine: 1 / (sqrt 5 * sqrt 10) = 0.1414214, times softplus(0 s + 1) = ln(1 + e) = 1.3132617: 0.1857232.
    # location with rows (1, 0), (0, 1) and biases 0, 0.5: 1 for the first position and 2.5 for the second.
    s, h = torch.tensor([[[1.0, 2.0]]]), torch.tensor([[[3.0, -1.0]]])
    matrix = torch.tensor([[1.0, 2.0], [0.0, 1.0]])
    expected = {"dot": [1.0], "scaled": [0.7071068], "general": [13.0], "additive": [0.2384056], "cosine": [0.1857232]}
    for name, value in expected.items():
        score = make_score(name, 2)
        if name in ("general", "additive"):
            score.query.weight.data.copy_(matrix)
        if name == "additive":
            score.key.weight.data.copy_(torch.eye(2))
            score.v.data.copy_(torch.tensor([1.0, -1.0]))
        if name == "cosine":
            score.strength.weight.data.zero_()
            score.strength.bias.data.fill_(1.0)
        torch.testing.assert_close(score(s, score.keys(h)), torch.tensor([[value]]), atol=1e-6, rtol=0, msg=name)
    score = make_score("location", 2, max_positions=2)
    score.places.weight.data.copy_(torch.eye(2))
    score.places.bias.data.copy_(torch.tensor([0.0, 0.5]))
    two = torch.zeros(1, 2, 2)
    torch.testing.assert_close(score(s, score.keys(two)), torch.tensor([[[1.0, 2.5]]]))


def make_score(name: str, d: int, **more: Any) -> Score:
    return Score(RnnConfig(kind="rnn", d_model=d, attention=name, bidirectional=False, **more))


@pytest.mark.parametrize("name", SCORES[1:])
def test_each_score_equals_its_formula_in_numpy(name: str) -> None:
    torch.manual_seed(4)
    score = make_score(name, 6, max_positions=9).double()
    for parameter in score.parameters():
        nn.init.normal_(parameter)
    s, h = torch.randn(2, 3, 6, dtype=torch.double), torch.randn(2, 5, 6, dtype=torch.double)
    found = score(s, score.keys(h)).detach().numpy()
    weights = {key: value.detach().numpy() for key, value in score.named_parameters()}
    for b in range(2):
        for q in range(3):
            for k in range(5):
                assert found[b, q, k] == pytest.approx(by_formula(name, s[b, q].numpy(), h[b, k].numpy(), k, weights))


def by_formula(name: str, s: Any, h: Any, place: int, w: dict[str, Any]) -> float:
    if name == "additive":
        return float(np.dot(w["v"], np.tanh(w["query.weight"] @ s + w["key.weight"] @ h)))
    if name == "general":
        return float(np.dot(w["query.weight"] @ s, h))
    if name == "location":
        return float(w["places.weight"][place] @ s + w["places.bias"][place])
    if name == "cosine":
        strength = np.log1p(np.exp(w["strength.weight"][0] @ s + w["strength.bias"][0]))
        return float(strength * np.dot(s, h) / np.linalg.norm(s) / np.linalg.norm(h))
    return float(np.dot(s, h) / (np.sqrt(len(s)) if name == "scaled" else 1.0))


def test_without_attention_the_decoder_knows_only_the_final_state() -> None:
    model = tiny(attention="none")
    memory = model.encode(torch.tensor([[5, 6, 7, EOS]]))
    spoiled = memory._replace(states=torch.full_like(memory.states, float("nan")), keys=memory.keys * float("nan"))
    tgt = torch.tensor([[BOS, 5, 6]])
    torch.testing.assert_close(model.decode(tgt, spoiled), model.decode(tgt, memory))


def test_a_reversed_source_is_read_from_its_end() -> None:
    plain, reverse = (tiny(attention="none", bidirectional=False, reverse_source=flag) for flag in (False, True))
    reverse.load_state_dict(plain.state_dict())
    there = plain.encode(torch.tensor([[5, 6, 7, EOS]])).final
    back = reverse.encode(torch.tensor([[EOS, 7, 6, 5]])).final
    for one, other in zip(there, back, strict=True):
        torch.testing.assert_close(one, other)


def test_variational_dropout_drops_the_same_units_at_every_position() -> None:
    model = tiny(variational=True, dropout=0.5).train()
    torch.manual_seed(5)
    dropped = model.drop(torch.ones(2, 7, 8, dtype=torch.double)) == 0
    assert dropped.any()
    assert (dropped == dropped[:, :1]).all()
