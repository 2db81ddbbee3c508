"""Cleans and tokenizes blocks of pairs, here or in worker processes. Run as a program, this module is such a worker."""

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np

from seqtool.config.sections import CleanConfig
from seqtool.corpus.cleaning.languages import USUAL_SHAPE, Languages
from seqtool.corpus.cleaning.rules import KEPT, RULES, CleaningRules, OverlapHashes, Verdicts
from seqtool.corpus.preparing.line_encoder import LineEncoder
from seqtool.corpus.preparing.messages import Message
from seqtool.corpus.preparing.token_array import Ints
from seqtool.corpus.preparing.worker_pool import Answer, map_in_order, serve
from seqtool.corpus.reading.lines import LineBlock, PairBlock
from seqtool.corpus.text import clean_text
from seqtool.corpus.tokenizer.interface import TokenizerPair
from seqtool.corpus.tokenizer.registry import open_tokenizer

# The rules of cleaning, and those that need tokens or the choice of validation pairs; KEPT lies between.
ALL_RULES = (*RULES, "kept", "too_many_tokens", "held_out")
TOO_MANY_TOKENS = ALL_RULES.index("too_many_tokens")
HELD_OUT = ALL_RULES.index("held_out")
assert ALL_RULES[KEPT] == "kept"


class Rows(NamedTuple):
    """The tokens of many lines one after the other, and the number of tokens of each."""

    tokens: Ints
    lengths: Ints

    def select(self, wanted: Ints) -> "Rows":
        """Return the rows where the mask is True."""
        if wanted.all():
            return self
        return Rows(self.tokens[np.repeat(wanted, self.lengths)], self.lengths[wanted])


@dataclass(frozen=True)
class EncodedBlock:
    """The verdict on each pair of a block, and the tokens of those that are kept."""

    verdicts: Verdicts
    source: Rows
    target: Rows


@dataclass(frozen=True)
class EncodingSetup:
    """What a worker must know before it can begin."""

    rules: CleaningRules
    tokenizers: TokenizerPair
    max_tokens: int


class BlockEncoder:
    """Cleans and tokenizes block after block; the order of the blocks makes no difference."""

    def __init__(self, setup: EncodingSetup) -> None:
        self._rules, self._max_tokens = setup.rules, setup.max_tokens
        self._source = LineEncoder(setup.tokenizers.source)
        self._target = self._source if setup.tokenizers.is_one else LineEncoder(setup.tokenizers.target)

    def encode(self, block: PairBlock) -> EncodedBlock:
        """Apply the rules that look at a pair by itself, and tokenize what they leave."""
        verdicts = self._rules.judge(block)
        kept = np.flatnonzero(verdicts.kept)
        source = Rows(*self._source.encode(_texts(block.src, kept)))
        target = Rows(*self._target.encode(_texts(block.tgt, kept)))
        short = np.maximum(source.lengths, target.lengths) <= self._max_tokens
        verdicts.rules[kept[~short]] = TOO_MANY_TOKENS
        return EncodedBlock(verdicts, source.select(short), target.select(short))


def _texts(lines: LineBlock, wanted: Ints) -> list[str]:
    data = lines.data
    places = zip(lines.starts[wanted].tolist(), lines.ends[wanted].tolist(), strict=True)
    return [clean_text(data[start:end].decode("utf-8")) for start, end in places]


def encode_blocks(
    blocks: Iterable[tuple[int, PairBlock]], setup: EncodingSetup, n_workers: int
) -> Generator[tuple[int, PairBlock, EncodedBlock], None, None]:
    """Yield each (corpus number, block) with its encoded form, in order; one worker means: in this process."""
    if n_workers == 1:
        encoder = BlockEncoder(setup)
        for corpus, block in blocks:
            yield corpus, block, encoder.encode(block)
        return
    pending: deque[tuple[int, PairBlock]] = deque()

    def jobs() -> Iterator[Message]:
        for corpus, block in blocks:
            pending.append((corpus, block))
            yield _pack_block(block)

    for answer in map_in_order(jobs(), __name__, _pack_setup(setup), n_workers):
        yield *pending.popleft(), _unpack_encoded(answer)


# What goes through the pipes


def _pack_setup(setup: EncodingSetup) -> Message:
    against = setup.rules.against
    facts = {"clean": asdict(setup.rules.config), "max_tokens": setup.max_tokens, "against": against is not None}
    arrays: dict[str, Ints] = {"source": np.frombuffer(setup.tokenizers.source.model, np.uint8)}
    if not setup.tokenizers.is_one:
        arrays["target"] = np.frombuffer(setup.tokenizers.target.model, np.uint8)
    if against is not None:
        arrays.update(against_src=against.src, against_tgt=against.tgt)
    if (languages := setup.rules.languages) is not None:
        arrays.update(languages_src=languages.tables[0], languages_tgt=languages.tables[1])
        arrays.update(languages_usual=languages.usual.ravel())
    return Message(facts, arrays)


def _unpack_setup(message: Message) -> EncodingSetup:
    facts, arrays = message.facts, message.arrays
    against = OverlapHashes(arrays["against_src"], arrays["against_tgt"]) if facts["against"] else None
    source = open_tokenizer(arrays["source"].tobytes())
    target = open_tokenizer(arrays["target"].tobytes()) if "target" in arrays else source
    languages = None
    if "languages_src" in arrays:
        tables = arrays["languages_src"], arrays["languages_tgt"]
        languages = Languages(tables, arrays["languages_usual"].reshape(USUAL_SHAPE))
    rules = CleaningRules(CleanConfig(**facts["clean"]), against, languages)
    return EncodingSetup(rules, TokenizerPair(source, target), facts["max_tokens"])


def _pack_block(block: PairBlock) -> Message:
    arrays: dict[str, Ints] = {"src": np.frombuffer(block.src.data, np.uint8)}
    if block.tgt.data is not block.src.data:  # the columns of a TSV file lie in one buffer
        arrays["tgt"] = np.frombuffer(block.tgt.data, np.uint8)
    arrays.update(src_starts=block.src.starts, src_ends=block.src.ends, missing=block.missing, extra=block.extra)
    arrays.update(tgt_starts=block.tgt.starts, tgt_ends=block.tgt.ends)
    return Message({"number": block.number}, arrays)


def _unpack_block(message: Message) -> PairBlock:
    arrays = message.arrays
    src_data = arrays["src"].tobytes()
    tgt_data = arrays["tgt"].tobytes() if "tgt" in arrays else src_data
    src = LineBlock(src_data, arrays["src_starts"], arrays["src_ends"])
    tgt = LineBlock(tgt_data, arrays["tgt_starts"], arrays["tgt_ends"])
    return PairBlock(message.facts["number"], src, tgt, arrays["missing"], arrays["extra"])


def _pack_encoded(encoded: EncodedBlock) -> Message:
    arrays: dict[str, Ints] = {"rules": encoded.verdicts.rules, "hashes": encoded.verdicts.hashes}
    if encoded.verdicts.sources is not None:
        arrays["sources"] = encoded.verdicts.sources
    for side, rows in (("src", encoded.source), ("tgt", encoded.target)):
        arrays.update({f"{side}_tokens": rows.tokens, f"{side}_lengths": rows.lengths})
    return Message({}, arrays)


def _unpack_encoded(message: Message) -> EncodedBlock:
    arrays = message.arrays
    sides = (Rows(arrays[f"{side}_tokens"], arrays[f"{side}_lengths"]) for side in ("src", "tgt"))
    return EncodedBlock(Verdicts(arrays["rules"].copy(), arrays["hashes"], arrays.get("sources")), *sides)


def _make_answer(setup: Message) -> Answer:
    encoder = BlockEncoder(_unpack_setup(setup))
    return lambda job: _pack_encoded(encoder.encode(_unpack_block(job)))


if __name__ == "__main__":
    serve(_make_answer)
