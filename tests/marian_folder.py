"""Makes the folder of a MarianMT model as Hugging Face has it, without that library: random weights under its names."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer
from tiny_run import TEXTS, WORDS

SHAPE = {"d_model": 16, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "encoder_layers": 2, "decoder_layers": 1}
SHAPE |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2}


def train_segmenter(texts: list[str], size: int) -> bytes:
    """Train a unigram model that normalises, as OPUS-MT has them."""
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=model, vocab_size=size, hard_vocab_limit=False, minloglevel=2
    )
    return model.getvalue()


def read_pieces(model: bytes) -> list[str]:
    """Return the pieces of a SentencePiece model that stand for text."""
    processor = SentencePieceProcessor(model_proto=model)
    ids = range(processor.get_piece_size())
    return [processor.id_to_piece(i) for i in ids if not (processor.is_control(i) or processor.is_unknown(i))]


def weight_shapes(vocab: int, shape: dict[str, int]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield name and shape of every weight of a MarianMTModel that shares its embeddings."""
    d, f = shape["d_model"], shape["encoder_ffn_dim"]
    yield "model.shared.weight", (vocab, d)
    yield "final_logits_bias", (1, vocab)
    for side in ("encoder", "decoder"):
        for layer in range(shape[f"{side}_layers"]):
            prefix = f"model.{side}.layers.{layer}"
            for attention in ("self_attn", "encoder_attn")[: 1 if side == "encoder" else 2]:
                for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    yield f"{prefix}.{attention}.{name}.weight", (d, d)
                    yield f"{prefix}.{attention}.{name}.bias", (d,)
                yield f"{prefix}.{attention}_layer_norm.weight", (d,)
                yield f"{prefix}.{attention}_layer_norm.bias", (d,)
            yield f"{prefix}.fc1.weight", (f, d)
            yield f"{prefix}.fc1.bias", (f,)
            yield f"{prefix}.fc2.weight", (d, f)
            yield f"{prefix}.fc2.bias", (d,)
            yield f"{prefix}.final_layer_norm.weight", (d,)
            yield f"{prefix}.final_layer_norm.bias", (d,)


def random_weights(vocab: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Return weights of which none has its neutral value, but for the zero vector of the padding."""
    draw = np.random.default_rng(seed)
    weights = {name: draw.normal(0, 0.3, shape).astype(np.float32) for name, shape in weight_shapes(vocab, SHAPE)}
    for name, values in weights.items():
        if "norm.weight" in name:
            values += 1
    weights["model.shared.weight"][-1] = 0
    return weights


def make_folder(path: Path, **config: Any) -> dict[str, np.ndarray]:
    """Write the folder; return its weights."""
    path.mkdir(parents=True)
    segmenters = {
        "source.spm": train_segmenter([" ".join(WORDS), *TEXTS], 90),
        "target.spm": train_segmenter([" ".join(WORDS.values()), *TEXTS[:9]], 80),
    }
    for name, model in segmenters.items():
        (path / name).write_bytes(model)
    pieces = [piece for model in segmenters.values() for piece in read_pieces(model)]
    filling = [f"piece{number}" for number in range(400)]  # the configuration takes no vocabulary below 300
    vocabulary = ["</s>", "<unk>", *dict.fromkeys([*pieces, ">>de<<", *filling]), "<pad>"]
    (path / "vocab.json").write_text(json.dumps({piece: index for index, piece in enumerate(vocabulary)}))
    pad = len(vocabulary) - 1
    values: dict[str, Any] = {
        "model_type": "marian",
        **SHAPE,
        "activation_function": "swish",
        "scale_embedding": True,
        "vocab_size": len(vocabulary),
        "pad_token_id": pad,
        "eos_token_id": 0,
        "decoder_start_token_id": pad,
        "num_beams": 4,
        "length_penalty": 0.5,
    }
    (path / "config.json").write_text(json.dumps({**values, **config}))
    (path / "tokenizer_config.json").write_text(json.dumps({"source_lang": "en", "target_lang": "de"}))
    weights = random_weights(len(vocabulary))
    save_file(weights, path / "model.safetensors")
    return weights
