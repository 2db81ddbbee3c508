"""Takes a picture of the page of `seqtool serve` with a text and its translation on it.

python docs/screenshot.py checkpoints/demo docs/serve.png
"""

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from browser import run_browser, set_screen
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

TEXT = """The old neighbour brings along a salad and a strawberry.
When will she sing next to the factory?
Eva has four dogs."""
POINTED_AT = 16  # the word of the translation that the pointer is on


def show_translation(browser: Any, address: str) -> None:
    """Open the page, type the text, wait for the translation and point at a word of it."""
    browser.get(f"{address}/")
    box = browser.find_element(By.ID, "text")
    box.send_keys(*(part for line in TEXT.split("\n") for part in (line, Keys.ENTER)), Keys.BACKSPACE)
    deadline = time.monotonic() + 30
    while len(browser.find_elements(By.CSS_SELECTOR, "#translation p")) != TEXT.count("\n") + 1:
        if time.monotonic() > deadline:
            raise SystemExit("no translation appeared on the page")
        time.sleep(0.1)
    time.sleep(1)  # until what moves has come to rest
    word = browser.find_elements(By.CSS_SELECTOR, "#translation .word")[POINTED_AT]
    place = {"x": word.rect["x"] + 5, "y": word.rect["y"] + 5}
    browser.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", **place})
    time.sleep(0.5)


def main() -> None:
    run, picture = sys.argv[1:]
    command = [sys.executable, "-m", "seqtool", "serve", "-m", run, "--port", "0", "--no-access-log"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    try:
        found = re.search(r"http://[\d.:]+", next(line for line in server.stderr if "http://" in line))
        assert found
        with tempfile.TemporaryDirectory() as folder:
            for browser in run_browser(Path(folder)):
                set_screen(browser, 1180, 560)
                show_translation(browser, found[0])
                browser.save_screenshot(picture)
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
