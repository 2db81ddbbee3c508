"""Which tokens may come next: length limits, forced prefixes, banned and required tokens, repeated n-grams.

Legend: B sentences, R rows (a sentence's rows stand next to each other), T target tokens so far, V vocabulary,
Q required tokens, C candidates of a group of beams, P its beams.
A forbidden token's log-probability becomes -inf; the others keep theirs, so that scores stay those of the model.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from seqtool.corpus.tokenizer.interface import SpecialIds
from seqtool.model.transfer import to_device
from seqtool.translation.engines.interface import SearchOptions
from seqtool.translation.options import check_ids, check_known
from seqtool.translation.search.beam_step import NOTHING, Candidates


def length_limit(options: SearchOptions, n_source: int, prefix: Sequence[int]) -> int:
    """Return the most target tokens for a source; there is always room for the prefix and what is required."""
    return max(options.max_length(n_source), len(prefix) + len(set(options.required)))


class Constraints:
    """What the sentences of a batch may say."""

    def __init__(
        self,
        options: SearchOptions,
        special: SpecialIds,
        limits: list[int],
        prefixes: Sequence[Sequence[int]],
        device: torch.device,
    ) -> None:
        """Prepare for sentences with these length limits and forced beginnings."""
        self.special = special
        self.highest = check_ids(options, prefixes, special)
        self.no_repeat_ngram = options.no_repeat_ngram
        self.banned = to_device([special.pad, special.bos, *options.banned], device)
        self.required = to_device(torch.tensor(sorted(set(options.required)), dtype=torch.long), device)  # (Q)
        self.limits = to_device(limits, device)  # (B)
        # What the host knows, so that no step has to ask the device.
        self.host_limits, self.shortest_limit, self.longest_limit = limits, min(limits), max(limits)
        self.longest_prefix = max(len(prefix) for prefix in prefixes)
        padded = [[*prefix, *[special.pad] * (self.longest_prefix - len(prefix))] for prefix in prefixes]
        self.prefixes = to_device(torch.tensor(padded, dtype=torch.long), device)  # (B, longest_prefix)

    def select(self, sentences: Tensor) -> None:
        """Keep only some sentences."""
        self.limits, self.prefixes = self.limits.index_select(0, sentences), self.prefixes.index_select(0, sentences)

    def forbid(self, log_probs: Tensor, ids: Tensor) -> None:
        """Set the log-probabilities (R, V) of tokens that may not follow ids (R, T) to -inf, in place."""
        check_known(self.highest, log_probs.shape[1])
        length, n_beams = ids.shape[1], log_probs.shape[0] // self.limits.shape[0]
        forced, required, eos = self.forced_at(length, n_beams), self.required, self.special.eos
        forced_values = log_probs.gather(1, forced[:, None]) if forced is not None else None  # (R, 1)
        required_values = log_probs.index_select(1, required)  # (R, Q)
        log_probs.index_fill_(1, self.banned, NOTHING)
        if self.no_repeat_ngram:
            forbid_repeats(log_probs, ids, self.no_repeat_ngram, self.special.pad)
        limits = self.limits.repeat_interleave(n_beams)
        if len(required):
            forbid_omissions(log_probs, required_values, required, ids, limits - length, eos)
        if length >= self.shortest_limit:
            allow_only(log_probs, limits <= length, torch.full_like(limits, eos), log_probs[:, eos : eos + 1].clone())
        if forced is not None and forced_values is not None:
            allow_only(log_probs, forced != self.special.pad, forced, forced_values)

    def forced_at(self, length: int, n_beams: int) -> Tensor | None:
        """Return the token (R) that each row's prefix has at a position, padding after its end; None after all ends."""
        return self.prefixes[:, length].repeat_interleave(n_beams) if length < self.longest_prefix else None


def allow_only(log_probs: Tensor, rows: Tensor, tokens: Tensor, values: Tensor) -> None:
    """Forbid all tokens but one in the rows where `rows` (R) is True: tokens (R), with the values (R, 1)."""
    single = torch.full_like(log_probs, NOTHING).scatter_(1, tokens[:, None], values)
    log_probs.copy_(torch.where(rows[:, None], single, log_probs))


def forbid_repeats(log_probs: Tensor, ids: Tensor, n: int, pad: int) -> None:
    """Forbid tokens that would end an n-gram which is in ids (R, T) already."""
    if ids.shape[1] < n:
        return
    grams = ids.unfold(1, n, 1)  # (R, T - n + 1, n)
    begun = ids[:, ids.shape[1] - n + 1 :]  # (R, n - 1), what the next token would end
    known = (grams[:, :, :-1] == begun[:, None, :]).all(-1)  # (R, T - n + 1)
    log_probs.scatter_(1, torch.where(known, grams[:, :, -1], pad), NOTHING)  # padding is forbidden anyway


def missing_tokens(required: Tensor, ids: Tensor) -> Tensor:
    """Return (R, Q): True where a required token is not in ids (R, T)."""
    return (ids[:, :, None] != required).all(1)


def forbid_omissions(
    log_probs: Tensor, required_values: Tensor, required: Tensor, ids: Tensor, room: Tensor, eos: int
) -> None:
    """Forbid the end while required tokens are missing, and all but those once there is room (R) for no more."""
    missing = missing_tokens(required, ids)
    log_probs[:, eos].masked_fill_(missing.any(1), NOTHING)
    only = torch.full_like(log_probs, NOTHING)
    only.index_copy_(1, required, required_values.masked_fill(~missing, NOTHING))
    pressed = missing.any(1) & (missing.sum(1) >= room)
    log_probs.copy_(torch.where(pressed[:, None], only, log_probs))


def share_out(
    candidates: Candidates, required: Tensor, ids: Tensor, log_probs: Tensor, next_log_probs: Tensor
) -> Candidates:
    """Give candidates with few and with many required tokens an equal share of the beam, so that both are searched.

    A simple form of dynamic beam allocation (Post and Vilar 2018). candidates (B, C) are the best continuations of the
    beams ids (B, P, T). Each beam's missing tokens join them, and then the best with all required tokens, the best
    with all but one, ..., the second best with all, and so on, make the order.
    """
    B, P, V = next_log_probs.shape
    Q = required.shape[0]
    missing = missing_tokens(required, ids.flatten(0, 1)).view(B, P, Q)
    totals = log_probs[..., None] + next_log_probs.index_select(2, required)
    parents = torch.arange(P, device=required.device)[:, None].expand(P, Q).flatten()
    extra = Candidates(
        totals.masked_fill(~missing, NOTHING).flatten(1), parents.expand(B, -1), required.repeat(P).expand(B, -1)
    )
    joined = Candidates(*(torch.cat(parts, dim=1) for parts in zip(candidates, extra, strict=True)))  # (B, C + P * Q)
    joined = joined._replace(log_probs=forget_doubles(joined, candidates.tokens.shape[1], V))
    joined = joined.at(joined.log_probs.sort(dim=1, descending=True, stable=True).indices)
    gained = (joined.tokens[..., None] == required) & missing.gather(1, joined.parents[..., None].expand(-1, -1, Q))
    lacking = missing.sum(2).gather(1, joined.parents) - gained.sum(2)  # (B, C + P * Q), 0 .. Q
    same = torch.nn.functional.one_hot(lacking, Q + 1)
    rank = same.cumsum(1).gather(2, lacking[..., None]).squeeze(2)  # among those that lack as many
    order = (rank * (Q + 1) + lacking).masked_fill(joined.log_probs == NOTHING, 2**31)
    return joined.at(order.sort(dim=1, stable=True).indices)


def forget_doubles(joined: Candidates, n_first: int, vocab: int) -> Tensor:
    """Return the log-probabilities of joined candidates, -inf where one is among the n_first already."""
    places = joined.parents * vocab + joined.tokens  # (B, C)
    double = (places[:, :, None] == places[:, None, :n_first]).any(2)
    double[:, :n_first] = False
    return joined.log_probs.masked_fill(double, NOTHING)
