"""The record in an exported folder: its files, and the weights that it was made from. Light: `translate` reads it."""

import json
from pathlib import Path
from typing import Any

from seqtool.corpus.tokenizer.interface import TokenizerPair
from seqtool.errors import SeqtoolError
from seqtool.files import sha256_of, to_json, write_whole
from seqtool.run_directory import RunDir
from seqtool.verification import MIB, checksum, read_limited, require_regular, seal

RECORD = "seqtool.json"
FORMAT = 1
MAX_RECORD = MIB
MAX_VOCABULARY = 64 * MIB
MAX_POSITIONS = 1 << 24


def read_record(folder: Path) -> dict[str, Any] | None:
    """Return the record of an exported folder; None if it is not one of seqtool's."""
    try:
        record = json.loads(read_limited(folder / RECORD, MAX_RECORD))
    except (OSError, ValueError, RecursionError, SeqtoolError):
        return None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        return None
    counts = [record.get(name, 0) for name in ("positions", "learned_positions")]
    return record if all(type(count) is int and 0 <= count <= MAX_POSITIONS for count in counts) else None


def write_record(folder: Path, record: dict[str, Any]) -> None:
    """Write the record of a folder whose files are all there, with the checksum of each, and its own."""
    content = {**record, "files": {path.name: sha256_of(path) for path in sorted(folder.iterdir())}}
    write_whole(folder / RECORD, to_json({**content, "sha256": seal(content)}))


def make_record(run: RunDir, quantization: str, n_positions: int, n_learned: int) -> dict[str, Any]:
    """Return the record of an export that is being made."""
    return {
        "format": FORMAT,
        "weights_sha256": checksum(run.weights),
        "quantization": quantization,
        "positions": n_positions,
        "learned_positions": n_learned,
    }


def find_damage(run: RunDir, tokenizers: TokenizerPair) -> str | None:
    """Return what keeps the exported form of a run from being used; None if it is whole and of the present model."""
    folder = run.ctranslate2
    record = read_record(folder)
    if record is None:
        return f"{folder / RECORD} is missing or damaged"
    if not folder.resolve().is_relative_to(run.path.resolve()):
        return f"{folder} leads out of the model's folder"
    try:
        files = _recorded_files(folder, record)
        if record["weights_sha256"] != checksum(run.weights):
            return f"{folder} was not made from the present {run.weights.name}"
        for path in sorted(folder.iterdir()):
            require_regular(path, folder)
        if files is None:
            return _find_other_vocabulary(folder, tokenizers)
        for name, expected in files.items():
            if checksum(folder / name) != expected:
                return f"{folder / name} is not the file that {RECORD} records"
        if unknown := sorted({path.name for path in folder.iterdir()} - {*files, RECORD}):
            return f"{folder / unknown[0]} does not belong to the export"
        return _find_other_vocabulary(folder, tokenizers)
    except (OSError, KeyError, TypeError, ValueError, RecursionError) as error:
        return f"{folder} is damaged ({error})"
    except SeqtoolError as error:
        return str(error)


def _recorded_files(folder: Path, record: dict[str, Any]) -> dict[str, str] | None:
    """Return the recorded checksums; None for an export by an early version, which recorded none."""
    if "sha256" not in record and "files" not in record:
        return None
    content = {name: value for name, value in record.items() if name != "sha256"}
    if record.get("sha256") != seal(content):
        raise SeqtoolError(f"{folder / RECORD} does not match its own checksum")
    files: dict[str, str] = record["files"]
    if not isinstance(files, dict) or not all(isinstance(value, str) for value in files.values()):
        raise SeqtoolError(f"{folder / RECORD} records no checksums")
    if any(Path(name).name != name for name in files):
        raise SeqtoolError(f"{folder / RECORD} names a file outside of its folder")
    return files


def _find_other_vocabulary(folder: Path, tokenizers: TokenizerPair) -> str | None:
    """Return in what the vocabularies of an export differ from those of the model."""
    for name, tokenizer in (("source", tokenizers.source), ("target", tokenizers.target)):
        shared = folder / "shared_vocabulary.json"  # of two equal vocabularies
        path = shared if shared.exists() else folder / f"{name}_vocabulary.json"
        if json.loads(read_limited(path, MAX_VOCABULARY)) != tokenizer.pieces(range(tokenizer.vocab_size)):
            return f"{path} is not the vocabulary of the model"
    return None
