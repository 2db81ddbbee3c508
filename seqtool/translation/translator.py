"""The translator: lines of text in, translations out, whatever else is in the batch of a line.

    translator = Translator.load("checkpoints/demo")
    translator.translate(["Hello."], beam=5)[0].text

It knows text, tokens and over-long lines; what a batch is and how to search is the engine's concern. Several threads
may call one translator at the same time.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from seqtool.config import Config, DecodeConfig
from seqtool.corpus.text import clean_text
from seqtool.corpus.tokenizer.interface import TokenizerPair
from seqtool.errors import OptionError, SeqtoolError
from seqtool.translation.engines.interface import Engine, SearchOptions, TokenHypothesis
from seqtool.translation.engines.settings import EngineSettings
from seqtool.translation.guard import choose
from seqtool.translation.lines.reading import name_lines
from seqtool.translation.lines.splitting import split_text
from seqtool.translation.options import describe_search, make_options
from seqtool.translation.results import Hypothesis, Translation, join_hypotheses

__all__ = ["Hypothesis", "Translation", "Translator"]

BATCHES_AT_ONCE = 16  # what one call of an engine gets, at least, in multiples of its batch


class Part(NamedTuple):
    """What an engine translates at once: a whole line, or one part of an over-long one."""

    ids: tuple[int, ...]
    prefix: tuple[int, ...]


class Translator:
    """Translates and scores lines of text with one engine, or with another where that one is not able to."""

    def __init__(
        self,
        tokenizers: TokenizerPair,
        engine: Engine,
        config: DecodeConfig | None = None,
        *,
        max_tokens: int = 256,
        max_positions: int = 0,
        fallback: Callable[[], Engine] | None = None,
        notify: Callable[[str], None] | None = None,
    ) -> None:
        """Make a translator from its parts; a line of more than max_tokens is split.

        max_positions (0: no limit) is the longest translation that the model can make. `fallback` makes an engine for
        options that the first one cannot do, and `notify` is called when that happens.
        """
        self.tokenizers = tokenizers
        self.engine = engine
        self.config = config or DecodeConfig()
        self.max_tokens = max_tokens
        self.max_positions = max_positions
        self._fallback = fallback
        self._second: Engine | None = None
        self._choosing = threading.Lock()
        self._notify = notify or (lambda note: None)

    @classmethod
    def load(
        cls,
        model: str | Path | Sequence[str | Path],
        *,
        engine: str = "auto",
        device: str = "auto",
        threads: int = 0,
        compute_type: str = "default",
        batch_tokens: int | None = None,
        compile: bool = False,
        notify: Callable[[str], None] | None = None,
    ) -> "Translator":
        """Open a run directory, or several as an ensemble; the settings are those of EngineSettings."""
        settings = EngineSettings(
            engine=engine,
            device=device,
            threads=threads,
            compute_type=compute_type,
            batch_tokens=batch_tokens,
            compile=compile,
        )
        return cls.with_engine([model] if isinstance(model, str | Path) else model, settings, notify)

    @classmethod
    def with_engine(
        cls, models: Sequence[str | Path], settings: EngineSettings, notify: Callable[[str], None] | None = None
    ) -> "Translator":
        """Open run directories with the engine that is asked for; `notify` is called with what is odd about them."""
        from seqtool.translation.engines.choosing import load_parts

        parts = load_parts([Path(model) for model in models], settings)
        if notify:
            for note in parts.notes:
                notify(note)
        return cls.with_config(parts.config, parts.tokenizers, parts.engine, fallback=parts.fallback, notify=notify)

    @classmethod
    def with_config(cls, config: Config, tokenizers: TokenizerPair, engine: Engine, **others: Any) -> "Translator":
        """Make a translator with the decoding settings and the limits of a run's configuration."""
        max_tokens = config.data.max_tokens
        max_positions = config.model.position_limit
        return cls(
            tokenizers,
            engine,
            config.decode,
            max_tokens=min(max_tokens, max_positions - 1) if max_positions else max_tokens,
            max_positions=max_positions,
            **others,
        )

    def close(self) -> None:
        """End the engines' threads and free their memory; it cannot be used after that."""
        for engine in (self.engine, self._second):
            if engine is not None:
                engine.close()

    def __enter__(self) -> "Translator":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def translate(
        self,
        sources: Sequence[str],
        options: SearchOptions | None = None,
        *,
        prefixes: Sequence[str] | None = None,
        progress: Callable[[float], None] | None = None,
        **changes: Any,
    ) -> list[Translation]:
        """Translate lines with options that make_options() made, or that are given by name (beam, n_best, ...).

        A prefix is a text that its line's translation must begin with. `progress` is called with the share done so far.
        """
        if isinstance(sources, str):
            raise SeqtoolError("translate() takes a list of texts, not one text; write translate([text])")
        if isinstance(prefixes, str):
            raise SeqtoolError("prefixes is a list of texts, one for each source; write prefixes=[text]")
        if prefixes is not None and len(prefixes) != len(sources):
            raise SeqtoolError(f"there are {len(sources)} sources but {len(prefixes)} prefixes; give one for each")
        search = self._one_of(options, changes)
        engine = self.engine_for(search)
        lines = list(zip(map(clean_text, sources), prefixes or [""] * len(sources), strict=True))
        unique = list(dict.fromkeys(lines))
        parts_of = dict(zip(unique, self._cut(unique, search), strict=True))
        parts = list(dict.fromkeys(part for parts in parts_of.values() for part in parts))
        found = self._search(engine, parts, search, progress)
        self._search_again(engine, found, search)
        results = {line: self._assemble(line[0], parts_of[line], found, search) for line in unique}
        return [results[line] for line in lines]

    def score(self, sources: Sequence[str], targets: Sequence[str], first_line: int = 1) -> list[list[float]]:
        """Return for each pair the log-probability of each target token and, last, of the end of the sentence.

        A pair is never split. One that is too long is an error that names its line, counted from first_line.
        """
        if isinstance(sources, str) or isinstance(targets, str):
            raise SeqtoolError("score() takes lists of texts, not one text; write score([source], [target])")
        if len(sources) != len(targets):
            raise SeqtoolError(f"there are {len(sources)} sources but {len(targets)} targets; give one for each")
        src = self.tokenizers.source.encode_batch([clean_text(text) for text in sources])
        tgt = self.tokenizers.target.encode_batch([clean_text(text) for text in targets])
        scores: list[list[float]] = [[] for _ in src]
        for engine, rows in self._share_out([max(map(len, pair)) for pair in zip(src, tgt, strict=True)], first_line):
            found = engine.score([src[row] for row in rows], [tgt[row] for row in rows])
            for row, token_scores in zip(rows, found, strict=True):
                scores[row] = token_scores
        return scores

    def _share_out(self, lengths: list[int], first_line: int) -> list[tuple[Engine, list[int]]]:
        """Return which pairs of these lengths each engine has to score."""
        long = [row for row, length in enumerate(lengths) if 0 < self.engine.max_tokens < length]
        if not long:
            return [(self.engine, list(range(len(lengths))))]
        lines = name_lines(first_line + row for row in long)
        cause = f"{lines}: longer than the {self.engine.max_tokens:,} tokens that the {self.engine.name} engine takes"
        if self._fallback is None:
            advice = "" if self.engine.name == "torch" else ", or use `engine='torch'`"
            raise SeqtoolError(f"{cause}; shorten what is there{advice}")
        second = self._second_engine(f"{cause}, so the slower torch engine is used")
        for row in long:
            if 0 < second.max_tokens < lengths[row]:
                raise SeqtoolError(
                    f"line {first_line + row:,}: its {lengths[row]:,} tokens are more than the {second.max_tokens:,} "
                    "that this model has positions for; shorten it"
                )
        return [(self.engine, sorted(set(range(len(lengths))).difference(long))), (second, long)]

    def make_options(self, **changes: Any) -> SearchOptions:
        """Return the model's own search options with some of them changed; None changes nothing.

        The words in `banned` and `required` may be given as texts.
        """
        return make_options(self.config, self.tokenizers.target, changes)

    def _one_of(self, options: SearchOptions | None, changes: dict[str, Any]) -> SearchOptions:
        if options is None:
            return self.make_options(**changes)
        if changes:
            raise OptionError(f"there are options already, and {', '.join(changes)} too; change them in make_options()")
        return options

    def describe(self, options: SearchOptions | None = None, **changes: Any) -> dict[str, Any]:
        """Return the settings that translate() would use for these options, for the record of a score."""
        search = self._one_of(options, changes)
        return describe_search(search, self.engine_for(search))

    def longest_part(self, search: SearchOptions) -> int:
        """Return the most tokens that are translated in one part; its translation must fit into the positions too."""
        if not self.max_positions:
            return self.max_tokens
        fitting = (self.max_positions - 1 - search.max_length(0)) / max(search.max_length_ratio, 0.1)
        return max(1, min(self.max_tokens, int(fitting)))

    def engine_for(self, search: SearchOptions) -> Engine:
        """Return the first engine that can do what is asked for."""
        missing = self.engine.unsupported(search, self.longest_part(search))
        if not missing:
            return self.engine
        cause = f"the {self.engine.name} engine does not offer {', '.join(missing)}"
        if self._fallback is None:
            advice = "leave that out" if self.engine.name == "torch" else "use `engine='torch'`"
            raise OptionError(f"{cause}; {advice}")
        return self._second_engine(f"{cause}, so the slower torch engine is used")

    def _second_engine(self, note: str) -> Engine:
        """Return the engine for what the first one cannot do; the user is notified once."""
        assert self._fallback is not None
        with self._choosing:
            if self._second is None:
                self._notify(note)
                self._second = self._fallback()
            return self._second

    def _cut(self, lines: Sequence[tuple[str, str]], search: SearchOptions) -> list[list[Part]]:
        """Turn each line and its prefix into parts that are short enough; a blank line has none."""
        tokenizer = self.tokenizers.source
        limit = self.longest_part(search)

        def count(texts: list[str]) -> list[int]:
            return [len(ids) for ids in tokenizer.encode_batch(texts)]

        cut: list[list[Part]] = []
        for (text, prefix), ids in zip(lines, tokenizer.encode_batch([text for text, _ in lines]), strict=True):
            pieces = [ids]
            if len(ids) > limit:
                pieces = tokenizer.encode_batch([clean_text(part) for part in split_text(text, count, limit)])
            start = self.tokenizers.target.encode(clean_text(prefix)) if prefix else []
            if 0 < self.max_positions <= len(start):
                raise SeqtoolError(
                    f"a prefix has {len(start):,} tokens, but this model has positions for {self.max_positions - 1:,}; "
                    "shorten it"
                )
            parts = [Part(tuple(piece), ()) for piece in pieces if piece]
            cut.append([Part(parts[0].ids, tuple(start)), *parts[1:]] if parts and start else parts)
        return cut

    def _search(
        self, engine: Engine, parts: list[Part], search: SearchOptions, progress: Callable[[float], None] | None = None
    ) -> dict[Part, list[TokenHypothesis]]:
        """Translate all parts, longest first, in calls that are large enough to keep an engine's workers busy."""
        parts = sorted(parts, key=lambda part: (-len(part.ids), part))
        limit = engine.batch_tokens * max(BATCHES_AT_ONCE, engine.batches_at_once)
        found: dict[Part, list[TokenHypothesis]] = {}
        total, done = sum(len(part.ids) + 1 for part in parts), 0

        def count(rows: Sequence[int]) -> None:
            nonlocal done
            done += sum(len(batch[row].ids) + 1 for row in rows)
            if progress:
                progress(done / total)

        for batch in slices(parts, limit):
            prefixes = [part.prefix for part in batch] if any(part.prefix for part in batch) else None
            ranked = engine.translate([part.ids for part in batch], search, prefixes, count)
            found.update(zip(batch, ranked, strict=True))
        return found

    def _search_again(self, engine: Engine, found: dict[Part, list[TokenHypothesis]], search: SearchOptions) -> None:
        """Ask for the whole beam where the best hypothesis is empty or looping, so that there is a choice."""
        if search.sample or search.n_best >= search.beam:
            return
        few = [part for part, ranked in found.items() if len(ranked) < search.beam]
        bad = [part for part in few if self._choose(part, found[part]) != 0]
        if bad:
            found.update(self._search(engine, bad, replace(search, n_best=search.beam)))

    def _choose(self, part: Part, ranked: list[TokenHypothesis]) -> int | None:
        """Return which hypothesis to take; None where all are empty or looping."""
        return choose(part.ids, [hypothesis.ids for hypothesis in ranked], self._is_empty)

    def _assemble(
        self, source: str, parts: list[Part], found: dict[Part, list[TokenHypothesis]], search: SearchOptions
    ) -> Translation:
        """Make a line's translation from the hypotheses of its parts."""
        replaced = doubtful = 0
        ranked: list[list[Hypothesis]] = []
        for part in parts:
            hypotheses = found[part]
            best = self._choose(part, hypotheses)
            replaced += bool(best)
            doubtful += best is None
            if best:
                hypotheses = [hypotheses[best], *hypotheses[:best], *hypotheses[best + 1 :]]
            ranked.append([self._to_text(hypothesis) for hypothesis in hypotheses[: search.n_best]])
        source_tokens = [piece for part in parts for piece in self.tokenizers.source.pieces(part.ids)]
        lengths = [len(part.ids) for part in parts]
        return Translation(
            source=source,
            source_tokens=source_tokens,
            hypotheses=join_hypotheses(ranked, lengths, search),
            n_parts=max(1, len(parts)),
            n_replaced=replaced,
            n_doubtful=doubtful,
        )

    def _is_empty(self, ids: Sequence[int]) -> bool:
        return not clean_text(self.tokenizers.target.decode(ids))

    def _to_text(self, found: TokenHypothesis) -> Hypothesis:
        return Hypothesis(
            text=clean_text(self.tokenizers.target.decode(found.ids)),
            score=found.score,
            log_prob=found.log_prob,
            tokens=self.tokenizers.target.pieces(found.ids),
            token_scores=found.token_scores,
            alignment=None if found.alignment is None else [(src, tgt) for tgt, src in enumerate(found.alignment)],
        )


def slices(parts: list[Part], limit: int) -> list[list[Part]]:
    """Cut parts, sorted from long to short, into batches of at most `limit` source tokens with their padding."""
    batches: list[list[Part]] = []
    room = 0
    for part in parts:
        if room < 1:
            batches.append([])
            room = max(1, limit // (len(part.ids) + 1))
        batches[-1].append(part)
        room -= 1
    return batches
