"""Translations drawn at random from a model, with temperature, top-k and top-p.

Legend: B sentences, N samples per sentence, R = B * N rows, V vocabulary, L room for target tokens, T tokens so far.

Each sample has random numbers of its own, which follow from the seed, the sentence and the number of the sample: so a
sentence is sampled alike whatever else is in its batch.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from seqtool.model.interface import Seq2Seq
from seqtool.model.transfer import to_device
from seqtool.translation.engines.interface import SearchOptions
from seqtool.translation.search.beam_step import Finished
from seqtool.translation.search.constraints import Constraints
from seqtool.translation.search.decoding import DROP_SHARE, Decoding, OpenSentences
from seqtool.translation.search.penalties import length_penalty


def random_numbers(seed: int, source: Sequence[int], sample: int, n: int) -> Tensor:
    """Return n numbers in [0, 1) that depend on the arguments alone."""
    key = hashlib.blake2b(np.array([seed, sample, *source], dtype="<i8").tobytes(), digest_size=16).digest()
    raw = np.random.Philox(key=int.from_bytes(key, "little")).random_raw(n)
    return torch.from_numpy(((raw >> np.uint64(40)) * 2.0**-24).astype(np.float32))  # 24 bits are exact in a float32


def random_table(seed: int, sources: Sequence[Sequence[int]], n_samples: int, n: int) -> Tensor:
    """Return the random numbers (B, N, n) of a batch."""
    return torch.stack(
        [torch.stack([random_numbers(seed, source, sample, n) for sample in range(n_samples)]) for source in sources]
    )


def draw(log_probs: Tensor, chance: Tensor, options: SearchOptions) -> Tensor:
    """Draw a token (R) from the probabilities (R, V): the one into whose share the number chance (R) falls."""
    scaled, vocab = log_probs / options.temperature, log_probs.shape[1]
    if options.top_k or options.top_p < 1.0:
        scaled, tokens = scaled.topk(min(options.top_k or vocab, vocab))  # (R, n), most probable first
    probs = scaled.softmax(-1)
    if options.top_p < 1.0:
        before = probs.cumsum(-1) - probs  # of more probable tokens
        probs = probs.masked_fill((before >= options.top_p) & (before > 0), 0.0)
    reached = probs.cumsum(-1)
    total = reached[:, -1:]
    last = (reached < total).sum(-1)  # the last token with a probability above 0
    place = (reached <= chance[:, None] * total).sum(-1).minimum(last)  # (R)
    return tokens.gather(1, place[:, None]).squeeze(1) if options.top_k or options.top_p < 1.0 else place


@dataclass
class Samples:
    """The state of sampling between two steps, for the sentences still in the batch."""

    ids: Tensor  # (B, N, L)
    log_probs: Tensor  # (B, N)
    lengths: Tensor  # (B, N), L where a sample has not ended
    chances: Tensor  # (B, N, L)

    def select(self, sentences: Tensor) -> None:
        """Keep only some sentences."""
        self.ids, self.log_probs = self.ids.index_select(0, sentences), self.log_probs.index_select(0, sentences)
        self.lengths, self.chances = self.lengths.index_select(0, sentences), self.chances.index_select(0, sentences)


def sample(
    models: Sequence[Seq2Seq],
    src: Tensor,
    chances: Tensor,
    constraints: Constraints,
    options: SearchOptions,
    sentences: OpenSentences,
    *,
    look_every: int = 1,
) -> list[tuple[list[int], Finished]]:
    """Draw n_best translations for each of the sources (B, S), without ballast; chances (B, N, L) are random numbers.

    Returns which sentences ended together, and what they found, like beam_search.
    """
    decoding = Decoding(models, src, len(sentences.places))
    B, N, room = chances.shape
    samples = Samples(
        ids=torch.zeros_like(chances, dtype=torch.long),
        log_probs=torch.zeros((B, N), device=src.device),
        lengths=torch.full((B, N), room, device=src.device),
        chances=chances,
    )
    results: list[tuple[list[int], Finished]] = []
    tokens = decoding.first  # (B, 1)
    for length in range(room):
        log_probs = decoding.log_probs(tokens)[:, -1]  # (R, V), but (B, V) at first
        if length == 0:
            decoding.expand(N)
            log_probs = log_probs.repeat_interleave(N, 0)
        tokens = extend(samples, log_probs, constraints, options, length)[:, None]  # (R, 1)
        is_last = length == room - 1
        if is_last or (length + 1) % look_every == 0:
            ended = [True] * len(sentences.places) if is_last else (samples.lengths < room).all(1).tolist()
            collect(results, samples, sentences, ended, options)
            if not sentences.any:
                break
            keep = sentences.drop(DROP_SHARE)
            if keep is not None:
                kept = to_device(keep, src.device)
                decoding.select(keep)
                samples.select(kept)
                constraints.select(kept)
                tokens = tokens.view(-1, N).index_select(0, kept).view(-1, 1)
    return results


def extend(
    samples: Samples, next_log_probs: Tensor, constraints: Constraints, options: SearchOptions, length: int
) -> Tensor:
    """Draw the next token (R) of every sample and take note of it where the sample has not ended."""
    shape = samples.lengths.shape
    constraints.forbid(next_log_probs, samples.ids[..., :length].flatten(0, 1))
    tokens = draw(next_log_probs, samples.chances[..., length].flatten(), options)
    chosen = next_log_probs.gather(1, tokens[:, None])  # (R, 1)
    is_open = samples.lengths > length
    samples.log_probs = torch.where(is_open, samples.log_probs + chosen.view(shape), samples.log_probs)
    samples.lengths = torch.where(is_open & (tokens.view(shape) == constraints.special.eos), length, samples.lengths)
    samples.ids[..., length] = tokens.view(shape)
    return tokens


def collect(
    results: list[tuple[list[int], Finished]],
    samples: Samples,
    sentences: OpenSentences,
    ended: list[bool],
    options: SearchOptions,
) -> None:
    """Move the samples of sentences that ended to the results, best first."""
    rows, closed = sentences.close(ended)
    if not rows:
        return
    done = to_device(rows, samples.ids.device)
    lengths, log_probs = samples.lengths.index_select(0, done), samples.log_probs.index_select(0, done)
    room = samples.ids.shape[-1]
    weights = [1 / length_penalty(length + 1, options.length_penalty) for length in range(room + 1)]
    scores = log_probs * to_device(torch.tensor(weights), log_probs.device)[lengths]
    scores, order = scores.sort(dim=1, descending=True, stable=True)
    ids = samples.ids.index_select(0, done).gather(1, order[..., None].expand(-1, -1, room))
    found = Finished(scores, log_probs.gather(1, order), lengths.gather(1, order), ids, lengths[:, 0])
    results.append((closed, Finished(*(values.unsqueeze(1) for values in found))))
