"""Calls of a provider over HTTP. One is believed only where its channel's secret signed it; then it is evidence.

Whoever is not believed learns nothing but that, and writes nothing. A call that is said twice is said once.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from fencepost.core.callback import Callback, CallbackChannel, CallMalformed, Heard, Unverifiable
from fencepost.core.line import Level, Line
from fencepost.core.operation import DatabaseAway, OperatorError
from fencepost.core.tally import Count
from fencepost.ports import Clock
from fencepost.telemetry import Lines, Metrics, Numbers

DONE, REFUSED, AWAY = 204, 403, 503
CHANNELS_KEPT_SECONDS = 60.0
UNKNOWN_APART_SECONDS = (
    1.0  # whoever calls for channels that are not there asks no more of the database
)
RENEWALS_APART_SECONDS = 60.0  # and whoever forges signatures, of the stores of secrets
VERDICTS = {"A": "applied", "C": "conflict", "R": "repeated", "U": "unknown"}


Answer = TypeVar("Answer")


class Call(Protocol):
    """What a provider said, taken apart and not yet believed."""

    @property
    def channel(self) -> str: ...

    def signed(self, channel: CallbackChannel, secret: str) -> bool:
        """Raises `Unverifiable`."""
        ...

    def told(self) -> Callback | None: ...


class Ledger(Protocol):
    """The database. Raises `OperatorError` and nothing else; after `DatabaseAway` the next call dials anew."""

    def callback(self, callbacks: Sequence[Callback]) -> str: ...

    def callback_channels(self) -> Sequence[CallbackChannel]: ...


class Means(Struct, frozen=True, kw_only=True):
    """`read` raises `CallMalformed`; `secret` LookupError, and takes whether what was kept is refused."""

    ledger: Ledger
    read: Callable[[Mapping[str, Any]], Call]
    secret: Callable[[str, bool], str]
    clock: Clock
    lines: Lines
    metrics: Metrics


class Callbacks:
    """Kept between the calls of a sandbox: the channels, and when a secret was last read anew."""

    def __init__(self, means: Means) -> None:
        self._means = means
        self._channels: dict[str, CallbackChannel] = {}
        self._read_at = -math.inf
        self._renewed_at: dict[str, float] = {}

    def answer(self, event: Mapping[str, Any]) -> dict[str, int]:
        """The status to answer with. Raises nothing of the database's or the stores'."""
        try:
            return {"statusCode": self._heard(self._means.read(event))}
        except CallMalformed as wrong:
            return {"statusCode": self._refused(wrong.status, str(wrong))}
        except OperatorError as away:
            self._say(Level.ERROR, "callback_not_written", reason=str(away))
            return {"statusCode": AWAY}

    def _heard(self, call: Call) -> int:
        channel = self._channel(call.channel)
        if channel is None:
            return self._refused(REFUSED, "no such channel")
        try:
            believed = self._signed(call, channel)
        except (Unverifiable, LookupError) as missing:
            self._say(
                Level.ERROR, "callback_unverifiable", channel=channel.name, reason=str(missing)
            )
            return self._refused(REFUSED, "nobody can tell", channel=channel.name)
        if not believed:
            return self._refused(REFUSED, "not signed", channel=channel.name)
        return self._told(call.told(), channel.name)

    def _told(self, callback: Callback | None, channel: str) -> int:
        if callback is None:
            self._say(Level.INFO, "callback_done", channel=channel, verdict="no news")
            return DONE
        letter = self._insist(lambda: self._means.ledger.callback([callback]))
        if letter == "C":
            self._count({Count.CONFLICTS: 1})  # a second delivered alarms, whoever tells it
        if letter == "U":
            self._count({Heard.UNKNOWN: 1})
        self._say(
            Level.ERROR if letter == "C" else Level.INFO,
            "callback_done",
            channel=channel,
            notification=callback.held.id,
            fence=callback.held.fence,
            outcome=callback.outcome,
            verdict=VERDICTS.get(letter, letter),
        )
        return DONE

    def _channel(self, name: str) -> CallbackChannel | None:
        age = self._means.clock() - self._read_at
        known = name in self._channels
        if age > (CHANNELS_KEPT_SECONDS if known else UNKNOWN_APART_SECONDS):
            found = self._insist(self._means.ledger.callback_channels)
            self._channels = {each.name: each for each in found}
            self._read_at = self._means.clock()
        return self._channels.get(name)

    def _signed(self, call: Call, channel: CallbackChannel) -> bool:
        """A token that was changed is found out by the first call that it signed."""
        reference, now = channel.secret_reference, self._means.clock()
        if reference is None:
            raise Unverifiable("the channel has no secret")
        if call.signed(channel, self._means.secret(reference, False)):
            return True
        if now - self._renewed_at.get(channel.name, -math.inf) < RENEWALS_APART_SECONDS:
            return False
        self._renewed_at[channel.name] = now
        return call.signed(channel, self._means.secret(reference, True))

    def _insist(self, ask: Callable[[], Answer]) -> Answer:
        """A connection that ended while the sandbox was frozen is found out by using it. All words here are
        harmless when said twice."""
        try:
            return ask()
        except DatabaseAway:
            return ask()

    def _refused(self, status: int, why: str, **particulars: str) -> int:
        self._say(Level.WARNING, "callback_refused", status=status, reason=why, **particulars)
        self._count({Heard.REFUSED: 1})
        return status

    def _say(self, level: Level, action: str, **particulars: Any) -> None:
        known = {name: value for name, value in particulars.items() if value is not None}
        self._means.lines(Line(level, action, known))

    def _count(self, counts: Mapping[Count | Heard, int]) -> None:
        self._means.metrics(Numbers(counts=Counter(counts)), "")
