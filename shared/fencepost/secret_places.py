"""Where a channel's secret reference leads, and to what: on this machine, or to a store of AWS that keeps it for us.

    env:NAME · file:PATH · secretsmanager:NAME · ssm:NAME

Behind the last two, `#KEY` takes one value out of a JSON object: one secret can hold those of many channels.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping

from fencepost.ports import AccessUnavailable, Clock
from fencepost.settings import SecretMissing

Fetch = Callable[[str, float, bool], str]  # name, seconds it may be old, whether anew
SLOW_SECONDS = 1.0  # a refusal comes sooner, but for the first: its client is made then
SLOW_IN_A_ROW = 2  # a store is away, and a run's channels must not wait for it in turn:
AWAY_SECONDS = 30.0  # so long it is not asked


class SecretPlaces:
    """`local` reads env: and file:; `stores` fetch the others, by the reference's kind.

    A store keeps what it fetched for `max_age_seconds`; its `Fetch` raises `AccessUnavailable`.
    """

    def __init__(
        self,
        *,
        local: Callable[[str], str],
        stores: Mapping[str, Fetch],
        max_age_seconds: float,
        clock: Clock = time.monotonic,
    ) -> None:
        self._clock = clock
        self._away_until: dict[str, float] = {}
        self._slow: Counter[str] = Counter()  # failures in a row
        self._local = local
        self._stores = stores
        self._max_age_seconds = max_age_seconds

    def read(self, reference: str) -> str:
        """The secret. Raises `SecretMissing`: one line that repeats no secret."""
        return self._read(reference, anew=False)

    def read_anew(self, reference: str) -> str:
        """What was kept of it is refused."""
        return self._read(reference, anew=True)

    def _read(self, reference: str, *, anew: bool) -> str:
        kind, _, place = reference.partition(":")
        fetch = self._stores.get(kind)
        if fetch is None:
            return self._local(reference)
        name, _, key = place.partition("#")
        try:
            text = self._fetched(kind, fetch, name, anew)
        except AccessUnavailable as away:
            raise SecretMissing(f"{kind}:{name}: {' '.join(str(away).split())}") from None
        secret = (_value(text, key, reference) if key else text).strip()
        if not secret:
            raise SecretMissing(f"{reference} is empty")
        return secret

    def _fetched(self, kind: str, fetch: Fetch, name: str, anew: bool) -> str:
        began = self._clock()
        if began < self._away_until.get(kind, began):
            raise AccessUnavailable("the store did not answer a moment ago")
        slow = 0
        try:
            return fetch(name, self._max_age_seconds, anew)
        except AccessUnavailable:
            if (now := self._clock()) - began >= SLOW_SECONDS:
                slow = self._slow[kind] + 1
            if slow >= SLOW_IN_A_ROW:
                self._away_until[kind] = now + AWAY_SECONDS
            raise
        finally:
            self._slow[kind] = slow


def _value(text: str, key: str, reference: str) -> str:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise SecretMissing(f"{reference}: what is there is no JSON object") from None
    value = found.get(key) if isinstance(found, dict) else None
    if isinstance(value, dict):
        return json.dumps(value)  # a service account's key, say: JSON inside
    if not isinstance(value, str):
        raise SecretMissing(f"{reference}: there is no such text in it")
    return value
