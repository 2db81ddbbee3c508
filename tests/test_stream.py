"""Blocks of lines through the translator: order, notes by line number, memory of earlier lines, output that resumes."""

import json
from pathlib import Path

import pytest
from fake_engine import ListedEngine, ReversingEngine, make_tokenizers

from seqtool.errors import SeqtoolError
from seqtool.progress import Progress
from seqtool.translation.lines import output
from seqtool.translation.lines.output import FileSink, StreamSink
from seqtool.translation.lines.stream import LineTranslator, json_form, n_best_form, translate_blocks
from seqtool.translation.translator import Translator

BLOCKS = [[b"A man walks.", b"", b"in the park"], [b"she", b"A man walks."], [b"Hunde", b" "]]


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    return Translator(make_tokenizers(tmp_path_factory.mktemp("tokenizer")), ReversingEngine(), max_tokens=40)


def make_worker(translator: Translator, notes: list[str] | None = None) -> LineTranslator:
    return LineTranslator(translator, notify=(notes if notes is not None else []).append)


def translate_all(translator: Translator, path: Path) -> bytes:
    """Return the translation of BLOCKS, made without a break."""
    sink = FileSink(path, "f")
    translate_blocks(make_worker(translator), BLOCKS, sink)
    sink.finish()
    return path.read_bytes()


def test_problems_are_named_by_line_number(translator: Translator) -> None:
    notes: list[str] = []
    worker = make_worker(translator, notes)
    worker.translate([b"ok", b"b\xffd", b"A man walks. " * 20], 11)
    worker.translate([b"b\xffd", b"ok"], 14)
    assert notes == [
        "line 12: not valid UTF-8; the bad bytes were read as U+FFFD",
        "line 13: longer than 40 tokens; translated in parts",
        "line 14: not valid UTF-8; the bad bytes were read as U+FFFD",
    ]
    assert (worker.summary.n_lines, worker.summary.n_invalid, worker.summary.n_split) == (5, 2, 1)


def test_lines_without_a_good_translation_are_named(translator: Translator) -> None:
    notes: list[str] = []
    speechless = Translator(translator.tokenizers, ListedEngine(translator.tokenizers.target, [""]))
    worker = make_worker(speechless, notes)
    worker.translate([b"A man walks.", b"", b"she"], 7)
    assert notes == ["lines 7, 9: the translation is empty or looping, and no better one was found"]
    assert worker.summary.n_doubtful == 2


def test_the_limit_that_is_named_is_the_one_that_holds(translator: Translator) -> None:
    """Learned positions must have room for a translation twice as long and 16 tokens more."""
    notes: list[str] = []
    limited = Translator(translator.tokenizers, ReversingEngine(), max_tokens=40, max_positions=60)
    make_worker(limited, notes).translate([b"A man walks. " * 20], 1)
    assert notes == ["line 1: longer than 21 tokens; translated in parts"]


def test_progress_begins_behind_the_blocks_of_an_earlier_run(translator: Translator, tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "out", "f")
    translate_blocks(make_worker(translator), BLOCKS[:1], sink)
    sink.close()
    seen: list[Progress] = []
    sink = FileSink(tmp_path / "out", "f", resume=True)
    translate_blocks(make_worker(translator), BLOCKS, sink, show=seen.append, total_bytes=100)
    assert (seen[0].done, seen[0].share) == (3, 0.26)  # the bytes of the first block
    assert seen[-1].done == 7
    assert [one.done for one in seen] == sorted(one.done for one in seen)


def test_a_line_of_an_earlier_block_is_not_translated_again(translator: Translator) -> None:
    engine = ReversingEngine()
    worker = make_worker(Translator(translator.tokenizers, engine, cache_bytes=10**6))
    first = worker.translate([b"she", b"Hunde"], 1)
    calls = len(engine.calls)
    assert worker.translate([b"Hunde", b"she"], 3) == first[::-1]
    assert len(engine.calls) == calls


def test_forms_hold_line_numbers_scores_and_objects(translator: Translator) -> None:
    listed = LineTranslator(translator, translator.make_options(n_best=2), n_best_form).translate([b"she", b""], 7)
    assert [line.split(b"\t")[:2] for line in listed[0].splitlines()] == [[b"7", b"-1.000000"]] * 2
    assert listed[1] == b"8\t0.000000\t\n"
    worker = LineTranslator(translator, translator.make_options(alignment=True), json_form(1))
    objects = [json.loads(line) for line in worker.translate([b"A man", b""], 1)]
    assert objects[0].keys() == {"text", "score", "tokens", "alignment", "source_tokens"}
    assert len(objects[0]["alignment"]) == len(objects[0]["tokens"])
    assert objects[1]["text"] == ""
    assert objects[1]["alignment"] == []
    worker = LineTranslator(translator, translator.make_options(token_scores=True), json_form(1))
    assert json.loads(worker.translate([b""], 1)[0])["token_scores"] == []


def test_an_interrupted_file_is_continued_and_the_same(translator: Translator, tmp_path: Path) -> None:
    expected = translate_all(translator, tmp_path / "whole")
    path = tmp_path / "out"
    sink = FileSink(path, "f")
    translate_blocks(make_worker(translator), BLOCKS[:2], sink)
    sink.close()
    with open(sink.partial, "ab") as file:
        file.write(b"half a li")  # what a kill may leave behind the last state
    assert not path.exists()
    with pytest.raises(SeqtoolError, match="holds 5 lines of an interrupted translation; continue it with resume=True"):
        FileSink(path, "f")
    engine = translator.engine
    assert isinstance(engine, ReversingEngine)
    before = sum(engine.calls)
    sink = FileSink(path, "f", resume=True)
    translate_blocks(make_worker(translator), BLOCKS, sink)
    sink.finish()
    assert path.read_bytes() == expected
    assert sum(engine.calls) - before == 1  # only the one line that was not done
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out", "whole"]


@pytest.mark.parametrize("resume", [True, False])
@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_was_named_as_its_process_was_killed_is_made_again_or_found_complete(
    translator: Translator, tmp_path: Path, resume: bool, replaced: bool
) -> None:
    path = tmp_path / "out"
    sink = FileSink(path, "f")
    translate_blocks(make_worker(translator), BLOCKS, sink)
    state = sink.state_path.read_bytes()
    sink.finish()
    expected = path.read_bytes()
    sink.state_path.write_bytes(state)  # it was about to be removed
    if replaced:
        path.write_bytes(b"something else")
    sink = FileSink(path, "f", resume=resume)
    assert (sink.n_done > 0) == (resume and not replaced)
    translate_blocks(make_worker(translator), BLOCKS, sink)
    sink.finish()
    assert path.read_bytes() == expected
    assert [file.name for file in tmp_path.iterdir()] == ["out"]


def test_another_input_or_option_cannot_continue_a_file(translator: Translator, tmp_path: Path) -> None:
    path = tmp_path / "out"
    sink = FileSink(path, "f")
    translate_blocks(make_worker(translator), BLOCKS[:2], sink)
    sink.close()
    with pytest.raises(SeqtoolError, match="another model or other options"):
        FileSink(path, "g", resume=True)
    changed = FileSink(path, "f", resume=True)
    with pytest.raises(SeqtoolError, match="input has changed"):
        translate_blocks(make_worker(translator), [BLOCKS[0], [b"other"]], changed)
    changed.close()
    shorter = FileSink(path, "f", resume=True)
    translate_blocks(make_worker(translator), BLOCKS[:1], shorter)
    with pytest.raises(SeqtoolError, match="input is shorter"):
        shorter.finish()


def test_a_file_that_another_translation_writes_is_left_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "PATIENCE", 0.0)
    first = FileSink(tmp_path / "out", "f")
    for resume in (False, True):
        with pytest.raises(SeqtoolError, match="another translation is writing this file"):
            FileSink(tmp_path / "out", "f", resume)
    first.write(0, [b"a"], [b"A\n"])
    first.finish()
    assert (tmp_path / "out").read_bytes() == b"A\n"


def test_a_full_disk_ends_a_translation_to_a_stream(translator: Translator) -> None:
    with open("/dev/full", "wb", buffering=0) as full, pytest.raises(OSError, match="No space left"):
        translate_blocks(make_worker(translator), BLOCKS, StreamSink(full))
