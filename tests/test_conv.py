"""The convolutional model against torch.nn.Conv1d on the padded whole."""

import pytest
import torch
import torch.nn.functional as F
from special_ids import BOS, vocabularies
from torch import nn

from seqtool.config import ConvConfig
from seqtool.model.conv import Conv, GatedConvolution


@pytest.mark.parametrize("kernel", [2, 3, 5])
@pytest.mark.parametrize("causal", [True, False])
def test_a_gated_convolution_is_torchs_on_the_padded_whole(kernel: int, causal: bool) -> None:
    torch.manual_seed(1)
    ours = GatedConvolution(6, kernel).double()
    theirs = nn.Conv1d(6, 12, kernel).double()
    with torch.no_grad():  # ours has the window's positions one after the other
        theirs.weight.copy_(ours.window.weight.view(12, kernel, 6).transpose(1, 2))
        theirs.bias.copy_(ours.window.bias)
    x = torch.randn(2, 7, 6, dtype=torch.double, requires_grad=True)
    left = kernel - 1 if causal else (kernel - 1) // 2
    found = ours(x, left)
    expected = F.glu(theirs(F.pad(x.transpose(1, 2), (left, kernel - 1 - left))), dim=1).transpose(1, 2)
    torch.testing.assert_close(found, expected)
    weight = torch.randn_like(found)
    torch.testing.assert_close(
        torch.autograd.grad((found * weight).sum(), x), torch.autograd.grad((expected * weight).sum(), x)
    )


def test_the_cache_does_not_grow() -> None:
    model = Conv(ConvConfig(kind="conv", d_model=8, encoder_layers=1, decoder_layers=2), vocabularies(20)).eval()
    memory = model.encode(torch.tensor([[5, 6, 3]]))
    cache = model.start_cache(memory)
    size = cache.earlier.shape
    for _ in range(40):
        model.decode(torch.tensor([[BOS]]), memory, cache)
    assert cache.earlier.shape == size
    assert cache.length == 40
