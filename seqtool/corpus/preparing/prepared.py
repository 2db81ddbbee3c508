"""A prepared corpus: token ids of all training pairs in memory-mapped files, and a manifest of how they were made."""

import contextlib
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from seqtool.config import CleanConfig, Config, DataConfig
from seqtool.corpus.preparing.token_array import Ints, PairRange, TokenArray, TokenArrayWriter, open_token_array
from seqtool.corpus.reading.corpus import Corpus
from seqtool.corpus.reading.opening import readable
from seqtool.errors import SeqtoolError
from seqtool.files import sha256_of
from seqtool.manifest import DataFacts
from seqtool.verification import MIB, checksum, read_limited, require_regular, seal

FORMAT = 1  # of the files; another number means that an older or newer seqtool made them
MANIFEST = "manifest.json"
HELD_OUT = "held_out.jsonl"
MAX_MANIFEST = 16 * MIB
FILES = tuple(f"{side}.{part}" for side in ("source", "target") for part in TokenArrayWriter.PARTS)
TYPES = {"<u2": 2, "<u4": 4, "<u8": 8}  # of the numbers in them, and their bytes
LATER = {"damaged", "entities", "urls", "tags", "placeholders"}  # rules of cleaning
LATER |= {"numbers", "language", "max_targets"}


@dataclass(frozen=True, kw_only=True)
class PrepareRequest:
    """What the content of a prepared corpus depends on, beside the tokenizers."""

    corpora: tuple[Corpus, ...]
    against: tuple[Corpus, ...] = ()  # validation and test sets: what is in them is not for training
    hold_out: bool = False  # take validation pairs out of the corpora
    clean: CleanConfig
    data: DataConfig
    seed: int = 1

    @classmethod
    def of(
        cls, config: Config, corpora: tuple[Corpus, ...], valid: Corpus | None, against: tuple[Corpus, ...]
    ) -> "PrepareRequest":
        """Return the request for a run; without a validation set, pairs are held out for one."""
        return cls(
            corpora=corpora,
            against=(*([valid] if valid else []), *against),
            hold_out=valid is None,
            clean=config.clean,
            data=config.data,
            seed=config.train.seed,
        )

    def settings(self) -> dict[str, Any]:
        """Return the settings that matter for the content, for the manifest."""
        data = {name: value for name, value in asdict(self.data).items() if name != "workers"}
        if not self.hold_out:
            del data["held_out"]
        columns = columns_of((*self.corpora, *self.against))
        return {
            **({"columns": columns} if columns else {}),
            "weights": [corpus.weight for corpus in self.corpora],
            "seed": self.seed if self.hold_out else None,
            "clean": cleaning_settings(self.clean),
            "data": data,
        }

    def describe_sources(self) -> list[list["SourceFile"]]:
        """Return the files of each corpus, then those of the sets to keep apart, with their checksums."""
        return [[SourceFile.describe(path) for path in corpus.paths] for corpus in (*self.corpora, *self.against)]


def cleaning_settings(config: CleanConfig) -> dict[str, Any]:
    """Return the settings of cleaning that matter for the content; those that came later only if they are used, so
    that a corpus that was prepared before has not changed."""
    settings = asdict(config)
    del settings["shifted"]
    unused = CleanConfig()
    return {name: value for name, value in settings.items() if name not in LATER or value != getattr(unused, name)}


def columns_of(corpora: Sequence[Corpus]) -> list[list[str] | None]:
    """Return the columns that each corpus names; nothing if none does."""
    columns = [list(corpus.columns) if corpus.columns else None for corpus in corpora]
    return columns if any(columns) else []


@dataclass(frozen=True)
class SourceFile:
    """A file that a prepared corpus was made from."""

    path: str
    size: int
    modified: int  # nanoseconds
    sha256: str

    @classmethod
    def describe(cls, path: Path) -> "SourceFile":
        with readable(path):
            facts = path.stat()
            return cls(str(path), facts.st_size, facts.st_mtime_ns, sha256_of(path))

    def is_same(self, path: Path) -> bool:
        """Return whether a file still has this content; its bytes are read only if size and time do not answer that."""
        with readable(path):
            facts = path.stat()
            if facts.st_size != self.size:
                return False
            return (str(path), facts.st_mtime_ns) == (self.path, self.modified) or sha256_of(path) == self.sha256


@dataclass(frozen=True)
class PreparedCorpus:
    """Token ids of pairs, without begin and end; opened in no time, whatever its size."""

    folder: Path
    manifest: dict[str, Any]
    source: TokenArray
    target: TokenArray

    @classmethod
    def open(cls, folder: Path, *, verify: bool = True) -> "PreparedCorpus":
        """Open the prepared corpus in a folder; only who has just written it need not verify its files."""
        manifest = read_manifest(folder)
        if manifest is None:
            raise SeqtoolError(f"{folder}: no prepared corpus; make it with 'seqtool prepare' or 'seqtool train'")
        if damage := find_damage(folder, manifest) if verify else None:
            raise SeqtoolError(f"{damage}; prepare the corpus again with the same 'seqtool train' or 'seqtool prepare'")
        sides = (open_token_array(folder, side, manifest["files"]) for side in ("source", "target"))
        return cls(folder, manifest, *sides)

    def __len__(self) -> int:
        return len(self.source)

    @property
    def src_lengths(self) -> Ints:
        return self.source.lengths

    @property
    def tgt_lengths(self) -> Ints:
        return self.target.lengths

    @property
    def ranges(self) -> list[PairRange]:
        """Which pairs are of which corpus, and its weight."""
        return [PairRange(part["first"], part["last"], part["weight"]) for part in self.manifest["corpora"]]

    @property
    def n_read(self) -> int:
        """Pairs in the corpora before cleaning."""
        return sum(part["pairs"] for part in self.manifest["corpora"])

    @property
    def dropped(self) -> dict[str, int]:
        """How many pairs each rule dropped."""
        return dict(self.manifest["dropped"])

    @property
    def text(self) -> dict[str, Any] | None:
        """What the text is like; None if an early version prepared it, which did not measure that."""
        return self.manifest.get("text")

    @cached_property
    def fingerprint(self) -> str:
        """Identifies the content: equal if tokens, tokenizers and weights are equal."""
        content = [self.manifest[name] for name in ("files", "tokenizers")]
        content.append([[part.first, part.last, part.weight] for part in self.ranges])
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def describe(self) -> DataFacts:
        """Return what a model's manifest says of its data."""
        return DataFacts(
            fingerprint=self.fingerprint,
            pairs=len(self),
            read=self.n_read,
            cleaning=self.dropped,
            sources=tuple(file["path"] for group in self.manifest["sources"] for file in group),
            text=self.text,
        )

    @cached_property
    def held_out(self) -> list[tuple[str, str]]:
        """The pairs held out for validation, as text; none if a validation set was given."""
        lines = (self.folder / HELD_OUT).read_text(encoding="utf-8").split("\n")[:-1]
        return [(src, tgt) for src, tgt in map(json.loads, lines)]


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Return the manifest of a prepared corpus; None if there is none, a damaged one, or one of another format."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError, ValueError, RecursionError):
        manifest = json.loads(read_limited(folder / MANIFEST, MAX_MANIFEST))
        if isinstance(manifest, dict) and manifest.get("format") == FORMAT and _is_whole(manifest):
            return manifest
    return None


def _is_whole(manifest: dict[str, Any]) -> bool:
    """Return whether a manifest matches its own checksum, which an early version did not write."""
    return manifest.get("sha256") in (None, seal({**manifest, "sha256": None}))


def find_damage(folder: Path, manifest: dict[str, Any]) -> str | None:
    """Return which file is not as it was written; None if all are whole."""
    try:
        for name in FILES:
            described, path = manifest["files"][name], folder / name
            if not path.exists():
                return f"{path} is missing"
            size = require_regular(path, folder).st_size
            if size != described["count"] * TYPES[described["type"]] or checksum(path) != described["sha256"]:
                return f"{path} is damaged"
        expected = manifest.get("held_out_sha256")  # an early version did not record it
        if expected is not None:
            require_regular(folder / HELD_OUT, folder)
            if checksum(folder / HELD_OUT) != expected:
                return f"{folder / HELD_OUT} is damaged"
    except (KeyError, TypeError, OSError) as error:
        return f"{folder} is damaged ({error})"
    except SeqtoolError as error:
        return str(error)
    return None


def find_other_corpus(manifest: dict[str, Any], corpora: Sequence[Corpus]) -> str | None:
    """Return how corpora differ from those of a manifest, whatever they must not overlap with; None if they do not."""
    n_corpora = len(manifest["corpora"])
    known = manifest["settings"].get("columns", [])[:n_corpora]
    if (known if any(known) else []) != columns_of(corpora):
        return "it was made from other columns"
    return find_other_file(manifest["sources"][:n_corpora], corpora)


def find_other_file(known: Sequence[Sequence[dict[str, Any]]], corpora: Sequence[Corpus]) -> str | None:
    """Return how the files of corpora differ from known ones, None if they do not."""
    if [len(files) for files in known] != [len(corpus.paths) for corpus in corpora]:
        return "it was made from other files"
    for files, corpus in zip(known, corpora, strict=True):
        for described, path in zip(files, corpus.paths, strict=True):
            if not SourceFile(**described).is_same(path):
                return f"{path} has changed"
    return None


def find_change(folder: Path, request: PrepareRequest, tokenizers: dict[str, Any]) -> str | None:
    """Return why the prepared corpus in a folder cannot serve a request, or None if it can.

    `tokenizers` is what the manifest must say of them. Source files of unchanged size and time are taken to be
    unchanged; if only the time differs (a copy, a checkout) their bytes decide.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        return "it has not been prepared"
    if manifest["tokenizers"] != tokenizers:
        return "tokenizer.model is another one, or damaged"
    if manifest["settings"] != json.loads(json.dumps(request.settings())):
        return "the settings for cleaning, splitting or mixing have changed"
    if change := find_other_file(manifest["sources"], (*request.corpora, *request.against)):
        return change
    return find_damage(folder, manifest)
