"""Counts and times of requests of all worker processes, in the format of Prometheus."""

import os

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client import generate_latest as text_of
from prometheus_client.multiprocess import MultiProcessCollector

from qkvsearch.web.settings import METRICS

MEDIA_TYPE = CONTENT_TYPE_LATEST
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class ServerMetrics:
    """Metrics of this process, stored beside those of the others."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        labels = ("route", "method", "status")
        self._requests = Counter(
            "qkvsearch_requests",
            "Requests answered, by route and status.",
            labels,
            registry=registry,
        )
        self._seconds = Histogram(
            "qkvsearch_request_seconds",
            "From a request's first line to its last byte.",
            ("route",),
            registry=registry,
            buckets=SECONDS,
        )
        self._running = Gauge(
            "qkvsearch_requests_running",
            "Requests that are being answered.",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self._registry = registry

    def begin(self) -> None:
        """Count a request that begins."""
        self._running.inc()

    def end(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self._running.dec()
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Return the metrics of all workers, where they share a folder."""
        if METRICS not in os.environ:
            return text_of(self._registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)
        return text_of(together)
