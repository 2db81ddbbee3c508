"""The translator: lines of text in, translations out, whatever else is in the batch of a line.

    translator = Translator.load("checkpoints/demo")
    translator.translate(["Hello."], beam=5)[0].text

It knows text, tokens and over-long lines; what a batch is and how to search is the engine's concern. Several threads
may call one translator at the same time.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from seqtool.config import Config, DecodeConfig
from seqtool.corpus.text import clean_text
from seqtool.corpus.tokenizer.interface import TokenizerPair
from seqtool.errors import OptionError, SeqtoolError
from seqtool.run_directory import RunDir
from seqtool.translation.engines.fallback import Engines
from seqtool.translation.engines.interface import Engine, SearchOptions
from seqtool.translation.engines.settings import EngineSettings
from seqtool.translation.options import describe_search, make_options
from seqtool.translation.outcomes import Outcome, OutcomeCache, PlannedLine, Segment
from seqtool.translation.results import Hypothesis, Translation, join_hypotheses
from seqtool.translation.segments import search_segments
from seqtool.translation.splitting import cut_text, split_text

__all__ = ["Hypothesis", "Translation", "Translator"]


class Translator:
    """Translates and scores lines of text with one engine, or with another if that one is not able to."""

    def __init__(
        self,
        tokenizers: TokenizerPair,
        engine: Engine,
        config: DecodeConfig | None = None,
        *,
        max_tokens: int = 256,
        max_positions: int = 0,
        single_sentences: bool = False,
        cache_bytes: int = 0,
        fallback: Callable[[], Engine] | None = None,
        notify: Callable[[str], None] | None = None,
    ) -> None:
        """Make a translator from its parts; a line of more than max_tokens is split.

        max_positions (0: no limit) is the longest translation that the model can make. With single_sentences, as it was
        trained, lines are split into sentences unless `split` says otherwise. Of about cache_bytes of its latest
        translations it remembers what they are. `fallback` makes an engine for options that the first one cannot do,
        and `notify` is called when that happens.
        """
        self.tokenizers = tokenizers
        self.engines = Engines(engine, fallback, notify)
        self.config = config or DecodeConfig()
        self.max_tokens = max_tokens
        self.max_positions = max_positions
        self.single_sentences = single_sentences
        self.runs: tuple[RunDir, ...] = ()  # that it was opened from
        self.checksums: tuple[dict[str, str], ...] = ()  # of their files, as they were read
        self._known = OutcomeCache(cache_bytes)

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
        cache_bytes: int = 0,
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
        models = [model] if isinstance(model, str | Path) else model
        return cls.with_engine(models, settings, cache_bytes=cache_bytes, notify=notify)

    @classmethod
    def with_engine(
        cls,
        models: Sequence[str | Path],
        settings: EngineSettings,
        *,
        cache_bytes: int = 0,
        notify: Callable[[str], None] | None = None,
    ) -> "Translator":
        """Open run directories with the engine that is asked for; `notify` is called with what is odd about them."""
        from seqtool.translation.engines.choosing import load_parts

        parts = load_parts([Path(model) for model in models], settings)
        if notify:
            for note in parts.notes:
                notify(note)
        others = {
            "single_sentences": parts.single_sentences,
            "cache_bytes": cache_bytes,
            "fallback": parts.fallback,
            "notify": notify,
        }
        translator = cls.with_config(parts.config, parts.tokenizers, parts.engine, **others)
        translator.runs, translator.checksums = parts.runs, parts.checksums
        return translator

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

    @property
    def engine(self) -> Engine:
        """The engine for all that it offers."""
        return self.engines.first

    def close(self) -> None:
        """End the engines' threads and free their memory; it cannot be used after that."""
        self.engines.close()

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
        self.engine_for(search)
        lines = self.plan(sources, search, prefixes)
        wanted = dict.fromkeys(segment for line in lines for segment in line.segments)
        found = self.recall(search, wanted)
        found.update(self.search(search, [segment for segment in wanted if segment not in found], progress))
        return [self.assemble(line, found, search) for line in lines]

    # The steps of translate(), for a caller that makes its own batches of segments:

    def plan(
        self, sources: Sequence[str], search: SearchOptions, prefixes: Sequence[str] | None = None
    ) -> list[PlannedLine]:
        """Turn each line and its prefix into segments that are short enough; a blank line has none.

        A text that has several lines, which only a caller from Python can give, is translated line by line.
        """
        split = self.splits_sentences(search)
        texts = ["\n".join(map(clean_text, source.strip().split("\n"))) for source in sources]
        cut = [
            cut_text(text, split) if split or search.split != "never" else [("", clean_text(text))] for text in texts
        ]
        segments = iter(self._encode([sentence for sentences in cut for _, sentence in sentences], search))
        lines = []
        for text, sentences, prefix in zip(texts, cut, prefixes or [""] * len(texts), strict=True):
            planned = PlannedLine(text, [], [], len(sentences))
            for breaks, _ in sentences:
                parts = next(segments)
                planned.segments.extend(parts)
                planned.breaks.extend([breaks, *[""] * (len(parts) - 1)] if parts else [])
            lines.append(self._with_prefix(planned, prefix) if prefix else planned)
        return lines

    def splits_sentences(self, search: SearchOptions) -> bool:
        """Return whether each sentence of a line is translated by itself."""
        return search.split == "always" or (search.split == "auto" and self.single_sentences)

    def recall(self, search: SearchOptions, segments: Iterable[Segment]) -> dict[Segment, Outcome]:
        """Return the outcomes of those segments that are remembered."""
        return self._known.find(search, segments)

    def search(
        self, search: SearchOptions, segments: list[Segment], progress: Callable[[float], None] | None = None
    ) -> dict[Segment, Outcome]:
        """Translate segments that are all different, and remember what came of it."""
        longest = max((len(segment.prefix) for segment in segments), default=0)
        engine = self.engine_for(search, longest)
        outcomes = search_segments(engine, self.tokenizers.target, segments, search, progress)
        self._known.keep(search, outcomes)
        return outcomes

    def assemble(self, line: PlannedLine, found: Mapping[Segment, Outcome], search: SearchOptions) -> Translation:
        """Make a line's translation from the outcomes of its segments."""
        outcomes = [found[segment] for segment in line.segments]
        lengths = [len(segment.ids) for segment in line.segments]
        return Translation(
            source=line.text,
            source_tokens=[piece for segment in line.segments for piece in self.tokenizers.source.pieces(segment.ids)],
            hypotheses=join_hypotheses([outcome.hypotheses for outcome in outcomes], lengths, line.breaks, search),
            n_parts=max(1, len(line.segments)),
            n_sentences=max(1, line.n_sentences),
            n_replaced=sum(outcome.replaced for outcome in outcomes),
            n_doubtful=sum(outcome.doubtful for outcome in outcomes),
        )

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
        lengths = [max(map(len, pair)) for pair in zip(src, tgt, strict=True)]
        for engine, rows in self.engines.for_pairs(lengths, first_line):
            found = engine.score([src[row] for row in rows], [tgt[row] for row in rows])
            for row, token_scores in zip(rows, found, strict=True):
                scores[row] = token_scores
        return scores

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
        split = {"split": "sentences"} if self.splits_sentences(search) else {}
        return {**describe_search(search, self.engine_for(search)), **split}

    def longest_part(self, search: SearchOptions) -> int:
        """Return the most tokens that are translated in one part; its translation must fit into the positions too."""
        if not self.max_positions:
            return self.max_tokens
        fitting = (self.max_positions - 1 - search.max_length(0)) / max(search.max_length_ratio, 0.1)
        return max(1, min(self.max_tokens, int(fitting)))

    def engine_for(self, search: SearchOptions, n_prefix: int = 0) -> Engine:
        """Return the first engine that offers what is asked for, with prefixes of up to n_prefix tokens."""
        return self.engines.for_search(search, self.longest_part(search), n_prefix)

    def _encode(self, texts: list[str], search: SearchOptions) -> list[list[Segment]]:
        """Return the segments of each text: one, or several where it is too long; none if nothing of it can be seen."""
        tokenizer = self.tokenizers.source
        limit = self.longest_part(search)

        def count(texts: list[str]) -> list[int]:
            return [len(ids) for ids in tokenizer.encode_batch(texts)]

        segments: list[list[Segment]] = []
        for text, ids in zip(texts, tokenizer.encode_batch(texts), strict=True):
            pieces = [ids]
            if len(ids) > limit:
                pieces = tokenizer.encode_batch([clean_text(part) for part in split_text(text, count, limit)])
            segments.append([Segment(tuple(piece), ()) for piece in pieces if piece])
        return segments

    def _with_prefix(self, line: PlannedLine, prefix: str) -> PlannedLine:
        """Return a line whose first segment's translation begins with a text."""
        start = self.tokenizers.target.encode(clean_text(prefix))
        if 0 < self.max_positions <= len(start):
            raise SeqtoolError(
                f"a prefix has {len(start):,} tokens, but this model has positions for {self.max_positions - 1:,}; "
                "shorten it"
            )
        if not line.segments:
            return line
        return line._replace(segments=[Segment(line.segments[0].ids, tuple(start)), *line.segments[1:]])
