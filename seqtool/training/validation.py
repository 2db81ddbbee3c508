"""Validation: the loss on held-out pairs, and BLEU and chrF of real translations of them."""

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqtool.config import Config
from seqtool.corpus.batches.ordering import Ints
from seqtool.corpus.text import clean_text
from seqtool.corpus.tokenizer.interface import TokenizerPair
from seqtool.evaluation.scores.metrics import MetricScore, score_bleu_chrf
from seqtool.manifest import ScoreEntry
from seqtool.model.kinds import build_model
from seqtool.model.loading import weights_of
from seqtool.model.transfer import to_device
from seqtool.training.distributed import FromFirst, Workers
from seqtool.training.loss import smoothed_cross_entropy
from seqtool.training.sharding import AnyTensor, gathered
from seqtool.translation.engines.torch_engine import TorchEngine
from seqtool.translation.translator import Translator

Pairs = Sequence[tuple[str, str]]
IdPair = tuple[list[int], list[int]]


@dataclass(frozen=True)
class Validation:
    """What one set of weights reaches on the validation pairs."""

    loss: float  # mean negative log-likelihood of a target token
    bleu: MetricScore
    chrf: MetricScore
    hypotheses: list[str]
    decoding: dict[str, object]

    @property
    def perplexity(self) -> float:
        return math.exp(min(self.loss, 700.0))

    def value(self, metric: str) -> float:
        """Return the figure by which weights are chosen; higher is better for each metric."""
        return {"bleu": self.bleu.score, "chrf": self.chrf.score, "loss": -self.loss}[metric]


@contextlib.contextmanager
def full_precision() -> Iterator[None]:
    """Compute float32 products in float32, as in translation, also if training rounds their factors (TF32)."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


class Validator:
    """Holds the validation pairs and a second model, so that any weights can be tried while training goes on.

    The first set chooses the model; the others, by name, are only reported.
    """

    def __init__(
        self,
        pairs: Sequence[tuple[str, str]],
        tokenizers: TokenizerPair,
        config: Config,
        workers: Workers,
        threads: int,
        single_sentences: bool = False,
        others: Mapping[str, Sequence[tuple[str, str]]] | None = None,
    ) -> None:
        self.pairs = list(pairs)
        self.others = {name: list(of_other) for name, of_other in (others or {}).items()}
        self.config = config
        self.workers = workers
        self.device = device = workers.device
        tokenize = config.train.bleu_tokenize
        self._tokenize = None if tokenize == "auto" else tokenize
        self.model = build_model(config.model, tokenizers.vocabularies)
        self._tokenizers, self._special = tokenizers, tokenizers.special
        self.model.to(device).eval()
        self._weights = weights_of(self.model)
        self._is_shared_out = config.train.shard == "model"
        self.release()
        engine = TorchEngine([self.model], device, batch_tokens=config.decode.batch_tokens, threads=threads)
        self._translator = Translator.with_config(config, tokenizers, engine, single_sentences=single_sentences)
        self._ids = self._encode(self.pairs)
        self._other_ids = {name: self._encode(of_other) for name, of_other in self.others.items()}

    def run(self, weights: Mapping[str, AnyTensor], beam: int, **options: Any) -> Validation:
        """Try these weights, all workers together; the options are further ones of the search."""
        self.use(weights)
        return self.try_set(None, beam, options)

    def use(self, weights: Mapping[str, AnyTensor]) -> None:
        """Take these weights into the model that validates."""
        with torch.no_grad():
            for name, tensor in self._weights.items():
                whole = gathered(weights[name], self.workers)
                if self._is_shared_out:
                    tensor.untyped_storage().resize_(tensor.nbytes)
                tensor.copy_(whole)

    def release(self) -> None:
        """Give back the memory of the weights, until the next ones, where a whole model is more than a worker keeps."""
        for tensor in self._weights.values() if self._is_shared_out else ():
            tensor.untyped_storage().resize_(0)

    def run_others(self, beam: int, **options: Any) -> dict[str, Validation]:
        """Try the weights in use on the sets that are only reported."""
        return {name: self.try_set(name, beam, options) for name in self.others}

    @full_precision()
    def try_set(self, name: str | None, beam: int, options: Mapping[str, Any]) -> Validation:
        """Try the weights in use on the set of this name, or on the one that chooses the model."""
        pairs = self.pairs if name is None else self.others[name]
        ids = self._ids if name is None else self._other_ids[name]
        hypotheses = self._translate([src for src, _ in pairs], beam, options)
        bleu, chrf = score_bleu_chrf(hypotheses, [[tgt for _, tgt in pairs]], self._tokenize)
        return Validation(self._mean_loss(ids), bleu, chrf, hypotheses, self._translator.describe(beam=beam, **options))

    def _encode(self, pairs: Pairs) -> list[IdPair]:
        """Return the token ids of pairs, sorted by length."""
        src = self._tokenizers.source.encode_batch([clean_text(pair[0]) for pair in pairs])
        tgt = self._tokenizers.target.encode_batch([clean_text(pair[1]) for pair in pairs])
        limit = self._translator.max_tokens
        return sorted(
            ((s[:limit], t[:limit]) for s, t in zip(src, tgt, strict=True)),
            key=lambda pair: (len(pair[1]), len(pair[0])),
        )

    def follow(self) -> None:
        """Take part in what the first worker validates by a LeadingValidator, until that ends."""
        while (request := self.workers.share(None)) is not None:
            task, name, beam, options = request
            if task == "use":
                self.use(FromFirst(self.workers, None))
            else:
                self.try_set(name, beam, options)

    def _translate(self, sources: Sequence[str], beam: int, options: Mapping[str, Any]) -> list[str]:
        """Return the translations; each worker makes those of some lines, of about the same length in sum."""
        order = sorted(range(len(sources)), key=lambda number: len(sources[number]))
        mine = order[self.workers.rank :: self.workers.size]
        found = self._translator.translate([sources[number] for number in mine], beam=beam, **options)
        shares = self.workers.join([(number, one.text) for number, one in zip(mine, found, strict=True)])
        texts = dict(item for share in shares for item in share)
        return [texts[number] for number in range(len(sources))]

    def _mean_loss(self, ids: Sequence[IdPair]) -> float:
        """Return the mean negative log-likelihood of a target token, ends included.

        Sums are added in one order, however many workers have computed them.
        """
        size = max(16, self.config.train.micro_tokens // (self.config.data.max_tokens + 1))
        chunks = [ids[start : start + size] for start in range(0, len(ids), size)]
        shares = self.workers.join(self._sum_losses(chunks[self.workers.rank :: self.workers.size]))
        sums = [shares[number % len(shares)][number // len(shares)] for number in range(len(chunks))]
        return sum(nll for nll, _ in sums) / sum(n_tokens for _, n_tokens in sums)

    def _sum_losses(self, chunks: Sequence[Sequence[IdPair]]) -> list[tuple[float, int]]:
        """Return each chunk's negative log-likelihood and number of target tokens."""
        of_src, of_tgt = self._special
        sums, counts = [], []
        with torch.inference_mode():
            for chunk in chunks:
                src = pad_to_longest([[*s, of_src.eos] for s, _ in chunk], of_src.pad)
                tgt_in = pad_to_longest([[of_tgt.bos, *t] for _, t in chunk], of_tgt.pad)
                tgt_out = pad_to_longest([[*t, of_tgt.eos] for _, t in chunk], of_tgt.pad).flatten()
                real = np.flatnonzero(tgt_out != of_tgt.pad)  # on the host, so that nothing waits for the device
                states = self.model(to_device(src, self.device), to_device(tgt_in, self.device)).flatten(0, 1)
                states, targets = states[to_device(real, self.device)], to_device(tgt_out[real], self.device)
                output = (self.model.output_weight, self.model.output_bias)
                sums.append(smoothed_cross_entropy(states, *output, targets, 0.0)[1])
                counts.append(len(real))
        return list(zip(torch.stack(sums).tolist() if sums else [], counts, strict=True))


def pad_to_longest(rows: list[list[int]], pad: int) -> Ints:
    """Return rows of ids as one array, filled up with padding."""
    padded = np.full((len(rows), max(map(len, rows))), pad, np.int64)
    for row, ids in zip(padded, rows, strict=True):
        row[: len(ids)] = ids
    return padded


def scores_of(validation: Validation, name: str) -> tuple[ScoreEntry, ...]:
    """Return a validation's scores on the set of this name as the manifest records them."""
    return tuple(
        ScoreEntry(
            set=name,
            metric=score.name,
            score=score.score,
            signature=score.signature,
            decoding=validation.decoding,
        )
        for score in (validation.bleu, validation.chrf)
    )


class LeadingValidator:
    """Validates weights that the first worker has, with the help of the others, which `follow`."""

    def __init__(self, validator: Validator) -> None:
        self.validator, self.workers, self.others = validator, validator.workers, validator.others

    def __enter__(self) -> "LeadingValidator":
        return self

    def __exit__(self, *_: object) -> None:
        self.workers.share(None)

    def run(self, weights: Mapping[str, Tensor], beam: int, **options: Any) -> Validation:
        """Try these weights; the options are further ones of the search."""
        self.use(weights)
        return self._lead(None, beam, options)

    def use(self, weights: Mapping[str, Tensor]) -> None:
        """Take these weights into the models that validate."""
        self.workers.share(("use", None, 0, {}))
        self.validator.use(FromFirst(self.workers, weights))

    def run_others(self, beam: int, **options: Any) -> dict[str, Validation]:
        """Try the weights in use on the sets that are only reported."""
        return {name: self._lead(name, beam, options) for name in self.others}

    def _lead(self, name: str | None, beam: int, options: Mapping[str, Any]) -> Validation:
        self.workers.share(("try", name, beam, options))
        return self.validator.try_set(name, beam, options)
