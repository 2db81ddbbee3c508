"""Makes MarianMT models with the library transformers, and trains each until it ends its sentences."""

import json
import sys
from pathlib import Path
from typing import Any

import torch
import transformers

sys.path.insert(0, str(Path(__file__).parent.parent))

from marian_folder import read_pieces, train_segmenter
from tiny_run import TEXTS, WORDS, make_lines, translate_words

SMALL: dict[str, Any] = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "scale_embedding": True}
SMALL |= {"encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "encoder_attention_heads": 4, "decoder_attention_heads": 4}
SHAPES: dict[str, dict[str, Any]] = {
    "swish": {"activation_function": "swish"},
    "relu": {"activation_function": "relu", "encoder_layers": 3, "decoder_layers": 1},
    "gelu": {"activation_function": "gelu", "d_model": 48, "encoder_attention_heads": 3, "decoder_attention_heads": 3},
    "no bias": {"activation_function": "swish", "bias": False},
    "separate embeddings": {"activation_function": "swish", "share_encoder_decoder_embeddings": False},
    "two vocabularies": {"activation_function": "relu", "share_encoder_decoder_embeddings": False, "two": True},
    "other special ids": {"activation_function": "swish", "first": ["<unk>", "<pad>", "</s>"]},
    "start of its own, no scale": {
        "activation_function": "swish",
        "scale_embedding": False,
        "first": ["</s>", "<unk>", "<s>"],
        "start": "<s>",
    },
}
LINES = make_lines(200, seed=5)
LIMIT = 40  # target tokens with start and end; what is cut off there has not ended
MOST_STEPS = 1500


def make_model(path: Path, shape: dict[str, Any]) -> tuple[Any, Any]:
    """Make a MarianMTModel with its tokenizer, train it to translate word by word, and save it as its library does."""
    path.mkdir()
    shape = {**SMALL, **shape}
    bias, start = shape.pop("bias", True), shape.pop("start", "<pad>")
    first, two = shape.pop("first", ["</s>", "<unk>"]), shape.pop("two", False)
    tokenizer, ids = make_tokenizer(path, first, two)
    config = transformers.MarianConfig(
        vocab_size=len(tokenizer.encoder),
        decoder_vocab_size=len(ids),
        pad_token_id=ids["<pad>"],
        eos_token_id=ids["</s>"],
        forced_eos_token_id=ids["</s>"],
        decoder_start_token_id=ids[start],
        dropout=0.0,
        init_std=0.18,  # with embeddings of variance 1 it learns in some hundred steps
        **shape,
    )
    torch.manual_seed(1)
    model = transformers.MarianMTModel(config)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() == 1 and "embed_positions" not in name:
                weight.add_(torch.randn_like(weight), alpha=0.1)
        if bias:
            model.final_logits_bias.normal_(std=0.2)
    model.generation_config.bad_words_ids = [[ids["<pad>"]]]
    train(model, tokenizer)
    tokenizer.save_pretrained(path)
    model.save_pretrained(path)
    return model, tokenizer


def make_tokenizer(path: Path, first: list[str], two: bool) -> tuple[Any, dict[str, int]]:
    """Make a MarianTokenizer, and return the ids of the target's pieces with it."""
    texts = {"source": [" ".join(WORDS), *TEXTS], "target": [" ".join(WORDS.values()), *TEXTS[:9]]}
    segmenters = [train_segmenter(texts["source"], 90), train_segmenter(texts["target"], 80)]
    for side, model in zip(texts, segmenters, strict=True):
        (path / f"{side}.spm").write_bytes(model)
    pieces = [read_pieces(model) for model in segmenters]
    first = [*first, "<pad>"] if two else first  # of two vocabularies the padding has one id
    last = [] if "<pad>" in first else ["<pad>"]
    filling = [f"piece{number}" for number in range(300)]

    def number(parts: list[str]) -> dict[str, int]:
        return {piece: index for index, piece in enumerate([*first, *dict.fromkeys([*parts, *filling]), *last])}

    source, target = (number(pieces[0]), number(pieces[1])) if two else (number(pieces[0] + pieces[1]),) * 2
    (path / "vocab.json").write_text(json.dumps(source))
    if two:
        (path / "target_vocab.json").write_text(json.dumps(target))
    tokenizer = transformers.MarianTokenizer(
        str(path / "source.spm"),
        str(path / "target.spm"),
        str(path / "vocab.json"),
        target_vocab_file=str(path / "target_vocab.json") if two else None,
        separate_vocabs=two,
    )
    return tokenizer, target


def train(model: Any, tokenizer: Any) -> None:
    """Train until it has learnt the words, and all the test's lines get translations that end, with beams too."""
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(1, MOST_STEPS + 1):
        optimizer.param_groups[0]["lr"] = 4e-3 * min(step / 30, (100 / step) ** 0.5, 1.0)
        lines = make_lines(32, seed=1000 + step)
        batch = tokenizer(lines, text_target=list(map(translate_words, lines)), return_tensors="pt", padding=True)
        batch["labels"][batch["labels"] == tokenizer.pad_token_id] = -100
        optimizer.zero_grad()
        model(**batch).loss.backward()
        optimizer.step()
        with torch.no_grad():  # what starts the decoder is zero in every OPUS-MT model
            if model.config.decoder_start_token_id == model.config.pad_token_id:
                for table in (model.model.encoder.embed_tokens, model.model.decoder.embed_tokens):
                    table.weight[model.config.pad_token_id] = 0
        if step % 100 == 0:
            model.eval()
            if has_learnt(model, tokenizer):
                return
            model.train()
    raise AssertionError(f"after {MOST_STEPS} steps the model does not translate or does not end its sentences")


def has_learnt(model: Any, tokenizer: Any) -> bool:
    """Return whether most translations are right and all end before the limit."""
    greedy = generate_ids(model, tokenizer, LINES, 1)
    n_right = sum(text == translate_words(line) for text, line in zip(decode(tokenizer, greedy), LINES, strict=True))
    rows = [*greedy, *generate_ids(model, tokenizer, LINES, 4)] if n_right >= 0.7 * len(LINES) else []
    return bool(rows) and all(len(row) < LIMIT - 2 for row in rows)


def generate_ids(model: Any, tokenizer: Any, lines: list[str], beam: int, power: float = 0.0) -> list[list[int]]:
    """Translate with transformers; return the ids without start, end and padding."""
    silent = {model.config.pad_token_id, model.config.eos_token_id, model.config.decoder_start_token_id}
    options = {"early_stopping": True, "length_penalty": power} if beam > 1 else {}
    found: list[list[int]] = []
    for start in range(0, len(lines), 100):
        batch = tokenizer(lines[start : start + 100], return_tensors="pt", padding=True)
        made = model.generate(**batch, num_beams=beam, do_sample=False, max_length=LIMIT, **options)
        found += [[index for index in row if index not in silent] for row in made.tolist()]
    return found


def decode(tokenizer: Any, rows: list[list[int]]) -> list[str]:
    """Return the texts of generated ids."""
    return list(tokenizer.batch_decode(rows, skip_special_tokens=True))
