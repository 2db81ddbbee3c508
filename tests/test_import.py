"""Importing a MarianMT folder: what comes of it, and that a folder from a stranger is named and never run.

That the numbers are those of the library transformers is tested in deep/test_interchange.py, which needs it.
"""

import json
import os
import pickle  # noqa: TID251
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from command_line import run_seqtool, run_text
from marian_folder import make_folder
from safetensors.numpy import load_file, save_file
from small_run import write_corpus
from test_no_pickle import Payload
from tiny_run import make_run
from vouching import vouch

from seqtool.config import load_config
from seqtool.corpus.tokenizer.registry import load_pair
from seqtool.errors import SeqtoolError
from seqtool.run_directory import RunDir
from seqtool.translation.engines.torch_engine import TorchEngine
from seqtool.translation.export.huggingface import export_huggingface
from seqtool.translation.export.languages import choose_languages
from seqtool.translation.interchange.importing import import_huggingface
from seqtool.translation.translator import Translator


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hf") / "opus-mt"
    make_folder(path)
    return path


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return shutil.copytree(original, tmp_path / "theirs")


@pytest.fixture(scope="module")
def imported(original: Path, tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    return import_huggingface(original, tmp_path_factory.mktemp("run") / "run").run


def change(folder: Path, **changes: object) -> None:
    values = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**values, **changes}))


def test_the_configuration_says_what_the_model_is(imported: RunDir) -> None:
    config = load_config(imported.config)
    assert (config.model.norm, config.model.activation, config.model.zero_start) == ("post", "swish", True)
    assert (config.model.output_bias, config.model.scale_embeddings) == (True, True)
    assert (config.tokenizer.kind, config.tokenizer.joint) == ("marian", True)
    assert (config.decode.beam, config.decode.length_penalty) == (4, 0.6)
    assert imported.read_manifest().others["languages"] == {"source": "en", "target": "de"}


def test_both_sides_have_their_own_pieces_and_the_ids_of_the_one_vocabulary(original: Path, imported: RunDir) -> None:
    pair, ids = load_pair(imported), json.loads((original / "vocab.json").read_text())
    assert pair.joint
    assert not pair.is_one
    assert pair.target.special == (len(ids) - 1, 1, len(ids) - 1, 0)
    assert pair.source.pieces(pair.source.encode("two dogs")) != pair.target.pieces(pair.target.encode("two dogs"))
    for tokenizer in (pair.source, pair.target):
        text = "two dogs play" if tokenizer is pair.source else "zwei Hunde spielen"
        assert [ids[piece] for piece in tokenizer.pieces(tokenizer.encode(text))] == tokenizer.encode(text)
        assert tokenizer.decode(tokenizer.encode(text)) == text
    assert pair.source.encode("two 中")[-1] == pair.source.special.unk
    assert pair.source.encode(">>de<< two")[0] == ids[">>de<<"]
    assert pair.source.encode("half a pair \ud800") is not None
    assert isinstance(pair.target.decode(range(-3, len(ids) + 3)), str)


def test_it_translates_exports_and_tells_what_it_is(imported: RunDir, tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2")
    run = shutil.copytree(imported.path, tmp_path / "run")
    torch_lines = Translator.load(run, engine="torch").translate(["two dogs", "she waves", ""], max_length_ratio=0.5)
    assert [bool(one.text) for one in torch_lines][2] is False
    done = run_seqtool("export", "-m", run, "--to", "ctranslate2", "--quantization", "float32")
    assert done.returncode == 0, done.stderr
    fast = Translator.load(run, engine="ctranslate2").translate(["two dogs", "she waves", ""], max_length_ratio=0.5)
    assert [one.text for one in fast] == [one.text for one in torch_lines]
    card = json.loads(run_seqtool("info", run, "--json").stdout)
    assert card["whole"]
    assert card["state"] == "trained"


def test_it_can_be_fine_tuned(imported: RunDir, tmp_path: Path) -> None:
    corpus, tuned = write_corpus(tmp_path), tmp_path / "tuned"
    settings = ["train.batch_tokens=400", "train.validate_every=6", "train.save_every=6", "train.threads=1"]
    settings += ["train.ema=0", "decode.max_length_ratio=0.2", "train.warmup=2", "decode.beam=2"]
    options = [part for one in settings for part in ("--set", one)]
    done = run_seqtool("train", *corpus, "-o", tuned, "--from", imported.path, "--steps", "6", *options)
    assert done.returncode == 0, done.stderr
    for name in ("tokenizer.model", "tokenizer.target.model"):
        assert (tuned / name).read_bytes() == (imported.path / name).read_bytes()
    before, after = load_file(imported.weights), load_file(tuned / "model.safetensors")
    assert all(not np.array_equal(before[name], after[name]) for name in before)
    assert load_config(tuned / "config.toml").model.zero_start


def test_what_is_exported_comes_back_as_it_was(imported: RunDir, tmp_path: Path) -> None:
    export_huggingface(imported, tmp_path / "theirs", check=False)
    again = import_huggingface(tmp_path / "theirs", tmp_path / "again").run
    assert again.config.read_bytes() == imported.config.read_bytes()
    assert again.weights.read_bytes() == imported.weights.read_bytes()
    assert again.tokenizer.read_bytes() == imported.tokenizer.read_bytes()


def test_a_start_that_was_tuned_away_from_zero_is_exported_with_the_same_probabilities(
    imported: RunDir, tmp_path: Path
) -> None:
    run = RunDir(shutil.copytree(imported.path, tmp_path / "run"))
    weights, special = load_file(run.weights), load_pair(run).target.special
    weights["src_embedding.tokens.weight"][special.bos] = 0.5
    save_file(weights, run.weights)
    vouch(run)
    export_huggingface(run, tmp_path / "theirs", check=False)
    again = import_huggingface(tmp_path / "theirs", tmp_path / "again").run
    assert load_config(again.config).model.zero_start
    scores = []
    for one in (run, again):
        pair = load_pair(one)
        source, target = [pair.source.encode("two dogs play")], [pair.target.encode("zwei Hunde")]
        scores.append(TorchEngine.load([one], pair.vocabularies).score(source, target)[0])
    assert scores[1] == pytest.approx(scores[0], abs=1e-5)


@pytest.mark.parametrize("variant", [{"norm": "post"}, {"norm": "pre"}, {"norm": "post", "zero_start": True}], ids=str)
def test_a_model_of_our_own_comes_back_with_the_same_probabilities(tmp_path: Path, variant: dict[str, object]) -> None:
    run = make_run(tmp_path / "run", **variant)
    export_huggingface(run, tmp_path / "theirs", check=False)
    again = import_huggingface(tmp_path / "theirs", tmp_path / "again").run
    pairs = [("two dogs play", "zwei Hunde"), ("she", "sie"), ("", "at")]
    ours, theirs = (Translator.load(one.path, engine="torch").score(*zip(*pairs, strict=True)) for one in (run, again))
    for one, other in zip(ours, theirs, strict=True):
        assert other == pytest.approx(one, abs=1e-4)


def test_settings_that_cannot_be_expressed_are_named(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", positions="rotary", norm_kind="rms", activation="swiglu")
    with pytest.raises(SeqtoolError, match=r"positions = 'rotary' and .*norm_kind = 'rms' and .*activation = 'swiglu'"):
        export_huggingface(run, tmp_path / "theirs", check=False)
    assert not (tmp_path / "theirs").exists()


def refuse(folder: Path, tmp_path: Path, message: str) -> None:
    """Assert that an import fails with a message and leaves nothing."""
    done = run_text("import", folder, "-o", tmp_path / "out")
    assert done.returncode == 1, done.stdout
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", ["pickle", "zip"])
def test_a_pickle_bomb_is_refused_and_not_run(folder: Path, tmp_path: Path, kind: str) -> None:
    (folder / "model.safetensors").unlink()
    bomb = folder / "pytorch_model.bin"
    payload = pickle.dumps({"model.shared.weight": Payload(tmp_path / "made")}, protocol=2)  # as torch writes it
    if kind == "pickle":
        bomb.write_bytes(payload + bytes(100_000))
    else:
        with zipfile.ZipFile(bomb, "w") as archive:
            archive.writestr("archive/data.pkl", payload)
            archive.writestr("archive/version", b"3\n")
            archive.writestr("archive/data/0", bytes(100_000))
    refuse(folder, tmp_path, "not a file of weights alone: it asks for posix.mkdir, which was not run")
    assert not (tmp_path / "made").exists()


def test_a_compressed_archive_is_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "model.safetensors").unlink()
    with zipfile.ZipFile(folder / "pytorch_model.bin", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data/0", bytes(100_000_000))
    refuse(folder, tmp_path, "is compressed, as torch never writes it")


def test_an_honest_pickle_is_read_with_a_warning(folder: Path, imported: RunDir, tmp_path: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    torch.save({n: torch.from_numpy(w) for n, w in weights.items()}, folder / "pytorch_model.bin")  # noqa: TID251
    (folder / "model.safetensors").unlink()
    done = run_text("import", folder, "-o", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert "warning: pytorch_model.bin is a pickle" in done.stderr
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == imported.weights.read_bytes()


def test_a_tensor_that_claims_more_than_its_data_is_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "model.safetensors").unlink()
    giant = torch.zeros(1).expand(1 << 20, 1 << 20)
    torch.save({"model.shared.weight": giant}, folder / "pytorch_model.bin")  # noqa: TID251
    with open(folder / "pytorch_model.bin", "ab") as file:
        file.write(bytes(100_000))
    refuse(folder, tmp_path, "error")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"d_model": 65536, "encoder_ffn_dim": 1 << 20, "decoder_ffn_dim": 1 << 20},
            "config.json describes weights of at least",
        ),
        ({"d_model": 10**12}, "'d_model' must be from"),
        ({"encoder_layers": "many"}, "'encoder_layers' must be a whole number"),
        ({"encoder_layers": 256}, "config.json describes weights of at least"),
        ({"encoder_layers": 1}, "has a weight model.encoder.layers.1"),
        ({"decoder_layers": 2, "encoder_layers": 1}, "has no weight model.decoder.layers.1"),
        ({"model_type": "llama"}, "its model_type is 'llama'"),
        ({"activation_function": "tanh"}, "its activation_function is 'tanh'"),
        ({"activation_function": ["swish"]}, "its activation_function is ['swish']"),
        ({"model_type": {"marian": 1}}, "its model_type is {'marian': 1}"),
        ({"vocab_size": 7}, "it is the vocabulary of another model"),
        ({"eos_token_id": 5}, "it is of another model"),
        ({"pad_token_id": [1]}, "must be ids of the vocabulary"),
        ({"tie_word_embeddings": False}, "its tie_word_embeddings is False"),
    ],
    ids=str,
)
def test_a_configuration_that_does_not_fit_is_named(
    folder: Path, tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    change(folder, **changes)
    refuse(folder, tmp_path, message)


def test_the_vocabulary_of_another_model_is_named(folder: Path, tmp_path: Path) -> None:
    ids = json.loads((folder / "vocab.json").read_text())
    (folder / "vocab.json").write_text(json.dumps({**ids, "more": len(ids)}))
    refuse(folder, tmp_path, "it is the vocabulary of another model")
    del ids["piece7"]
    (folder / "vocab.json").write_text(json.dumps(ids))
    refuse(folder, tmp_path, "the ids of its tokens are not 0, 1, 2")
    (folder / "vocab.json").write_text("[" * 100_000)
    refuse(folder, tmp_path, "not valid JSON")


def test_a_vocabulary_of_the_same_size_but_of_other_pieces_is_named(folder: Path, tmp_path: Path) -> None:
    ids = json.loads((folder / "vocab.json").read_text())
    kept = {"</s>", "<unk>", "<pad>"}
    others = {name if name in kept else f"other{index}": index for name, index in ids.items()}
    (folder / "vocab.json").write_text(json.dumps(others))
    refuse(folder, tmp_path, "of its pieces are in the vocabulary; are both of this model?")
    (folder / "vocab.json").write_text(json.dumps({name.replace("piece7", "\ud800"): i for name, i in ids.items()}))
    refuse(folder, tmp_path, "surrogates not allowed")


def test_languages_that_are_no_codes_are_not_taken(folder: Path, tmp_path: Path) -> None:
    settings = {"source_lang": "../../x", "target_lang": "de\n"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    run = import_huggingface(folder, tmp_path / "run").run
    assert choose_languages(run, None, None) is None


def test_a_link_out_of_the_folder_is_refused_and_that_of_the_cache_is_followed(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    shutil.move(folder / "vocab.json", secret)
    (folder / "vocab.json").symlink_to(secret)
    refuse(folder, tmp_path, "leads out of the model's folder")
    (folder / "vocab.json").unlink()
    cache = tmp_path / "models--x" / "snapshots" / "abc"
    shutil.copytree(folder, cache)
    (cache.parent.parent / "blobs").mkdir()
    shutil.move(secret, cache.parent.parent / "blobs" / "123")
    (cache / "vocab.json").symlink_to("../../blobs/123")
    assert import_huggingface(cache, tmp_path / "run").parameters > 0


@pytest.mark.parametrize("name", ["../model.safetensors", "/etc/passwd", "model-00001-of-00002.safetensors/../x", 7])
def test_an_index_that_names_files_elsewhere_is_refused(folder: Path, tmp_path: Path, name: object) -> None:
    shutil.move(folder / "model.safetensors", tmp_path / "model.safetensors")
    index = {"weight_map": {"model.shared.weight": name}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    refuse(folder, tmp_path, "which is no part of a model")


@pytest.mark.parametrize("name", ["config.json", "vocab.json", "source.spm", "model.safetensors"])
def test_a_pipe_or_a_link_elsewhere_in_place_of_a_file_is_named_and_not_waited_for(
    folder: Path, tmp_path: Path, name: str
) -> None:
    (folder / name).unlink()
    os.mkfifo(folder / name)
    refuse(folder, tmp_path, f"{name}: not a file")
    (folder / name).unlink()
    (folder / name).symlink_to("/dev/zero")
    refuse(folder, tmp_path, "leads out of the model's folder, to /dev/zero")
    (folder / name).unlink()
    (folder / name).symlink_to(name)
    refuse(folder, tmp_path, f"{name}: a link that leads nowhere")


@pytest.mark.parametrize("name", ["config.json", "vocab.json", "target.spm", "tokenizer_config.json"])
def test_a_file_that_is_far_too_large_is_not_read(folder: Path, tmp_path: Path, name: str) -> None:
    with open(folder / name, "wb") as file:
        file.truncate(10 << 30)
    refuse(folder, tmp_path, f"{name}: is larger than the 16,777,216 bytes")


def test_weights_that_are_larger_than_the_configuration_says_or_were_never_written_are_named(
    folder: Path, tmp_path: Path
) -> None:
    weights = folder / "model.safetensors"
    with open(weights, "r+b") as file:
        file.truncate(100 << 30)
    refuse(folder, tmp_path, "config.json describes weights of at most")
    change(folder, d_model=32768, encoder_ffn_dim=65536, decoder_ffn_dim=65536)  # for which the size is right
    refuse(folder, tmp_path, "model.safetensors: most of its bytes were never written")
    weights.write_bytes((10 << 30).to_bytes(8, "little") + bytes(1 << 20))  # a header of 10 GiB
    change(folder, d_model=16, encoder_ffn_dim=24, decoder_ffn_dim=24)
    refuse(folder, tmp_path, "damaged or not a safetensors file")


def test_a_pickle_whose_names_share_the_same_numbers_thousandfold_is_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "model.safetensors").unlink()
    values = torch.zeros(500, 100, dtype=torch.float16)
    torch.save({f"weight {number}": values for number in range(1000)}, folder / "pytorch_model.bin")  # noqa: TID251
    refuse(folder, tmp_path, "its weights are larger than the file")


def test_weights_of_other_shapes_or_without_a_number_are_named(folder: Path, tmp_path: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    name = "model.encoder.layers.0.fc1.weight"
    save_file({**weights, name: weights[name].T.copy()}, folder / "model.safetensors")
    refuse(folder, tmp_path, f"its {name} has the shape (16, 24), but its config.json asks for (24, 16)")
    save_file({**weights, name: np.full_like(weights[name], np.nan)}, folder / "model.safetensors")
    refuse(folder, tmp_path, "values that are no numbers")
    save_file({**weights, "model.shared.weight": weights["model.shared.weight"][1:]}, folder / "model.safetensors")
    refuse(folder, tmp_path, "final_logits_bias has the shape")
    (folder / "model.safetensors").write_bytes(b"\xff" * 1_000_000)
    refuse(folder, tmp_path, "damaged or not a safetensors file")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Helsinki-NLP/opus-mt-en-de", "hf download Helsinki-NLP/opus-mt-en-de --local-dir opus-mt-en-de"),
        ("theirs/config.json", "is a file; give the folder that it is in"),
        ("cache", "has no config.json; give cache/snapshots/abc"),
        ("run", "is a run directory of seqtool already"),
    ],
)
def test_what_is_no_folder_of_a_model_gets_the_next_step(folder: Path, tmp_path: Path, name: str, message: str) -> None:
    shutil.copytree(folder, tmp_path / "cache" / "snapshots" / "abc")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.toml").touch()
    done = run_text("import", name, "-o", "out", cwd=tmp_path)
    assert done.returncode == 1
    assert message in done.stderr
    assert "seqtool import theirs -o DIR" in run_text("translate", "-m", "theirs", cwd=tmp_path).stderr


def test_a_folder_that_holds_something_is_left_alone(original: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(SeqtoolError, match="already and not empty"):
        import_huggingface(original, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
