"""The fast engine: CTranslate2 on the exported form of a model. Never imports torch.

What makes its results those of the torch engine, whatever else is in a batch:
- Only sentences of one length share a batch. Nothing is padded then, so that the integer arithmetic of int8 gives bit
  for bit the same numbers in every batch, and each batch can have the length limit of its sentences. Sums of floats
  are taken in another order where a matrix has few rows, so small batches of float models are filled up with copies.
- CTranslate2 divides by length ** penalty, seqtool by the GNMT penalty. So all hypotheses of the beam are asked for,
  their log-probabilities recovered, and ranked again.
- Hypotheses are returned with their end symbol: one without it ran into the length limit and is ended there.

With banned tokens, repeated n-grams or a prefix it may find other translations than the torch engine does: it shares
the probability of what is forbidden among the rest, and looks at fewer ends right behind a prefix.
"""

import contextlib
import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from seqtool.corpus.tokenizer.interface import TokenizerPair
from seqtool.errors import OptionError, SeqtoolError
from seqtool.process import count_cores
from seqtool.translation.engines.ct2_library import choose_place, import_ctranslate2
from seqtool.translation.engines.interface import Batching, OnDone, SearchOptions, TokenHypothesis
from seqtool.translation.engines.settings import EngineSettings
from seqtool.translation.search.penalties import length_penalty

BATCH_ROWS = 12  # sentences at once in one worker
BATCH_TOKENS = 2048  # and tokens, if sentences are long
MIN_FLOAT_ROWS = 8
QUEUED = 4  # batches a worker that wait or run; few, so that Ctrl-C is answered soon


class Ended(NamedTuple):
    """A hypothesis before it is ranked; log_prob is None if ctranslate2 did not give it."""

    ids: list[int]
    log_prob: float | None


class CTranslate2Engine:
    """Translates with ctranslate2; on a CPU with one worker per core and one thread each, which is measured best."""

    name = "ctranslate2"

    def __init__(
        self,
        folder: Path,
        tokenizers: TokenizerPair,
        settings: EngineSettings | None = None,
        *,
        n_positions: int = 0,
        n_learned: int = 0,
    ) -> None:
        """Load an exported folder; its table holds n_positions (0: no limit), of which n_learned are a model's own."""
        ctranslate2 = import_ctranslate2()
        settings = settings or EngineSettings()
        kind, number = choose_place(settings.device)
        self._folder = folder
        self.workers = (settings.threads or count_cores()) if kind == "cpu" else 1
        try:
            self._model = ctranslate2.Translator(
                str(folder),
                device=kind,
                device_index=number,
                compute_type=settings.compute_type,
                inter_threads=self.workers,
                intra_threads=1,
                max_queued_batches=-1,
            )
        except (RuntimeError, ValueError, LookupError, MemoryError) as error:
            raise SeqtoolError(
                f"{folder}: ctranslate2 cannot load this model ({error}); "
                "make it again with 'seqtool export', or use `engine='torch'`"
            ) from None
        self._source, self._target = tokenizers.source, tokenizers.target
        self.max_tokens = max(0, n_positions - 1)
        self._n_learned = n_learned
        self.batch_tokens = min(settings.batch_tokens or BATCH_TOKENS, BATCH_TOKENS)
        self.batching = Batching(callers=self.workers, rows=BATCH_ROWS, step=1)
        self.compute_type = str(self._model.compute_type)
        self._min_rows = 1 if self.compute_type.startswith("int8") else MIN_FLOAT_ROWS

    def unsupported(self, options: SearchOptions, n_source: int) -> list[str]:
        """Name the options asked for that ctranslate2 does not have, for sources of up to n_source tokens."""
        longest = max(n_source, self._limit(options, n_source))
        asked = {
            "`sample`": options.sample,  # its random numbers depend on what else is in a batch
            "`coverage_penalty`": options.coverage_penalty != 0,
            "`diverse_groups`": options.diverse_groups > 1,
            "`required`": bool(options.required),
            f"`patience={options.patience:g}`": (
                math.isinf(options.patience) or (options.beam == 1 and options.patience != 1)
            ),
            f"`max_length_ratio={options.max_length_ratio:g}` for lines of {n_source:,} tokens": (
                0 < self.max_tokens < longest
            ),
        }
        return [name for name, is_asked in asked.items() if is_asked]

    def translate(
        self,
        sources: Sequence[Sequence[int]],
        options: SearchOptions,
        prefixes: Sequence[Sequence[int]] | None = None,
        on_done: OnDone | None = None,
    ) -> list[list[TokenHypothesis]]:
        """Return for each source (ids without the end symbol) its n best hypotheses, best first."""
        missing = self.unsupported(options, max(map(len, sources), default=0))
        starts = prefixes if prefixes is not None else [()] * len(sources)
        if 0 < self.max_tokens < max(map(len, starts), default=0):
            missing.append(f"a prefix of more than {self.max_tokens:,} tokens")
        if missing:
            raise OptionError(f"the ctranslate2 engine does not offer {', '.join(missing)}; use `engine='torch'`")
        special = self._target.special
        found: list[list[Ended]] = [[] for _ in sources]
        odd: list[int] = []
        for row, hypotheses in self._search(sources, starts, options, range(len(sources)), options.banned):
            found[row] = hypotheses
            if on_done:
                on_done([row])
            if any(special.pad in one.ids or special.bos in one.ids for one in hypotheses):
                odd.append(row)
        # To forbid tokens makes the others more probable, so these two, which no trained model writes, are forbidden
        # only where one appears.
        for row, hypotheses in self._search(sources, starts, options, odd, (special.pad, special.bos, *options.banned)):
            found[row] = hypotheses
        self._score_again(sources, found)
        ranked = [rank(hypotheses, options) for hypotheses in found]
        if options.alignment or options.token_scores:
            ranked = self._with_details(sources, [hypotheses[: options.n_best] for hypotheses in ranked], options)
        return ranked

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[float]]:
        """Return for each pair the log-probability of each target token and, last, of the end symbol."""
        scores: list[list[float]] = [[] for _ in sources]

        def start(rows: list[int]) -> list[Any]:
            rows = self._filled(rows)
            return self._model.score_batch(  # type: ignore[no-any-return]
                [self._source.pieces(sources[row]) for row in rows],
                [self._target.pieces(targets[row]) for row in rows],
                max_input_length=0,
                asynchronous=True,
            )

        for rows, results in self._run(start, batches(sources, targets, range(len(sources)), self.batch_tokens)):
            for row, result in zip(rows, results, strict=False):
                scores[row] = list(self._result(result).log_probs)
        return scores

    def align(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[int]]:
        """Return for each pair the source token that the prediction of each target token attends to most.

        The targets are forced upon a greedy search. What a beam search of ctranslate2 (4.8) returns for the first token
        is the attention of another sentence of the batch.
        """
        strongest: list[list[int]] = [[] for _ in sources]

        def start(rows: list[int]) -> list[Any]:
            rows = self._filled(rows)
            return self._model.translate_batch(  # type: ignore[no-any-return]
                [self._source.pieces(sources[row]) for row in rows],
                [self._target.pieces(targets[row]) for row in rows],
                beam_size=1,
                max_decoding_length=len(targets[rows[0]]),
                max_input_length=0,
                return_attention=True,
                asynchronous=True,
            )

        whole = [row for row, target in enumerate(targets) if target and sources[row]]
        for rows, results in self._run(start, batches(sources, targets, whole, self.batch_tokens)):
            for row, result in zip(rows, results, strict=False):
                weights = self._result(result).attention[0][: len(targets[row])]
                tokens = range(len(sources[row]))
                strongest[row] = [max(tokens, key=of_token.__getitem__) for of_token in weights]
        return strongest

    def close(self) -> None:
        """Free the model's memory; it cannot be used after that."""
        self._model.unload_model()

    def _search(
        self,
        sources: Sequence[Sequence[int]],
        starts: Sequence[Sequence[int]],
        options: SearchOptions,
        rows: Sequence[int],
        banned: Sequence[int],
    ) -> Iterator[tuple[int, list[Ended]]]:
        """Search some of the sources and yield each with its hypotheses."""
        forbidden = [[piece] for piece in self._target.pieces(banned)]
        patience = max(options.patience, options.n_best / options.beam)  # it ends with as many as are to be returned

        def start(batch: list[int]) -> list[Any]:
            batch = self._filled(batch)
            return self._model.translate_batch(  # type: ignore[no-any-return]
                [self._source.pieces(sources[row]) for row in batch],
                [self._target.pieces(starts[row]) for row in batch] if starts[batch[0]] else None,
                beam_size=options.beam,
                patience=patience,
                num_hypotheses=max(1, int(options.beam * patience + 0.5)),
                length_penalty=penalty_power(options, len(sources[batch[0]])),
                no_repeat_ngram_size=options.no_repeat_ngram,
                suppress_sequences=forbidden or None,
                min_decoding_length=0,
                max_decoding_length=self._limit(options, len(sources[batch[0]]), starts[batch[0]]) + 1,
                max_input_length=0,
                return_scores=True,
                return_end_token=True,
                asynchronous=True,
            )

        is_exact = not (forbidden or options.no_repeat_ngram)
        for batch, results in self._run(start, batches(sources, starts, rows, self.batch_tokens)):
            for row, result in zip(batch, results, strict=False):
                limit = self._limit(options, len(sources[row]), starts[row])
                exact = is_exact and not starts[row]  # a prefix counts as certain
                power = penalty_power(options, len(sources[row]))
                yield row, self._read(self._result(result), power, limit, exact)

    def _run(self, start: Any, all_rows: Iterable[list[int]]) -> Iterator[tuple[list[int], list[Any]]]:
        """Keep the workers busy: start batches ahead of the one whose results are read."""
        waiting: deque[tuple[list[int], list[Any]]] = deque()
        for rows in all_rows:
            with self._named_errors():
                waiting.append((rows, start(rows)))
            if len(waiting) > QUEUED * self.workers:
                yield waiting.popleft()
        yield from waiting

    def _result(self, waiting: Any) -> Any:
        """Wait for a result."""
        with self._named_errors():
            return waiting.result()

    @contextlib.contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Turn what ctranslate2 raises into an error that names the folder."""
        try:
            yield
        except (RuntimeError, ValueError) as error:
            raise SeqtoolError(
                f"{self._folder}: ctranslate2 cannot compute with this model ({error}); "
                "make it again with 'seqtool export', or use `engine='torch'`"
            ) from None

    def _filled(self, rows: list[int]) -> list[int]:
        """Repeat the last row if a batch would have too few."""
        return rows + rows[-1:] * (self._min_rows - len(rows))

    def _limit(self, options: SearchOptions, n_source: int, prefix: Sequence[int] = ()) -> int:
        """Return the most target tokens for a source; there is always room for its prefix."""
        limit = max(options.max_length(n_source), len(prefix))
        return min(limit, self._n_learned - 1) if self._n_learned else limit

    def _read(self, result: Any, power: float, limit: int, is_exact: bool) -> list[Ended]:
        """Turn ctranslate2's hypotheses of one sentence into ids and, if they are exact, log-probabilities."""
        hypotheses: dict[tuple[int, ...], Ended] = {}
        for index, pieces in enumerate(result.hypotheses):
            ids = self._target.ids_of(pieces)
            ended = bool(ids) and ids[-1] == self._target.special.eos
            text = ids[:-1] if ended else ids[:limit]
            log_prob = result.scores[index] * len(ids) ** power if ended and is_exact else None
            hypotheses.setdefault(tuple(text), Ended(text, log_prob))
        return list(hypotheses.values())

    def _score_again(self, sources: Sequence[Sequence[int]], found: list[list[Ended]]) -> None:
        """Compute the log-probabilities that the search did not give."""
        places = [
            (row, index)
            for row, hypotheses in enumerate(found)
            for index, hypothesis in enumerate(hypotheses)
            if hypothesis.log_prob is None
        ]
        scores = self.score([sources[row] for row, _ in places], [found[row][index].ids for row, index in places])
        for (row, index), token_scores in zip(places, scores, strict=True):
            found[row][index] = found[row][index]._replace(log_prob=sum(token_scores))

    def _with_details(
        self, sources: Sequence[Sequence[int]], ranked: list[list[TokenHypothesis]], options: SearchOptions
    ) -> list[list[TokenHypothesis]]:
        """Add the log-probability of every token, and the alignment, if they are asked for."""
        for name, compute in (("token_scores", self.score), ("alignment", self.align)):
            if not getattr(options, name):
                continue
            pairs = [(row, hypothesis) for row, hypotheses in enumerate(ranked) for hypothesis in hypotheses]
            values = compute([sources[row] for row, _ in pairs], [hypothesis.ids for _, hypothesis in pairs])
            detailed: list[list[TokenHypothesis]] = [[] for _ in ranked]
            for (row, hypothesis), value in zip(pairs, values, strict=True):
                detailed[row].append(replace(hypothesis, **{name: value}))  # type: ignore[arg-type]
            ranked = detailed
        return ranked


def penalty_power(options: SearchOptions, n_source: int) -> float:
    """Return the power of the length that ctranslate2 divides by, which is undone when its results are read.

    It matters only where more hypotheses end at once than the beam holds, and ctranslate2 chooses which to return. So
    that it chooses as the GNMT penalty does, both grow at the same rate where a translation is as long as its source.
    It is never 0, as that would end a search with the first hypothesis.
    """
    return max(options.length_penalty * (n_source + 1) / (n_source + 6), 1e-6)


def batches(
    sources: Sequence[Sequence[int]], others: Sequence[Sequence[int]], rows: Sequence[int], batch_tokens: int
) -> Iterator[list[int]]:
    """Share out rows to batches, longest first; the sources of a batch are of one length, and so are the others.

    Those of one length are shared out evenly: a worker takes hardly less time for 2 sentences than for 6.
    """

    def shape(row: int) -> tuple[int, int]:
        return len(sources[row]), len(others[row])

    for (length, other_length), group in groupby(sorted(rows, key=shape, reverse=True), key=shape):
        alike = list(group)
        most = min(BATCH_ROWS, max(1, batch_tokens // (length + other_length + 1)))
        n_batches = math.ceil(len(alike) / most)
        for index in range(n_batches):
            yield alike[len(alike) * index // n_batches : len(alike) * (index + 1) // n_batches]


def rank(hypotheses: Iterable[Ended], options: SearchOptions) -> list[TokenHypothesis]:
    """Give hypotheses their scores by seqtool's length penalty, and put the best first."""
    ranked = []
    for ids, log_prob in hypotheses:
        assert log_prob is not None
        score = log_prob / length_penalty(len(ids) + 1, options.length_penalty)
        ranked.append(TokenHypothesis(ids=ids, score=score, log_prob=log_prob))
    return sorted(ranked, key=lambda hypothesis: -hypothesis.score)
