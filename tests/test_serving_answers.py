"""What LibreTranslate 1.9.6 answered to each request that it documents, and what `seqtool serve` answers.

The expected answers were recorded from the real server, which served a package made from a seqtool model for English
and German with --char-limit 300 and --batch-limit 4. Translations depend on the model, so they are any text here; all
the rest has to be equal. What differs on purpose is in DIFFERENT, with its reason. docs/serve.md has the same table.
"""

import contextlib
import http.client
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from command_line import run_text
from served import Served, names
from tiny_run import make_lines


class Any_(str):
    """Equal to every text, or to those that match a pattern."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and (not self or re.fullmatch(self, other) is not None)

    __hash__ = str.__hash__


TEXT = Any_()
NOT_UNDERSTOOD = {"error": "The browser (or proxy) sent a request that this server could not understand."}
MISSING_Q = {"error": "Invalid request: missing q parameter"}
NOT_FOUND = (
    "<!doctype html>\n<html lang=en>\n<title>404 Not Found</title>\n<h1>Not Found</h1>\n<p>The requested URL was not "
    "found on the server. If you entered the URL manually please check your spelling and try again.</p>\n"
)
NOT_ALLOWED = (
    "<!doctype html>\n<html lang=en>\n<title>405 Method Not Allowed</title>\n<h1>Method Not Allowed</h1>\n"
    "<p>The method is not allowed for the requested URL.</p>\n"
)
EN_DE = {"source": "en", "target": "de"}
JSON, HTML = "application/json", "text/html; charset=utf-8"


class Row(NamedTuple):
    """A request, and what the real server answered."""

    path: str
    send: dict[str, Any]
    status: int
    answer: object
    kind: str = JSON


def translate(status: int, answer: object, **values: Any) -> Row:
    return Row("/translate", {"json": values}, status, answer)


TABLE = {
    "languages": Row(
        "GET /languages",
        {},
        200,
        [
            {"code": "en", "name": "English", "targets": ["de", "en"]},
            {"code": "de", "name": "German", "targets": ["de", "en"]},
        ],
    ),
    "health": Row("GET /health", {}, 200, {"status": "ok"}),
    "json q str": translate(200, {"translatedText": TEXT}, q="A dog.", **EN_DE),
    "json q list alternatives 2 auto": translate(
        200,
        {
            "alternatives": [TEXT, TEXT],
            "detectedLanguage": [{"confidence": TEXT, "language": "en"}, {"confidence": TEXT, "language": "en"}],
            "translatedText": [TEXT, TEXT],
        },
        q=["Two dogs play at night.", "She waves and walks."],
        source="auto",
        target="de",
        alternatives=2,
    ),
    "json auto single": translate(
        200,
        {"detectedLanguage": {"confidence": TEXT, "language": "en"}, "translatedText": TEXT},
        q="She waves and walks.",
        source="auto",
        target="de",
    ),
    "form": Row("/translate", {"data": {"q": "A dog.", **EN_DE}}, 200, {"translatedText": TEXT}),
    "html": translate(
        200, {"translatedText": Any_("<p>.*<b>.*</b>.*</p>")}, q="<p>A <b>blue</b> shirt</p>", format="html", **EN_DE
    ),
    "missing q": translate(400, MISSING_Q, **EN_DE),
    "empty q": translate(400, MISSING_Q, q="", **EN_DE),
    "empty list": translate(400, MISSING_Q, q=[], **EN_DE),
    "missing source": translate(400, {"error": "Invalid request: missing source parameter"}, q="A dog.", target="de"),
    "missing target": translate(400, {"error": "Invalid request: missing target parameter"}, q="A dog.", source="en"),
    "bad target": translate(400, {"error": "zz is not supported"}, q="A dog.", source="en", target="zz"),
    "bad source": translate(400, {"error": "zz is not supported"}, q="A dog.", source="zz", target="de"),
    "bad format": translate(400, {"error": "xml format is not supported"}, q="A dog.", format="xml", **EN_DE),
    "bad alternatives form": Row(
        "/translate",
        {"data": {"q": "A dog.", "alternatives": "x", **EN_DE}},
        400,
        {"error": "Invalid request: alternatives parameter is not a number"},
    ),
    "too many alternatives": translate(
        400, {"error": "Invalid request: alternatives parameter must be <= 3"}, q="A dog.", alternatives=9, **EN_DE
    ),
    "too long": translate(
        400, {"error": "Invalid request: request (301) exceeds text limit (300)"}, q="a" * 301, **EN_DE
    ),
    "batch too long": translate(
        400, {"error": "Invalid request: request (5) exceeds text limit (4)"}, q=["A dog."] * 5, **EN_DE
    ),
    "json array body": Row("/translate", {"json": [1, 2]}, 400, {"error": "Invalid JSON format"}),
    "malformed json": Row("/translate", {"data": b'{"q": ', "headers": {"content-type": JSON}}, 400, NOT_UNDERSTOOD),
    "emoji": translate(200, {"translatedText": "😀"}, q="😀", **EN_DE),
    "same lang": translate(200, {"translatedText": "A dog."}, q="A dog.", source="en", target="en"),
    "GET /translate": Row("GET /translate", {}, 405, NOT_ALLOWED, HTML),
    "POST query string": Row("/translate", {"params": {"q": "A dog.", **EN_DE}}, 200, {"translatedText": TEXT}),
    "GET /nope": Row("GET /nope", {}, 404, NOT_FOUND, HTML),
    "detect json": Row(
        "/detect", {"json": {"q": "Zwei Hunde spielen im Schnee."}}, 200, [{"confidence": 100.0, "language": "de"}]
    ),
    "detect missing": Row("/detect", {"json": {}}, 400, MISSING_Q),
    "detect list": Row(
        "/detect",
        {"json": {"q": ["Two dogs play in the snow with each other.", "Ein Hund."]}},
        200,
        [{"confidence": 100.0, "language": "en"}, {"confidence": TEXT, "language": "de"}],
    ),
    "suggest": Row(
        "/suggest",
        {"data": {"q": "A dog.", "s": "Ein Hund.", **EN_DE}},
        403,
        {"error": "Suggestions are disabled on this server."},
    ),
    "translate_file txt": Row(
        "/translate_file",
        {"files": {"file": ("a.txt", b"A dog.")}, "data": EN_DE},
        200,
        {"translatedFileUrl": Any_(r"http://127\.0\.0\.1:\d+/download_file/[0-9a-f-]{36}\.a_de\.txt")},
    ),
    "translate_file bad ext": Row(
        "/translate_file",
        {"files": {"file": ("a.xyz", b"A dog.")}, "data": EN_DE},
        400,
        {"error": "Invalid request: file format not supported"},
    ),
    "translate_file none": Row("/translate_file", {"data": EN_DE}, 400, NOT_UNDERSTOOD),
}

# What the real server answered, what this one does, and why.
DIFFERENT = {
    "bad alternatives json": (
        translate(500, {"error": TEXT}, q="A dog.", alternatives="x", **EN_DE),
        400,
        {"error": "Invalid request: alternatives parameter is not a number"},
        "a mistake of the client is no failure of the server",
    ),
    "q number": (
        translate(500, {"error": TEXT}, q=1, **EN_DE),
        400,
        {"error": "Invalid request: q parameter is neither a text nor a list of texts"},
        "a mistake of the client is no failure of the server",
    ),
}


@pytest.fixture(scope="module")
def server(served_run: Path) -> Iterator[Served]:
    with Served(*names(served_run, "en-de", "de-en"), "--max-chars", 300, "--max-texts", 4) as server:
        yield server


def ask(server: Served, row: Row) -> tuple[int, object, str]:
    method, _, path = row.path.rpartition(" ")
    answer = server.ask(path, method or "POST", **row.send)
    kind = answer.headers["content-type"]
    return answer.status_code, answer.json() if kind == JSON else answer.text, kind


def alike(found: object, expected: object) -> bool:
    """Compare answers, with TEXT for any text, number or list of texts."""
    if isinstance(expected, Any_) and not expected:
        texts = found if isinstance(found, list) else [found]
        return all(isinstance(text, str | float) for text in texts)
    if isinstance(expected, dict):
        return (
            isinstance(found, dict)
            and list(found) == list(expected)
            and all(alike(found[name], value) for name, value in expected.items())
        )
    if isinstance(expected, list):
        return isinstance(found, list) and len(found) == len(expected) and all(map(alike, found, expected))
    return expected == found


@pytest.mark.parametrize("name", TABLE)
def test_an_answer_is_that_of_the_real_server(server: Served, name: str) -> None:
    row = TABLE[name]
    status, answer, kind = ask(server, row)
    assert (status, kind) == (row.status, row.kind)
    assert alike(answer, row.answer), answer


@pytest.mark.parametrize("name", DIFFERENT)
def test_an_answer_that_differs_does_so_in_the_way_that_is_documented(server: Served, name: str) -> None:
    row, status, expected, reason = DIFFERENT[name]
    assert reason
    assert status != row.status
    assert ask(server, row)[:2] == (status, expected)


def documented(name: str) -> str:
    """Return the row of docs/serve.md about a request."""
    row, *here = DIFFERENT.get(name) or (TABLE[name],)
    method, _, path = row.path.rpartition(" ")
    cells = [name, f"`{method or 'POST'} {path}`", str(row.status), describe(row.answer)]
    return f"| {' | '.join([*cells, f'{here[0]}, {describe(here[1])}: {here[2]}' if here else 'same'])} |"


def describe(answer: object) -> str:
    """Return an answer in a few words: what is wrong, or the names of its fields."""
    if isinstance(answer, str):
        return "a page that says so"
    if isinstance(answer, list):
        return f"a list of {describe(answer[0])}"
    assert isinstance(answer, dict)
    if "error" in answer:
        return f'"{answer["error"]}"' if answer["error"] is not TEXT else "an internal error"
    return ", ".join(f"`{field}`" for field in answer)


def test_the_documented_table_is_the_one_that_is_tested() -> None:
    page = (Path(__file__).parent.parent / "docs" / "serve.md").read_text(encoding="utf-8")
    rows = [line for line in page.split("\n") if re.match(r"\| [^|]+ \| `(GET|POST) ", line)]
    assert rows == [documented(name) for name in (*TABLE, *DIFFERENT)]


def test_the_settings_for_a_page_are_those_of_the_real_server_but_for_the_formats_of_files(server: Served) -> None:
    assert server.ask("/frontend/settings", "GET").json() == {
        "apiKeys": False,
        "charLimit": 300,
        "filesTranslation": True,
        "frontendTimeout": 500,
        "keyRequired": False,
        "language": {"source": {"code": "auto", "name": "Auto Detect"}, "target": {"code": "de", "name": "German"}},
        "suggestions": False,
        "supportedFilesFormat": [".txt", ".html", ".srt"],
    }


def test_the_description_has_every_address_of_the_real_server(server: Served) -> None:
    spec = server.ask("/spec", "GET").json()
    recorded = {
        "/detect": ["post"],
        "/frontend/settings": ["get"],
        "/health": ["get"],
        "/languages": ["get"],
        "/suggest": ["post"],
        "/translate": ["post"],
        "/translate_file": ["post"],
    }
    assert {path: list(spec["paths"][path]) for path in recorded} == recorded


def test_lines_are_translated_one_by_one_and_blank_ones_stay(server: Served, served_run: Path) -> None:
    lines = make_lines(3)
    printed = run_text("translate", "-m", served_run, stdin="\n".join(lines) + "\n")
    expected = printed.stdout.splitlines()
    text = f"{lines[0]}\n\n  {lines[1]}\n{lines[2]}\n"
    assert server.translate(text) == {"translatedText": f"{expected[0]}\n\n  {expected[1]}\n{expected[2]}\n"}


def test_alternatives_differ_from_the_translation_and_from_each_other(server: Served) -> None:
    found = server.translate("two dogs play", alternatives=3)
    texts = [found["translatedText"], *found["alternatives"]]
    assert texts[0] == "zwei Hunde spielen"
    assert len(set(texts)) == 4


def test_a_file_comes_back_in_its_format(server: Served) -> None:
    subtitles = "1\n00:00:01,000 --> 00:00:02,000\ntwo dogs play\n\n2\n00:00:03,000 --> 00:00:04,500\nshe waves\n"
    files = {"file": ("Film: Teil 1/../x.srt", subtitles.encode())}
    url = server.ask("/translate_file", files=files, data=EN_DE).json()["translatedFileUrl"]
    answer = server.session.get(url, timeout=60)
    assert answer.text == subtitles.replace("two dogs play", "zwei Hunde spielen").replace("she waves", "sie winkt")
    assert re.search(r'attachment; filename="[\w-]+_de\.srt"', answer.headers["content-disposition"])
    page = {"file": ("a.html", b"<p>two <i>dogs</i> play<script>two dogs</script>")}
    url = server.ask("/translate_file", files=page, data={"source": "auto", "target": "de"}).json()["translatedFileUrl"]
    assert server.session.get(url, timeout=60).text == "<p>zwei <i>Hunde</i> spielen<script>two dogs</script>"


def test_a_file_that_is_not_utf_8_is_refused(server: Served) -> None:
    answer = server.ask("/translate_file", files={"file": ("a.txt", "Grüße".encode("latin-1"))}, data=EN_DE)
    assert answer.status_code == 400
    assert answer.json() == {"error": "Invalid request: the file is not UTF-8; save it as UTF-8 and send it again"}


def test_an_address_is_taken_as_it_is_and_a_download_cannot_leave_its_folder(server: Served) -> None:
    for name in ("..%2f..%2fetc%2fpasswd", "..", "%2e%2e/%2e%2e/etc/passwd", "x", "a" * 3000, "%00"):
        assert status_of(server, f"/download_file/{name}") == 404
    for path in ("/translate/", "/health/"):
        assert status_of(server, path) == 404
    for name in ("..%2fapp.py", ".%2e/app.py", "%00", "nope.js"):
        assert status_of(server, f"/page/{name}") == 404


def status_of(server: Served, path: str) -> int:
    """Ask for a path as it is written; requests would resolve its dots."""
    connection = http.client.HTTPConnection(server.address.removeprefix("http://"), timeout=60)
    with contextlib.closing(connection):
        connection.request("GET", path)
        return connection.getresponse().status


def test_a_direction_that_no_model_has_is_named(served_run: Path) -> None:
    with Served(*names(served_run, "en-de", "fr-it")) as server:
        assert server.translate("a man", target="it") == {
            "error": "Italian (it) is not available as a target language from English (en)"
        }
        assert server.ask("/languages", "GET").json()[0] == {"code": "en", "name": "English", "targets": ["de", "en"]}


def test_texts_in_several_languages_are_detected_each_by_itself(server: Served) -> None:
    texts = [
        "Two dogs play at night in a blue shirt, and she waves.",
        "Zwei Hunde spielen bei Nacht in einem blauen Hemd.",
    ]
    found = server.translate(texts, source="auto")
    assert [one["language"] for one in found["detectedLanguage"]] == ["en", "de"]
    assert found["translatedText"][1] == texts[1]


def test_the_details_are_those_of_translate_json(server: Served, served_run: Path) -> None:
    lines = make_lines(4)
    values = {"q": "\n".join(lines), **EN_DE, "n_best": 2, "token_scores": True}
    found = server.ask("/seqtool/translate", json={**values, "q": values["q"][:300]}).json()
    arguments = ["translate", "-m", served_run, "--json", "--n-best", 2, "--token-scores"]
    printed = run_text(*arguments, stdin="\n".join(lines) + "\n")
    expected = [json.loads(line) for line in printed.stdout.splitlines()]
    assert found == {"texts": [{"text": "\n".join(line["text"] for line in expected), "lines": expected}]}
