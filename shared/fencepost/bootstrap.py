"""The only composition root: what is concrete is chosen here, once a process.

A worker keeps its loop and connections, so that a warm invocation dials nothing anew.
"""

import functools

from fencepost.senders.evidence_queue import EvidenceQueue
from fencepost.senders.registry import SenderRegistry
from fencepost.senders.transport import Transport
from fencepost.settings import Settings, read_secret, read_settings
from fencepost.store.postgres import PostgresStore
from fencepost.telemetry import Lines, Metrics, embedded_metrics, json_lines, no_metrics
from fencepost.worker import Parts, Worker

CONNECT_TIMEOUT_SECONDS = 5.0


def make_worker(settings: Settings, *, lines: Lines, metrics: Metrics = no_metrics) -> Worker:
    """A worker with everything real. Nothing is dialled before its first run."""
    store = PostgresStore(
        settings.database_url,
        connect_timeout_seconds=CONNECT_TIMEOUT_SECONDS,
        exchange_timeout_seconds=settings.timing.exchange_timeout_seconds,
    )
    url = settings.evidence_queue_url
    parts = Parts(
        store=store,
        senders=SenderRegistry(read_secret, Transport()),
        lines=lines,
        metrics=metrics,
        say_elsewhere=EvidenceQueue(url).send if url else None,
    )
    return Worker(settings, parts)


@functools.cache
def lambda_worker() -> Worker:
    """The worker of this sandbox: settings are read, and a bad one refused, at its first invocation."""
    return make_worker(read_settings(), lines=json_lines(), metrics=embedded_metrics(print))


def deliver(*, remaining_seconds: float | None, correlation: str) -> dict[str, object]:
    """One run of this sandbox's worker, summed up in plain JSON values."""
    worker = lambda_worker()
    try:
        summary = worker.deliver(remaining_seconds=remaining_seconds, correlation=correlation)
    finally:
        if worker.spoilt:
            lambda_worker.cache_clear()
    return summary.as_json()
