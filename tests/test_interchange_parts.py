"""What exports have in common: languages, the model card, the Argos package and its sentence splitter."""

import json
import re
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import run_text
from tiny_run import make_run

from seqtool.corpus.tokenizer.registry import load_pair
from seqtool.errors import SeqtoolError
from seqtool.manifest import DataFacts, ParentFacts, ScoreEntry
from seqtool.model.huggingface import usual_power
from seqtool.run_directory import RunDir
from seqtool.translation.export.argos import export_argos
from seqtool.translation.export.huggingface import export_huggingface, their_vocabularies
from seqtool.translation.export.languages import Languages, choose_languages
from seqtool.translation.export.model_card import write_card
from seqtool.translation.export.sentence_splitter import make_splitter, varint
from seqtool.translation.search.penalties import length_penalty

ENGLISH_GERMAN = Languages(("en", "de"), ("English", "German"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    made = make_run(tmp_path_factory.mktemp("run"))
    score = ScoreEntry(set="valid", metric="bleu", score=31.25, signature="nrefs:1|case:mixed")
    data = DataFacts(pairs=29000, fingerprint="abc")
    made.write_manifest(replace(made.read_manifest(), scores=(score,), data=data))
    return made


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ([["a/train.en", "a/train.de"]], ("en", "de")),
        ([[{"path": "train.en.gz"}, {"path": "train.de.gz"}]], ("en", "de")),
        (["corpus.tsv"], None),
        ([["train.en", "train.txt"]], None),
        ([["x.en", "x.de"], ["y.en", "y.fr"]], None),
    ],
)
def test_languages_are_known_from_the_names_of_the_corpus(
    run: RunDir, tmp_path: Path, sources: list[object], expected: tuple[str, str] | None
) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"data": {"sources": sources}}))
    found = choose_languages(RunDir(tmp_path), None, None)
    assert (found.codes if found else None) == expected


def test_languages_of_an_imported_model_are_taken_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"languages": {"source": "en", "target": "zle"}}))
    assert choose_languages(RunDir(tmp_path), None, None) == Languages(("en", "zle"), ("English", "zle"))


def test_languages_that_are_given_come_first_and_unknown_ones_need_names(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    assert choose_languages(run, "en-de", None) == ENGLISH_GERMAN
    assert choose_languages(run, "tlh-en", "Klingon-English") == Languages(("tlh", "en"), ("Klingon", "English"))
    with pytest.raises(SeqtoolError, match="'tlh' has no name here"):
        choose_languages(run, "tlh-en", None)
    for wrong in ("en", "-de", "en/../-de"):
        with pytest.raises(SeqtoolError, match="write source and target"):
            choose_languages(run, wrong, None)


def test_the_card_has_what_the_hub_reads_and_scores_with_signatures(run: RunDir) -> None:
    card = write_card(run, ENGLISH_GERMAN, "huggingface", "usage here")
    front = card.split("---\n")[1]
    assert "language:\n- en\n- de\n" in front
    assert "pipeline_tag: translation\n" in front
    assert "# English to German translation" in card
    assert "29,000" in card
    row = next(line for line in card.splitlines() if "31.25" in line)
    cells = re.split(r"(?<!\\)\|", row)[1:-1]
    assert [cell.strip() for cell in cells] == ["valid", "bleu", "31.25", r"`nrefs:1\|case:mixed`"]
    assert "# Translation model" in write_card(run, None, "argos", "")


def test_the_card_of_a_fine_tuned_model_names_the_one_before(run: RunDir, tmp_path: Path) -> None:
    tuned = RunDir(shutil.copytree(run.path, tmp_path / "tuned"))
    parent = ParentFacts(path="/home/somebody/en-de", source="imported from opus-mt-en-de")
    tuned.write_manifest(replace(tuned.read_manifest(), parent=parent))
    card = write_card(tuned, ENGLISH_GERMAN, "argos", "")
    assert "- fine-tuned from: en-de: imported from opus-mt-en-de\n" in card
    assert "somebody" not in card


def test_the_vocabulary_for_hugging_face_has_every_token_once(run: RunDir) -> None:
    pair = load_pair(run)
    _, plain = their_vocabularies(pair, False)
    assert sorted(plain.rows) == sorted(set(range(pair.target.vocab_size)))
    assert plain.rows[plain.pad] == pair.target.special.bos
    assert plain.rows[0] == pair.target.special.eos
    _, hidden = their_vocabularies(pair, True)
    assert sorted(hidden.rows) == [-1, *range(pair.target.vocab_size)]
    assert hidden.rows[hidden.pad] == -1
    for one in (plain, hidden):
        assert len(set(one.pieces)) == len(one.pieces) == len(one.rows)
        assert one.pieces[-1] == "<pad>"
        unwritten = {pair.target.special.pad, pair.target.special.bos, -1}
        assert {int(one.rows[index]) for index in one.never} <= unwritten


def test_the_power_of_the_length_grows_as_the_penalty_does() -> None:
    alpha, length, step = 0.8, 20, 1e-3
    ours = (np.log(length_penalty(length + step, alpha)) - np.log(length_penalty(length, alpha))) / step  # type: ignore[arg-type]
    theirs = usual_power(alpha, length) * (np.log(length + step) - np.log(length)) / step
    assert ours == pytest.approx(theirs, rel=1e-3)


def test_an_argos_package_has_all_its_parts_and_is_the_same_each_time(run: RunDir, tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2")
    report = export_argos(run, tmp_path / "a.argosmodel", ENGLISH_GERMAN)
    again = export_argos(run, tmp_path / "b.argosmodel", ENGLISH_GERMAN, check=False)
    assert report.path.read_bytes()[100:] != b""
    with zipfile.ZipFile(report.path) as archive, zipfile.ZipFile(again.path) as other:
        names = archive.namelist()
        assert {name.split("/")[0] for name in names} == {"translate-en_de-1_0"}
        parts = {name.partition("/")[2]: archive.read(name) for name in names}
        differing = {name for name in names if archive.read(name) != other.read(name)}
    assert differing <= {"translate-en_de-1_0/README.md"}  # it names the file
    assert {"metadata.json", "sentencepiece.model", "model/model.bin", "minisbd/en.onnx", "README.md"} <= parts.keys()
    assert parts["sentencepiece.model"] == run.tokenizer.read_bytes()
    facts = json.loads(parts["metadata.json"])
    assert (facts["from_code"], facts["to_name"], facts["type"]) == ("en", "German", "translate")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.argosmodel", "b.argosmodel"]


def test_an_argos_package_needs_languages_and_one_tokenizer(run: RunDir, tmp_path: Path) -> None:
    with pytest.raises(SeqtoolError, match=r"languages=.en-de."):
        export_argos(run, tmp_path / "a.argosmodel", None)
    separate = make_run(tmp_path / "separate", joint=False)
    with pytest.raises(SeqtoolError, match="one tokenizer for both languages"):
        export_argos(separate, tmp_path / "a.argosmodel", ENGLISH_GERMAN)


def test_without_transformers_the_export_says_what_to_install(run: RunDir, tmp_path: Path) -> None:
    from importlib.util import find_spec

    if find_spec("transformers"):
        pytest.skip("transformers is installed")
    done = run_text("export", "-m", run.path, "--to", "huggingface", "-o", tmp_path / "out")
    assert done.returncode == 1
    assert "pip install 'seqtool[huggingface]'" in done.stderr


def test_an_export_does_not_take_the_place_of_something_else(run: RunDir, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(SeqtoolError, match="no export of seqtool"):
        export_huggingface(run, tmp_path, check=False)
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_numbers_are_written_as_protocol_buffers_have_them() -> None:
    assert (varint(0), varint(127), varint(128), varint(300)) == (b"\0", b"\x7f", b"\x80\x01", b"\xac\x02")
    assert 500 < len(make_splitter()) < 2048


def test_an_export_for_ctranslate2_to_another_place_has_a_card(run: RunDir, tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2")
    done = run_text("export", "-m", run.path, "--languages", "en-de", "-o", tmp_path / "fast")
    assert done.returncode == 0, done.stderr
    assert "# English to German translation" in (tmp_path / "fast" / "README.md").read_text(encoding="utf-8")
    assert "Name a place with -o" in run_text("export", "-m", run.path, "--to", "argos").stderr
