"""seqtool serve: a translation server with a web page."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from seqtool.cli.options import ComputeTypeOption, DeviceOption, EngineOption, ThreadsOption
from seqtool.cli.streams import notify
from seqtool.errors import SeqtoolError


def serve(
    model: Annotated[
        list[Path] | None,
        typer.Option(
            "-m", "--model", metavar="DIR", help="A run directory with a trained model; repeat for more directions."
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option("--name", metavar="SRC-TGT=DIR", help="A model and its languages, as in en-de=DIR."),
    ] = None,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", metavar="N", help="Port to listen on; 0: any that is free.")] = 5000,
    engine: EngineOption = "auto",
    device: DeviceOption = "auto",
    threads: ThreadsOption = 0,
    compute_type: ComputeTypeOption = "default",
) -> None:
    """Serve models over HTTP: LibreTranslate's API and a web page.

    Example: seqtool serve -m run, then open http://127.0.0.1:5000
    """
    missing = [package for package in ("starlette", "uvicorn") if find_spec(package) is None]
    if missing:
        raise SeqtoolError(f"{missing[0]} is not installed; install it with: pip install 'seqtool[serve]'")
    from seqtool.serving.settings import ServeSettings
    from seqtool.translation.engines.settings import EngineSettings

    settings = ServeSettings(host=host, port=port)
    engine_settings = EngineSettings(engine=engine, device=device, threads=threads, compute_type=compute_type)
    from seqtool.serving.models import find_directions

    folders = find_directions(model or [], name or [])
    from seqtool.serving.server import serve as run

    run(folders, engine_settings, settings, notify)
