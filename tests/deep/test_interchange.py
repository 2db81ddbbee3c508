"""Models to and from the real library transformers: the same probabilities, the same translations.

Needs transformers: make interchange-test. The models are made here and trained until they end their sentences.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent.parent))

from command_line import SEQTOOL, run_command
from tiny_run import WORDS, make_lines, make_run, translate_words

from seqtool.corpus.tokenizer.interface import TokenizerPair
from seqtool.corpus.tokenizer.registry import load_pair
from seqtool.model.loading import load_model
from seqtool.run_directory import RunDir
from seqtool.translation.engines.interface import SearchOptions
from seqtool.translation.engines.settings import EngineSettings
from seqtool.translation.engines.torch_engine import TorchEngine
from seqtool.translation.export.ctranslate2 import export_ctranslate2
from seqtool.translation.export.huggingface import export_huggingface
from seqtool.translation.interchange.importing import import_huggingface
from seqtool.translation.translator import Translator

transformers = pytest.importorskip("transformers")

from trained_marian import LIMIT, LINES, SHAPES, decode, generate_ids, make_model  # noqa: E402 (it needs transformers)

TOLERANCE = 1e-5  # of a log-probability in float32, whose rounding alone can reach it
EXACT = 1e-9  # of a log-probability in float64
DATA = Path(__file__).parents[2] / "data"
PAGE = Path(__file__).parents[2] / "docs" / "opus-mt.md"
DEMO = [(DATA / f"test.{side}").read_text(encoding="utf-8").splitlines() for side in ("en", "de")]


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)  # the models are too small for more


class Differences(NamedTuple):
    """By how much the log-probability of a target's token differs at most."""

    exact: float  # both in float64: what is not rounding
    ours: float  # ours in float32, as it is used, from theirs in float64
    theirs: float  # theirs in float32 from theirs in float64: their rounding, for comparison
    both: float  # both in float32: the sum of two roundings

    def __str__(self) -> str:
        return (
            f"log-probabilities differ by {self.exact:.1e} at most in float64; ours in float32 by {self.ours:.1e} from "
            f"theirs in float64 (theirs in float32: {self.theirs:.1e}, one from the other: {self.both:.1e})"
        )

    def check(self) -> None:
        """Assert that nothing but rounding differs, and that ours is no worse than what theirs can do."""
        assert self.exact <= EXACT
        assert self.ours <= max(TOLERANCE, 2 * self.theirs)


def compare(run: RunDir, model: Any, tokenizer: Any, texts: list[tuple[str, str]]) -> Differences:
    """Score pairs with both, each with its own tokenizer and in two precisions."""
    pair = load_pair(run)
    ours, theirs = {}, {}
    for dtype in (torch.float64, torch.float32):
        net = load_model(run, pair.vocabularies).to(dtype)
        ours[dtype] = torch.cat([score_ours(net, pair, *text) for text in texts]).double()
        theirs[dtype] = torch.cat([score_theirs(model.to(dtype), tokenizer, *text) for text in texts]).double()
    exact, used = torch.float64, torch.float32
    pairs = [(ours[exact], theirs[exact]), (ours[used], theirs[exact])]
    pairs += [(theirs[used], theirs[exact]), (ours[used], theirs[used])]
    return Differences(*(float((one - other).abs().max()) for one, other in pairs))


def score_ours(net: Any, pair: TokenizerPair, source: str, target: str) -> torch.Tensor:
    given, wanted = pair.source.encode(source), pair.target.encode(target)
    rows = [*given, pair.source.special.eos], [pair.target.special.bos, *wanted]
    with torch.inference_mode():
        return choose(net.project(net(*(torch.tensor([row]) for row in rows))), [*wanted, pair.target.special.eos])


def score_theirs(model: Any, tokenizer: Any, source: str, target: str) -> torch.Tensor:
    wanted = tokenizer(text_target=target)["input_ids"]
    rows = tokenizer(source)["input_ids"], [model.config.decoder_start_token_id, *wanted[:-1]]
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([rows[0]]), decoder_input_ids=torch.tensor([rows[1]])).logits
        return choose(logits, wanted)


def choose(logits: torch.Tensor, ids: list[int]) -> torch.Tensor:
    return logits[0].log_softmax(-1).gather(1, torch.tensor(ids)[:, None])


def translate_ids(run: RunDir, lines: list[str], beam: int, dtype: torch.dtype = torch.float32) -> list[list[int]]:
    """Translate with the torch engine and no length penalty."""
    pair = load_pair(run)
    engine = TorchEngine.load([run], pair.vocabularies, EngineSettings(threads=1))
    engine.models[0].to(dtype)
    options = SearchOptions(beam=beam, length_penalty=0.0, max_length_ratio=float(LIMIT))
    return [best[0].ids for best in engine.translate(pair.source.encode_batch(lines), options)]


def translate(run: RunDir, lines: list[str], beam: int, dtype: torch.dtype = torch.float32) -> list[str]:
    return [load_pair(run).target.decode(ids) for ids in translate_ids(run, lines, beam, dtype)]


def seqtool(*arguments: object) -> str:
    """Run a command that must succeed, and return what it reports."""
    done = run_command([*SEQTOOL, *map(str, arguments)], capture_output=True, text=True, timeout=3000)
    assert done.returncode == 0, done.stderr
    return str(done.stderr).strip()


def count_equal(ours: list[Any], theirs: list[Any]) -> str:
    return f"{sum(one == other for one, other in zip(ours, theirs, strict=True))}/{len(ours)}"


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, Any]:
    """Make the first shape."""
    torch.set_num_threads(1)
    path = tmp_path_factory.mktemp("marian") / "theirs"
    return path, *make_model(path, SHAPES["swish"])


@pytest.mark.parametrize("shape", SHAPES)
def test_an_imported_model_is_the_same_and_so_is_its_export(tmp_path: Path, shape: str) -> None:
    model, tokenizer = make_model(tmp_path / "theirs", SHAPES[shape])
    run = import_huggingface(tmp_path / "theirs", tmp_path / "run").run
    pair = load_pair(run)
    assert [[*ids, pair.source.special.eos] for ids in pair.source.encode_batch(LINES)] == tokenizer(LINES)["input_ids"]
    texts = [(line, translate_words(line)) for line in LINES]
    differences = compare(run, model, tokenizer, texts)
    report = export_huggingface(run, tmp_path / "again")
    again = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "again").eval()
    renamed = transformers.AutoTokenizer.from_pretrained(tmp_path / "again")
    print(f"\nimport, {shape}, {len(LINES)} lines: {differences}; export checked to {report.difference:.1e}")
    for dtype in (torch.float32, torch.float64):  # float32 rounds: two translations that are equally good may change
        for beam in (1, 4):
            given = generate_ids(model.to(dtype), tokenizer, LINES, beam)
            ours = translate_ids(run, LINES, beam, dtype)
            after = generate_ids(again.to(dtype), renamed, LINES, beam)
            print(f"{dtype}, beam {beam}: {count_equal(ours, given)}, back in transformers {count_equal(after, given)}")
            assert dtype == torch.float32 or ours == given
            assert after == given
    differences.check()
    model.float(), again.float()
    weights = again.state_dict()
    for name, values in model.state_dict().items():
        assert torch.equal(weights[name], values), name


@pytest.mark.parametrize(
    "variant",
    [{"norm": "post"}, {"norm": "pre"}, {"norm": "post", "zero_start": True, "activation": "swish"}],
    ids=str,
)
def test_a_model_of_our_own_is_the_same_in_transformers(tmp_path: Path, variant: dict[str, Any]) -> None:
    run = make_run(tmp_path / "run", trained=True, **variant)
    report = export_huggingface(run, tmp_path / "theirs")
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "theirs").eval()
    assert type(model).__name__ == report.architecture
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    ours = translate_ids(run, LINES, 1, torch.float64)
    theirs = generate_ids(model.double(), tokenizer, LINES, 1)
    shown = LIMIT - 3  # tokens without start and end; some translations do not end
    assert [load_pair(run).target.decode(ids[:shown]) for ids in ours] == decode(
        tokenizer, [ids[:shown] for ids in theirs]
    )


SMALL_DEMO = """model.d_model=96 model.d_ff=192 model.n_heads=4 model.encoder_layers=2 model.decoder_layers=2
    model.positions=sinusoidal model.norm_kind=layer model.activation=relu model.dropout=0.05 tokenizer.vocab_size=2500
    train.batch_tokens=1024 train.lr=2e-3 train.warmup=100 train.schedule=cosine train.steps=500
    train.validate_every=500 train.save_every=500 train.threads=1 decode.beam=4"""


@pytest.fixture(scope="module", params=["post", "pre"])
def demo(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[RunDir, Path, Any, Any]:
    """Train on the demo corpus until its translations end, and export to Hugging Face."""
    norm = request.param
    path = tmp_path_factory.mktemp(norm)
    settings = [f"model.norm={norm}", f"model.zero_start={str(norm == 'post').lower()}", *SMALL_DEMO.split()]
    files = [DATA / f"train.{side}" for side in ("en", "de")]
    files += [part for side in ("en", "de") for part in ("--valid", DATA / f"valid.{side}")]
    options = [part for one in settings for part in ("--set", one)]
    run, folder = RunDir(path / "run"), path / "theirs"
    seqtool("train", *files, "-o", run.path, *options)
    print(f"\n{seqtool('export', '-m', run.path, '--to', 'huggingface', '-o', folder)}")
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    return run, folder, model, transformers.AutoTokenizer.from_pretrained(folder)


def test_the_demo_models_translate_the_test_set_alike_in_transformers(demo: tuple[RunDir, Path, Any, Any]) -> None:
    run, _, model, tokenizer = demo
    differences = compare(run, model, tokenizer, list(zip(*DEMO, strict=True)))
    print(f"\nexport, {type(model).__name__}, {len(DEMO[0])} lines: {differences}")
    for dtype in (torch.float64, torch.float32):
        ours = translate(run, DEMO[0], 4, dtype)
        theirs = decode(tokenizer, generate_ids(model.to(dtype), tokenizer, DEMO[0], 4))
        print(f"{dtype}, beam 4: {count_equal(ours, theirs)} equal, {len(set(ours))} different ones")
        assert dtype == torch.float32 or ours == theirs
    differences.check()


def test_the_converter_of_ctranslate2_takes_the_exported_folder(
    demo: tuple[RunDir, Path, Any, Any], tmp_path: Path
) -> None:
    ctranslate2 = pytest.importorskip("ctranslate2")
    run, folder, _, tokenizer = demo
    converter = ctranslate2.converters.transformers.main
    old, sys.argv = sys.argv, ["ct2-transformers-converter", "--model", str(folder), "--output_dir", f"{tmp_path}/fast"]
    try:
        converter()
    finally:
        sys.argv = old
    pieces = [tokenizer.convert_ids_to_tokens(tokenizer(line)["input_ids"]) for line in DEMO[0]]
    rows = [tokenizer.convert_tokens_to_ids(best) for best in search_fast(tmp_path / "fast", pieces)]
    theirs = decode(tokenizer, rows)
    pair = load_pair(run)
    export_ctranslate2(run, "float32", tmp_path / "ours")
    best = search_fast(tmp_path / "ours", [pair.source.pieces(ids) for ids in pair.source.encode_batch(DEMO[0])])
    ours = [pair.target.decode(pair.target.ids_of(pieces)) for pieces in best]
    by_torch = count_equal(translate(run, DEMO[0], 4), theirs)  # another implementation of beam search
    print(f"\nCTranslate2's own converter: {count_equal(ours, theirs)} as by ours, {by_torch} as by the torch engine")
    assert ours == theirs


def search_fast(folder: Path, pieces: list[list[str]]) -> list[list[str]]:
    """Translate with nothing but CTranslate2."""
    import ctranslate2

    engine = ctranslate2.Translator(str(folder), device="cpu", compute_type="float32", intra_threads=1)
    return [one.hypotheses[0] for one in engine.translate_batch(pieces, beam_size=4, length_penalty=0)]


def test_the_card_is_one_that_the_hub_reads(demo: tuple[RunDir, Path, Any, Any]) -> None:
    markdown = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable("table")
    card = pytest.importorskip("huggingface_hub").ModelCard.load(demo[1] / "README.md")
    assert card.data.language == ["en", "de"]
    assert (card.data.pipeline_tag, card.data.library_name) == ("translation", "transformers")
    page = markdown.render(card.text)
    assert "<h1>English to German translation</h1>" in page
    assert page.count("<table>") == 1
    assert "<td>bleu</td>" in page.lower()


NEW_WORDS = {**WORDS, "man": "Hunde", "dogs": "Hemd", "night": "dem", "walks": "winkt", "she": "ein"}


def write_new_pairs(folder: Path) -> dict[str, list[str]]:
    """Write a corpus where some words have another translation; return its source lines."""
    sets = {"train": make_lines(3000, seed=2), "valid": make_lines(100, seed=3), "test": make_lines(200, seed=4)}
    for name, lines in sets.items():
        wanted = [" ".join(NEW_WORDS[word] for word in line.split()) for line in lines]
        for side, text in (("en", lines), ("de", wanted)):
            (folder / f"{name}.{side}").write_text("\n".join(text) + "\n", encoding="utf-8")
    return sets


def test_fine_tuning_an_imported_model_improves_it_and_it_goes_on(
    theirs: tuple[Path, Any, Any], tmp_path: Path
) -> None:
    base = import_huggingface(theirs[0], tmp_path / "base").run
    sets = write_new_pairs(tmp_path)
    files = {name: [tmp_path / f"{name}.{side}" for side in ("en", "de")] for name in sets}
    valid = [part for file in files["valid"] for part in ("--valid", file)]
    options = ["--from", base.path, "-o", tmp_path / "tuned", "--steps", "200"]
    seqtool("train", *files["train"], *valid, *options)
    tuned = RunDir(tmp_path / "tuned")
    for name in ("tokenizer.model", "tokenizer.target.model"):
        assert (tuned.path / name).read_bytes() == (base.path / name).read_bytes()
    wanted = (tmp_path / "test.de").read_text(encoding="utf-8").splitlines()
    right = [count_equal(translate(run, sets["test"], 1), wanted) for run in (base, tuned)]
    scores = [bleu(translate(run, sets["test"], 4), wanted) for run in (base, tuned)]
    print(f"\nfine-tuning, 200 steps: BLEU {scores[0]:.1f} -> {scores[1]:.1f}, right {right[0]} -> {right[1]}")
    assert scores[1] > scores[0] + 5
    seqtool("export", "-m", tuned.path, "--to", "ctranslate2", "--quantization", "float32")
    both = [Translator.load(tuned.path, engine=engine, device="cpu") for engine in ("torch", "ctranslate2")]
    lines = [[one.text for one in engine.translate(sets["test"], beam=1)] for engine in both]
    report = export_huggingface(tuned, tmp_path / "back")
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "back").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "back")
    back = [decode(tokenizer, generate_ids(model, tokenizer, sets["test"], beam)) for beam in (1, 4)]
    print(
        f"tuned, greedy: CTranslate2 {count_equal(*lines)} equal, transformers {count_equal(lines[0], back[0])}; "
        f"beam 4 in transformers {count_equal(translate(tuned, sets['test'], 4), back[1])} "
        f"(checked to {report.difference:.1e})"
    )
    assert lines[0] == lines[1] == back[0]


def test_the_commands_of_the_page_do_what_it_says(theirs: tuple[Path, Any, Any], tmp_path: Path) -> None:
    shutil.copytree(theirs[0], tmp_path / "opus-mt-en-de")  # in place of the one to download
    write_new_pairs(tmp_path)
    shutil.copy(tmp_path / "test.en", tmp_path / "manual.en")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "seqtool"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(SEQTOOL)} "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        done = subprocess.run(
            ["sh", "-ec", block], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        print(f"\n{block}{done.stdout}{done.stderr}")
        assert done.returncode == 0
    source, wanted, tuned = ((tmp_path / name).read_text().splitlines() for name in ("test.en", "test.de", "manual.de"))
    assert bleu(tuned, wanted) > bleu(translate(RunDir(tmp_path / "en-de"), source, 4), wanted) + 5
    assert (tmp_path / "tuned-hf" / "model.safetensors").exists()
    assert (tmp_path / "en-de.argosmodel").exists()


def bleu(texts: list[str], wanted: list[str]) -> float:
    import sacrebleu

    return float(sacrebleu.corpus_bleu(texts, [wanted]).score)
