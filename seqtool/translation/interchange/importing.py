"""Turns the folder of a MarianMT (OPUS-MT) or Pegasus-shaped model into a run directory."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from seqtool.config import Config, DecodeConfig, TokenizerConfig, TransformerConfig, config_to_toml
from seqtool.corpus.tokenizer.interface import SpecialIds, TokenizerPair
from seqtool.corpus.tokenizer.marian import MarianTokenizer, check_pieces, check_special, make_marian
from seqtool.errors import SeqtoolError
from seqtool.files import require_new, whole_folder, write_whole
from seqtool.manifest import DataFacts, Manifest, ModelFacts
from seqtool.model.huggingface import TARGET, byte_limits, read_config, read_weights, usual_alpha
from seqtool.model.kinds import build_model
from seqtool.model.loading import put_weights, save_weights, weights_of
from seqtool.run_directory import RunDir
from seqtool.translation.interchange.folder import PICKLE, ModelFolder, check_size, read_weight_files
from seqtool.visible import show_value


@dataclass(frozen=True)
class ImportReport:
    """What was made of a model from elsewhere."""

    run: RunDir
    description: str
    parameters: int
    notes: list[str]


def import_huggingface(path: Path, out: Path) -> ImportReport:
    """Make the run directory `out` from a Hugging Face folder."""
    require_new(out)
    folder = ModelFolder(path)
    values = folder.read_json("config.json")
    try:
        model = read_config(values)
    except SeqtoolError as error:
        raise SeqtoolError(f"{path / 'config.json'}: {error}") from None
    tokenizers = read_tokenizers(folder, values, model)
    check_vocabulary(folder, values, tokenizers, model)
    files = folder.weight_files()
    check_size(files, *byte_limits(model, tokenizers.source.vocab_size + tokenizers.target.vocab_size))
    weights = convert_weights(model, files)
    model = with_zero_start(model, weights, tokenizers.target.special)
    tensors = fit(model, weights, tokenizers, files[0])
    is_pickle = files[0].name == PICKLE
    notes = [f"{PICKLE} is a pickle: only tensors were read from it, and no code was run"] if is_pickle else []
    config = Config(
        model=model,
        tokenizer=TokenizerConfig(kind="marian", vocab_size=tokenizers.source.vocab_size, joint=tokenizers.joint),
        decode=read_search({**values, **folder.read_json("generation_config.json", optional=True)}),
    )
    parameters = sum(tensor.numel() for tensor in tensors.values())
    try:
        with whole_folder(out) as new:
            run = RunDir(new)
            write_whole(run.config, config_to_toml(config))
            tokenizers.source.save(run.tokenizer)
            if not tokenizers.is_one:
                tokenizers.target.save(run.target_tokenizer)
            save_weights(tensors, run.weights)
            run.write_manifest(describe(run, folder, values, parameters))
    except OSError as error:
        raise SeqtoolError(f"{out}: cannot be written ({error.strerror or error}); give another `out`") from None
    return ImportReport(RunDir(out), model.describe(), parameters, notes)


def read_tokenizers(folder: ModelFolder, values: dict[str, Any], model: TransformerConfig) -> TokenizerPair:
    """Open both SentencePiece models with the vocabulary, or the two vocabularies, that number their pieces."""
    settings = folder.read_json("tokenizer_config.json", optional=True)
    shared = read_vocabulary(folder, "vocab.json")
    separate = settings.get("separate_vocabs", folder.find("target_vocab.json") is not None) is True
    pieces = shared, read_vocabulary(folder, "target_vocab.json") if separate else shared
    ids = [{piece: index for index, piece in enumerate(side)} for side in pieces]
    names = {name: token_name(settings, name, usual) for name, usual in USUAL_NAMES.items()}
    missing = [name for name in names.values() if name not in ids[0] or name not in ids[1]]
    if missing:
        raise SeqtoolError(
            f"{folder.path / 'vocab.json'}: has no token {missing[0]}; is it the vocabulary of this model?"
        )
    source = SpecialIds(ids[0][names["pad"]], ids[0][names["unk"]], ids[0][names["pad"]], ids[0][names["eos"]])
    eos, pad = values.get("eos_token_id", 0), values.get("pad_token_id")
    given = {"pad": pad, "unk": ids[1][names["unk"]], "bos": values.get("decoder_start_token_id", pad), "eos": eos}
    try:
        target = check_special(given, len(pieces[1]))
    except ValueError:
        raise SeqtoolError(
            f"{folder.path / 'config.json'}: pad_token_id, decoder_start_token_id and eos_token_id must be ids of the "
            f"vocabulary, not {', '.join(map(show_value, (pad, given['bos'], eos)))}; is vocab.json that of this model?"
        ) from None
    if (target.eos, target.pad) != (ids[1][names["eos"]], ids[1][names["pad"]]):
        raise SeqtoolError(
            f"{folder.path / 'vocab.json'}: has {names['eos']} and {names['pad']} at {ids[1][names['eos']]} and "
            f"{ids[1][names['pad']]}, but config.json at {target.eos} and {target.pad}; it is of another model"
        )
    if not separate:
        source = target
    opened = []
    for name, side, special in (("source.spm", pieces[0], source), ("target.spm", pieces[1], target)):
        content = make_marian(folder.read(name), side, special)
        tokenizer = MarianTokenizer(content, str(folder.path / name))
        if tokenizer.known_share < 0.5:
            raise SeqtoolError(
                f"{folder.path / name}: only {tokenizer.known_share:.0%} of its pieces are in the vocabulary; "
                "are both of this model?"
            )
        opened.append(tokenizer)
    if opened[0].model == opened[1].model:
        return TokenizerPair(opened[0], opened[0])
    return TokenizerPair(*opened)


USUAL_NAMES = {"eos": "</s>", "unk": "<unk>", "pad": "<pad>"}


def token_name(settings: dict[str, Any], name: str, usual: str) -> str:
    """Return what a special token is called in the vocabulary."""
    value = settings.get(f"{name}_token", usual)
    value = value.get("content", usual) if isinstance(value, dict) else value
    return value if isinstance(value, str) else usual


def read_vocabulary(folder: ModelFolder, name: str) -> list[str]:
    """Return the pieces in the order of their ids, which must be 0, 1, 2, ..."""
    ids = folder.read_json(name)
    if not all(type(index) is int for index in ids.values()) or sorted(ids.values()) != list(range(len(ids))):
        raise SeqtoolError(f"{folder.path / name}: the ids of its tokens are not 0, 1, 2, ...; download it again")
    try:
        return check_pieces(sorted(ids, key=ids.__getitem__))
    except ValueError as error:
        raise SeqtoolError(f"{folder.path / name}: no vocabulary ({error}); download it again") from None


def check_vocabulary(
    folder: ModelFolder, values: dict[str, Any], tokenizers: TokenizerPair, model: TransformerConfig
) -> None:
    """Raise if the vocabulary has not the size that the model's configuration names."""
    source = values.get("vocab_size")
    target = source if model.share_embeddings else values.get("decoder_vocab_size") or source
    sizes = tokenizers.source.vocab_size, tokenizers.target.vocab_size
    if sizes != (source, target):
        raise SeqtoolError(
            f"{folder.path / 'vocab.json'}: has {sizes[0]:,} and {sizes[1]:,} tokens for source and target, but "
            f"config.json asks for {show_value(source)} and {show_value(target)}; it is the vocabulary of another model"
        )
    if model.share_embeddings and not tokenizers.joint:
        raise SeqtoolError(f"{folder.path}: has two vocabularies, but its model shares their embeddings")


def convert_weights(model: TransformerConfig, files: list[Path]) -> dict[str, NDArray[np.float32]]:
    """Return the weights in files under our names."""
    theirs = read_weight_files(files)
    try:
        return read_weights(model, theirs)
    except SeqtoolError as error:
        raise SeqtoolError(f"{files[0]}: {error}") from None


def with_zero_start(
    model: TransformerConfig, weights: dict[str, NDArray[np.float32]], special: SpecialIds
) -> TransformerConfig:
    """Return the settings with a zero start vector if the model has one, so that fine-tuning keeps it."""
    table = weights.get(TARGET, weights["src_embedding.tokens.weight"])
    is_zero = special.bos < len(table) and not table[special.bos].any()
    return replace(model, zero_start=is_zero)


def fit(
    model: TransformerConfig, weights: dict[str, NDArray[np.float32]], tokenizers: TokenizerPair, origin: Path
) -> dict[str, torch.Tensor]:
    """Return the weights as tensors of the model that the configuration describes, or raise if they do not fit."""
    tensors = {name: torch.from_numpy(np.ascontiguousarray(values)) for name, values in weights.items()}
    with torch.device("meta"):
        expected = weights_of(build_model(model, tokenizers.vocabularies))
    with torch.no_grad():
        built = build_model(model, tokenizers.vocabularies) if same_shapes(expected, tensors) else None
        if built is None:
            name = next(name for name in sorted(expected) if tensors[name].shape != expected[name].shape)
            raise SeqtoolError(
                f"{origin}: {name} has the shape {tuple(tensors[name].shape)}, but config.json and vocab.json ask for "
                f"{tuple(expected[name].shape)}; are all files of one model?"
            )
        put_weights(built, tensors, origin)
    return weights_of(built)


def same_shapes(expected: dict[str, torch.Tensor], tensors: dict[str, torch.Tensor]) -> bool:
    """Return whether all shapes are those expected."""
    return all(name in tensors and tensors[name].shape == wanted.shape for name, wanted in expected.items())


def read_search(values: dict[str, Any]) -> DecodeConfig:
    """Return the search settings that a model recommends, as far as they are like ours."""
    beam, penalty = values.get("num_beams", 1), values.get("length_penalty", 1.0)
    beam = beam if type(beam) is int and 1 <= beam <= 1000 else 1
    penalty = penalty if isinstance(penalty, int | float) and 0 <= penalty <= 8 else 1.0
    return DecodeConfig(beam=beam, length_penalty=usual_alpha(penalty))


def describe(run: RunDir, folder: ModelFolder, values: dict[str, Any], parameters: int) -> Manifest:
    """Return the manifest of an imported model."""
    settings = folder.read_json("tokenizer_config.json", optional=True)
    languages = {side: settings.get(f"{side}_lang") for side in ("source", "target")}
    known = {side: code for side, code in languages.items() if isinstance(code, str)}
    source = f"imported from {folder.path.absolute().name}, a Hugging Face model of type {values['model_type']}"
    facts = ModelFacts(parameters=parameters, source=source)
    others = {"languages": known} if len(known) == 2 else {}
    return replace(run.make_manifest(facts, DataFacts()), complete=True, others=others)
