"""Divides a corpus into a training, a validation and a test set, so that no source and no target is in two of them.

What is left out of a set because it is in another one is counted. In memory are only the sets that are held apart.
"""

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from seqtool.config import CleanConfig
from seqtool.corpus.cleaning.hashing import Hashes, hash_pairs
from seqtool.corpus.reading.corpus import Corpus, require_files
from seqtool.corpus.reading.forms import SUFFIXES
from seqtool.corpus.reading.lines import Mask, PairBlock
from seqtool.corpus.reading.opening import without_compression
from seqtool.corpus.reading.parting import ShiftWatch
from seqtool.corpus.splitting.choice import (
    HashedBlock,
    LineHashes,
    Numbers,
    Sizes,
    choose_documents,
    choose_pairs,
    read_hashed,
)
from seqtool.errors import SeqtoolError
from seqtool.files import make_folder, open_whole

SETS = ("train", "valid", "test")
DOCUMENT_SHARE = 0.01  # of blank pairs, from which on they are taken to mark documents


@dataclass(frozen=True)
class Split:
    """What a split wrote: the files and the number of pairs of each set, and the pairs that are in none."""

    files: dict[str, list[Path]]
    pairs: dict[str, int]
    overlapping: int
    documents: bool


def split_corpus(
    corpus: Corpus, out: Path, sizes: Sizes, seed: int, documents: str = "auto", clean: CleanConfig | None = None
) -> Split:
    """Write the three sets of a corpus into a folder; documents, which blank lines end, are kept whole if there are
    any: 'auto', or 'always' or 'never'."""
    clean = clean or CleanConfig()
    require_files([corpus])
    files = _name_files(corpus, out)
    pairs, blank = _survey(corpus, clean)
    if not 0 < sum(sizes) <= pairs // 2:
        raise SeqtoolError(f"{corpus}: has {pairs:,} pairs; `valid` and `test` must be 1 to {pairs // 2:,} together")
    whole = documents == "always" or (documents == "auto" and blank >= DOCUMENT_SHARE * pairs)
    chosen = choose_documents(corpus, sizes, seed) if whole else []
    held_apart = _hashes_of(corpus, chosen) if whole else choose_pairs(corpus, clean, sizes, seed)
    make_folder(out)
    writer = _Writer(held_apart, chosen)
    with contextlib.ExitStack() as stack:
        opened = {name: [stack.enter_context(open_whole(path)) for path in files[name]] for name in SETS}
        for block in read_hashed(corpus):
            writer.write(block, opened)
    return Split(files, writer.pairs, writer.overlapping, whole)


def _survey(corpus: Corpus, clean: CleanConfig) -> tuple[int, int]:
    """Return the numbers of pairs and of blank pairs; raise if the corpus is shifted."""
    watch = ShiftWatch()
    pairs = blank = 0
    for block in read_hashed(corpus):
        watch.add(block.pairs)
        pairs += len(block.pairs)
        blank += int((block.src_blank & block.tgt_blank).sum())
    watch.finish()
    if not clean.shifted and (problem := watch.problem(corpus)):
        raise SeqtoolError(problem)
    return pairs, blank


def _hashes_of(corpus: Corpus, chosen: list[Numbers]) -> list[LineHashes]:
    """Gather the hashes of the lines of chosen documents."""
    found: list[tuple[list[Hashes], list[Hashes]]] = [([], []) for _ in chosen]
    for block in read_hashed(corpus):
        for (src, tgt), part in zip(found, chosen, strict=True):
            inside = np.isin(block.document, part)
            src.append(block.src[inside & ~block.src_blank])
            tgt.append(block.tgt[inside & ~block.tgt_blank])
    none = np.zeros(0, np.uint64)
    joined = ([np.unique(np.concatenate([none, *side])) for side in sides] for sides in found)
    return [LineHashes(src, tgt, none) for src, tgt in joined]


class _Writer:
    """Deals the pairs out to the sets."""

    def __init__(self, held_apart: list[LineHashes], documents: list[Numbers]) -> None:
        self._held_apart, self._documents = held_apart, documents
        self._taken: set[int] = set()  # pairs of a set that were written; repetitions are not
        self.pairs = dict.fromkeys(SETS, 0)
        self.overlapping = 0

    def write(self, block: HashedBlock, files: dict[str, list[BinaryIO]]) -> None:
        """Write each pair of a block to its set."""
        valid, test = self._members(block)
        in_valid, in_test = (hashes.contain(block) for hashes in self._held_apart)
        masks = {"train": ~(in_valid | in_test | valid | test), "valid": valid & ~in_test, "test": test}
        for name, mask in masks.items():
            _write_pairs(block.pairs, mask, files[name])
            self.pairs[name] += int((mask & ~(block.src_blank & block.tgt_blank)).sum())
        self.overlapping += int((~(masks["train"] | masks["valid"] | masks["test"])).sum())

    def _members(self, block: HashedBlock) -> tuple[Mask, Mask]:
        """Return which pairs are chosen for the validation and the test set."""
        if self._documents:
            valid, test = (np.isin(block.document, part) for part in self._documents)
            return valid, test
        members, pairs = [], hash_pairs(block.src, block.tgt)
        for hashes in self._held_apart:
            both = np.isin(pairs, hashes.pairs)
            for i in np.flatnonzero(both).tolist():
                both[i] = int(pairs[i]) not in self._taken
                self._taken.add(int(pairs[i]))
            members.append(both)
        return members[0], members[1]


def _write_pairs(block: PairBlock, mask: Mask, files: list[BinaryIO]) -> None:
    places = np.flatnonzero(mask).tolist()
    if len(files) == 2:
        for side, file in zip((block.src, block.tgt), files, strict=True):
            file.write(b"".join(side.line(i) + b"\n" for i in places))
        return
    for i in places:
        src, tgt = (side.line(i).replace(b"\t", b" ") for side in (block.src, block.tgt))
        files[0].write((src if block.missing[i] else src + b"\t" + tgt) + b"\n")


def _name_files(corpus: Corpus, out: Path) -> dict[str, list[Path]]:
    """Return the files to write, named by the languages of two aligned files; one file with pairs becomes TSV."""
    endings = [".tsv"]
    if corpus.target is not None:
        suffixes = [without_compression(path).suffix for path in corpus.paths]
        usable = suffixes[0] != suffixes[1] and all(suffix and suffix not in SUFFIXES for suffix in suffixes)
        endings = suffixes if usable else [".src", ".tgt"]
    files = {name: [out / f"{name}{ending}" for ending in endings] for name in SETS}
    for path in (path for paths in files.values() for path in paths):
        if path.exists():
            raise SeqtoolError(f"{path}: is there already; remove it, or give another `out`")
    return files
