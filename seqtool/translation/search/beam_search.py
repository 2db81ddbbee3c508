"""Greedy and beam search over any model with encode and decode.

Legend: B sentences, G groups of beams per sentence, K beams per group, P beams before a step (1 before the first, then
K), R = B * G * K rows, V vocabulary, C candidates per group, L room for target tokens, T target tokens so far.

A sentence ends when no open hypothesis can still become one of those asked for, or when beam * patience hypotheses
(rounded) have ended. Which other sentences are in the batch changes nothing, nor does how often the host looks.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from seqtool.model.interface import Seq2Seq
from seqtool.model.transfer import to_device
from seqtool.translation.engines.interface import SearchOptions
from seqtool.translation.search.beam_step import (
    NOTHING,
    Candidates,
    Finished,
    best_continuations,
    follow,
    is_decided,
    keep_best,
    no_finished,
    part,
)
from seqtool.translation.search.constraints import Constraints, share_out
from seqtool.translation.search.decoding import DROP_SHARE, Decoding, OpenSentences
from seqtool.translation.search.penalties import length_penalty


@dataclass
class Beams:
    """The state of a search between two steps: open and finished hypotheses of the sentences still in the batch."""

    ids: Tensor  # (B, G, P, L), of which the first T are filled
    log_probs: Tensor  # (B, G, P)
    finished: Finished
    last_weight: Tensor  # (B) what a log-probability is multiplied with at the length limit

    def select(self, sentences: Tensor) -> None:
        """Keep only some sentences."""
        self.ids, self.log_probs = self.ids.index_select(0, sentences), self.log_probs.index_select(0, sentences)
        self.finished = select_finished(self.finished, sentences)
        self.last_weight = self.last_weight.index_select(0, sentences)


def beam_search(
    models: Sequence[Seq2Seq],
    src: Tensor,
    constraints: Constraints,
    options: SearchOptions,
    sentences: OpenSentences,
    *,
    look_every: int = 1,
    stop_early: bool = True,
) -> list[tuple[list[int], Finished]]:
    """Search for the sources (B, S), without ballast; return which sentences ended together, and what they found.

    The host looks at the device every `look_every` steps to see what is done; a look that comes late costs time but
    changes no result. Nor does `stop_early`, which is there to show just that.
    """
    decoding = Decoding(models, src, len(sentences.places))
    beams = start_beams(constraints, options)
    results: list[tuple[list[int], Finished]] = []
    tokens = decoding.first  # (B, 1)
    for length in range(constraints.longest_limit):
        going = advance(beams, decoding.log_probs(tokens)[:, -1], constraints, options, length)
        continue_rows(decoding, going.parents, first=length == 0)
        if (length + 1) % look_every == 0:
            collect(results, beams.finished, sentences, is_done(beams, options, stop_early).tolist())
            if not sentences.any:
                return results
            keep = sentences.drop(DROP_SHARE)
            if keep is not None:
                going = drop_others(keep, going, decoding, beams, constraints)
        tokens = going.tokens.flatten()[:, None]  # (R, 1)
    advance(beams, decoding.log_probs(tokens)[:, -1], constraints, options, constraints.longest_limit)
    collect(results, beams.finished, sentences, [True] * len(sentences.places))
    return results


def start_beams(constraints: Constraints, options: SearchOptions) -> Beams:
    """Return the state before the first step: one empty hypothesis per sentence."""
    n_sentences, room, device = len(constraints.host_limits), constraints.longest_limit + 1, constraints.limits.device
    weights = [1 / length_penalty(limit + 1, options.length_penalty) for limit in constraints.host_limits]
    return Beams(
        ids=torch.zeros((n_sentences, 1, 1, room), dtype=torch.long, device=device),
        log_probs=torch.zeros((n_sentences, 1, 1), device=device),
        finished=no_finished(n_sentences, options.diverse_groups, n_kept(options), room, device),
        last_weight=to_device(torch.tensor(weights), device),
    )


def n_needed(options: SearchOptions) -> int:
    """Return how many finished hypotheses each group has to find; the coverage penalty ranks as many as the beam.

    Groups may find the same, so that each has to find all that are wanted, as far as its beams go.
    """
    wanted = options.beam if options.coverage_penalty else options.n_best
    return min(wanted, options.beam // options.diverse_groups)


def n_enough(options: SearchOptions) -> float:
    """Return with how many ended hypotheses a group is done; what ends in later steps does not count."""
    enough = options.beam // options.diverse_groups * options.patience
    return max(n_needed(options), enough if math.isinf(enough) else math.floor(enough + 0.5))


def n_kept(options: SearchOptions) -> int:
    """Return how many finished hypotheses each group keeps: the whole beam, so that there is a choice afterwards."""
    return options.beam // options.diverse_groups


def advance(
    beams: Beams, next_log_probs: Tensor, constraints: Constraints, options: SearchOptions, length: int
) -> Candidates:
    """Take one step: file what ends, keep what goes on as the new beams, and return the latter (B, G, K)."""
    ids, n_beams = beams.ids[..., :length], options.beam // options.diverse_groups
    B, known_groups, P, _ = ids.shape
    constraints.forbid(next_log_probs, ids.flatten(0, 2))
    next_log_probs = next_log_probs.view(B, known_groups, P, -1)
    spoken = next_log_probs.new_zeros(B, next_log_probs.shape[3]) if options.diverse_groups > 1 else None
    parted = []
    for group in range(options.diverse_groups):
        own = min(group, known_groups - 1)  # before the first step the groups still are one
        candidates = continue_group(beams.log_probs[:, own], next_log_probs[:, own], 2 * n_beams, spoken, options)
        if len(constraints.required):
            scores = (beams.log_probs[:, own], next_log_probs[:, own])
            candidates = share_out(candidates, constraints.required, ids[:, own], *scores)
        ended, going = part(candidates, n_beams, constraints.special.eos)
        if spoken is not None:
            spoken.scatter_add_(1, going.tokens, (going.log_probs > NOTHING).float())
        parted.append((ended, going))
    ended, going = stack_groups([ended for ended, _ in parted]), stack_groups([going for _, going in parted])
    is_full = beams.finished.seen >= n_enough(options)  # (B, G); the host may notice some steps later
    ended = ended._replace(log_probs=ended.log_probs.masked_fill(is_full[..., None], NOTHING))
    weight = 1 / length_penalty(length + 1, options.length_penalty)
    beams.finished = keep_best(beams.finished, ended, beams.ids, length, weight)
    beams.ids, beams.log_probs = follow(beams.ids, going.parents), going.log_probs
    beams.ids[..., length] = going.tokens
    return going


def stack_groups(groups: list[Candidates]) -> Candidates:
    """Join the candidates (B, n) of each group: (B, G, n)."""
    return Candidates(*(torch.stack(parts, dim=1) for parts in zip(*groups, strict=True)))


def continue_group(
    log_probs: Tensor, next_log_probs: Tensor, n: int, spoken: Tensor | None, options: SearchOptions
) -> Candidates:
    """Return the n best continuations (B, n) of a group's beams (B, P) by the tokens (B, P, V).

    In diverse beam search (Vijayakumar et al. 2018) tokens that other groups chose in this step, spoken (B, V) times,
    are less welcome; that changes the choice but not the log-probabilities.
    """
    if spoken is None:
        return best_continuations(log_probs, next_log_probs, n)
    chosen = best_continuations(log_probs, next_log_probs - options.diversity * spoken[:, None, :], n)
    places = chosen.parents * spoken.shape[1] + chosen.tokens
    totals = log_probs.gather(1, chosen.parents) + next_log_probs.flatten(1).gather(1, places)
    return chosen._replace(log_probs=totals.masked_fill(chosen.log_probs == NOTHING, NOTHING))


def continue_rows(decoding: Decoding, parents: Tensor, first: bool) -> None:
    """Let the model's rows follow the beams: parents (B, G, K) are beams of the same group."""
    _, G, K = parents.shape
    if G * K == 1:
        return
    if first:
        decoding.expand(G * K)
    else:
        decoding.reorder((parents + torch.arange(0, G * K, K, device=parents.device)[:, None]).flatten(1))


def is_done(beams: Beams, options: SearchOptions, stop_early: bool) -> Tensor:
    """Return (B): True where nothing that may still come would change the result."""
    dead = beams.log_probs.amax(-1) == NOTHING  # (B, G)
    done = dead | (beams.finished.seen >= n_enough(options))
    if stop_early:
        done |= is_decided(beams.finished, beams.log_probs, beams.last_weight, n_needed(options))
    return done.all(-1)


def collect(
    results: list[tuple[list[int], Finished]], finished: Finished, sentences: OpenSentences, done: list[bool]
) -> None:
    """Move what sentences found that are done to the results."""
    rows, closed = sentences.close(done)
    if rows:
        results.append((closed, select_finished(finished, to_device(rows, finished.scores.device))))


def drop_others(
    keep: list[int], going: Candidates, decoding: Decoding, beams: Beams, constraints: Constraints
) -> Candidates:
    """Go on with only some sentences."""
    kept = to_device(keep, going.tokens.device)
    decoding.select(keep)
    beams.select(kept)
    constraints.select(kept)
    return Candidates(*(values.index_select(0, kept) for values in going))


def select_finished(finished: Finished, sentences: Tensor) -> Finished:
    """Return what some sentences found."""
    return Finished(*(values.index_select(0, sentences) for values in finished))
