"""What the server counts, for Prometheus; several processes count together, in files of one folder."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # read by prometheus_client as it is imported
LATENCIES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
SIZES = (1, 2, 4, 6, 8, 12, 16, 24, 32)


def share_metrics(folder: Path) -> None:
    """Let this process and those forked from it count together; before any other use of this module."""
    os.environ[FOLDER] = str(folder)


class Metrics:
    """The counters of this process."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

        disable_created_metrics()  # type: ignore[no-untyped-call]

        self.registry = CollectorRegistry()
        use: dict[str, Any] = {"registry": self.registry}
        self.requests = Counter("seqtool_requests", "Requests by endpoint and status", ["endpoint", "status"], **use)
        self.seconds = Histogram(
            "seqtool_request_seconds",
            "Time from a request's head to the end of its answer",
            ["endpoint"],
            buckets=LATENCIES,
            **use,
        )
        self.characters = Counter("seqtool_characters", "Characters of the texts to translate", **use)
        self.waiting = Gauge(
            "seqtool_waiting_segments", "Segments that wait for a batch", multiprocess_mode="livesum", **use
        )
        self.batches = Histogram("seqtool_batch_segments", "Segments in a batch", buckets=SIZES, **use)
        self.cache_hits = Counter("seqtool_cache_hits", "Segments whose translation was remembered", **use)
        self.cache_misses = Counter("seqtool_cache_misses", "Segments that had to be translated", **use)
        self.cancelled = Counter("seqtool_cancelled_requests", "Requests whose client left before the answer", **use)

    def text(self, count_waiting: Callable[[], int]) -> tuple[bytes, str]:
        """Return the metrics, of all processes, in Prometheus' text format, and the type of that."""
        from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
        from prometheus_client.multiprocess import MultiProcessCollector

        self.waiting.set(count_waiting())
        registry = self.registry
        if FOLDER in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry), CONTENT_TYPE_LATEST


def forget_process(number: int) -> None:
    """Leave a process that has ended out of what is true only of living ones."""
    from prometheus_client.multiprocess import mark_process_dead

    mark_process_dead(number)  # type: ignore[no-untyped-call]
