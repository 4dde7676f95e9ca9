"""One attempt at one row, from message to meaning: whatever a sender does, one `Replied` comes of it (G9)."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from fencepost.core.exchange import Facts
from fencepost.core.notification import Claimed
from fencepost.core.outcome import Delivered, Failed, NotSent, Outcome, Uncertain
from fencepost.core.repeat import refused_repeat
from fencepost.core.reply import Phase, Reply
from fencepost.core.step import Asked, Replied
from fencepost.deadline import THAW_TURNS, Deadline
from fencepost.ports import Clock, Prepared, SendCancelled, Sender

GRACE_SECONDS = 0.5  # a sender keeps its own deadline; this much later it is cut off

Result = TypeVar("Result")


async def guarded(work: Awaitable[Result], broken: Callable[[Exception], Result]) -> Result:
    """The one guard around one item: whatever breaks in a sender stays with that item."""
    try:
        return await work
    except Exception as bug:
        return broken(bug)


async def attempt(
    sender: Sender, claimed: Claimed, *, timeout_seconds: float, clock: Clock
) -> Replied:
    """Send it once. Every end has a meaning, also a stop from outside and a bug of the sender."""
    one = Attempt(sender, claimed)
    began = clock()
    outcome = await guarded(one.outcome(timeout_seconds), one.broken)
    return Replied(claimed.held, outcome, one.facts(outcome, clock() - began))


def never_began(claimed: Claimed) -> Replied:
    """It was stopped while it waited for its turn."""
    return Replied(claimed.held, NotSent("stopped before it began"), Facts(phase=Phase.NOT_SENT))


async def ask(sender: Sender, claimed: Claimed, *, timeout_seconds: float) -> Asked:
    """Ask the provider about an earlier attempt. A sender that breaks, stalls or is stopped could not say."""
    answer = await guarded(_asked(sender, claimed, timeout_seconds), _broken_asking)
    return Asked(claimed.held, answer)


def _broken_asking(bug: Exception) -> Outcome | None:
    return Uncertain(f"bug in the sender: {place_of(bug)}")


async def _asked(sender: Sender, claimed: Claimed, timeout_seconds: float) -> Outcome | None:
    try:
        async with _guard(timeout_seconds):
            return await sender.ask(claimed, timeout_seconds=timeout_seconds)
    except asyncio.CancelledError:
        return Uncertain("stopped while its provider was asked")
    except TimeoutError:
        return Uncertain("no answer in time")


def _guard(timeout_seconds: float) -> Deadline:
    when = asyncio.get_running_loop().time() + timeout_seconds + GRACE_SECONDS
    return Deadline(when, turns=2 * THAW_TURNS)  # the sender's own goes first: it knows more


class Attempt:
    """What is known of one attempt while it runs: how far it got, what left, what came back."""

    def __init__(self, sender: Sender, claimed: Claimed) -> None:
        self.sender = sender
        self.claimed = claimed
        self.prepared: Prepared | None = None
        self.reply: Reply | None = None
        self.phase = Phase.NOT_SENT

    async def outcome(self, timeout_seconds: float) -> Outcome:
        prepared = self.sender.prepare(self.claimed)
        if not isinstance(prepared, Prepared):
            return prepared
        self.prepared = prepared
        if refused := refused_repeat(self.claimed, prepared.digest, self.sender.facility):
            return refused
        return await self._sent(prepared, timeout_seconds)

    async def _sent(self, prepared: Prepared, timeout_seconds: float) -> Outcome:
        self.phase = Phase.UNCERTAIN  # from here on only the sender knows better
        try:
            async with _guard(timeout_seconds):
                reply = await self._reply(prepared, timeout_seconds)
        except asyncio.CancelledError:  # a bare one says nothing of how far it got: doubt, not luck
            return Uncertain("stopped while it was being sent")
        except TimeoutError:
            return Uncertain("the sender outlived its timeout")
        self.reply, self.phase = reply, reply.phase
        return self.sender.classify(self.claimed, reply)

    async def _reply(self, prepared: Prepared, timeout_seconds: float) -> Reply:
        try:
            return await self.sender.send(self.claimed, prepared, timeout_seconds=timeout_seconds)
        except SendCancelled as stopped:
            return stopped.reply

    def broken(self, bug: Exception) -> Outcome:
        """Before anything left, an attempt is spent, so that it ends; afterwards nobody knows."""
        why = f"bug in the sender: {place_of(bug)}"
        return Failed(why) if self.phase is Phase.NOT_SENT else Uncertain(why)

    def facts(self, outcome: Outcome, took_seconds: float) -> Facts:
        reply, prepared = self.reply, self.prepared
        return Facts(
            phase=self.phase if prepared else None,
            status=reply.status if reply else None,
            reference=outcome.reference if isinstance(outcome, Delivered) else None,
            digest=prepared.digest if prepared else None,
            took_ms=round(took_seconds * 1000),
            detail=None if isinstance(outcome, Delivered) else outcome.reason,
        )


def place_of(bug: BaseException) -> str:
    """The kind of error and where it was raised. Its text stays out: it may quote a payload or a secret (G10)."""
    last = bug.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return f"{type(bug).__name__}{_line(last)}"


def _line(frame: TracebackType | None) -> str:
    return f" at {Path(frame.tb_frame.f_code.co_filename).name}:{frame.tb_lineno}" if frame else ""
