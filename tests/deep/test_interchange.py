"""Models to and from the real library transformers: the same probabilities, the same translations.

Needs transformers: make interchange-test. The models are made here, random or trained briefly.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent.parent))

from marian_folder import read_pieces, train_segmenter
from tiny_run import TEXTS, WORDS, make_lines, make_run, translate_words

from seqtool.corpus.tokenizer.registry import load_pair
from seqtool.run_directory import RunDir
from seqtool.translation.engines.interface import SearchOptions
from seqtool.translation.engines.torch_engine import TorchEngine
from seqtool.translation.export.huggingface import export_huggingface
from seqtool.translation.interchange.importing import import_huggingface

transformers = pytest.importorskip("transformers")

LINES = make_lines(200, seed=5)
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


def make_theirs(path: Path, shape: dict[str, Any], steps: int = 250) -> Any:
    """Make a MarianMTModel with its tokenizer, train it to translate word by word, and save it as its library does."""
    path.mkdir()
    segmenters = {
        "source": train_segmenter([" ".join(WORDS), *TEXTS], 90),
        "target": train_segmenter([" ".join(WORDS.values()), *TEXTS[:9]], 80),
    }
    for side, model in segmenters.items():
        (path / f"{side}.spm").write_bytes(model)
    shape = {**SMALL, **shape}
    bias, start = shape.pop("bias", True), shape.pop("start", "<pad>")
    first, two = shape.pop("first", ["</s>", "<unk>"]), shape.pop("two", False)
    pieces = [read_pieces(model) for model in segmenters.values()]
    first = [*first, "<pad>"] if two else first  # of two vocabularies the padding has one id
    filling = [f"piece{number}" for number in range(300)]

    def number(parts: list[str]) -> dict[str, int]:
        last = [] if "<pad>" in first else ["<pad>"]
        return {piece: index for index, piece in enumerate([*first, *dict.fromkeys([*parts, *filling]), *last])}

    sides = [number(pieces[0]), number([*pieces[1], *filling])] if two else [number(pieces[0] + pieces[1])] * 2
    (path / "vocab.json").write_text(json.dumps(sides[0]))
    if two:
        (path / "target_vocab.json").write_text(json.dumps(sides[1]))
    tokenizer = transformers.MarianTokenizer(
        str(path / "source.spm"),
        str(path / "target.spm"),
        str(path / "vocab.json"),
        target_vocab_file=str(path / "target_vocab.json") if two else None,
        separate_vocabs=two,
    )
    ids = sides[1]
    config = transformers.MarianConfig(
        vocab_size=len(sides[0]),
        decoder_vocab_size=len(ids),
        pad_token_id=ids["<pad>"],
        eos_token_id=ids["</s>"],
        forced_eos_token_id=ids["</s>"],
        decoder_start_token_id=ids[start],
        dropout=0.0,
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
    train(model, tokenizer, steps)
    model.generation_config.bad_words_ids = [[ids["<pad>"]]]
    tokenizer.save_pretrained(path)
    model.save_pretrained(path)
    return model, tokenizer


def train(model: Any, tokenizer: Any, steps: int) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, step / 30) * (1 - step / steps))
    model.train()
    for step in range(steps):
        lines = make_lines(32, seed=1000 + step)
        batch = tokenizer(lines, text_target=list(map(translate_words, lines)), return_tensors="pt", padding=True)
        batch["labels"][batch["labels"] == tokenizer.pad_token_id] = -100
        optimizer.zero_grad()
        model(**batch).loss.backward()
        optimizer.step()
        schedule.step()
        with torch.no_grad():  # what starts the decoder is zero in every OPUS-MT model
            if model.config.decoder_start_token_id == model.config.pad_token_id:
                for table in (model.model.encoder.embed_tokens, model.model.decoder.embed_tokens):
                    table.weight[model.config.pad_token_id] = 0
    model.eval()


def log_probs(model: Any, sources: list[list[int]], targets: list[list[int]]) -> list[list[float]]:
    """Return transformers' log-probability of every target token."""
    found = []
    for source, target in zip(sources, targets, strict=True):
        start = [model.config.decoder_start_token_id, *target[:-1]]
        with torch.inference_mode():
            logits = model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([start])).logits[0]
        found.append(logits.log_softmax(-1).gather(1, torch.tensor(target)[:, None]).squeeze(1).tolist())
    return found


def generate(model: Any, tokenizer: Any, lines: list[str], beam: int, power: float) -> list[str]:
    """Translate with transformers."""
    found = []
    for start in range(0, len(lines), 50):
        batch = tokenizer(lines[start : start + 50], return_tensors="pt", padding=True)
        options = {"early_stopping": True, "length_penalty": power} if beam > 1 else {}
        made = model.generate(**batch, num_beams=beam, do_sample=False, max_length=60, **options)
        found += tokenizer.batch_decode(made, skip_special_tokens=True)
    return found


def translate(run: RunDir, lines: list[str], beam: int) -> list[str | None]:
    """Translate with the torch engine; None where a translation ran into the length limit, which is not theirs."""
    pair = load_pair(run)
    engine = TorchEngine.load([run], pair.vocabularies)
    options = SearchOptions(beam=beam, length_penalty=0.0, max_length_ratio=2.0)
    sources = pair.source.encode_batch(lines)
    found = [best[0].ids for best in engine.translate(sources, options)]
    pairs = zip(found, sources, strict=True)
    return [pair.target.decode(ids) if len(ids) < options.max_length(len(source)) else None for ids, source in pairs]


def assert_equal_where_ended(ours: list[str | None], theirs: list[str]) -> None:
    """Assert that all translations are the same, but for a few that did not end."""
    ended = [pair for pair in zip(ours, theirs, strict=True) if pair[0] is not None]
    assert len(ended) >= 0.8 * len(ours)
    assert [one for one, _ in ended] == [other for _, other in ended]


def assert_same(run: RunDir, model: Any, tokenizer: Any, lines: list[str], tolerance: float = 1e-5) -> None:
    """Assert that a run and a model of transformers have the same ids, probabilities and translations."""
    pair = load_pair(run)
    texts = [translate_words(line) for line in lines[:40]]
    sources, targets = (
        [[*ids, side.special.eos] for ids in side.encode_batch(text)]
        for side, text in ((pair.source, lines[:40]), (pair.target, texts))
    )
    given = [tokenizer(line)["input_ids"] for line in lines[:40]]
    wanted = [tokenizer(text_target=text)["input_ids"] for text in texts]
    engine = TorchEngine.load([run], pair.vocabularies)
    ours = engine.score([row[:-1] for row in sources], [row[:-1] for row in targets])
    for mine, theirs in zip(ours, log_probs(model, given, wanted), strict=True):
        assert mine == pytest.approx(theirs, abs=tolerance)
    for beam in (1, 4):
        assert_equal_where_ended(translate(run, lines, beam), generate(model, tokenizer, lines, beam, 0.0))


@pytest.mark.parametrize("shape", SHAPES.values(), ids=list(SHAPES))
def test_an_imported_model_is_the_same_and_so_is_its_export(tmp_path: Path, shape: dict[str, Any]) -> None:
    model, tokenizer = make_theirs(tmp_path / "theirs", shape)
    run = import_huggingface(tmp_path / "theirs", tmp_path / "run").run
    pair = load_pair(run)
    assert [[*ids, pair.source.special.eos] for ids in pair.source.encode_batch(LINES)] == [
        tokenizer(line)["input_ids"] for line in LINES
    ]
    assert_same(run, model, tokenizer, LINES)
    report = export_huggingface(run, tmp_path / "again")
    assert report.difference is not None
    assert report.difference < 1e-5
    again = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "again").eval()
    assert_same(run, again, transformers.AutoTokenizer.from_pretrained(tmp_path / "again"), LINES[:60])


@pytest.mark.parametrize(
    "variant",
    [{"norm": "post"}, {"norm": "pre"}, {"norm": "post", "zero_start": True, "activation": "swish"}],
    ids=str,
)
def test_a_model_of_our_own_is_the_same_in_transformers(tmp_path: Path, variant: dict[str, Any]) -> None:
    run = make_run(tmp_path / "run", trained=True, **variant)
    report = export_huggingface(run, tmp_path / "theirs")
    assert report.difference is not None
    assert report.difference < 1e-5
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "theirs").eval()
    assert type(model).__name__ == report.architecture
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    for beam in (1, 4):
        assert_equal_where_ended(translate(run, LINES, beam), generate(model, tokenizer, LINES, beam, 0.0))


@pytest.mark.parametrize("variant", [{"norm": "pre"}, {"norm": "post", "zero_start": True}], ids=str)
def test_the_converter_of_ctranslate2_takes_the_exported_folder(tmp_path: Path, variant: dict[str, Any]) -> None:
    ctranslate2 = pytest.importorskip("ctranslate2")
    run = make_run(tmp_path / "run", trained=True, **variant)
    export_huggingface(run, tmp_path / "theirs", check=False)
    ctranslate2.converters.TransformersConverter(str(tmp_path / "theirs")).convert(str(tmp_path / "fast"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    given = [tokenizer.convert_ids_to_tokens(tokenizer(line)["input_ids"]) for line in LINES]
    made = ctranslate2.Translator(str(tmp_path / "fast"), device="cpu").translate_batch(given, beam_size=1)
    texts = [
        tokenizer.decode(tokenizer.convert_tokens_to_ids(one.hypotheses[0]), skip_special_tokens=True) for one in made
    ]
    assert_equal_where_ended(translate(run, LINES, 1), texts)
