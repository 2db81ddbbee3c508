"""Who may ask, and how often: API keys from a file, and a rate for each client or key."""

import hashlib
import hmac
import mmap
import secrets
import struct
import time
from pathlib import Path

from seqtool.errors import SeqtoolError
from seqtool.serving.errors import ApiError

SHORTEST_KEY = 8
SLOTS, SLOT = 1 << 16, struct.Struct("d")
BURST = 10.0  # seconds of a client's rate that it may ask for at once


class ApiKeys:
    """The keys of a file, one on each line; what follows a # is a comment."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._keys: list[bytes] = []
        self.read()

    def read(self) -> None:
        """Read the file, again after it changed."""
        try:
            lines = self.file.read_text(encoding="utf-8").split("\n")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8"
            raise SeqtoolError(f"{self.file}: the API keys cannot be read ({reason}); check `api_keys`") from None
        keys = [key for line in lines if (key := line.partition("#")[0].strip())]
        if not keys:
            raise SeqtoolError(f"{self.file}: holds no API key; write one on each line")
        if short := [number for number, key in enumerate(keys, 1) if len(key) < SHORTEST_KEY]:
            raise SeqtoolError(
                f"{self.file}: key {short[0]} has fewer than {SHORTEST_KEY} characters; make longer ones"
            )
        self._keys = [_digest(key) for key in keys]

    def check(self, key: str) -> None:
        """Raise unless the key is one of the file; the time taken tells nothing about those that are."""
        if not key:
            raise ApiError(400, "Please contact the server operator to get an API key")
        given = _digest(key)
        matches = [hmac.compare_digest(known, given) for known in self._keys]
        if not any(matches):
            raise ApiError(403, "Invalid API key")


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "replace")).digest()


class RateLimit:
    """A limit of requests a minute for each client, shared by all processes that are forked from this one.

    For each client it keeps the time up to which its requests have used up its share (a leaky bucket, known as GCRA).
    Clients are hashed into a fixed number of slots, so that no number of clients takes more memory.
    """

    def __init__(self, per_minute: float) -> None:
        self.per_minute = per_minute
        self._table = mmap.mmap(-1, SLOTS * SLOT.size)
        self._salt = secrets.token_bytes(16)

    def check(self, client: str, cost: int = 1) -> None:
        """Count a client's request; raise if it asks too often."""
        if not self.per_minute:
            return
        interval = 60 / self.per_minute
        burst = max(BURST, interval)
        place = self._place(client)
        now = time.monotonic()
        used_until = max(now, SLOT.unpack_from(self._table, place)[0])
        if used_until - now > burst - interval:
            wait = used_until - now - (burst - interval)
            raise ApiError(429, f"Slowdown: {self.per_minute:g} per 1 minute", {"Retry-After": str(int(wait) + 1)})
        SLOT.pack_into(self._table, place, used_until + interval * cost)

    def _place(self, client: str) -> int:
        digest = hashlib.blake2b(client.encode("utf-8", "replace"), key=self._salt, digest_size=8).digest()
        return int.from_bytes(digest, "little") % SLOTS * SLOT.size
