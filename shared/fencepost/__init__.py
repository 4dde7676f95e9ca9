"""Fencepost: notifications from PostgreSQL through scheduled AWS Lambda runs, neither lost nor doubled.

For producers: `fencepost.enqueue(connection, channel, recipient, payload, …)` and `enqueue_many`, loaded at first use.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fencepost.store.new_notification import Enqueued, EnqueueRefused, NewNotification, Refused
    from fencepost.store.producer import enqueue, enqueue_many

__all__ = [
    "EnqueueRefused",
    "Enqueued",
    "NewNotification",
    "Refused",
    "enqueue",
    "enqueue_many",
]


def __getattr__(name: str) -> Any:
    """The worker imports this package too, and must not pay for what producers use."""
    if name not in __all__:
        raise AttributeError(f"module 'fencepost' has no attribute {name!r}")
    from importlib import import_module

    home = "producer" if name.startswith("enqueue") else "new_notification"
    value = getattr(import_module(f"fencepost.store.{home}"), name)
    globals()[name] = value
    return value
