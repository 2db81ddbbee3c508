"""Control characters in names, settings, files and corpora: what reaches the terminal is visible and obeys nothing."""

import json
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import run_seqtool
from faults import count
from hard_runs import quick_command
from small_run import write_corpus
from tiny_run import make_lines, make_run, translate_words
from vouching import vouch

from seqtool.manifest import ScoreEntry
from seqtool.run_directory import RunDir

CONTROLS = [chr(code) for code in (*range(1, 32), *range(127, 160)) if chr(code) not in "\n\t"]
CONTROLS += ["\u200e", "\u200f", "\u2028", "\u2029", *map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A))]
ALL = "".join(CONTROLS)
FORGED = f"x{ALL}\nseqtool: error: forged\r\n"
IN_A_NAME = FORGED.replace("/", "")


def assert_harmless(text: bytes, what: str) -> None:
    """Assert that a text for the terminal moves no cursor and has no line that somebody else wrote."""
    shown = text.decode("utf-8", "surrogateescape")
    odd = sorted({char for char in shown if unicodedata.category(char) in ("Cc", "Zl", "Zp") and char not in "\n\t"})
    odd += sorted({char for char in shown if char in ALL} - set(odd))
    assert not odd, (what, odd, shown)
    assert not any(line.startswith("seqtool: error: forged") for line in shown.splitlines()), (what, shown)
    assert "Traceback" not in shown, (what, shown)
    count("control characters", what, "visible")


def run(*arguments: object, stdin: bytes = b"", what: str, streams: str = "both") -> None:
    done = run_seqtool(*arguments, stdin=stdin)
    assert_harmless(done.stderr, what)
    if streams == "both":
        assert_harmless(done.stdout, what)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    return make_run(tmp_path_factory.mktemp("model") / "model", trained=True)


def test_names_of_files_and_values_of_options(model: RunDir, tmp_path: Path) -> None:
    name = tmp_path / IN_A_NAME[:100]
    name.write_text("a\tb\n")
    (tmp_path / "a.tsv").write_text("a\tb\n")
    for command in ("check", "prepare", "split", "train"):
        options = ["-o", tmp_path / "out"] if command != "check" else []
        run(command, name, *options, what=f"{command}: name of a corpus")
        run(command, tmp_path / f"{FORGED[:60]}.tsv", *options, what=f"{command}: name of a missing corpus")
        run(command, f"{tmp_path / 'a.tsv'}:{FORGED}:b", *options, what=f"{command}: name of a column")
    run("translate", "-m", tmp_path / FORGED[:80], what="translate: name of a model")
    run("info", tmp_path / FORGED[:80], what="info: name of a model")
    run("report", tmp_path / FORGED[:80], what="report: name of a run")
    run("eval", "--hyp", name, name, what="eval: name of a file", streams="stderr")
    for option in (f"{FORGED}.x=1", f"train.{FORGED}=1", f"train.lr={FORGED}", f"model.kind={FORGED}"):
        run("train", tmp_path / "a.tsv", "--set", option, what="train: --set")
    settings = tmp_path / f"{IN_A_NAME[:100]}.toml"
    settings.write_text("[train]\nlr = 1e-3\n[model]\ndropout = 0.3\n")
    run("train", "--config", settings, "--print-config", what="train: --print-config")
    for option in ("--preset", "--device", "--seed", "--steps", "--languages", f"--{FORGED}", "--config"):
        run("train", tmp_path / "a.tsv", option, FORGED, what=f"train: {option if FORGED not in option else 'option'}")
    run(FORGED, what="name of a command")
    for option in ("--engine", "--device", "--beam", "--prefix", "--banned", "--required"):
        run("translate", "-m", model.path, option, FORGED, stdin=b"a\n", what=f"translate: {option}", streams="stderr")
    run("export", "-m", model.path, "--to", FORGED, what="export: --to")
    run("export", "-m", model.path, "--to", "argos", "-o", name, "--languages", FORGED, what="export: --languages")
    run("average", "-o", tmp_path / "out", tmp_path / FORGED[:80], what="average: name of a checkpoint")
    run("tokenizer", "encode", "-m", tmp_path / FORGED[:80], stdin=b"a\n", what="tokenizer: name of a model")


def test_a_run_whose_folder_has_such_a_name(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path)
    folder = tmp_path / IN_A_NAME[:100]
    done = run_seqtool(*quick_command(corpus, folder, train_steps=4, train_validate_every=2)[3:])
    assert done.returncode == 0, done.stderr
    assert_harmless(done.stderr + done.stdout, "train: name of its folder")
    for command in (["info", folder], ["report", folder], ["translate", "-m", folder]):
        run(*command, what=f"{command[0]}: name of a folder that is a model")
    again = run_seqtool(*quick_command(corpus, folder, train_steps=4, train_validate_every=2)[3:])
    assert_harmless(again.stderr + again.stdout, "train: name of a folder that is complete")


@pytest.mark.parametrize("command", ["check", "prepare", "train"])
@pytest.mark.parametrize("form", ["tsv", "jsonl", "csv", "tmx", "po"])
def test_what_a_corpus_holds(tmp_path: Path, command: str, form: str) -> None:
    lines = make_lines(400, seed=4)
    hostile = [f"{line} {CONTROLS[index % len(CONTROLS)]}[31m {index}" for index, line in enumerate(lines)]
    pairs = [(line, f"{translate_words(line)} {hostile[index][-9:]}") for index, line in enumerate(lines)]
    pairs = [(hostile[index], tgt) for index, (_, tgt) in enumerate(pairs)]
    key = FORGED
    texts = {
        "tsv": "".join(f"{src}\t{tgt}\n" for src, tgt in pairs),
        "jsonl": "".join(json.dumps({key: src, "target": tgt}) + "\n" for src, tgt in pairs),
        "csv": f'"{key}",de\n' + "".join(f'"{src}","{tgt}"\n' for src, tgt in pairs),
        "tmx": f'<tmx><header srclang="en"/><body><tu><tuv xml:lang="{key.strip(ALL)[:1]}&#133;"/></tu></body></tmx>',
        "po": "".join(f'msgid "{src}"\nmsgstr "{tgt}"\n{FORGED}\n' for src, tgt in pairs),
    }
    path = tmp_path / f"a.{form}"
    path.write_text(texts[form], encoding="utf-8", newline="")
    options = ["-o", tmp_path / "out", "--preset", "tiny", "--set", "tokenizer.vocab_size=420"]
    if command == "train":
        options += ["--steps", "4", "--set", "train.validate_every=2", "--set", "train.threads=1"]
    run(command, path, *(options if command != "check" else []), what=f"{command}: content of {form}")


def test_what_a_model_holds(model: RunDir, tmp_path: Path) -> None:
    import shutil

    def copy() -> RunDir:
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        return RunDir(Path(shutil.copytree(model.path, tmp_path / "run")))

    def try_all(folder: RunDir, what: str) -> None:
        pair = [tmp_path / "src", tmp_path / "src"]
        pair[0].write_text("two dogs\n")
        for command in (["translate", "-m", folder.path], ["score", "-m", folder.path, *pair], ["info", folder.path]):
            run(*command, stdin=b"two dogs\n", what=f"{command[0]}: {what}")
        run("eval", "-m", folder.path, *pair, "--metrics", "bleu", what=f"eval: {what}")
        run("report", folder.path, what=f"report: {what}")
        run("export", "-m", folder.path, "--to", "ctranslate2", "-o", tmp_path / "e", what=f"export: {what}")

    changed = copy()
    manifest = changed.read_manifest()
    scores = (ScoreEntry(set=FORGED, metric=FORGED, score=1.0, signature=FORGED, decoding={FORGED: FORGED}),)
    data, others = replace(manifest.data, fingerprint=FORGED, sources=(FORGED,)), {"languages": {"source": FORGED}}
    facts = replace(manifest.model, source=FORGED, others={"imported": FORGED})
    changed.write_manifest(replace(manifest, scores=scores, data=data, model=facts, seqtool=FORGED, others=others))
    try_all(changed, "manifest")
    changed = copy()
    changed.config.write_text(f"[{json.dumps(FORGED)}]\na = 1\n")
    vouch(changed)
    try_all(changed, "config.toml")
    from safetensors.torch import load_file, save_file

    changed = copy()
    save_file({f"{name}{FORGED}": tensor for name, tensor in load_file(changed.weights).items()}, changed.weights)
    vouch(changed)
    try_all(changed, "names of tensors")
    changed = copy()
    changed.metrics.write_text(
        json.dumps({"kind": "note", "step": 1, "text": FORGED}) + "\n" + json.dumps({"kind": FORGED, "step": 1}) + "\n"
    )
    try_all(changed, "metrics.jsonl")


def test_what_a_model_says_of_each_token(model: RunDir) -> None:
    done = run_seqtool("translate", "-m", model.path, stdin=f"two {ALL} dogs\n".encode())
    assert_harmless(done.stderr, "translate: a line")
    assert done.stdout.count(b"\n") == 1
