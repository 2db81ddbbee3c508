"""The engine that runs everywhere and does everything: searches with the model itself in torch.

Why a sentence's result does not depend on its batch: padding is masked, random numbers belong to the sentence, ties go
to the lower beam and token, and on a CPU the arithmetic itself is kept the same, bit for bit (see batching.py).

Legend: B sentences, R rows, S source length, T target length, H heads.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from seqtool.corpus.tokenizer.interface import Vocabularies
from seqtool.errors import OptionError, SeqtoolError
from seqtool.model.interface import TranslationModel
from seqtool.model.loading import load_model
from seqtool.model.oom import is_out_of_memory
from seqtool.model.transfer import to_device
from seqtool.process import choose_device, count_cores
from seqtool.run_directory import RunDir
from seqtool.translation.engines.batching import LENGTH_STEP, MIN_ROWS, pad_rows, padded_length, plan_batches
from seqtool.translation.engines.interface import Batching, OnDone, SearchOptions, TokenHypothesis
from seqtool.translation.engines.settings import EngineSettings
from seqtool.translation.engines.worker_threads import WorkerThreads
from seqtool.translation.search.beam_search import beam_search
from seqtool.translation.search.beam_step import NOTHING, Finished
from seqtool.translation.search.constraints import Constraints, length_limit
from seqtool.translation.search.decoding import Decoding, OpenSentences
from seqtool.translation.search.ensemble import check_same_tokens
from seqtool.translation.search.penalties import coverage_penalty
from seqtool.translation.search.sampling import random_table, sample

Result = TypeVar("Result")

TORCH_TYPES = ("float32", "bfloat16", "float16")

BATCH_TOKENS = 8192  # source tokens in a batch, at most
CPU_TOKENS = 4096  # in a batch of one CPU core, at most; larger ones are no quicker
CALL_ROWS = 32  # sentences that a caller who makes its own batches should hand over at once
SCORED_AT_ONCE = 4096  # tokens whose log-probabilities over the vocabulary are held at once in scoring
LOOK_EVERY = 4  # steps between looks at what is done, if a look makes the host wait for the device


class Attention(NamedTuple):
    """What the tokens of a translation attend to, by the mean over the heads of the last decoder layer.

    That layer agrees best with the true alignments of the demo corpus. What the end symbols give and get is left out.
    """

    strongest: list[int]  # for each target token the source token that gets most of it
    received: list[float]  # what each source token gets from all of them


class TorchEngine:
    """Translates and scores with one model, or with several that answer as one; several threads may call it."""

    name = "torch"

    def __init__(
        self,
        models: Sequence[TranslationModel],
        device: str | torch.device = "cpu",
        *,
        batch_tokens: int = BATCH_TOKENS,
        threads: int = 0,
    ) -> None:
        """Use models that are on a device already, and turn their dropout off; threads (0: one per core) are for a CPU.

        On a CPU each batch is computed by one of the engine's own threads. On another device the callers compute, one
        batch at a time, since its memory has room for one.
        """
        self.models = list(models)
        for model in self.models:
            if isinstance(model, nn.Module):
                model.eval()
        self.device = torch.device(device)
        self.on_cpu = self.device.type == "cpu"
        self.batch_tokens = min(batch_tokens, CPU_TOKENS) if self.on_cpu else batch_tokens
        self.workers = (threads or count_cores()) if self.on_cpu else 1
        self.batching = Batching(callers=self.workers, rows=CALL_ROWS, step=LENGTH_STEP)
        self.attending = [model for model in self.models if model.has_attention]
        self.vocabularies = self.models[0].vocabularies
        self.n_positions = min(filter(None, (model.position_limit for model in self.models)), default=0)
        self.max_tokens = max(0, self.n_positions - 1)
        self.compute_type = str(dtype_of(self.models[0])).removeprefix("torch.")
        self._threads = WorkerThreads(self.workers) if self.on_cpu else None
        self._turn = nullcontext() if self.on_cpu else threading.Lock()

    @classmethod
    def load(
        cls,
        runs: Sequence[RunDir],
        vocabularies: Vocabularies,
        settings: EngineSettings | None = None,
    ) -> "TorchEngine":
        """Load the models of run directories; several are an ensemble."""
        settings = settings or EngineSettings()
        device = choose_device(settings.device)
        dtype = choose_dtype(settings.compute_type, device)
        check_same_tokens(runs)
        models = [load_model(run, vocabularies, device).to(dtype) for run in runs]
        if settings.compile:
            for model in models:
                model.compile_for_translation()
        return cls(models, device, batch_tokens=settings.batch_tokens or BATCH_TOKENS, threads=settings.threads)

    def unsupported(self, options: SearchOptions, n_source: int) -> list[str]:
        """Name the options asked for that it does not have: what needs attention, of models without it."""
        return (
            ["`coverage_penalty` for a model without attention"]
            if options.coverage_penalty and not self.attending
            else []
        )

    def translate(
        self,
        sources: Sequence[Sequence[int]],
        options: SearchOptions,
        prefixes: Sequence[Sequence[int]] | None = None,
        on_done: OnDone | None = None,
    ) -> list[list[TokenHypothesis]]:
        """Return for each source (ids without the end symbol) its n best hypotheses, best first."""
        starts = prefixes if prefixes is not None else [()] * len(sources)
        rows = options.n_best if options.sample else options.beam
        batches = plan_batches([max(len(source) + 1, rows) for source in sources], self.batch_tokens, self.workers)

        def search(batch: list[int]) -> list[list[TokenHypothesis]]:
            return self._search([sources[row] for row in batch], [starts[row] for row in batch], options)

        found = self._in_order(batches, self._run(search, batches, on_done), len(sources))
        if (options.alignment or options.token_scores) and not options.coverage_penalty:
            found = [hypotheses[: options.n_best] for hypotheses in found]
        if (options.alignment or options.coverage_penalty) and self.attending:
            found = self._with_attention(sources, found, options)
        return self._with_token_scores(sources, found) if options.token_scores else found

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[float]]:
        """Return for each pair the log-probability of each target token and, last, of the end symbol."""

        def score(batch: list[int]) -> list[list[float]]:
            src, tgt_in, tgt_out = self._pad_pairs([sources[row] for row in batch], [targets[row] for row in batch])
            decoding = Decoding(self.models, src, len(batch))
            step = padded_length(max(1, SCORED_AT_ONCE // len(batch)))
            parts = zip(tgt_in.split(step, 1), tgt_out.split(step, 1), strict=True)
            chosen = [decoding.log_probs(given).gather(2, asked[:, :, None]).squeeze(2) for given, asked in parts]
            scores = torch.cat(chosen, dim=1).tolist()  # (B, T)
            return [row[: len(targets[i]) + 1] for row, i in zip(scores, batch, strict=True)]

        batches = self._plan_pairs(sources, targets)
        return self._in_order(batches, self._run(score, batches), len(sources))

    def _search(
        self, sources: list[Sequence[int]], prefixes: list[Sequence[int]], options: SearchOptions
    ) -> list[list[TokenHypothesis]]:
        """Search one batch."""
        n_beams = options.n_best if options.sample else options.beam
        n_real = len(sources)
        src = self._pad_sources(sources)
        sentences = OpenSentences(n_real, n_beams, MIN_ROWS)
        n_ballast = len(sentences.places) - n_real
        sources, prefixes = sources + sources[-1:] * n_ballast, prefixes + prefixes[-1:] * n_ballast
        limits = [self._limit(options, *pair) for pair in zip(sources, prefixes, strict=True)]
        constraints = Constraints(options, self.vocabularies.target.special, limits, prefixes, self.device)
        look_every = 1 if self.on_cpu else LOOK_EVERY
        if options.sample:
            chances = to_device(random_table(options.seed, sources, n_beams, max(limits) + 1), self.device)
            parts = sample(self.models, src, chances, constraints, options, sentences, look_every=look_every)
        else:
            parts = beam_search(self.models, src, constraints, options, sentences, look_every=look_every)
        n_kept = options.n_best if options.diverse_groups > 1 and not options.coverage_penalty else n_beams
        found: list[list[TokenHypothesis]] = [[] for _ in range(n_real)]
        rows = [row for closed, _ in parts for row in closed]
        finished = Finished(*map(torch.cat, zip(*(ended for _, ended in parts), strict=True)))  # read all at once
        for row, hypotheses in zip(rows, read_finished(finished, n_kept, merge=not options.sample), strict=True):
            found[row] = hypotheses
        if not all(found):
            raise SeqtoolError("the model's output is not a number; its weights are damaged or its training diverged")
        return found

    def _limit(self, options: SearchOptions, source: Sequence[int], prefix: Sequence[int]) -> int:
        """Return the most target tokens for a source, within the positions that the model knows."""
        limit = length_limit(options, len(source), prefix)
        return min(limit, self.n_positions - 1) if self.n_positions else limit

    def _with_attention(
        self, sources: Sequence[Sequence[int]], found: list[list[TokenHypothesis]], options: SearchOptions
    ) -> list[list[TokenHypothesis]]:
        """Add the alignment of every hypothesis, and rank by the coverage penalty if there is one."""
        flat = [(row, hypothesis) for row, hypotheses in enumerate(found) for hypothesis in hypotheses]
        attention = self.attend([sources[row] for row, _ in flat], [hypothesis.ids for _, hypothesis in flat])
        ranked: list[list[TokenHypothesis]] = [[] for _ in found]
        for (row, hypothesis), (strongest, received) in zip(flat, attention, strict=True):
            score = hypothesis.score + coverage_penalty(received, options.coverage_penalty)
            ranked[row].append(replace(hypothesis, score=score, alignment=strongest if options.alignment else None))
        return [sorted(hypotheses, key=lambda one: -one.score)[: options.n_best] for hypotheses in ranked]

    def attend(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[Attention]:
        """Return for each pair what the prediction of each target token attends to."""

        def attend(batch: list[int]) -> list[Attention]:
            src, tgt_in, _ = self._pad_pairs([sources[row] for row in batch], [targets[row] for row in batch])
            weights = torch.stack([read_attention(model, src, tgt_in) for model in self.attending]).mean(0).cpu()
            pairs = zip(weights, batch, strict=True)
            return [summarise(rows[: len(targets[i]), : len(sources[i])]) for rows, i in pairs]

        batches = self._plan_pairs(sources, targets)
        return self._in_order(batches, self._run(attend, batches), len(sources))

    def _with_token_scores(
        self, sources: Sequence[Sequence[int]], found: list[list[TokenHypothesis]]
    ) -> list[list[TokenHypothesis]]:
        """Add the log-probability of every token."""
        flat = [(row, hypothesis) for row, hypotheses in enumerate(found) for hypothesis in hypotheses]
        scores = self.score([sources[row] for row, _ in flat], [hypothesis.ids for _, hypothesis in flat])
        scored: list[list[TokenHypothesis]] = [[] for _ in found]
        for (row, hypothesis), token_scores in zip(flat, scores, strict=True):
            scored[row].append(replace(hypothesis, token_scores=token_scores))
        return scored

    def _plan_pairs(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[int]]:
        longer = [max(len(source), len(target)) + 1 for source, target in zip(sources, targets, strict=True)]
        return plan_batches(longer, self.batch_tokens, self.workers)

    def _pad_pairs(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return source (B, S), shifted target (B, T) and target (B, T) of a batch."""
        special = self.vocabularies.target.special
        tgt_in = pad_rows([[special.bos, *target] for target in targets], special.pad, self.n_positions)
        tgt_out = pad_rows([[*target, special.eos] for target in targets], special.pad, self.n_positions)
        return self._pad_sources(sources), to_device(tgt_in, self.device), to_device(tgt_out, self.device)

    def _pad_sources(self, sources: Sequence[Sequence[int]]) -> Tensor:
        special = self.vocabularies.source.special
        rows = [[*source, special.eos] for source in sources]
        return to_device(pad_rows(rows, special.pad, self.n_positions), self.device)

    def _run(
        self, work: Callable[[list[int]], list[Result]], batches: list[list[int]], on_done: OnDone | None = None
    ) -> list[list[Result]]:
        """Work on all batches, on a CPU in the engine's threads."""

        def compute(batch: list[int]) -> list[Result]:
            current = nullcontext() if self.device.type != "cuda" else torch.cuda.device(self.device)  # of this thread
            with torch.inference_mode(), self._turn, current:
                return work_or_halve(work, batch)

        results: Iterator[list[Result]] = (
            self._threads.map(compute, batches) if self._threads else map(compute, batches)
        )
        gathered = []
        for batch, result in zip(batches, results, strict=True):
            gathered.append(result)
            if on_done:
                on_done(batch)
        return gathered

    def close(self) -> None:
        """End the engine's threads; it cannot be used after that."""
        if self._threads:
            self._threads.close()

    @staticmethod
    def _in_order(batches: list[list[int]], results: list[list[Result]], n: int) -> list[Result]:
        """Put the results of batches back into the order of the input."""
        by_row = {
            row: result
            for batch, part in zip(batches, results, strict=True)
            for row, result in zip(batch, part, strict=True)
        }
        return [by_row[row] for row in range(n)]


def choose_dtype(compute_type: str, device: torch.device) -> torch.dtype:
    """Return the type of numbers to compute in.

    The default is float32, as in validation, on every device: so scores of a training and of the finished model are
    the same, and batches change nothing. `auto` is the quickest of the device.
    """
    if compute_type == "auto" and device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float16
    types = {"default": "float32", "auto": "float32", **{name: name for name in TORCH_TYPES}}
    if compute_type not in types:
        raise OptionError(
            f"the torch engine has no `compute_type='{compute_type}'`; it has {', '.join(TORCH_TYPES)} and auto"
        )
    dtype: torch.dtype = getattr(torch, types[compute_type])
    return dtype


def dtype_of(model: TranslationModel) -> torch.dtype:
    """Return what a model computes in."""
    return next(model.parameters()).dtype if isinstance(model, nn.Module) else torch.float32


def read_finished(finished: Finished, n_best: int, merge: bool = True) -> list[list[TokenHypothesis]]:
    """Turn what sentences found into hypotheses, best first; if there are groups of beams each gives its best first.

    What several groups found counts once; samples that are equal all count, so there `merge` is False.
    """
    found = []
    for scores, log_probs, lengths, ids in zip(*(values.tolist() for values in finished[:4]), strict=True):
        hypotheses: list[TokenHypothesis] = []
        for rank in range(len(scores[0])):
            turn = [(scores[g][rank], log_probs[g][rank], ids[g][rank][: lengths[g][rank]]) for g in range(len(scores))]
            for score, log_prob, text in sorted(turn, key=lambda one: -one[0]):
                if score > NOTHING and not (merge and any(one.ids == text for one in hypotheses)):
                    hypotheses.append(TokenHypothesis(ids=text, score=score, log_prob=log_prob))
        found.append(sorted(hypotheses[:n_best], key=lambda one: -one.score))
    return found


def read_attention(model: TranslationModel, src: Tensor, tgt_in: Tensor) -> Tensor:
    """Return the last layer's attention to the source (B, T, S), averaged over the heads."""
    return model.attention_weights(src, tgt_in)[-1].float().mean(1)


def summarise(weights: Tensor) -> Attention:
    """Turn the attention of target tokens to source tokens (T, S) into what is kept of it."""
    strongest: list[int] = weights.argmax(1).tolist() if weights.shape[1] else []
    return Attention(strongest, weights.sum(0).tolist())


def work_or_halve(work: Callable[[list[int]], list[Result]], batch: list[int]) -> list[Result]:
    """Work on a batch; one that does not fit into the device's memory is halved and tried again."""
    try:
        return work(batch)
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        if len(batch) == 1:
            raise SeqtoolError(
                "one sentence does not fit into the memory; use a narrower `beam`, a lower `max_length_ratio` or "
                "`device='cpu'`"
            ) from None
    torch.cuda.empty_cache()
    middle = len(batch) // 2
    return work_or_halve(work, batch[:middle]) + work_or_halve(work, batch[middle:])
