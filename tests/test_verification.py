"""Every file that shapes a translation is the recorded one, or it is named and not used."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import run_text
from tiny_run import make_run

from seqtool.errors import SeqtoolError
from seqtool.files import sha256_of
from seqtool.run_directory import RunDir
from seqtool.verification import MIB, checksum, read_limited


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with its exported form."""
    pytest.importorskip("ctranslate2")
    from seqtool.translation.export.ctranslate2 import export_ctranslate2

    run = make_run(tmp_path_factory.mktemp("verified") / "run", trained=True)
    export_ctranslate2(run, "float32", check=False)
    return run.path


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another model of the same shape, with its exported form."""
    from seqtool.translation.export.ctranslate2 import export_ctranslate2

    run = make_run(tmp_path_factory.mktemp("verified") / "other", seed=5)
    export_ctranslate2(run, "float32", check=False)
    return run.path


@pytest.fixture
def run(made: Path, tmp_path: Path) -> RunDir:
    return RunDir(Path(shutil.copytree(made, tmp_path / "run")))


def flip(path: Path, place: float = 0.5) -> None:
    """Change one bit, and none of the time stamps."""
    facts = path.stat()
    content = bytearray(path.read_bytes())
    content[int(len(content) * place)] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def translate(run: RunDir, *options: str) -> tuple[int, str, str]:
    done = run_text("translate", "-m", run.path, *options, stdin="two dogs play\n")
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("place", [0.0, 0.3, 0.99])
@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.model", "manifest.json"])
def test_a_flipped_bit_in_the_model_is_named_and_nothing_is_translated(run: RunDir, name: str, place: float) -> None:
    flip(run.path / name, place)
    code, out, message = translate(run)
    assert (code, out) == (1, "")
    assert name in message
    assert "restore it from a copy" in message


@pytest.mark.parametrize(("old", "new"), [("n_heads = 2", "n_heads = 4"), ('"sinusoidal"', '"rotary"')])
def test_settings_that_no_shape_tells_apart_cannot_be_changed_by_hand(run: RunDir, old: str, new: str) -> None:
    text = run.config.read_text()
    assert old in text
    run.config.write_text(text.replace(old, new))
    code, out, message = translate(run)
    assert (code, out) == (1, "")
    assert "config.toml" in message
    assert "only its [decode] may be changed" in message


def test_the_settings_for_decoding_can_be_changed_by_hand_and_that_is_said(run: RunDir) -> None:
    expected = translate(run, "--beam", "1")[1]
    run.config.write_text(run.config.read_text().replace("beam = 3", "beam = 1"))
    code, out, message = translate(run)
    assert (code, out) == (0, expected)
    assert "[decode] is not as it was when the model was made" in message
    card = json.loads(run_text("info", run.path, "--json").stdout)
    assert {file["name"]: file["state"] for file in card["files"]}["config.toml"] == "changed in [decode]"


@pytest.mark.parametrize("name", ["model.bin", "shared_vocabulary.json", "config.json", "seqtool.json"])
@pytest.mark.parametrize("damage", ["flip", "swap", "cut", "remove", "fifo", "link"])
def test_a_damaged_export_is_never_used(run: RunDir, other: Path, name: str, damage: str) -> None:
    path = run.ctranslate2 / name
    if damage == "swap" and path.read_bytes() == (other / "ctranslate2" / name).read_bytes():
        return
    damages: dict[str, Callable[[], object]] = {
        "flip": lambda: flip(path),
        "swap": lambda: shutil.copyfile(other / "ctranslate2" / name, path),
        "cut": lambda: os.truncate(path, path.stat().st_size // 2),
        "remove": path.unlink,
        "fifo": lambda: (path.unlink(), os.mkfifo(path)),
        "link": lambda: (path.unlink(), path.symlink_to(other / "ctranslate2" / name)),
    }
    damages[damage]()
    code, out, message = translate(run)
    assert (code, out) == (0, "zwei Hunde spielen\n")  # with the torch engine
    assert "make it again with 'seqtool export" in message
    code, out, message = translate(run, "--engine", "ctranslate2")
    assert (code, out) == (1, "")
    assert run_text("info", run.path).returncode == 1


def test_a_whole_export_of_another_model_is_not_used(run: RunDir, other: Path) -> None:
    shutil.rmtree(run.ctranslate2)
    shutil.copytree(other / "ctranslate2", run.ctranslate2)
    code, out, message = translate(run)
    assert (code, out) == (0, "zwei Hunde spielen\n")
    assert "was not made from the present model.safetensors" in message


def test_other_weights_of_the_same_size_and_time_do_not_use_the_old_export(run: RunDir, other: Path) -> None:
    facts = run.weights.stat()
    shutil.copyfile(other / "model.safetensors", run.weights)
    os.utime(run.weights, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    run.write_manifest(RunDir(other).read_manifest())
    assert run.weights.stat().st_size == facts.st_size
    assert "was not made from the present" in translate(run)[2]


@pytest.mark.parametrize("name", ["config.toml", "manifest.json", "tokenizer.model", "model.safetensors"])
@pytest.mark.parametrize("kind", ["fifo", "device", "link out", "huge", "missing"])
def test_what_is_no_regular_file_of_the_folder_is_refused_at_once(
    run: RunDir, tmp_path: Path, name: str, kind: str
) -> None:
    path = run.path / name
    kept = path.rename(tmp_path / name)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "link out" and name != "manifest.json":
        path.symlink_to(kept)
    elif kind == "huge":
        path.touch()
        os.truncate(path, 300 * MIB)
    code, out, message = translate(run)
    assert (code, out) == (1, "")
    assert name in message


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", ".."])
def test_a_manifest_reads_nothing_outside_of_its_folder(run: RunDir, name: str) -> None:
    manifest = run.read_manifest()
    (run.path.parent / "secret").write_text("secret")
    manifest.files[name] = "0"
    run.write_manifest(manifest)
    done = run_text("info", run.path, "--json")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "outside of its folder" in done.stderr


def test_a_manifest_of_a_newer_format_is_refused(run: RunDir) -> None:
    content = json.loads(run.manifest.read_text())
    run.manifest.write_text(json.dumps({"format": 2, "files": content["files"]}))
    code, _, message = translate(run)
    assert code == 1
    assert "newer seqtool" in message


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (".".join(["a"] * 30_000) + " = 1", "it has a key of many parts"),
        ('"a".' * 15_000 + "b = 1", "it has a key of many parts"),
        ("[" * 30_000, "not valid TOML"),
        ("\n".join(f"[a{index}]" for index in range(10_000)), "is larger than the 65,536 bytes"),
        (f"[train]\nseed = {'9' * 5001}", "not valid TOML"),
        (f"[train]\nseed = {'[' * 30_000}", "not valid TOML"),
    ],
    ids=["dotted", "quoted", "table", "tables", "digits", "nested"],
)
def test_a_costly_configuration_is_refused_at_once(run: RunDir, content: str, reason: str) -> None:
    run.config.write_text(content)
    run.manifest.write_text(json.dumps({"files": {**run.read_manifest().files, "config.toml": sha256_of(run.config)}}))
    code, out, message = translate(run)
    assert (code, out) == (1, "")
    assert f"config.toml: {reason}" in message or f"config.toml: not a configuration: {reason}" in message


def test_a_checksum_is_remembered_only_as_long_as_nothing_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import seqtool.verification

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(seqtool.verification, "SETTLED", 0)
    path = tmp_path / "large"
    path.write_bytes(bytes(2 * MIB))
    first = checksum(path)
    with monkeypatch.context() as context:
        context.setattr(seqtool.verification, "sha256_of", lambda path: pytest.fail("it is read again"))
        assert checksum(path) == first
    flip(path)  # of the same inode, size and time of modification
    assert checksum(path) == sha256_of(path) != first
    monkeypatch.setattr(seqtool.verification, "SETTLED", 10**12)
    shutil.rmtree(tmp_path / "cache")
    checksum(path)
    assert not (tmp_path / "cache").exists()  # it has just changed, and could change again within the same tick


def test_only_as_much_is_read_as_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read_limited(path, 5) == b"12345"
    with pytest.raises(SeqtoolError, match="larger than the 4 bytes"):
        read_limited(path, 4)
    os.mkfifo(tmp_path / "pipe")
    for odd in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(SeqtoolError, match=f"{odd}: is not a regular file"):
            read_limited(odd, 5)


FORGED = "\x1b[31mred\x1b[0m\nseqtool: forged\r\x9b2J\u202e"


def assert_harmless(text: str) -> None:
    assert "\\x1b[31mred" in text
    assert not any(char in text for char in "\x1b\r\x9b\u202e")
    assert not any(line.startswith("seqtool: forged") for line in text.splitlines())


def test_what_a_stranger_wrote_into_a_model_never_reaches_the_terminal_raw(run: RunDir) -> None:
    manifest = run.read_manifest()
    run.write_manifest(replace(manifest, seqtool=FORGED, created=FORGED, versions={FORGED: FORGED}))
    assert_harmless(run_text("info", run.path).stdout)
    run.write_manifest(replace(manifest, files={**manifest.files, FORGED: FORGED}))
    assert_harmless(run_text("info", run.path).stdout)
    assert_harmless(translate(run)[2])
    run.write_manifest(manifest)
    run.config.write_text(f"[{json.dumps(FORGED)}]\na = 1\n")
    run.write_manifest(replace(manifest, files={**manifest.files, "config.toml": sha256_of(run.config)}))
    assert_harmless(translate(run)[2])
