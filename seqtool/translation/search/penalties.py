"""What turns the log-probability of a hypothesis into the score it is ranked by. Knows no model and needs no torch."""

import math
from collections.abc import Sequence


def length_penalty(n_tokens: int, alpha: float) -> float:
    """Return the divisor of Wu et al. (2016), ((5 + n) / 6) ** alpha; the n tokens include the end symbol."""
    return math.pow((5 + n_tokens) / 6, alpha)


def coverage_penalty(received: Sequence[float], beta: float) -> float:
    """Return what Wu et al. (2016) add to a score: beta times the logarithms of each source token's share, at most 1.

    Its share is the attention that it received from all target tokens. A source token that received nothing at all,
    as from an empty translation, would count as minus infinity; it counts as if it had received a thousandth.
    """
    return beta * sum(math.log(min(max(amount, 1e-3), 1.0)) for amount in received)
