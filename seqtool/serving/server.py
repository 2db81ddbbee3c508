"""Runs the server: a socket, one process or several on it, and what signals mean to them."""

import asyncio
import contextlib
import ctypes
import ipaddress
import logging
import signal
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import uvicorn

from seqtool.errors import SeqtoolError
from seqtool.process import count_cores
from seqtool.serving.access_log import write_entry, write_error
from seqtool.serving.app import Api, make_app
from seqtool.serving.connections import make_protocol
from seqtool.serving.downloads import Downloads
from seqtool.serving.gate import Gate
from seqtool.serving.limits import ApiKeys, RateLimit
from seqtool.serving.metrics import Metrics, share_metrics
from seqtool.serving.models import Direction, ServedModels
from seqtool.serving.processes import WorkerLife, supervise
from seqtool.serving.settings import ServeSettings
from seqtool.translation.engines.settings import EngineSettings

Notify = Callable[[str], None]
LAST_ANSWERS = 1.0  # seconds after SIGTERM in which connections get to know that they end
TRIM_EVERY = 20  # seconds
KEEP_ALIVE = 30  # seconds that a connection may be idle


def serve(folders: Mapping[Direction, Path], engine: EngineSettings, settings: ServeSettings, notify: Notify) -> None:
    """Serve until a signal ends it."""
    keys = ApiKeys(settings.api_keys) if settings.api_keys else None
    rate = RateLimit(settings.rate)
    with (
        open_socket(settings) as listener,
        tempfile.TemporaryDirectory(prefix="seqtool-serve-", ignore_cleanup_errors=True) as folder,
    ):
        (Path(folder) / "downloads").mkdir()
        (Path(folder) / "metrics").mkdir()
        if settings.workers > 1:
            share_metrics(Path(folder) / "metrics")
            engine = replace(engine, threads=engine.threads or max(1, count_cores() // settings.workers))

        def work(life: WorkerLife) -> None:
            metrics = Metrics()
            models = ServedModels(folders, engine, settings, metrics, notify)
            models.open()
            downloads = Downloads(Path(folder) / "downloads")
            api = Api(models, settings, metrics=metrics, downloads=downloads, rate=rate, keys=keys)
            run_worker(api, listener, life)
            models.close()

        def announce() -> None:
            directions = ", ".join("-".join(pair) for pair in folders)
            notify(f"serving {directions} at {address_of(listener)}; {who_may_ask(listener, settings)}")

        if settings.workers > 1:
            supervise(work, settings.workers, announce, listener, notify)
        else:
            work(WorkerLife(announce))


def open_socket(settings: ServeSettings) -> socket.socket:
    """Listen where the settings say."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # With its protocol named, asyncio sends each part of an answer at once: else the second waits for 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise SeqtoolError(
            f"cannot listen on {settings.host} port {settings.port} ({error.strerror or error}); "
            "give another `host` or `port`"
        ) from None
    listener.listen(1024)
    return listener


def address_of(listener: socket.socket) -> str:
    """Return the address to open in a browser."""
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def who_may_ask(listener: socket.socket, settings: ServeSettings) -> str:
    """Return who can use a server that listens there."""
    if ipaddress.ip_address(listener.getsockname()[0]).is_loopback:
        return "only programs on this machine can reach it"
    if settings.api_keys:
        return "whoever can reach this machine and has an API key may use it"
    return "whoever can reach this machine may use it: `api_keys` asks for keys"


class PoliteServer(uvicorn.Server):
    """uvicorn without its own signal handlers."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to whoever runs the server."""
        yield


def run_worker(api: Api, listener: socket.socket, life: WorkerLife) -> None:
    """Answer requests in this process until it is to end."""
    settings = api.settings
    gate = Gate(make_app(api), settings, api.metrics)
    config = uvicorn.Config(
        gate,
        http=make_protocol(settings),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=max(1, round(settings.grace)),
    )
    log_as_json()
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(_run(PoliteServer(config), gate, api, listener, life))


async def _run(server: uvicorn.Server, gate: Gate, api: Api, listener: socket.socket, life: WorkerLife) -> None:
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()

    def start(work: Callable[[], "asyncio._CoroutineLike[None]"]) -> None:
        task = loop.create_task(work())
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def end() -> None:
        gate.is_ending = True
        deadline = loop.time() + LAST_ANSWERS
        while server.server_state.connections and loop.time() < deadline:
            await asyncio.sleep(0.02)
        server.should_exit = True

    async def reload() -> None:
        if api.keys is not None:
            try:
                api.keys.read()
            except SeqtoolError as error:
                write_entry(warning=f"the former API keys are kept: {error}")
        await api.models.reload()

    async def load_detector() -> None:
        await asyncio.to_thread(api.detector.load)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, start, end)
    loop.add_signal_handler(signal.SIGHUP, start, reload)
    if (parent := life.parent) is not None:

        def end_with_parent() -> None:
            loop.remove_reader(parent)
            start(end)

        loop.add_reader(parent, end_with_parent)
    start(load_detector)
    start(give_memory_back)
    life.ready()
    await server.serve(sockets=[listener])


async def give_memory_back() -> None:
    """Return to the system, now and then, what glibc keeps of the memory that large requests freed."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # other C libraries have none
    while trim is not None:
        await asyncio.sleep(TRIM_EVERY)
        await asyncio.to_thread(trim, 0)


def log_as_json() -> None:
    """Write what uvicorn has to say in the form of the access log."""
    logger = logging.getLogger("uvicorn.error")
    logger.handlers = [JsonHandler(logging.WARNING)]
    logger.propagate = False
    logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # what is wrong with a form its client learns


class JsonHandler(logging.Handler):
    """Writes what a library logs as an entry of the access log."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write an entry; of an exception without its message, which may hold a text."""
        if record.exc_info and record.exc_info[1] is not None:
            write_error(record.exc_info[1])
        else:
            write_entry(warning=record.getMessage())
