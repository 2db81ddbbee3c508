"""Writes a model as a folder that the library transformers loads as it is, and checks it there.

Post-norm models become a MarianMTModel, pre-norm ones Pegasus, both with a Marian tokenizer. Their vocabulary starts
with the end and the unknown token and ends with the padding, with which decoding begins: it takes the place of our
begin. All our tokens stay, so that probabilities are the same; those that are never to be written are listed.
"""

import contextlib
import itertools
import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqtool.config import Config, TransformerConfig, load_config
from seqtool.corpus.tokenizer.bpe import BpeTokenizer
from seqtool.corpus.tokenizer.interface import Tokenizer, TokenizerPair
from seqtool.corpus.tokenizer.marian import MarianTokenizer
from seqtool.corpus.tokenizer.registry import load_pair
from seqtool.errors import SeqtoolError
from seqtool.files import make_folder, to_json, whole_folder, write_whole
from seqtool.metrics_log import MAX_BYTES
from seqtool.model.huggingface import SOURCE, TARGET, their_sinusoids, usual_power, write_config, write_weights
from seqtool.run_directory import RunDir
from seqtool.translation.engines.interface import USUAL_LENGTH_PENALTY
from seqtool.translation.export.ctranslate2 import check_place, read_float32
from seqtool.translation.export.languages import Languages
from seqtool.translation.export.made_up import make_up_sentences
from seqtool.translation.export.model_card import write_card
from seqtool.translation.export.record import RECORD, make_record
from seqtool.verification import read_limited

TOLERANCE = 1e-5  # of the log-probability of a token in float64, the largest difference that is accepted

USAGE = """```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer, model = AutoTokenizer.from_pretrained("."), AutoModelForSeq2SeqLM.from_pretrained(".")
inputs = tokenizer(["A sentence."], return_tensors="pt", padding=True)
print(tokenizer.batch_decode(model.generate(**inputs), skip_special_tokens=True))
```"""


@dataclass(frozen=True)
class TheirVocabulary:
    """A vocabulary as transformers is to have it."""

    pieces: list[str]
    rows: NDArray[np.int64]  # our id for each of theirs; -1 for a zero vector
    eos: int
    pad: int
    start: int  # with which the decoder begins
    never: list[int]  # ids that are never to be written


@dataclass(frozen=True)
class HuggingFaceReport:
    """What was written, and how near it comes to the model it was made from."""

    path: Path
    architecture: str
    difference: float | None  # largest difference of a token's log-probability; None if it was not checked
    notes: list[str]

    def __str__(self) -> str:
        if self.difference is None:
            return f"{self.path}: {self.architecture}; not checked"
        return (
            f"{self.path}: {self.architecture}; log-probabilities in transformers differ from the model's by "
            f"{self.difference:.1e} at most, in float64 ({TOLERANCE:g} is accepted)"
        )


def export_huggingface(
    run: RunDir, folder: Path, languages: Languages | None = None, check: bool = True
) -> HuggingFaceReport:
    """Write the model of a run directory into `folder`, whole or not at all."""
    run.require_model()
    check_place(folder)
    config, tokenizers = load_config(run.config), load_pair(run)
    if config.model.kind != "transformer" or not isinstance(config.model, TransformerConfig):
        raise SeqtoolError(f"{run.path}: Hugging Face has no models of kind '{config.model.kind}'")
    if check:
        require_transformers()
    try:
        settings = write_config(config.model)
    except SeqtoolError as error:
        raise SeqtoolError(f"{run.path}: {error}") from None
    ours = read_float32(run.weights)
    start = ours[SOURCE if config.model.share_embeddings else TARGET][tokenizers.target.special.bos]
    source, target = their_vocabularies(tokenizers, config.model.zero_start and bool(start.any()))
    weights = write_weights(config.model, ours, source.rows, target.rows)
    if settings["model_type"] == "pegasus":  # it would compute them too, but warns that they are missing
        table = their_sinusoids(count_positions(config), config.model.d_model)
        weights.update({f"model.{side}.embed_positions.weight": table for side in ("encoder", "decoder")})
    make_folder(folder.absolute().parent)
    try:
        with whole_folder(folder) as temporary:
            save_numpy(weights, temporary / "model.safetensors")
            write_settings(temporary, settings, config, run, (source, target))
            write_tokenizer(temporary, tokenizers, (source, target), languages, config.data.max_tokens)
            write_whole(temporary / "README.md", write_card(run, languages, "huggingface", USAGE))
            write_whole(temporary / RECORD, to_json(make_record(run, "float32", 0, 0)))
            difference = check_with_transformers(run, temporary, tokenizers) if check else None
    except OSError as error:
        cause = error.strerror or error
        raise SeqtoolError(f"{folder}: cannot be written ({cause}); make room or give another `out`") from None
    notes = []
    if settings["model_type"] == "marian" and not config.model.zero_start:
        notes.append(
            "CTranslate2's own converter starts Marian models with a zero vector, which this model was not trained "
            "with; make CTranslate2's form with 'seqtool export --to ctranslate2', or train with model.zero_start=true"
        )
    return HuggingFaceReport(folder, settings["architectures"][0], difference, notes)


def require_transformers() -> None:
    """Raise if transformers is not installed, with which an export is checked."""
    from importlib.util import find_spec

    if find_spec("transformers") is None:
        raise SeqtoolError(
            "transformers is not installed, with which the export is checked; install it with: "
            "pip install 'seqtool[huggingface]'"
        )


def their_vocabularies(tokenizers: TokenizerPair, hides_start: bool) -> tuple[TheirVocabulary, TheirVocabulary]:
    """Return both sides' vocabularies; two different ones are made equally long, so that their padding is the same.

    `hides_start` says that the decoder starts with a zero vector, although the vector of the begin is none.
    """
    if tokenizers.joint:
        one = their_vocabulary(tokenizers.target, hides_start, 0)
        return one, one
    size = max(tokenizers.source.vocab_size, tokenizers.target.vocab_size)
    own = isinstance(tokenizers.source, MarianTokenizer)  # whose begin is no token of the source
    source = their_vocabulary(tokenizers.source, hides_start and not own, size - tokenizers.source.vocab_size)
    return source, their_vocabulary(tokenizers.target, hides_start, size - tokenizers.target.vocab_size)


def their_vocabulary(tokenizer: Tokenizer, hides_start: bool, fill: int) -> TheirVocabulary:
    """Return a vocabulary in their order; one that came from there keeps its own."""
    special = tokenizer.special
    if isinstance(tokenizer, MarianTokenizer):
        return kept_vocabulary(tokenizer, hides_start)
    ordinary = [index for index in range(tokenizer.vocab_size) if index not in special]
    unwritten = [special.pad, special.bos] if hides_start else [special.pad]
    order = [special.eos, special.unk, *ordinary, *unwritten, *[-1] * fill, -1 if hides_start else special.bos]
    names = [tokenizer.piece_list[index] for index in ordinary]
    pieces = ["</s>", "<unk>", *names, *spare_names(names, len(unwritten) + fill), "<pad>"]
    last = len(pieces) - 1
    return TheirVocabulary(pieces, np.array(order), 0, last, last, list(range(2 + len(names), len(pieces))))


def kept_vocabulary(tokenizer: MarianTokenizer, hides_start: bool) -> TheirVocabulary:
    """Return a vocabulary as it is; a start whose vector is to be zero becomes a further token at the end."""
    pieces, special, size = list(tokenizer.piece_list), tokenizer.special, tokenizer.vocab_size
    if not hides_start:
        return TheirVocabulary(pieces, np.arange(size), special.eos, special.pad, special.bos, [special.pad])
    start = pieces[special.bos]
    pieces[special.bos] = spare_names(pieces, 1)[0]
    pad = size if special.pad == special.bos else special.pad
    never = sorted({special.pad, special.bos, size})
    return TheirVocabulary([*pieces, start], np.array([*range(size), -1]), special.eos, pad, size, never)


def spare_names(taken: list[str], n: int) -> list[str]:
    """Return names for tokens that are never written."""
    names = (f"<unused{number}>" for number in range(len(taken) + n))
    known = set(taken)
    return [name for name in names if name not in known][:n]


def save_numpy(weights: dict[str, NDArray[np.float32]], path: Path) -> None:
    """Write weights as safetensors, with the note by which transformers knows them."""
    from safetensors.numpy import save

    write_whole(path, save({name: np.ascontiguousarray(array) for name, array in weights.items()}, {"format": "pt"}))


def write_settings(
    folder: Path,
    settings: dict[str, Any],
    config: Config,
    run: RunDir,
    vocabularies: tuple[TheirVocabulary, TheirVocabulary],
) -> None:
    """Write config.json and generation_config.json."""
    source, target = vocabularies
    ids = {
        "pad_token_id": target.pad,
        "bos_token_id": None,
        "eos_token_id": target.eos,
        "forced_eos_token_id": target.eos,
        "decoder_start_token_id": target.start,
    }
    positions = count_positions(config)
    sizes = {"vocab_size": len(source.pieces), "decoder_vocab_size": len(target.pieces)}
    write_whole(folder / "config.json", to_json({**settings, **sizes, **ids, "max_position_embeddings": positions}))
    search = {
        "num_beams": config.decode.beam,
        "length_penalty": their_length_penalty(run, config),
        "early_stopping": True,
        "max_length": 2 * config.data.max_tokens + 16,
        "bad_words_ids": [[index] for index in target.never],
    }
    write_whole(folder / "generation_config.json", to_json({**ids, **search}))


def count_positions(config: Config) -> int:
    """Return how many positions the exported model has."""
    return max(1024, 4 * config.data.max_tokens)


def their_length_penalty(run: RunDir, config: Config) -> float:
    """Return the exponent that ranks as ours does for targets of the length that is usual in the run."""
    chosen = run.read_manifest().model.length_penalty
    alpha = config.decode.length_penalty if config.decode.length_penalty != "auto" else chosen
    alpha = USUAL_LENGTH_PENALTY if alpha is None else float(alpha)
    try:
        records = filter(None, read_limited(run.valid_lines, MAX_BYTES).split(b"\n"))
        lines = [json.loads(record)["ref"] for record in itertools.islice(records, 500)]
        lengths = [len(ids) + 1 for ids in load_pair(run).target.encode_batch(lines)]
    except (OSError, ValueError, KeyError, TypeError, RecursionError, SeqtoolError):
        lengths = []
    return usual_power(alpha, sum(lengths) / len(lengths)) if lengths else usual_power(alpha)


def write_tokenizer(
    folder: Path,
    tokenizers: TokenizerPair,
    vocabularies: tuple[TheirVocabulary, TheirVocabulary],
    languages: Languages | None,
    max_tokens: int,
) -> None:
    """Write both SentencePiece models, the vocabulary or vocabularies, and the tokenizer's settings."""
    for name, tokenizer in (("source.spm", tokenizers.source), ("target.spm", tokenizers.target)):
        if isinstance(tokenizer, MarianTokenizer):
            write_whole(folder / name, tokenizer.segmenter)
        elif isinstance(tokenizer, BpeTokenizer):
            write_whole(folder / name, tokenizer.model)
        else:
            raise SeqtoolError("this kind of tokenizer has no form that Hugging Face knows; export to ctranslate2")
    for name, vocabulary in zip(("vocab.json", "target_vocab.json"), vocabularies, strict=True):
        if name == "vocab.json" or not tokenizers.joint:
            write_whole(folder / name, to_json({piece: index for index, piece in enumerate(vocabulary.pieces)}))
    special = tokenizers.target.special
    own = isinstance(tokenizers.target, MarianTokenizer)
    names = {
        "eos_token": vocabularies[1].pieces[vocabularies[1].eos],
        "unk_token": vocabularies[1].pieces[special.unk if own else 1],
        "pad_token": vocabularies[1].pieces[vocabularies[1].pad],
    }
    settings: dict[str, Any] = {
        "tokenizer_class": "MarianTokenizer",
        **names,
        "separate_vocabs": not tokenizers.joint,
        "source_lang": languages.codes[0] if languages else None,
        "target_lang": languages.codes[1] if languages else None,
        "model_max_length": 2 * max_tokens,
        "clean_up_tokenization_spaces": False,
        "sp_model_kwargs": {},
    }
    write_whole(folder / "tokenizer_config.json", to_json(settings))


def check_with_transformers(run: RunDir, folder: Path, tokenizers: TokenizerPair) -> float:
    """Score made-up sentences with both; return the largest difference of a token's log-probability, or raise.

    Both compute in float64, where rounding is far below the tolerance, so that any difference is one of the models.
    """
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    from seqtool.translation.engines.interface import SearchOptions
    from seqtool.translation.engines.settings import EngineSettings
    from seqtool.translation.engines.torch_engine import TorchEngine

    engine = TorchEngine.load([run], tokenizers.vocabularies, EngineSettings(device="cpu", threads=1))
    texts = [tokenizers.source.decode(ids) for ids in make_up_sentences(tokenizers.source, engine.max_tokens)]
    sources = tokenizers.source.encode_batch(texts)
    targets = [found[0].ids for found in engine.translate(sources, SearchOptions(beam=1, max_length_ratio=1.0))]
    ours = engine.models[0].double()
    with without_their_messages():
        theirs = AutoModelForSeq2SeqLM.from_pretrained(folder, local_files_only=True, dtype=torch.float64).eval()
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    source, target = tokenizers.source.special, tokenizers.target.special
    to_theirs = {int(row): index for index, row in enumerate(their_vocabularies(tokenizers, False)[1].rows)}

    def choose(logits: torch.Tensor, ids: list[int]) -> torch.Tensor:
        return logits[0].log_softmax(-1).gather(1, torch.tensor(ids)[:, None])

    largest = 0.0
    for text, given, made in zip(texts, sources, targets, strict=True):
        wanted = [*made, target.eos]
        renamed = [to_theirs[index] for index in wanted]
        start = torch.tensor([[theirs.config.decoder_start_token_id, *renamed[:-1]]])
        with torch.inference_mode():
            states = ours(torch.tensor([[*given, source.eos]]), torch.tensor([[target.bos, *made]]))
            logits = theirs(input_ids=tokenizer(text, return_tensors="pt")["input_ids"], decoder_input_ids=start).logits
            difference = choose(ours.project(states), wanted) - choose(logits, renamed)
        largest = max(largest, float(difference.abs().max()))
    if not largest <= TOLERANCE:
        raise SeqtoolError(
            f"{run.path}: the export does not match the model (a log-probability differs by {largest:.3g}, at most "
            f"{TOLERANCE:g} is accepted); export to ctranslate2 instead"
        )
    return largest


@contextlib.contextmanager
def without_their_messages() -> Iterator[None]:
    """Keep transformers from showing bars and from recommending packages while it loads a model."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]
