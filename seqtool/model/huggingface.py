"""The Transformer in the terms of the library transformers: MarianMTModel (post-norm) and Pegasus (pre-norm).

Both are this package's Transformer but for the names and for the order of dimensions: their sinusoids have all sines
first and then all cosines, ours take turns. The same permutation of the D dimensions of embeddings, of what enters and
what leaves each layer, makes one the other, exactly. Needs no torch and no transformers.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqtool.config import TransformerConfig
from seqtool.errors import SeqtoolError
from seqtool.model.sinusoids import sinusoids
from seqtool.visible import show_value

Weights = Mapping[str, NDArray[np.float32]]

ARCHITECTURES = {"marian": "MarianMTModel", "pegasus": "PegasusForConditionalGeneration"}
NORMS = {"marian": "post", "pegasus": "pre"}
ACTIVATIONS = {"swish": "swish", "silu": "swish", "relu": "relu", "gelu": "gelu"}
USUAL_LENGTH = 25.0  # tokens of a translation, where nothing is known of them
SOURCE, TARGET, BIAS = "src_embedding.tokens.weight", "tgt_embedding.tokens.weight", "final_logits_bias"


class Place(NamedTuple):
    """Where a weight of ours is found in their model; several of theirs stand one below the other in it."""

    ours: str
    theirs: tuple[str, ...]
    axes: tuple[int, ...]  # those whose dimensions stand in another order


def read_config(values: Mapping[str, Any]) -> TransformerConfig:
    """Turn the content of their config.json into our settings, or raise for a model that we have no match for."""
    kind = values.get("model_type")
    if not isinstance(kind, str) or kind not in ARCHITECTURES:
        known = " and ".join(ARCHITECTURES)
        raise SeqtoolError(f"its model_type is {show_value(kind)}; models of type {known} can be imported")
    usual = {"tie_word_embeddings": True, "static_position_embeddings": True, "normalize_embedding": False}
    for name, wanted in usual.items():
        if values.get(name, wanted) is not wanted:
            raise SeqtoolError(
                f"its {name} is {show_value(values[name])}; only models where it is {wanted} can be imported"
            )
    if values.get("normalize_before", NORMS[kind] == "pre") is not (NORMS[kind] == "pre"):
        raise SeqtoolError(
            f"its normalize_before is {show_value(values['normalize_before'])}, unlike every {ARCHITECTURES[kind]}"
        )
    for name in ("ffn_dim", "attention_heads"):
        sides = values.get(f"encoder_{name}"), values.get(f"decoder_{name}")
        if sides[0] != sides[1]:
            raise SeqtoolError(f"its encoder_{name} and decoder_{name} differ ({' and '.join(map(show_value, sides))})")
    activation = values.get("activation_function", "gelu")
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise SeqtoolError(f"its activation_function is {show_value(activation)}; known are {', '.join(ACTIVATIONS)}")
    try:
        return TransformerConfig(
            d_model=values["d_model"],
            d_ff=values["encoder_ffn_dim"],
            n_heads=values["encoder_attention_heads"],
            encoder_layers=values["encoder_layers"],
            decoder_layers=values["decoder_layers"],
            dropout=values.get("dropout", 0.1),
            attention_dropout=values.get("attention_dropout", 0.0),
            ff_dropout=values.get("activation_dropout", 0.0),
            share_embeddings=kind == "pegasus" or values.get("share_encoder_decoder_embeddings", True),
            norm=NORMS[kind],
            activation=ACTIVATIONS[activation],
            output_bias=True,
            scale_embeddings=values.get("scale_embedding", False),
        )
    except KeyError as error:
        raise SeqtoolError(f"has no {error}") from None


def write_config(config: TransformerConfig) -> dict[str, Any]:
    """Return their settings for a model of ours, or raise and say which settings can be expressed there."""
    needed = {"positions": "sinusoidal", "norm_kind": "layer"}
    wrong = [f"model.{name} = '{getattr(config, name)}'" for name in needed if getattr(config, name) != needed[name]]
    if config.activation not in ACTIVATIONS.values():
        wrong.append(f"model.activation = '{config.activation}'")
    if config.norm == "pre" and not config.share_embeddings:
        wrong.append("model.share_embeddings = false with model.norm = 'pre'")
    if wrong:
        raise SeqtoolError(
            f"Hugging Face has no model with {' and '.join(wrong)}. It has positions 'sinusoidal', norm_kind 'layer', "
            "activation 'relu', 'gelu' or 'swish', and shared embeddings or norm 'post'; export to ctranslate2 instead"
        )
    kind = "pegasus" if config.norm == "pre" else "marian"
    sides = {"layers": None, "ffn_dim": config.d_ff, "attention_heads": config.n_heads}
    layers = {"encoder": config.encoder_layers, "decoder": config.decoder_layers}
    return {
        "architectures": [ARCHITECTURES[kind]],
        "model_type": kind,
        "is_encoder_decoder": True,
        "d_model": config.d_model,
        **{f"{side}_{name}": value or layers[side] for side in layers for name, value in sides.items()},
        "activation_function": config.activation,
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": config.ff_dropout,
        "scale_embedding": config.scale_embeddings,
        "share_encoder_decoder_embeddings": config.share_embeddings,
        "tie_word_embeddings": True,
        "static_position_embeddings": True,
        "normalize_before": config.norm == "pre",  # CTranslate2's converter looks for these two
        "normalize_embedding": False,
        "use_cache": True,
    }


def read_weights(config: TransformerConfig, weights: Weights) -> dict[str, NDArray[np.float32]]:
    """Turn their weights into ours; raise if one is missing, has another shape or has no place."""
    check_positions(config, weights)
    left = set(weights) - {f"model.{side}.embed_positions.weight" for side in ("encoder", "decoder")}

    def take(name: str) -> NDArray[np.float32]:
        if name not in weights:
            raise SeqtoolError(f"has no weight {name}, which its config.json asks for")
        left.discard(name)
        return weights[name]

    back = np.argsort(permutation(config.d_model))
    ours: dict[str, NDArray[np.float32]] = {}
    for place in places(config):
        parts = [take(name) for name in place.theirs]
        check_shapes(config, place, parts)
        ours[place.ours] = permuted(np.concatenate(parts), place.axes, back)
    for name, theirs in read_embeddings(config, weights, left).items():
        if theirs.ndim != 2 or theirs.shape[1] != config.d_model:
            raise SeqtoolError(f"its embeddings have the shape {theirs.shape}, not (tokens, {config.d_model})")
        ours[name] = permuted(theirs, (1,), back)
    n_tokens = len(ours[SOURCE if config.share_embeddings else TARGET])
    bias = weights.get(BIAS, np.zeros((1, n_tokens), np.float32))
    if bias.shape != (1, n_tokens):
        raise SeqtoolError(f"its {BIAS} has the shape {bias.shape}, not (1, {n_tokens})")
    ours["bias"] = np.ascontiguousarray(bias[0])
    left.discard(BIAS)
    if left:
        raise SeqtoolError(f"has a weight {min(left)}, which its config.json has no place for")
    return ours


def read_embeddings(config: TransformerConfig, weights: Weights, left: set[str]) -> dict[str, NDArray[np.float32]]:
    """Return the tables of token vectors; a file may hold one of several names of the same table, or all of them."""
    source, target = ("model.encoder.embed_tokens.weight",), ("model.decoder.embed_tokens.weight", "lm_head.weight")
    shared = ("model.shared.weight", *source, *target)
    sides = {SOURCE: shared} if config.share_embeddings else {SOURCE: source, TARGET: target}
    tables = {}
    for name, theirs in sides.items():
        found = [key for key in theirs if key in weights]
        if not found:
            raise SeqtoolError(f"has no weight {theirs[0]}, which its config.json asks for")
        if any(not np.array_equal(weights[key], weights[found[0]]) for key in found[1:]):
            raise SeqtoolError(f"its {found[0]} and {found[1]} differ, but its config.json says that they are one")
        tables[name] = weights[found[0]]
        left.difference_update(found)
    if not config.share_embeddings:
        left.discard("model.shared.weight")  # a copy of one of the two
    return tables


def write_weights(
    config: TransformerConfig, weights: Weights, src_rows: NDArray[np.int64], tgt_rows: NDArray[np.int64]
) -> dict[str, NDArray[np.float32]]:
    """Turn our weights into theirs; the rows are our ids in the order of theirs, -1 for a token that is a zero vector.

    Such a token gets a bias that keeps it from ever being predicted.
    """
    order = permutation(config.d_model)
    theirs: dict[str, NDArray[np.float32]] = {}
    for place in places(config):
        parts = np.split(permuted(weights[place.ours], place.axes, order), len(place.theirs))
        theirs.update({name: np.ascontiguousarray(part) for name, part in zip(place.theirs, parts, strict=True)})
    source = pick_rows(permuted(weights[SOURCE], (1,), order), src_rows, 0.0)
    if config.share_embeddings:
        theirs["model.shared.weight"] = source
    else:
        theirs["model.encoder.embed_tokens.weight"] = source
        target = pick_rows(permuted(weights[TARGET], (1,), order), tgt_rows, 0.0)
        theirs["model.decoder.embed_tokens.weight"] = target
    n_tokens = len(weights[SOURCE if config.share_embeddings else TARGET])
    theirs[BIAS] = pick_rows(weights.get("bias", np.zeros(n_tokens, np.float32)), tgt_rows, -1e4)[None]
    return theirs


def places(config: TransformerConfig) -> Iterator[Place]:
    """Yield the place of every weight of ours but the embeddings and the output bias."""
    for stack, depth in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        for index in range(depth):
            ours, theirs = f"{stack}.{index}", f"model.{stack}.layers.{index}"
            kinds = [("self_attention", "self_attn", "self_norm")]
            kinds += [("cross_attention", "encoder_attn", "cross_norm")] if stack == "decoder" else []
            for our, their, norm in kinds:
                parts = tuple(f"{theirs}.{their}.{name}_proj" for name in "qkv")
                yield Place(f"{ours}.{our}.qkv.weight", tuple(f"{part}.weight" for part in parts), (1,))
                yield Place(f"{ours}.{our}.qkv.bias", tuple(f"{part}.bias" for part in parts), ())
                yield from linear(f"{ours}.{our}.out", f"{theirs}.{their}.out_proj", 0)
                yield from vectors(f"{ours}.{norm}", f"{theirs}.{their}_layer_norm")
            yield from linear(f"{ours}.feed_forward.inner", f"{theirs}.fc1", 1)
            yield from linear(f"{ours}.feed_forward.outer", f"{theirs}.fc2", 0)
            yield from vectors(f"{ours}.ff_norm", f"{theirs}.final_layer_norm")
        if config.norm == "pre":
            yield from vectors(f"{stack}_norm", f"model.{stack}.layer_norm")


def linear(ours: str, theirs: str, axis: int) -> Iterator[Place]:
    """Yield a matrix, of which one axis is that of the model's dimensions, and its bias."""
    yield Place(f"{ours}.weight", (f"{theirs}.weight",), (axis,))
    yield Place(f"{ours}.bias", (f"{theirs}.bias",), () if axis else (0,))


def vectors(ours: str, theirs: str) -> Iterator[Place]:
    """Yield scale and shift of a normalisation."""
    for name in ("weight", "bias"):
        yield Place(f"{ours}.{name}", (f"{theirs}.{name}",), (0,))


def permutation(width: int) -> NDArray[np.int64]:
    """Return our dimension for each of theirs: first those with sines, then those with cosines."""
    return np.concatenate((np.arange(0, width, 2), np.arange(1, width, 2)))


def permuted(values: NDArray[np.float32], axes: tuple[int, ...], order: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return values with some axes in another order."""
    for axis in axes:
        values = np.take(values, order, axis)
    return values


def pick_rows(values: NDArray[np.float32], rows: NDArray[np.int64], missing: float) -> NDArray[np.float32]:
    """Return some rows, and a constant if a row's number is -1."""
    picked = values[rows]
    picked[rows < 0] = missing
    return picked


def check_shapes(config: TransformerConfig, place: Place, parts: list[NDArray[np.float32]]) -> None:
    """Raise if a weight of theirs has not the shape that the configuration asks for."""
    d, f = config.d_model, config.d_ff
    shapes = {"qkv.weight": (d, d), "out.weight": (d, d), "inner.weight": (f, d), "outer.weight": (d, f)}
    biases = {"inner.bias": (f,)}
    expected = (shapes | biases).get(".".join(place.ours.split(".")[-2:]), (d,))
    for name, part in zip(place.theirs, parts, strict=True):
        if part.shape != expected:
            raise SeqtoolError(f"its {name} has the shape {part.shape}, but its config.json asks for {expected}")


def check_positions(config: TransformerConfig, weights: Weights) -> None:
    """Raise if the file holds positions that are not the sinusoids."""
    d = config.d_model
    for side in ("encoder", "decoder"):
        table = weights.get(f"model.{side}.embed_positions.weight")
        if table is None:
            continue
        if table.ndim != 2 or table.shape[1] != d:
            raise SeqtoolError(f"its {side} positions have the shape {table.shape}, not (positions, {d})")
        if not np.allclose(table, their_sinusoids(len(table), d), atol=2e-3):
            raise SeqtoolError(f"its {side} has learned positions; only models with fixed sinusoids can be imported")


def their_sinusoids(n_positions: int, width: int) -> NDArray[np.float32]:
    """Return their positions: sines in the first half of each row, cosines in the second."""
    return sinusoids(n_positions, width)[:, permutation(width)]


def byte_limits(config: TransformerConfig, n_tokens: int) -> tuple[int, int]:
    """Return the fewest and the most bytes that files with these weights have; the tokens are those of both sides.

    At least all layers in half precision; at most all in double precision, the embeddings under four names, and tables
    of positions.
    """
    d, f = config.d_model, config.d_ff
    layer = 4 * d * d + 2 * d * f
    least = 2 * (config.encoder_layers * layer + config.decoder_layers * (layer + 4 * d * d))
    return least, 5 * least + 4 * 8 * d * n_tokens + (64 << 20)


def usual_power(alpha: float, length: float = USUAL_LENGTH) -> float:
    """Return the exponent of the length that ranks as the GNMT penalty does around a length.

    They divide by length ** p, we by ((5 + length) / 6) ** alpha; both grow alike if p = alpha * length / (5 +
    length).
    """
    return round(alpha * length / (5 + length), 4)


def usual_alpha(power: float) -> float:
    """Return the GNMT penalty that ranks as an exponent of the length does, around a usual length."""
    return round(power * (5 + USUAL_LENGTH) / USUAL_LENGTH, 4)
