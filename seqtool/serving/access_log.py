"""The access log: a JSON object for each request, without the texts unless they are asked for."""

import json
import sys
import time
import traceback
from typing import Any


def write_entry(**facts: Any) -> None:
    """Write an entry on stderr; a log that cannot be written stops nobody."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + "Z"
    try:
        sys.stderr.write(json.dumps({"time": stamp, **facts}) + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return


def write_error(error: BaseException) -> None:
    """Write an entry about a bug, with the place in the code; its message, which may hold a text, is left out."""
    frames = traceback.extract_tb(error.__traceback__)
    write_entry(error=type(error).__name__, at=[f"{frame.filename}:{frame.lineno}" for frame in frames[-6:]])
