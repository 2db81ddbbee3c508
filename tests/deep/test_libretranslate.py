"""The real LibreTranslate serves an exported package without a network.

Needs the command libretranslate, in whatever environment: it asks for an older numpy than the other tests do.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

from tiny_run import make_lines, make_run

from seqtool.translation.export.argos import export_argos
from seqtool.translation.export.languages import Languages

COMMAND = shutil.which("libretranslate")
LINES = make_lines(200, seed=7)


def ask(address: str, **values: object) -> object:
    """Ask the server and return its answer."""
    data = json.dumps(values).encode() if values else None
    request = urllib.request.Request(address, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


@pytest.mark.skipif(COMMAND is None, reason="libretranslate is not installed")
def test_the_real_server_translates_with_the_package(tmp_path: Path) -> None:
    assert COMMAND is not None
    run = make_run(tmp_path / "run", trained=True)
    languages = {"en": "English", "de": "German"}
    for source, target in (("en", "de"), ("de", "en")):  # with fewer than two packages the server wants to download
        pair = Languages((source, target), (languages[source], languages[target]))
        export_argos(run, tmp_path / f"{source}.argosmodel", pair, "float32")
    homes = {f"XDG_{name}_HOME": str(tmp_path / name) for name in ("DATA", "CACHE", "CONFIG")}
    environment = {**os.environ, **homes, "HOME": str(tmp_path), "PYTHONPATH": ""}
    python = Path(COMMAND).with_name("python")
    program = "import sys; from argostranslate import package, translate; "
    program += "[package.install_from_path(file) for file in sys.argv[1:3]]; "
    program += "print('\\n'.join(translate.translate(line, 'en', 'de') for line in sys.stdin.read().splitlines()))"
    arguments = [str(python), "-c", program, *(str(tmp_path / f"{code}.argosmodel") for code in languages)]
    installed = subprocess.run(
        arguments,
        input="\n".join(LINES),
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert installed.returncode == 0, installed.stderr
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--host", "127.0.0.1", "--port", str(port), "--load-only", "en,de", "--disable-web-ui"]
    with open(tmp_path / "log", "wb") as log:
        server = subprocess.Popen([COMMAND, *options], env=environment, cwd=tmp_path, stdout=log, stderr=log)
    try:
        address = f"http://127.0.0.1:{port}"
        for _ in range(300):
            assert server.poll() is None, (tmp_path / "log").read_text()
            try:
                known = ask(f"{address}/languages")
                break
            except OSError:
                time.sleep(1)
        else:
            pytest.fail((tmp_path / "log").read_text())
        assert {"en", "de"} == {one["code"] for one in known}  # type: ignore[index]
        wanted = [line.lower() for line in installed.stdout.splitlines()]
        singly = [ask(f"{address}/translate", q=line, source="en", target="de") for line in LINES]
        together = ask(f"{address}/translate", q=LINES, source="en", target="de")
        texts = [answer["translatedText"] for answer in singly]  # type: ignore[index]
        # It copies the case of the source's first letter, and its last punctuation.
        same = sum(text.lower() == line for text, line in zip(texts, wanted, strict=True))
        print(f"\nLibreTranslate: {same} of {len(LINES)} lines as Argos Translate, but for the case of letters")
        assert [text.lower() for text in texts] == wanted
        assert together["translatedText"] == texts  # type: ignore[index]
    finally:
        server.terminate()
        server.wait(30)
