"""Runs the server: a socket, uvicorn on it, and what signals mean."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Mapping
from pathlib import Path

import uvicorn

from seqtool.errors import SeqtoolError
from seqtool.serving.app import make_app
from seqtool.serving.models import Direction, ServedModels
from seqtool.serving.settings import ServeSettings
from seqtool.translation.engines.settings import EngineSettings

Notify = Callable[[str], None]


def open_socket(settings: ServeSettings) -> socket.socket:
    """Listen where the settings say."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise SeqtoolError(
            f"cannot listen on {settings.host} port {settings.port} ({error.strerror or error}); "
            "give another with `host` or `port`"
        ) from None
    listener.listen(1024)
    return listener


def address_of(listener: socket.socket) -> str:
    """Return the address to open in a browser."""
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def serve(folders: Mapping[Direction, Path], engine: EngineSettings, settings: ServeSettings, notify: Notify) -> None:
    """Serve until a signal ends it."""
    with open_socket(settings) as listener:
        models = ServedModels(folders, engine, settings, notify)
        models.open()
        config = uvicorn.Config(
            make_app(models, settings),
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=round(settings.grace),
        )
        notify(f"serving {', '.join('-'.join(pair) for pair in folders)} at {address_of(listener)}")
        with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            runner.run(run(uvicorn.Server(config), models, listener))
        models.close()


async def run(server: uvicorn.Server, models: ServedModels, listener: socket.socket) -> None:
    """Run uvicorn in this event loop; SIGTERM and Ctrl-C end it, SIGHUP opens replaced models."""
    loop = asyncio.get_running_loop()
    reloads: set[asyncio.Task[None]] = set()

    def reload() -> None:
        task = asyncio.create_task(models.reload())
        reloads.add(task)
        task.add_done_callback(reloads.discard)

    loop.add_signal_handler(signal.SIGHUP, reload)
    with contextlib.suppress(KeyboardInterrupt):
        await server._serve([listener])
