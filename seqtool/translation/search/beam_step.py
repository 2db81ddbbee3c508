"""One step of beam search, as pure functions of scores and log-probabilities. Knows no model and no options.

Legend: B sentences, G groups of beams per sentence, P beams per group before the step (1 before the first), K after it,
V vocabulary, C candidates per group, F finished hypotheses kept per group, L room for target tokens.
A log-probability of -inf marks a place that holds no hypothesis.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

NOTHING = float("-inf")


class Candidates(NamedTuple):
    """Continuations of hypotheses, in the order of preference."""

    log_probs: Tensor  # (..., C) of the whole hypothesis, its new token included
    parents: Tensor  # (..., C) the beam of the group that it continues
    tokens: Tensor  # (..., C) its new token

    def at(self, places: Tensor) -> "Candidates":
        """Return the candidates at some places (..., n)."""
        return Candidates(*(part.gather(-1, places) for part in self))


class Finished(NamedTuple):
    """The best ended hypotheses so far, best first, and the number of all that were seen."""

    scores: Tensor  # (B, G, F)
    log_probs: Tensor  # (B, G, F)
    lengths: Tensor  # (B, G, F) in tokens, without the end symbol
    ids: Tensor  # (B, G, F, L)
    seen: Tensor  # (B, G)


def no_finished(n_sentences: int, n_groups: int, n_kept: int, room: int, device: torch.device) -> Finished:
    """Return the empty store that a search begins with."""
    shape = (n_sentences, n_groups, n_kept)
    nothing = torch.full(shape, NOTHING, device=device)
    lengths = torch.zeros(shape, dtype=torch.long, device=device)
    ids = torch.zeros((*shape, room), dtype=torch.long, device=device)
    return Finished(nothing, nothing, lengths, ids, lengths[..., 0])


def best_continuations(log_probs: Tensor, next_log_probs: Tensor, n: int) -> Candidates:
    """Return the n best continuations of the beams (B, P) of one group by the tokens (B, P, V), best first.

    Equal candidates stand in the order of beam and token.
    """
    B, P, V = next_log_probs.shape
    if P * grid_width(V) < n or grid_width(V) > V:
        places = torch.arange(P * V, device=log_probs.device).expand(B, -1)  # (B, P * V), place = beam * V + token
    else:
        places = promising_places(log_probs, next_log_probs, n)  # (B, n * height + P * rest)
    totals = log_probs.gather(1, places // V) + next_log_probs.flatten(1).gather(1, places)
    best = totals.topk(min(n, totals.shape[1])).indices
    places, order = places.gather(1, best).sort(dim=1)
    values, ranking = totals.gather(1, best).gather(1, order).sort(dim=1, descending=True, stable=True)
    chosen = places.gather(1, ranking)  # (B, n)
    missing = max(0, n - chosen.shape[1])
    chosen, values = F.pad(chosen, (0, missing)), F.pad(values, (0, missing), value=NOTHING)
    return Candidates(values, chosen // V, chosen % V)


def grid_width(vocab: int) -> int:
    """Return how many columns a vocabulary is put into; multiples of a vector's width are quick to search."""
    return 128 if vocab < 32_768 else 256


def promising_places(log_probs: Tensor, next_log_probs: Tensor, n: int) -> Tensor:
    """Return places (B, X) in the P * V continuations among which the n best are.

    Looking for n places in the whole vocabulary is slow. The tokens stand in a grid; the n best are in the n columns
    with the highest maxima, and the maxima of columns are quickly found.
    """
    B, P, V = next_log_probs.shape
    width, device = grid_width(V), log_probs.device
    height = V // width
    grid = next_log_probs[:, :, : height * width].view(B, P, height, width)
    heads = log_probs[:, :, None] + grid.amax(2)  # (B, P, width)
    columns = heads.flatten(1).topk(n).indices  # (B, n)
    tops = columns // width * V + columns % width
    rows = torch.arange(0, height * width, width, device=device)
    inside = (tops[:, :, None] + rows).flatten(1)  # (B, n * height)
    beams = torch.arange(P, device=device)[:, None] * V
    rest = (beams + torch.arange(height * width, V, device=device)).flatten()  # what the grid leaves over
    return torch.cat((inside, rest.expand(B, -1)), dim=1)


def part(candidates: Candidates, n_beams: int, eos: int) -> tuple[Candidates, Candidates]:
    """Part candidates (..., C) into those that end and the n_beams best that go on, each (..., n_beams).

    As in most toolkits a hypothesis ends only where its end symbol is among the n_beams best candidates; as each beam
    has one end symbol, twice as many candidates leave enough to go on with.
    """
    ends = candidates.tokens == eos
    ended = Candidates(*(values[..., :n_beams] for values in candidates))
    ended = ended._replace(log_probs=ended.log_probs.masked_fill(~ends[..., :n_beams], NOTHING))
    useless = ends | (candidates.log_probs == NOTHING)
    places = useless.to(torch.int8).sort(dim=-1, stable=True).indices[..., :n_beams]
    going = candidates.at(places)
    return ended, going._replace(log_probs=going.log_probs.masked_fill(useless.gather(-1, places), NOTHING))


def keep_best(finished: Finished, ended: Candidates, ids: Tensor, length: int, weight: float) -> Finished:
    """Add hypotheses of `length` tokens that ended in this step; ids (B, G, P, L) are those of their parents.

    Their scores are their log-probabilities times `weight`.
    """
    kept = finished.scores.shape[-1]
    scores = torch.cat((finished.scores, ended.log_probs * weight), dim=-1)  # (B, G, F + K)
    scores, order = (values[..., :kept] for values in scores.sort(dim=-1, descending=True, stable=True))
    lengths = F.pad(finished.lengths, (0, ended.tokens.shape[-1]), value=length)
    log_probs = torch.cat((finished.log_probs, ended.log_probs), dim=-1)
    all_ids = torch.cat((finished.ids, follow(ids, ended.parents)), dim=2)
    seen = finished.seen + (ended.log_probs > NOTHING).sum(-1)
    return Finished(scores, log_probs.gather(-1, order), lengths.gather(-1, order), follow(all_ids, order), seen)


def follow(ids: Tensor, parents: Tensor) -> Tensor:
    """Return the tokens (B, G, n, L) of the parents (B, G, n) among hypotheses (B, G or 1, P, L)."""
    return ids.expand(-1, parents.shape[1], -1, -1).gather(2, parents[..., None].expand(-1, -1, -1, ids.shape[-1]))


def is_decided(finished: Finished, log_probs: Tensor, last_weight: Tensor, n_needed: int) -> Tensor:
    """Return (B, G): True where no open beam (B, G, K) can still become one of the n_needed best.

    Log-probabilities are negative and only fall, so none can end better than it is now with the smallest weight, which
    is that of the length limit, last_weight (B).
    """
    bound = log_probs.amax(-1) * last_weight[:, None]  # (B, G); -inf where no beam is open
    return (bound <= finished.scores[..., n_needed - 1]) | (bound == NOTHING)
