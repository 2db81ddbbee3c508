"""Validation: the loss on held-out pairs, and BLEU and chrF of real translations of them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqtool.config import Config
from seqtool.corpus.text import clean_text
from seqtool.corpus.tokenizer.interface import TokenizerPair
from seqtool.evaluation.scores.metrics import MetricScore, score_bleu_chrf
from seqtool.manifest import ScoreEntry
from seqtool.model.kinds import build_model
from seqtool.model.loading import weights_of
from seqtool.training.loss import smoothed_cross_entropy
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


class Validator:
    """Holds the validation pairs and a second model, so that any weights can be tried while training goes on.

    The first set chooses the model; the others, by name, are only reported.
    """

    def __init__(
        self,
        pairs: Sequence[tuple[str, str]],
        tokenizers: TokenizerPair,
        config: Config,
        device: torch.device,
        threads: int,
        single_sentences: bool = False,
        others: Mapping[str, Sequence[tuple[str, str]]] | None = None,
    ) -> None:
        self.pairs = list(pairs)
        self.others = {name: list(of_other) for name, of_other in (others or {}).items()}
        self.config = config
        self.device = device
        tokenize = config.train.bleu_tokenize
        self._tokenize = None if tokenize == "auto" else tokenize
        self.model = build_model(config.model, tokenizers.vocabularies)
        self._tokenizers, self._special = tokenizers, tokenizers.special
        self.model.to(device).eval()
        self._weights = weights_of(self.model)
        engine = TorchEngine([self.model], device, batch_tokens=config.decode.batch_tokens, threads=threads)
        self._translator = Translator.with_config(config, tokenizers, engine, single_sentences=single_sentences)
        self._ids = self._encode(self.pairs)
        self._other_ids = {name: self._encode(of_other) for name, of_other in self.others.items()}

    def run(self, weights: Mapping[str, Tensor], beam: int, **options: Any) -> Validation:
        """Try these weights; the options are further ones of the search."""
        self.use(weights)
        return self._try(self.pairs, self._ids, beam, options)

    def use(self, weights: Mapping[str, Tensor]) -> None:
        """Take these weights into the model that validates."""
        with torch.no_grad():
            for name, tensor in self._weights.items():
                tensor.copy_(weights[name])

    def run_others(self, beam: int, **options: Any) -> dict[str, Validation]:
        """Try the weights in use on the sets that are only reported."""
        return {name: self._try(self.others[name], self._other_ids[name], beam, options) for name in self.others}

    def _try(self, pairs: Pairs, ids: Sequence[IdPair], beam: int, options: Mapping[str, Any]) -> Validation:
        translations = self._translator.translate([src for src, _ in pairs], beam=beam, **options)
        hypotheses = [translation.text for translation in translations]
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

    def _mean_loss(self, ids: Sequence[IdPair]) -> float:
        """Return the mean negative log-likelihood of a target token, ends included."""
        of_src, of_tgt = self._special
        total, n_tokens = 0.0, 0
        rows = max(1, self.config.train.micro_tokens // (self.config.data.max_tokens + 1))
        with torch.inference_mode():
            for start in range(0, len(ids), max(rows, 16)):
                chunk = ids[start : start + max(rows, 16)]
                src = self._pad([[*s, of_src.eos] for s, _ in chunk], of_src.pad)
                tgt_in = self._pad([[of_tgt.bos, *t] for _, t in chunk], of_tgt.pad)
                tgt_out = self._pad([[*t, of_tgt.eos] for _, t in chunk], of_tgt.pad)
                real = (tgt_out != of_tgt.pad).flatten()
                states = self.model(src, tgt_in).flatten(0, 1)[real]
                _, nll = smoothed_cross_entropy(
                    states, self.model.output_weight, self.model.output_bias, tgt_out.flatten()[real], 0.0
                )
                total += float(nll)
                n_tokens += len(states)
        return total / n_tokens

    def _pad(self, rows: list[list[int]], pad: int) -> Tensor:
        padded = np.full((len(rows), max(map(len, rows))), pad, np.int64)
        for row, ids in zip(padded, rows, strict=True):
            row[: len(ids)] = ids
        return torch.from_numpy(padded).to(self.device)


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
