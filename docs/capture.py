"""Draws what a first run looks like: runs data/demo.sh in a new folder and a terminal of its own, and writes its last
screen as SVG.

python docs/capture.py docs/first-run.svg
"""

import io
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH = 100
ROOT = Path(__file__).parent.parent


def run_in_terminal(command: list[str], folder: Path) -> str:
    """Run a command in a folder, with a terminal for its output; return everything it wrote."""
    master, slave = pty.openpty()
    env = {**os.environ, "COLUMNS": str(WIDTH), "LINES": "40", "TERM": "xterm-256color"}
    env["PATH"] = f"{Path(sys.executable).parent}:{env['PATH']}"
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=slave, stderr=slave, cwd=folder, env=env)
    os.close(slave)
    chunks = []
    while True:
        try:
            chunk = os.read(master, 65536)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        chunks.append(chunk)
    if process.wait():
        raise SystemExit(b"".join(chunks).decode("utf-8", "replace"))
    return b"".join(chunks).decode("utf-8", "replace")


def final_screen(output: str) -> list[str]:
    """Replay cursor movements; return the lines as they stand at the end, colours kept."""
    lines, row, is_line_start = [""], 0, False
    for token in re.findall(r"\x1b\[\d*A|\x1b\[2K|\x1b\[\?25[lh]|\r|\n|[^\r\n\x1b]+|\x1b\[[0-9;]*m|\x1b", output):
        if token == "\r":
            is_line_start = True
        elif token == "\n":
            row, is_line_start = row + 1, False
            if row == len(lines):
                lines.append("")
        elif token.endswith("A") and token.startswith("\x1b["):
            row = max(0, row - int(token[2:-1] or 1))
        elif token == "\x1b[2K":
            lines[row] = ""
        elif "?25" not in token:
            lines[row] = token if is_line_start else lines[row] + token
            is_line_start = False
    return lines


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "data", Path(folder) / "data")
        screen = final_screen(run_in_terminal(["sh", "data/demo.sh"], Path(folder)))
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    for line in screen:
        console.print(Text.from_ansi(line), soft_wrap=False)
    console.save_svg(sys.argv[1], title="make demo")


if __name__ == "__main__":
    main()
