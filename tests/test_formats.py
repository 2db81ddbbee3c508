"""Corpora as people have them: TMX, CSV, JSON Lines, PO and archives give their pairs, and what is wrong is named."""

import contextlib
import csv
import gzip
import io
import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqtool.corpus.preparing.prepared import PrepareRequest, columns_of
from seqtool.corpus.reading import archives, opening, records, tmx
from seqtool.corpus.reading.blocks import count_pairs, read_all_lines, read_blocks, read_pairs
from seqtool.corpus.reading.corpus import parse_corpus
from seqtool.corpus.reading.parting import LineCountError
from seqtool.errors import SeqtoolError

PAIRS = [("Open the file.", "Apri il file."), ("<b>Save</b> & close", "<b>Salva</b> e chiudi"), ("Größe “x”", "")]


def pairs_of(path: Path, columns: str = "") -> list[tuple[str, str | None]]:
    corpus = parse_corpus([Path(f"{path}{columns}")])
    found = [(pair.src.decode(), None if pair.tgt is None else pair.tgt.decode()) for pair in read_pairs(corpus)]
    assert count_pairs(corpus) == len(found)
    return found


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


# TMX


def make_tmx(pairs, languages=("en-US", "it-IT"), header='srclang="en-US"', doctype="") -> str:
    units = []
    for texts in pairs:
        parts = (
            f'<tuv xml:lang="{language}"><prop type="x">no text</prop><seg>{escape(text)}</seg></tuv>'
            for language, text in zip(languages, texts, strict=False)
        )
        units.append(f'<tu tuid="1"><note>no text</note>{"".join(parts)}</tu>\n')
    return f'<?xml version="1.0"?>\n{doctype}<tmx version="1.4"><header {header}/><body>{"".join(units)}</body></tmx>\n'


def test_tmx_gives_the_segments_of_its_two_languages(tmp_path: Path) -> None:
    doctype = '<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n'
    assert pairs_of(write(tmp_path / "a.tmx", make_tmx(PAIRS, doctype=doctype))) == PAIRS
    compressed = gzip.compress(make_tmx(PAIRS).replace('"1.0"?', '"1.0" encoding="utf-16"?').encode("utf-16"))
    assert pairs_of(write(tmp_path / "b.tmx.gz", compressed)) == PAIRS


@given(data=st.lists(st.tuples(*[st.text(st.characters(codec="utf-8", exclude_categories=["C"]))] * 2), min_size=1))
@settings(deadline=None)
def test_any_text_comes_through_in_chunks_of_any_size(tmp_path_factory, data) -> None:
    path = write(tmp_path_factory.getbasetemp() / "any.tmx", make_tmx(data))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "CHUNK_BYTES", 7)
        assert pairs_of(path) == data


def test_the_header_or_the_user_says_which_language_is_the_source(tmp_path: Path) -> None:
    turned = [(tgt, src) for src, tgt in PAIRS]
    path = write(tmp_path / "a.tmx", make_tmx(PAIRS, header='srclang="it"'))
    assert pairs_of(path) == turned
    assert pairs_of(path, ":en:it") == PAIRS
    assert pairs_of(path, ":IT:en_us") == turned
    with pytest.raises(
        SeqtoolError, match="no translation unit has segments in 'en' and 'fr'; its languages: en-us, it"
    ):
        pairs_of(path, ":en:fr")


def test_more_than_two_languages_must_be_chosen_from(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tmx", make_tmx([("a", "b", "c"), ("d", "e", "f")], languages=("en", "de", "fr")))
    with pytest.raises(SeqtoolError, match=r"languages en, de, fr; name source and target, as in .*a.tmx:en:de"):
        pairs_of(path)
    assert pairs_of(path, ":fr:en") == [("c", "a"), ("f", "d")]


def test_a_unit_without_translation_has_no_target(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tmx", make_tmx([("lonely",), *PAIRS, ("alone",)]))
    assert pairs_of(path) == [("lonely", None), *PAIRS, ("alone", None)]


def test_markup_of_other_formats_is_left_out_and_line_breaks_are_spaces(tmp_path: Path) -> None:
    seg = 'One<bpt i="1">&lt;b&gt;</bpt> big<ept i="1">&lt;/b&gt;<sub>x</sub></ept>\n<hi>house</hi><ph/>.'
    content = make_tmx([("X", "casa")]).replace("X", seg)
    assert pairs_of(write(tmp_path / "a.tmx", content)) == [("One big house.", "casa")]


BOMB = "<!DOCTYPE tmx [<!ENTITY a 'ha'>" + "".join(
    f"<!ENTITY {b} '{f'&{a};' * 10}'>" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (make_tmx([("&", "b")], doctype=BOMB + "]>").replace("&amp;", "&i;"), "declarations in its DOCTYPE"),
        (
            make_tmx([("&", "b")], doctype='<!DOCTYPE tmx [<!ENTITY x SYSTEM "file:///etc/passwd">]>'),
            "declarations in its DOCTYPE",
        ),
        (make_tmx([("a", "b")], doctype='<!DOCTYPE tmx [<!ENTITY % x SYSTEM "x.dtd"> %x;]>'), "declarations"),
        (make_tmx([("a" * 3000, "b")]), "segment of more than"),
        ("<tmx>" + "<a>" * 2000, "nested too deeply, or have too many names"),
        ("<tmx>" + "".join(f"<a{n}/>" for n in range(5000)), "nested too deeply, or have too many names"),
        ("<tmx><!--" + "x" * 60000, "tag or comment of more than"),
        ('<tmx><tu x="' + "x" * 60000, "tag or comment of more than"),
        ("<tmx><tu>", "not well-formed XML: no element found"),
        ("<tmx><tu></tmx>", r"not well-formed XML: mismatched tag \(line 1\)"),
        ("nothing of the kind", "not well-formed XML"),
        ('<?xml version="1.0" encoding="x-none"?><tmx/>', "unknown encoding"),
        (make_tmx([("a",)] * 5), "in two languages"),
        (make_tmx([("a",)] * 2000), "none of the first 1,000 units"),
    ],
)
def test_what_is_wrong_or_hostile_in_a_tmx_file_is_named(content, message, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(opening, "CHUNK_BYTES", 5000)
    monkeypatch.setattr(tmx, "MAX_TOKEN_BYTES", 20000)
    monkeypatch.setattr(tmx, "MAX_RECORD_BYTES", 2000)
    with pytest.raises(SeqtoolError, match=message) as caught:
        pairs_of(write(tmp_path / "a.tmx", content))
    assert "\n" not in str(caught.value)


# CSV


def make_csv(rows, delimiter=",") -> str:
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter).writerows(rows)
    return file.getvalue()


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_csv_columns_are_found_by_name(delimiter: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "\ufeff" + make_csv([("en", "it"), *PAIRS], delimiter))
    assert pairs_of(path) == PAIRS
    rows = [("nr", "Italian, corrected", "English"), *(("1", tgt, src) for src, tgt in PAIRS)]
    path = write(tmp_path / "b.csv", make_csv(rows, delimiter))
    assert pairs_of(path, ":English:Italian, corrected") == PAIRS
    rows[0] = ("nr", "Target", "Source")
    assert pairs_of(write(path, make_csv(rows, delimiter))) == PAIRS
    assert pairs_of(write(path, make_csv(rows[1:], delimiter)), ":3:2") == PAIRS


def test_a_csv_field_may_hold_quotation_marks_and_line_breaks(tmp_path: Path) -> None:
    rows = [("src", "tgt"), ('He said "no",\nthen left.', "a\r\nb"), (), ("short",)]
    assert pairs_of(write(tmp_path / "a.csv", make_csv(rows))) == [('He said "no", then left.', "a b"), ("short", None)]


@pytest.mark.parametrize(
    ("content", "columns", "message"),
    [
        ("Hello,Ciao\nBye,Ciao\n", "", r"which columns .* It has 'Hello', 'Ciao'. Name them after the file"),
        ("id,en,it\n1,a,b\n", "", "which columns"),
        ("en,it\na,b\n", ":en:de", "has no column 'de'; its columns are 'en', 'it'"),
        ('en,it\na,b\n"a,b\nc,d\n', "", "line 4 is not valid CSV"),
        ('en,it\n"a"b,c\n', "", "line 2 is not valid CSV"),
        ("en,it\n" + "x" * 200_000 + ",b\n", "", "line 2 is not valid CSV .field larger than field limit"),
        ("en,it\n" + "x" * 2_000_000 + ",b\n", "", "line 2 is longer than 1 MiB"),
    ],
)
def test_what_is_wrong_with_a_csv_file_is_named(content: str, columns: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SeqtoolError, match=message):
        pairs_of(write(tmp_path / "a.csv", content), columns)


def test_bytes_that_are_not_utf8_stay_what_they_are(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", b"en,it\ncaf\xe9,\xff\n")
    assert [(pair.src, pair.tgt) for pair in read_pairs(parse_corpus([path]))] == [(b"caf\xe9", b"\xff")]


def test_columns_of_a_tsv_file_have_numbers(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "0.9\tone\tuno\n0.8\ttwo\n")
    assert pairs_of(path, ":2:3") == [("one", "uno"), ("two", None)]
    assert pairs_of(path, ":3:1") == [("uno", "0.9"), ("", "0.8")]
    for columns in (":en:it", ":0:1", ":1:99999999999"):
        with pytest.raises(SeqtoolError, match="have numbers"):
            pairs_of(path, columns)


# JSON Lines


@pytest.mark.parametrize(
    ("make", "columns"),
    [
        (lambda src, tgt: {"en": src, "it": tgt}, ""),
        (lambda src, tgt: {"id": 7, "target": tgt, "source": src, "more": ["x"]}, ""),
        (lambda src, tgt: {"translation": {"en": src, "it": tgt}}, ""),
        (lambda src, tgt: {"translation": {"en": src, "it": tgt, "de": "x"}}, ":translation.en:translation.it"),
        (lambda src, tgt: {"translation": {"en": src, "it": tgt}}, ":en:it"),
    ],
)
def test_json_lines_keys_are_found_by_name(make, columns: str, tmp_path: Path) -> None:
    content = "\n".join(json.dumps(make(*pair)) for pair in PAIRS)
    assert pairs_of(write(tmp_path / "a.jsonl", content), columns) == PAIRS


def test_a_json_object_may_lack_a_side(tmp_path: Path) -> None:
    content = '{"en": "a\\nb", "it": "c"}\n\n{"en": "d", "it": null}\n{"it": "e"}\n'
    assert pairs_of(write(tmp_path / "a.jsonl", content)) == [("a b", "c"), ("d", None), ("", "e")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"en": "a", "it": "b"}\n{"en": \n', "line 2 is not a JSON object"),
        ('[{"en": "a"}]', r"convert it with jq -c"),
        ('{"en": ' + "[" * 100_000, "line 1 is not a JSON object"),
        ('{"en": ' + "9" * 5001 + "}", "line 1 is not a JSON object"),
        ('{"a": "b", "c": 1}', "which columns"),
        ('{"en": "' + "x" * (1 << 20) + '", "it": "b"}', "line 1 is longer than 1 MiB"),
    ],
)
def test_what_is_wrong_with_a_json_file_is_named(content: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SeqtoolError, match=message) as caught:
        pairs_of(write(tmp_path / "a.jsonl", content))
    assert len(str(caught.value)) < 500


# PO

PO = r"""
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"

#. a comment
#: file.c:7
msgctxt "menu"
msgid "Open \"%s\"\n"
msgstr ""
"Apri "
"\"%s\"\n"
msgid "one file"
msgid_plural "%d files"
msgstr[0] "un file"
msgstr[1] "%d file"

#, fuzzy, c-format
#| msgid "Old"
msgid "Close"
msgstr "Apri"

msgid "Untranslated"
msgstr ""

#~ msgid "Obsolete"
#~ msgstr "Obsoleto"

msgid "Tab\tend\x21\41"
msgstr "Fine"
"""


def test_po_messages_are_pairs(tmp_path: Path) -> None:
    assert pairs_of(write(tmp_path / "it.po", PO)) == [
        ('Open "%s" ', 'Apri "%s" '),
        ("one file", "un file"),
        ("%d files", "%d file"),
        ("Close", ""),
        ("Untranslated", ""),
        ("Tab\tend!!", "Fine"),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('msgid "a\nmsgstr "b"\n', "line 1 is not valid in a PO file"),
        ("hello\n", "line 1 is not valid in a PO file"),
        ('"text"\n', "line 1 is not valid in a PO file"),
        ('msgid ""\nmsgstr "charset=ISO-8859-1\\n"\n\nmsgid "a"\nmsgstr "b"\n', "is in ISO-8859-1; convert it"),
        ('msgid "a"\n' + '"xxxxxxxxxx"\n' * 200, "a message is longer than"),
    ],
)
def test_what_is_wrong_with_a_po_file_is_named(content, message, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("seqtool.corpus.reading.po.MAX_RECORD_BYTES", 1000)
    with pytest.raises(SeqtoolError, match=message):
        pairs_of(write(tmp_path / "it.po", content))


# Archives


def write_archive(path: Path, files: dict[str, str], mode: str = "w:gz") -> Path:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in files.items():
                archive.writestr(name, text)
        return path
    with tarfile.open(path, mode, format=tarfile.PAX_FORMAT) as archive:
        folder = tarfile.TarInfo("folder")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, text in files.items():
            header = tarfile.TarInfo(name)
            header.size = len(text.encode())
            archive.addfile(header, io.BytesIO(text.encode()))
    return path


SIDES = ["".join(pair[side] + "\n" for pair in PAIRS) for side in (0, 1)]
OPUS = {
    "README": "x",
    "LICENSE": "x",
    "Books.en-it.en": SIDES[0],
    "Books.en-it.it": SIDES[1],
    "Books.en-it.xml": "<a/>",
}


@pytest.mark.parametrize("name", ["a.zip", "a.tgz", "a.tar", "a.tar.xz"])
def test_a_pair_of_files_in_an_archive_is_a_corpus(name: str, tmp_path: Path) -> None:
    path = write_archive(tmp_path / name, OPUS, {".tgz": "w:gz", ".xz": "w:xz"}.get(Path(name).suffix, "w"))
    assert pairs_of(path) == PAIRS
    assert pairs_of(path, ":it:en") == [(tgt, src) for src, tgt in PAIRS]
    assert pairs_of(path, ":Books.en-it.en:Books.en-it.it") == PAIRS


@pytest.mark.parametrize("name", ["a.zip", "a.tgz"])
def test_one_file_with_pairs_in_an_archive_is_a_corpus(name: str, tmp_path: Path) -> None:
    path = write_archive(tmp_path / name, {"README": "x", "x" * 120 + "/memory.tmx": make_tmx(PAIRS)})
    assert pairs_of(path) == PAIRS
    assert pairs_of(path, ":it:en") == [(tgt, src) for src, tgt in PAIRS]


@pytest.mark.parametrize(
    ("files", "columns", "message"),
    [
        ({"train.en": "a\n", "train.it": "b\n"}, "", "which language is the source.*zip:en:it or "),
        ({"a.en": "a\n", "a.it": "b\n", "b.en": "a\n", "b.it": "b\n"}, "", "several files in it could be the corpus"),
        ({"a.en": "a\n", "a.it": "b\n", "b.en": "a\n", "b.it": "b\n"}, ":en:it", "several files in it are 'en'"),
        ({"a.en": "a\n", "a.it": "b\n"}, ":en:de", "no two files in it end with"),
        ({"README": "a\n"}, "", "no files in it are a corpus.*It holds: README"),
        ({}, "", "It holds: nothing"),
        ({"a.en-it.en": "a\tb\n", "a.en-it.it": "b\n"}, "", "a.en-it.en: has a tab in nearly every line"),
        ({"a.zip": "PK\x03\x04"}, "", "is an archive in an archive"),
    ],
)
def test_an_archive_that_is_not_clearly_a_corpus_is_refused(files, columns: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SeqtoolError, match=message):
        pairs_of(write_archive(tmp_path / "a.zip", files), columns)


def test_files_of_different_length_in_an_archive_are_named(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "a.tgz", {"a.en-it.en": "a\nb\nc\n", "a.en-it.it": "a\nb\n"})
    with pytest.raises(LineCountError, match=r"a.tgz/a.en-it.en has 3 lines but .*a.tgz/a.en-it.it has 2"):
        list(read_blocks(parse_corpus([path])))


@pytest.mark.parametrize("name", ["a.zip", "a.tar"])
def test_a_damaged_archive_is_an_error_wherever_it_is_damaged(name: str, tmp_path: Path) -> None:
    whole = write_archive(tmp_path / name, OPUS, "w").read_bytes()
    for place in range(0, len(whole), 97):
        for damaged in (whole[:place], whole[:place] + b"\xff" + whole[place + 1 :]):
            archives._names.cache_clear()
            with contextlib.suppress(SeqtoolError):
                assert len(list(read_pairs(parse_corpus([write(tmp_path / name, damaged)])))) <= len(PAIRS) + 1


def test_an_archive_that_is_cut_off_is_never_half_a_corpus(tmp_path: Path) -> None:
    whole = write_archive(tmp_path / "a.tar", OPUS, "w").read_bytes()
    end = whole.index(SIDES[1].encode()) + len(SIDES[1].encode())
    for place in range(1, end, 61):
        archives._names.cache_clear()
        with pytest.raises(SeqtoolError):
            list(read_pairs(parse_corpus([write(tmp_path / "a.tar", whole[:place])])))


def test_what_a_hostile_archive_claims_costs_nothing(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(archives, "MAX_MEMBERS", 20)
    many = {f"f{n}": "" for n in range(21)}
    for name in ("a.zip", "a.tgz"):
        with pytest.raises(SeqtoolError, match="holds more than 20 files"):
            pairs_of(write_archive(tmp_path / name, many))
    monkeypatch.setattr(archives, "MAX_DIRECTORY_BYTES", 500)
    with pytest.raises(SeqtoolError, match="its list of files is too long"):
        pairs_of(write_archive(tmp_path / "b.zip", many))
    header = tarfile.TarInfo("long")
    header.type, header.size = tarfile.XHDTYPE, 1 << 40
    with pytest.raises(SeqtoolError, match="a name of 1,099,511,627,776 bytes"):
        pairs_of(write(tmp_path / "c.tar", header.tobuf(tarfile.GNU_FORMAT)))


# All of them


def test_memory_does_not_grow_with_a_corpus(tmp_path: Path) -> None:
    """A corpus of 35 MB in each form, read in a process of its own, may take no more than 25 MB."""
    unit = "the quick brown fox jumps over the lazy dog " * 4
    n = 100_000
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for side in ("en", "it"):
            archive.writestr(f"a.en-it.{side}", f"{unit}\n" * n)
    rows = {
        "a.tmx": (
            "<tmx><body>",
            f'<tu><tuv xml:lang="en"><seg>{unit}</seg></tuv><tuv xml:lang="it"><seg>{unit}</seg></tuv></tu>\n',
            "</body></tmx>",
        ),
        "a.csv": ("en,it\n", f'"{unit}","{unit}"\n', ""),
        "a.jsonl": ("", json.dumps({"en": unit, "it": unit}) + "\n", ""),
        "a.po": ("", f'msgid "{unit}"\nmsgstr "{unit}"\n\n', ""),
    }
    for name, (start, row, end) in rows.items():
        with open(tmp_path / name, "w") as file:
            file.write(start)
            for _ in range(n // 1000):
                file.write(row * 1000)
            file.write(end)
    program = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from seqtool.corpus.reading.blocks import count_pairs\n"
        "from seqtool.corpus.reading.corpus import parse_corpus\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "assert count_pairs(parse_corpus([Path(sys.argv[1])])) == int(sys.argv[2])\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    for name in (*rows, "a.zip"):
        command = [sys.executable, "-c", program, str(tmp_path / name), str(n)]
        grown = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        assert grown < 25_000, (name, grown)  # KiB


def test_blocks_are_bounded_and_numbered(monkeypatch) -> None:
    monkeypatch.setattr(records, "BLOCK_PAIRS", 3)
    blocks = list(records.in_blocks([(b"a", b"b")] * 7))
    assert [(block.number, len(block)) for block in blocks] == [(1, 3), (4, 3), (7, 1)]
    monkeypatch.setattr(records, "BLOCK_BYTES", 4)
    assert [len(block) for block in records.in_blocks([(b"aa", b"bb")] * 2)] == [1, 1]


def test_a_tokenizer_learns_from_both_sides(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", make_csv([("en", "it"), *PAIRS]))
    assert sorted(read_all_lines(path)) == sorted(text.encode() for pair in PAIRS for text in pair)


def test_other_columns_are_another_corpus(tmp_path: Path) -> None:
    from seqtool.config.sections import CleanConfig, DataConfig

    def settings_of(name: str) -> dict:
        corpus = parse_corpus([tmp_path / name])
        return PrepareRequest(corpora=(corpus,), clean=CleanConfig(), data=DataConfig()).settings()

    assert "columns" not in settings_of("a.csv")  # a corpus that was prepared before has none
    assert settings_of("a.csv:en:it")["columns"] == [["en", "it"]]
    assert columns_of([parse_corpus([tmp_path / "a.csv"])]) == []
