"""What a user chooses of the server: where it listens, whom it serves, and how much it takes at once."""

from dataclasses import dataclass
from pathlib import Path

from seqtool.errors import OptionError

MIB = 1 << 20


@dataclass(frozen=True, kw_only=True)
class ServeSettings:
    """How to serve; the limits protect the server from a client, and clients from each other."""

    host: str = "127.0.0.1"
    port: int = 5000
    workers: int = 1  # processes
    max_chars: int = 20_000  # in the texts of one request; 0: no limit
    max_texts: int = 1000  # in one request
    max_alternatives: int = 3
    max_body: int = 4 * MIB  # bytes of one request
    max_queue: int = 4096  # segments that wait for their translation, over all requests
    max_connections: int = 2000
    batch_wait: float = 0.002  # seconds that an idle worker waits for more segments
    cache_bytes: int = 64 * MIB
    rate: float = 0  # requests a minute for each client or key; 0: no limit
    api_keys: Path | None = None
    cors: str | None = None  # the origin that scripts of other pages may have
    header_timeout: float = 10.0  # seconds for a client to send the head of a request
    body_timeout: float = 30.0  # seconds to send its body, or to take an answer
    grace: float = 30.0  # seconds for requests to end after SIGTERM
    access_log: bool = True
    log_texts: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise OptionError(f"`port` must be from 0 (any that is free) to 65535, not {self.port}")
        for name in ("workers", "max_texts", "max_body", "max_queue", "max_connections"):
            if getattr(self, name) < 1:
                raise OptionError(f"`{name}` must be 1 or more, not {getattr(self, name)}")
        for name in ("max_chars", "max_alternatives", "cache_bytes", "rate", "batch_wait", "grace"):
            if getattr(self, name) < 0:
                raise OptionError(f"`{name}` must be 0 or more, not {getattr(self, name)}")
