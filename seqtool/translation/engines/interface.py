"""What every engine takes and gives: token ids in, ranked hypotheses out. Knows neither torch nor text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from seqtool.config import DecodeConfig
from seqtool.errors import OptionError

USUAL_LENGTH_PENALTY = 1.0  # if neither the user nor validation chose one


LIMITS = {  # the lowest and highest value of a search option
    "beam": (1, 1000),
    "n_best": (1, 1000),
    "length_penalty": (0, 10),
    "coverage_penalty": (0, 100),
    "max_length_ratio": (0, 1000),
    "temperature": (1e-6, 1000),
    "top_k": (0, 2**31),
    "top_p": (1e-6, 1),
    "seed": (0, 2**63 - 1),
    "diversity": (0, 100),
    "no_repeat_ngram": (0, 1000),
}

SPLITS = ("auto", "always", "never")

OnDone = Callable[[Sequence[int]], None]  # called with the indices of sources as they are done


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """How to search; the defaults are the plain beam search of DecodeConfig."""

    beam: int = 5
    length_penalty: float = USUAL_LENGTH_PENALTY
    coverage_penalty: float = 0.0
    max_length_ratio: float = 2.0
    n_best: int = 1
    patience: float = 1.0  # a sentence ends with beam * patience finished hypotheses, if not before
    sample: bool = False
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 1
    diverse_groups: int = 1
    diversity: float = 0.5
    no_repeat_ngram: int = 0
    banned: tuple[int, ...] = ()
    required: tuple[int, ...] = ()
    token_scores: bool = False
    alignment: bool = False
    split: str = "auto"  # into sentences, before the search: always, never, or as the training corpus was

    def __post_init__(self) -> None:
        for name, (low, high) in LIMITS.items():
            value = getattr(self, name)
            kind = int if isinstance(type(self).__dataclass_fields__[name].default, int) else (int, float)
            if not isinstance(value, kind) or not low <= value <= high:
                whole = "a whole number " if kind is int and isinstance(value, float) else ""
                raise OptionError(f"`{name}` must be {whole}from {low} to {high}, not {value!r}")
        if self.split not in SPLITS:
            raise OptionError(f"`split` must be one of {', '.join(SPLITS)}, not {self.split!r}")
        if not (0 < self.patience <= 1000 or self.patience == float("inf")):
            raise OptionError(f"`patience` must be more than 0 and at most 1000, or inf, not {self.patience}")
        if not self.sample and self.n_best > self.beam:
            raise OptionError(
                f"`n_best={self.n_best}` needs a beam as wide; give `beam={self.n_best}`, or `sample=True`"
            )
        if self.diverse_groups < 1 or self.beam % self.diverse_groups:
            raise OptionError(
                f"a beam of {self.beam} cannot be shared out evenly to {self.diverse_groups} diverse groups; "
                "give a `beam` that is a multiple of the groups"
            )

    @classmethod
    def from_config(cls, config: DecodeConfig, **changes: object) -> "SearchOptions":
        """Start from a model's own decoding settings, changed by what the user gave."""
        settings = {
            "beam": config.beam,
            "length_penalty": USUAL_LENGTH_PENALTY if config.length_penalty == "auto" else config.length_penalty,
            "coverage_penalty": config.coverage_penalty,
            "max_length_ratio": config.max_length_ratio,
            "split": config.split,
        }
        return cls(**{**settings, **changes})  # type: ignore[arg-type]

    def max_length(self, source_length: int) -> int:
        """Return the most target tokens (without the end symbol) that a source of this many tokens may get."""
        return int(self.max_length_ratio * source_length) + 16


@dataclass(frozen=True, kw_only=True)
class TokenHypothesis:
    """One translation as token ids, without begin and end symbols."""

    ids: list[int]
    score: float  # what hypotheses are ranked by: log_prob over the length penalty
    log_prob: float  # sum of the log-probabilities of its tokens and of the end symbol
    token_scores: list[float] | None = None  # one log-probability per token, the end symbol's last
    alignment: list[int] | None = None  # for each target token the source token that it attends to most


class Batching(NamedTuple):
    """What a caller that makes its own batches should hand over at once."""

    callers: int  # threads that keep the engine busy
    rows: int  # sentences in a call, at most
    step: int  # lengths up to the same multiple of this are computed together without waste


class Engine(Protocol):
    """Translates and scores batches of token ids; results do not depend on what else is in a batch.

    Several threads may call one engine at the same time.
    """

    name: str
    compute_type: str  # what it computes in: float32, bfloat16, int8, ...
    max_tokens: int  # the longest source or target that it takes, without the end symbol; 0 if there is no limit
    batch_tokens: int  # source tokens that it translates together
    batching: Batching

    def unsupported(self, options: SearchOptions, n_source: int) -> list[str]:
        """Name the options asked for that it does not have, for sources of up to n_source tokens."""
        ...

    def translate(
        self,
        sources: Sequence[Sequence[int]],
        options: SearchOptions,
        prefixes: Sequence[Sequence[int]] | None = None,
        on_done: OnDone | None = None,
    ) -> list[list[TokenHypothesis]]:
        """Return for each source (ids without the end symbol) its n best hypotheses, best first.

        What else of the beam the search has found may follow them.
        """
        ...

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[float]]:
        """Return for each pair the log-probability of each target token and, last, of the end symbol."""
        ...

    def close(self) -> None:
        """Free what it holds; it cannot be used after that."""
        ...
