"""The wheel holds all that an installation needs: built and used away from the source tree."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_an_installed_wheel_trains_on_the_demo_and_reports(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, timeout=300, capture_output=True)
    (wheel,) = tmp_path.glob("seqtool-*.whl")
    site, work = tmp_path / "site", tmp_path / "work"
    zipfile.ZipFile(wheel).extractall(site)
    work.mkdir()
    quick = {"decode.beam": 1, "decode.max_length_ratio": 0.1, "decode.length_penalty": 1}  # two steps teach no end
    settings = [argument for name, value in quick.items() for argument in ("--set", f"{name}={value}")]
    command = [sys.executable, "-m", "seqtool", "train", "--steps", "2", "-o", "run", *settings]
    environment = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert (work / "run" / "report.html").stat().st_size > 10_000
    where = [sys.executable, "-c", "import seqtool; print(seqtool.__file__)"]
    found = subprocess.run(where, cwd=work, env=environment, capture_output=True, text=True, check=True).stdout
    assert found.startswith(str(site))
    assert (site / "seqtool" / "py.typed").exists()
