"""Prepares corpora: reads, cleans and tokenizes them on all cores, and writes a PreparedCorpus that is whole or absent.

The files are written to a folder of another name, which takes its own when all is on disk. They depend on the request
and the tokenizers alone, not on the number of workers or on earlier attempts.
"""

import contextlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from seqtool import __version__
from seqtool.corpus.cleaning.hashing import hash_pairs
from seqtool.corpus.cleaning.measuring import measure_pairs
from seqtool.corpus.cleaning.rules import (
    CleaningRules,
    Deduplicator,
    OverlapHashes,
    Verdicts,
    dropped_lines,
    require_usable,
)
from seqtool.corpus.preparing.block_encoder import ALL_RULES, HELD_OUT, EncodedBlock, EncodingSetup, encode_blocks
from seqtool.corpus.preparing.prepared import FORMAT, MANIFEST, PreparedCorpus, PrepareRequest, SourceFile
from seqtool.corpus.preparing.prepared import HELD_OUT as HELD_OUT_FILE
from seqtool.corpus.preparing.text_facts import TextSample
from seqtool.corpus.preparing.token_array import TokenArrayWriter
from seqtool.corpus.reading.blocks import count_pairs, read_blocks
from seqtool.corpus.reading.lines import PairBlock
from seqtool.corpus.tokenizer.interface import TokenizerPair
from seqtool.errors import SeqtoolError
from seqtool.files import locked, make_folder, open_whole, sha256_of, to_json, whole_folder, write_whole
from seqtool.process import count_cores
from seqtool.progress import Progress, ShowProgress, ignore
from seqtool.verification import seal

SMALL = 50_000  # pairs; starting worker processes would take longer than they save
OVERLAP = ALL_RULES.index("overlap")


def prepare_corpus(
    request: PrepareRequest,
    tokenizers: TokenizerPair,
    out: Path,
    *,
    held_out: Sequence[tuple[str, str]] = (),
    pairs: int | None = None,
    extra: dict[str, Any] | None = None,
    show: ShowProgress = ignore,
    dropped: Path | None = None,
) -> PreparedCorpus:
    """Write the prepared corpus into the folder `out`, replacing one that is there.

    The pairs of `held_out` are kept with it as text and not trained on. `pairs` is the number of pairs in the corpora,
    if the caller knows it; `extra` goes into the manifest; `dropped` is a file for what is dropped, with the rule.
    """
    make_folder(out.parent)
    if dropped is not None:
        make_folder(dropped.parent)
        if dropped.is_dir():
            raise SeqtoolError(f"{dropped}: is a folder; give `dropped` a file to write to")
    busy = f"{out.parent}: a corpus is being prepared here already; wait, or give another `out`"
    with locked(out.parent, busy), _explaining_full_disk(out), contextlib.ExitStack() as stack:
        folder = stack.enter_context(whole_folder(out))
        sources = request.describe_sources()
        pairs = sum(count_pairs(corpus) for corpus in request.corpora) if pairs is None else pairs
        dropped_file = stack.enter_context(open_whole(dropped)) if dropped else None
        counts, files = _Preparation(request, tokenizers, held_out, folder, dropped_file).run(pairs, show)
        _check_unchanged(sources)
        _write_held_out(folder / HELD_OUT_FILE, held_out)
        manifest = {
            "format": FORMAT,
            "version": __version__,
            "sources": [[asdict(file) for file in group] for group in sources],
            "settings": request.settings(),
            "tokenizers": {"source": tokenizers.source.sha256, "target": tokenizers.target.sha256},
            **(extra or {}),
            **counts,
            "held_out": len(held_out),
            "held_out_sha256": sha256_of(folder / HELD_OUT_FILE),
            "files": files,
            "sha256": None,
        }
        write_whole(folder / MANIFEST, to_json({**manifest, "sha256": seal(manifest)}))
    return PreparedCorpus.open(out, verify=False)


class _Preparation:
    """One pass over all corpora: everything that must be done in order, in one process."""

    def __init__(
        self,
        request: PrepareRequest,
        tokenizers: TokenizerPair,
        held_out: Sequence[tuple[str, str]],
        folder: Path,
        dropped: BinaryIO | None,
    ) -> None:
        self._request, self._dropped_file = request, dropped
        apart = PairBlock.from_pairs([(src.encode(), tgt.encode()) for src, tgt in held_out])
        src, tgt = measure_pairs(apart)
        self._held_out = np.unique(hash_pairs(src.hashes, tgt.hashes))
        against = OverlapHashes.read(request.against)
        against = OverlapHashes(np.union1d(against.src, src.hashes), np.union1d(against.tgt, tgt.hashes))
        rules = CleaningRules.learn(request.clean, against, request.corpora)
        self._setup = EncodingSetup(rules, tokenizers, request.data.max_tokens)
        self._seen = Deduplicator(request.clean)
        self._sample = TextSample(0)
        self._writers = [
            TokenArrayWriter(folder, side, tokenizer.vocab_size, request.data.max_tokens)
            for side, tokenizer in (("source", tokenizers.source), ("target", tokenizers.target))
        ]
        self._n_extra = 0
        self._n_read = [0] * len(request.corpora)
        self._n_kept = [0] * len(request.corpora)
        self._dropped: Counter[str] = Counter()

    def run(self, pairs: int, show: ShowProgress) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the manifest's records of the corpora and of the files."""
        self._sample = TextSample(pairs)
        workers = self._request.data.workers or (1 if pairs < SMALL else count_cores())
        blocks = encode_blocks(self._all_blocks(), self._setup, workers)
        with contextlib.closing(blocks), contextlib.ExitStack() as stack:
            for writer in self._writers:
                stack.callback(writer.close)
            for corpus, block, encoded in blocks:
                self._take(corpus, block, encoded)
                show(Progress("preparing", sum(self._n_read), pairs))
            self._check_usable()
            files = {name: facts for writer in self._writers for name, facts in writer.finish().items()}
        return self._describe_corpora(), files

    def _all_blocks(self) -> Iterator[tuple[int, PairBlock]]:
        for number, corpus in enumerate(self._request.corpora):
            for block in read_blocks(corpus):
                yield number, block

    def _take(self, corpus: int, block: PairBlock, encoded: EncodedBlock) -> None:
        """Apply the rules that need a memory, and write what is left."""
        verdicts = encoded.verdicts
        before = verdicts.kept
        self._mark_held_out(verdicts)
        self._seen.mark(verdicts)
        self._sample.add(block, verdicts)
        left = verdicts.kept[before]
        for writer, rows in zip(self._writers, (encoded.source, encoded.target), strict=True):
            writer.append(*rows.select(left))
        self._n_read[corpus] += len(block)
        self._n_extra += int(block.extra.sum())
        self._n_kept[corpus] += int(left.sum())
        numbers = np.bincount(verdicts.rules, minlength=len(ALL_RULES)).tolist()
        self._dropped.update({rule: n for rule, n in zip(ALL_RULES, numbers, strict=True) if n and rule != "kept"})
        if self._dropped_file is not None:
            name = str(self._request.corpora[corpus].source)
            self._dropped_file.write(dropped_lines(block, verdicts, ALL_RULES, name))

    def _mark_held_out(self, verdicts: Verdicts) -> None:
        if len(self._held_out):
            places = np.minimum(np.searchsorted(self._held_out, verdicts.hashes), len(self._held_out) - 1)
            found = self._held_out[places] == verdicts.hashes
            verdicts.rules[found & (verdicts.kept | (verdicts.rules == OVERLAP))] = HELD_OUT

    def _check_usable(self) -> None:
        names = ", ".join(map(str, self._request.corpora))
        require_usable(self._request.clean, names, sum(self._n_read), dict(self._dropped))

    def _describe_corpora(self) -> dict[str, Any]:
        first = 0
        corpora = []
        for corpus, n_read, n_kept in zip(self._request.corpora, self._n_read, self._n_kept, strict=True):
            facts = {"corpus": str(corpus), "weight": corpus.weight, "pairs": n_read, "first": first}
            corpora.append({**facts, "last": first + n_kept})
            first += n_kept
        dropped = {rule: self._dropped[rule] for rule in ALL_RULES if self._dropped[rule]}
        facts = {"corpora": corpora, "dropped": dropped, "extra_columns": self._n_extra}
        return {**facts, "text": self._sample.describe()}


# The folder


@contextlib.contextmanager
def _explaining_full_disk(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SeqtoolError(
            f"{out}: cannot be written ({error.strerror or error}); make room or give another `out`"
        ) from None


def _check_unchanged(sources: list[list[SourceFile]]) -> None:
    for file in (file for group in sources for file in group):
        facts = os.stat(file.path)
        if (facts.st_size, facts.st_mtime_ns) != (file.size, file.modified):
            raise SeqtoolError(f"{file.path}: was changed while it was read; run the same command again")


def _write_held_out(path: Path, pairs: Sequence[tuple[str, str]]) -> None:
    write_whole(path, "".join(json.dumps(pair, ensure_ascii=False) + "\n" for pair in pairs))
