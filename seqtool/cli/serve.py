"""seqtool serve: a translation server with a web page."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from seqtool.cli.options import EngineGroup
from seqtool.cli.streams import notify
from seqtool.errors import SeqtoolError

PACKAGES = ("starlette", "uvicorn", "httptools", "python_multipart", "prometheus_client", "py3langid")
LIMITS, ACCESS = "Limits", "Access"


def _option(panel: str, name: str, help: str, metavar: str | None = None, low: float | None = None) -> object:
    return typer.Option(name, help=help, metavar=metavar, min=low, rich_help_panel=panel)


def serve(
    model: Annotated[
        list[Path] | None,
        typer.Option(
            "-m",
            "--model",
            metavar="DIR",
            help="A run directory with a trained model; repeat it for more directions.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(
            "--name",
            metavar="SRC-TGT=DIR",
            help="A model with its languages, as en-de=DIR, if the run does not know them.",
            show_default=False,
        ),
    ] = None,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="IP address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", metavar="N", help="Port to listen on; 0: any that is free.")] = 5000,
    workers: Annotated[int, typer.Option("--workers", help="Processes, which share the cores.", min=1)] = 1,
    api_keys: Annotated[
        Path | None,
        _option(ACCESS, "--api-keys", "Answer only requests with a key of this file, one per line.", "FILE"),
    ] = None,
    rate: Annotated[
        float, _option(ACCESS, "--rate", "Requests per minute from one client or key (0: no limit).", low=0)
    ] = 0,
    cors: Annotated[
        str | None,
        _option(ACCESS, "--cors", "Allow scripts of this origin, as https://example.org, or *.", "ORIGIN"),
    ] = None,
    log_texts: Annotated[
        bool, _option(ACCESS, "--log-texts", "Write texts and translations to the access log.")
    ] = False,
    access_log: Annotated[
        bool, _option(ACCESS, "--access-log/--no-access-log", "Write a JSON object for each request to stderr.")
    ] = True,
    max_chars: Annotated[
        int, _option(LIMITS, "--max-chars", "Characters of the texts of a request (0: no limit).", low=0)
    ] = 20_000,
    max_texts: Annotated[int, _option(LIMITS, "--max-texts", "Texts in a request.", low=1)] = 1000,
    max_body: Annotated[int, _option(LIMITS, "--max-body", "Bytes of a request.", low=1)] = 4 << 20,
    max_queue: Annotated[
        int, _option(LIMITS, "--max-queue", "Segments that wait; requests beyond it get status 503.", low=1)
    ] = 4096,
    max_connections: Annotated[
        int, _option(LIMITS, "--max-connections", "Open connections of each process.", low=1)
    ] = 2000,
    batch_wait: Annotated[
        float,
        _option(LIMITS, "--batch-wait", "Milliseconds that an idle model waits for more to translate at once.", low=0),
    ] = 2,
    cache: Annotated[float, _option(LIMITS, "--cache", "Megabytes of translations to cache (0: none).", low=0)] = 64,
    grace: Annotated[float, _option(LIMITS, "--grace", "Seconds for requests to end after SIGTERM.", low=0)] = 30,
    *,
    engine: EngineGroup,
) -> None:
    """Serve models over HTTP: LibreTranslate's API, and a page to translate on.

    Requests that arrive together share batches. Without --host only this machine can reach the server. SIGTERM ends
    it when the requests that it has are answered; SIGHUP opens models again whose files were replaced.

    Example: [bold]seqtool serve -m run[/bold], then open http://127.0.0.1:5000
    """
    missing = [package for package in PACKAGES if find_spec(package) is None]
    if missing:
        raise SeqtoolError(
            f"the package {missing[0]} is not installed; install what serve needs with: pip install 'seqtool[serve]'"
        )
    from seqtool.serving.settings import ServeSettings

    settings = ServeSettings(
        host=host,
        port=port,
        workers=workers,
        api_keys=api_keys,
        rate=rate,
        cors=cors,
        log_texts=log_texts,
        access_log=access_log,
        max_chars=max_chars,
        max_texts=max_texts,
        max_body=max_body,
        max_queue=max_queue,
        max_connections=max_connections,
        batch_wait=batch_wait / 1000,
        cache_bytes=round(cache * 1e6),
        grace=grace,
    )
    engine_settings = engine.settings()
    from seqtool.serving.models import find_directions

    folders = find_directions(model or [], name or [])
    from seqtool.serving.server import serve as run

    run(folders, engine_settings, settings, notify)
