"""Programs that were written for LibreTranslate work with `seqtool serve` as they are."""

import json
import os
import shutil
import subprocess
import urllib.error
from collections.abc import Iterator
from pathlib import Path

import pytest
from deep_translator import LibreTranslator
from deep_translator.exceptions import AuthorizationException
from libretranslatepy import LibreTranslateAPI
from served import Served, names

NPM = shutil.which("npm")
KEY = "a-key-of-this-test"
SENTENCES = {"two dogs play": "zwei Hunde spielen", "she waves": "sie winkt"}


@pytest.fixture(scope="module")
def server(served_run: Path) -> Iterator[Served]:
    with Served(*names(served_run, "en-de", "de-en")) as server:
        yield server


@pytest.fixture(scope="module")
def locked(served_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    keys = tmp_path_factory.mktemp("keys") / "keys"
    keys.write_text(f"# of this test\n{KEY}  # the only one\n", encoding="utf-8")
    with Served(*names(served_run), "--api-keys", keys) as server:
        yield server


def test_libretranslatepy(server: Served) -> None:
    client = LibreTranslateAPI(server.address)
    for text, translation in SENTENCES.items():
        assert client.translate(text, "en", "de") == translation
    assert client.translate("two dogs & a man\nplay", "en", "de").split("\n")[1] == "spielen"
    assert client.detect("Zwei Hunde spielen im Schnee.") == [{"confidence": 100.0, "language": "de"}]
    assert [language["code"] for language in client.languages()] == ["en", "de"]
    with pytest.raises(urllib.error.HTTPError, match="400"):
        client.translate("two dogs play", "en", "fr")


def test_libretranslatepy_with_a_key(locked: Served) -> None:
    assert LibreTranslateAPI(locked.address, KEY).translate("two dogs play", "en", "de") == "zwei Hunde spielen"
    assert LibreTranslateAPI(locked.address, KEY).languages()[0]["targets"] == ["de", "en"]
    for key, status in ((None, "400"), (f"{KEY}x", "403"), (KEY[:-1], "403")):
        with pytest.raises(urllib.error.HTTPError, match=status):
            LibreTranslateAPI(locked.address, key).translate("two dogs play", "en", "de")


def test_deep_translator(server: Served, tmp_path: Path) -> None:
    client = LibreTranslator(source="en", target="de", api_key="none", custom_url=f"{server.address}/")
    assert client.translate_batch(list(SENTENCES)) == list(SENTENCES.values())
    (tmp_path / "a.txt").write_text("two dogs play", encoding="utf-8")
    assert client.translate_file(str(tmp_path / "a.txt")) == "zwei Hunde spielen"
    named = LibreTranslator(source="auto", target="German", api_key="none", custom_url=f"{server.address}/")
    assert named.translate("she waves at the man and walks")


def test_deep_translator_with_a_key(locked: Served) -> None:
    address = f"{locked.address}/"
    assert LibreTranslator("en", "de", api_key=KEY, custom_url=address).translate("she waves") == "sie winkt"
    with pytest.raises(AuthorizationException):
        LibreTranslator("en", "de", api_key="another-key", custom_url=address).translate("she waves")


PROGRAM = """
import translate from "translate";
translate.engine = "libre";
translate.url = process.argv[1] + "/translate";
translate.key = process.argv[2];
const found = [];
for (const text of JSON.parse(process.argv[3])) {
  found.push(await translate(text, { from: "en", to: "de" }).catch((error) => error.message));
}
console.log(JSON.stringify(found));
"""


@pytest.fixture(scope="module")
def npm_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the npm package, as its registry has it."""
    give_up = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
    if NPM is None or shutil.which("node") is None:
        give_up("no node and npm here, so the npm package translate was not tried")
    folder = tmp_path_factory.mktemp("npm")
    (folder / "package.json").write_text("{}", encoding="utf-8")
    options = ["--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=0", "--prefer-offline"]
    installed = subprocess.run(
        [NPM, "install", *options, "translate@3.1.0"], cwd=folder, capture_output=True, text=True, check=False
    )
    if installed.returncode:
        give_up(f"npm could not fetch the package translate, so it was not tried: {installed.stderr[-300:]}")
    return folder


def run_npm_package(folder: Path, address: str, key: str, texts: list[str]) -> list[str]:
    command = ["node", "--input-type=module", "--eval", PROGRAM, address, key, json.dumps(texts)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout)
    return found


def test_the_npm_package_translate(server: Served, locked: Served, npm_package: Path) -> None:
    assert run_npm_package(npm_package, server.address, "", list(SENTENCES)) == list(SENTENCES.values())
    assert run_npm_package(npm_package, locked.address, KEY, ["she waves"]) == ["sie winkt"]
    assert run_npm_package(npm_package, locked.address, "another-key", ["she waves"]) == ["Invalid API key"]
