"""Several models with one vocabulary that answer as one: the mean of their probabilities.

Legend: M models, V vocabulary.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from seqtool.errors import SeqtoolError
from seqtool.files import sha256_of
from seqtool.run_directory import RunDir


def join_logits(logits: Sequence[Tensor]) -> Tensor:
    """Return the log-probabilities (..., V) that M models' logits (..., V) stand for together; the logits are lost."""
    for one in logits:
        if one.dtype == torch.float32:
            torch.log_softmax(one, -1, out=one)  # in place: such large arrays are slow to come by
    types = [torch.promote_types(one.dtype, torch.float32) for one in logits]  # no fewer bits than float32
    pairs = zip(logits, types, strict=True)
    log_probs = [one if one.dtype == torch.float32 else one.log_softmax(-1, dtype=dtype) for one, dtype in pairs]
    if len(logits) == 1:
        return log_probs[0]
    return (torch.stack(log_probs).logsumexp(0) - math.log(len(logits))).clamp(max=0.0)  # not above 0 by rounding


def check_same_tokens(runs: Sequence[RunDir]) -> None:
    """Raise unless the models were trained with the same tokenizer files."""
    for run in runs[1:]:
        for name in ("tokenizer", "target_tokenizer"):
            first, other = getattr(runs[0], name), getattr(run, name)
            if first.exists() != other.exists() or (first.exists() and sha256_of(first) != sha256_of(other)):
                raise SeqtoolError(
                    f"{run.path} and {runs[0].path} have different tokenizers ({first.name}), so they do not go "
                    "together; train them with the same one"
                )
