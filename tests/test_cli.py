"""The command line as a whole: it starts quickly, explains itself, and turns mistakes into one clear message."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from command_line import SEQTOOL, run_command, run_seqtool

from seqtool import __version__

COMMANDS = (
    ("train",),
    ("translate",),
    ("eval",),
    ("tokenizer",),
    ("tokenizer", "train"),
    ("tokenizer", "encode"),
    ("tokenizer", "decode"),
    ("prepare",),
    ("check",),
    ("split",),
    ("score",),
    ("average",),
    ("export",),
    ("import",),
    ("report",),
    ("info",),
)
HEAVY = ("torch", "numpy", "sacrebleu", "sentencepiece", "ctranslate2", "safetensors")


def run_without(libraries: tuple[str, ...], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run seqtool where these libraries cannot be imported."""
    hidden = "".join(f"sys.modules[{name!r}] = None; " for name in libraries)
    program = f"import sys; {hidden}from seqtool.cli.main import main; main()"
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("command", [(), *COMMANDS], ids=" ".join)
def test_help_needs_none_of_the_heavy_libraries_and_shows_an_example(command: tuple[str, ...]) -> None:
    done = run_without(HEAVY, *command, "--help")
    assert done.returncode == 0, done.stderr
    assert "Usage" in done.stdout
    assert "Example" in done.stdout or command in ((), ("tokenizer",))  # these two list commands


def test_the_help_lists_every_command() -> None:
    text = run_without(HEAVY, "--help").stdout
    for command in {names[0] for names in COMMANDS}:
        assert command in text


def test_a_configuration_error_is_reported_before_the_heavy_libraries_are_loaded() -> None:
    done = run_without(HEAVY, "train", "--set", "model.d_modl=3")
    assert done.returncode == 1
    assert done.stderr == "seqtool: error: --set: [model] has no key 'd_modl'; did you mean 'd_model'?\n"


def test_what_a_model_to_start_from_rules_out_is_reported_before_the_heavy_libraries_are_loaded(tmp_path: Path) -> None:
    for name in ("tokenizer.model", "model.safetensors"):
        (tmp_path / name).touch()
    (tmp_path / "config.toml").write_text('[model]\nkind = "rnn"\ncell = "gru"\n')
    done = run_without(HEAVY, "train", "c.tsv", "--from", str(tmp_path), "-o", "run", "--set", "model.cell=lstm")
    assert done.returncode == 1
    assert f"{tmp_path}: its model has model.cell = 'gru', but --set asks for 'lstm'" in done.stderr


def test_the_version_is_printed() -> None:
    assert run_seqtool("--version").stdout.decode() == f"seqtool {__version__}\n"


def test_print_config_gives_a_configuration_that_prints_itself(tmp_path: Path) -> None:
    first = run_seqtool("train", "--preset", "tiny", "--print-config", "--set", "model.norm=post").stdout
    (tmp_path / "run.toml").write_bytes(first)
    assert b'norm = "post"' in first
    again = run_seqtool("train", "--preset", "big", "--config", tmp_path / "run.toml", "--print-config").stdout
    assert tomllib.loads(again.decode()) == tomllib.loads(first.decode())


def test_print_config_says_what_the_settings_are_for_and_where_they_come_from(tmp_path: Path) -> None:
    (tmp_path / "c.tsv").write_text("a b\tc d\n" * 70)
    for arguments, title, origin in (
        ([], "# the settings of the demo;", "preset demo]"),
        ([tmp_path / "c.tsv"], "# preset auto, for 70 pairs on ", "[preset auto]"),
    ):
        printed = run_seqtool("train", *arguments, "--steps", 7, "--print-config").stdout.decode()
        assert printed.startswith(title)
        lines = {line.partition(" = ")[0]: line for line in printed.splitlines()}
        assert lines["d_model"].endswith(origin)
        assert lines["steps"].endswith("[--steps]")
        assert lines["beta1"].endswith("decay")  # the default
        assert "[here " in lines["device"]
        assert "[here " in lines["precision"]
        assert "(one of: inverse_sqrt, paper, cosine, linear, constant)" in lines["schedule"]


MISTAKES = (
    "missing corpus",
    "folder as corpus",
    "three corpus files",
    "no output folder",
    "output is a file",
    "unknown key",
    "wrong type",
    "negative steps",
    "steps not a number",
    "unknown preset",
    "unknown option",
    "unknown command",
    "bad TOML",
    "missing TOML",
    "model folder missing",
    "not a model folder",
    "no model given",
    "missing reference",
    "fine-tune from nothing",
    "device that is not there",
)


@pytest.fixture
def corpus(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "a.en").write_text("one\ntwo\nthree\n")
    (tmp_path / "a.de").write_text("eins\nzwei\ndrei\n")
    return tmp_path / "a.en", tmp_path / "a.de"


def mistakes(folder: Path) -> dict[str, tuple[list[str], int, list[str]]]:
    """Return what a user may do wrong: the arguments, the exit code, and what the message must name."""
    src, tgt, out = str(folder / "a.en"), str(folder / "a.de"), str(folder / "run")
    (folder / "bad.toml").write_text("[model\n")
    (folder / "empty").mkdir()
    (folder / "file").write_text("x")
    pair = [src, tgt, "-o", out]
    return {
        "missing corpus": (["train", str(folder / "no.en"), tgt, "-o", out], 1, ["no.en"]),
        "folder as corpus": (["train", str(folder / "empty"), tgt, "-o", out], 1, ["empty"]),
        "three corpus files": (["train", src, tgt, src, "-o", out], 2, ["3"]),
        "no output folder": (["train", src, tgt], 2, ["-o"]),
        "output is a file": (["train", src, tgt, "-o", str(folder / "file")], 1, ["file"]),
        "unknown key": (["train", *pair, "--set", "train.lrr=1"], 1, ["lrr", "'lr'"]),
        "wrong type": (["train", *pair, "--set", "train.lr=fast"], 1, ["lr", "fast"]),
        "negative steps": (["train", *pair, "--steps", "-5"], 1, ["--steps", "-5"]),
        "steps not a number": (["train", *pair, "--steps", "many"], 2, ["--steps", "many"]),
        "unknown preset": (["train", *pair, "--preset", "hugee"], 1, ["hugee", "tiny"]),
        "unknown option": (["train", *pair, "--stepps", "3"], 2, ["--stepps"]),
        "unknown command": (["trian"], 2, ["trian"]),
        "bad TOML": (["train", *pair, "--config", str(folder / "bad.toml")], 1, ["bad.toml"]),
        "missing TOML": (["train", *pair, "--config", str(folder / "none.toml")], 1, ["none.toml"]),
        "model folder missing": (["translate", "-m", str(folder / "nowhere")], 1, ["nowhere", "train"]),
        "not a model folder": (["translate", "-m", str(folder / "empty")], 1, ["empty", "config.toml"]),
        "no model given": (["translate"], 2, ["--model"]),
        "missing reference": (["eval", "--hyp", src, str(folder / "ref.de")], 1, ["ref.de"]),
        "fine-tune from nothing": (["train", *pair, "--from", str(folder / "empty")], 1, ["empty"]),
        "device that is not there": (["train", *pair, "--device", "gpu"], 1, ["--device", "gpu", "cpu"]),
    }


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gives_one_short_message_that_names_the_culprit_before_torch_is_loaded(
    mistake: str, tmp_path: Path, corpus: tuple[Path, Path]
) -> None:
    arguments, code, named = mistakes(tmp_path)[mistake]
    done = run_without(("torch",), *arguments)
    message = done.stderr
    assert done.returncode == code, message
    assert "Traceback" not in message
    assert len(message.strip().splitlines()) <= 3, message
    assert message.startswith("seqtool: error: ")
    for name in named:
        assert name in message
    assert done.stdout == ""


def test_unequal_files_are_named_with_their_lengths(tmp_path: Path, corpus: tuple[Path, Path]) -> None:
    (tmp_path / "short.de").write_text("eins\n")
    done = run_seqtool("train", corpus[0], tmp_path / "short.de", "-o", tmp_path / "run")
    assert done.returncode == 1
    (message,) = done.stderr.decode().splitlines()
    for part in ("seqtool: error: ", "short.de", "3", "1"):
        assert part in message


def test_an_unwritable_folder_is_named(tmp_path: Path, corpus: tuple[Path, Path]) -> None:
    # /proc refuses new folders even to root, whom permissions do not stop.
    done = run_seqtool("train", *corpus, "-o", "/proc/run")
    assert done.returncode == 1
    assert b"/proc/run" in done.stderr


def test_debugging_shows_where_an_error_came_from() -> None:
    done = run_seqtool("train", "--set", "nonsense", env={"SEQTOOL_DEBUG": "1"})
    assert done.returncode == 1
    assert b"Traceback" in done.stderr


def test_a_full_disk_behind_stdout_is_one_message() -> None:
    with open("/dev/full", "wb") as full:
        command = [*SEQTOOL, "train", "--print-config"]
        done = run_command(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    (message,) = done.stderr.splitlines()
    assert message.startswith("seqtool: error: ")
    assert "No space left on device" in message


def test_messages_do_not_go_to_stdout_where_stderr_is_closed() -> None:
    command = f"exec {sys.executable} -m seqtool train --set nonsense 2>&-"
    done = subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, check=False)
    assert (done.returncode, done.stdout) == (1, b"")
