"""After a run: what became of messages that their provider accepted, and tells about later (core/receipt.py).

One cheap question finds nothing where no channel has such a provider. What is due is taken before it is asked about, so
that overlapping runs share the work, and a run that dies here loses nothing but one question of three.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import Any, Protocol

from msgspec import Struct, field

from fencepost.attempt import GRACE_SECONDS, guarded, place_of
from fencepost.core import reason
from fencepost.core.channel import Channel
from fencepost.core.line import Level, Line
from fencepost.core.notification import ChannelId
from fencepost.core.receipt import ReceiptDue, ReceiptTold, told
from fencepost.deadline import THAW_TURNS, Deadline
from fencepost.ports import Clock, Receipts, Senders, SenderUnavailable, StoreFailed

SECONDS_MAX = 5.0  # of a tick
SECONDS_MIN = 0.5  # a page that would have less is left to the next tick
QUESTION_SECONDS = 3.0
AT_ONCE = 6  # questions; Expo advises no more connections
PAGE = 600


class Book(Protocol):
    """Which receipts are due. Every method raises `StoreFailed` and nothing else."""

    async def take(self, channels: tuple[str, ...], limit: int) -> tuple[ReceiptDue, ...]:
        """Those to be asked about now, about so many; nobody else is given them. No names: all channels."""
        ...

    async def channels(self, ids: Sequence[ChannelId]) -> tuple[Channel, ...]: ...

    async def tell(self, told: Sequence[ReceiptTold]) -> int:
        """Write the answers down; how many were still waited for. Saying it again changes nothing."""
        ...


class Tally(Struct):
    """What one tick asked and heard."""

    taken: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    bug: str | None = None  # the last, where it was

    def line(self) -> Line:
        bad = self.answers["refused"] or self.answers["credentials"] or self.bug
        level = Level.WARNING if bad else Level.INFO
        silent = self.taken - self.answers.total()
        heard = {"asked": self.taken, **self.answers, "silent": silent}
        return Line(level, "receipts", heard | ({"bug": self.bug} if self.bug else {}))


def _kind(each: ReceiptTold) -> str:
    if each.gone is not None:
        return "unregistered"
    if each.pause_seconds is not None:
        return "credentials"
    match each.reason:
        case None:
            return "delivered"
        case reason.RECEIPT_UNKNOWN:
            return "unknown"
        case _:
            return "refused"


class AskForReceipts(Struct, frozen=True, kw_only=True):
    """What a worker asks for receipts with. `channels`: names; none: all."""

    book: Book
    senders: Senders
    channels: tuple[str, ...]
    clock: Clock

    async def until(self, end: float) -> Line | None:
        """Page after page, while there is time. None: there was nothing to ask. Whatever fails, nothing is lost by
        it: what was taken and not answered is asked about again, within a day."""
        end = min(end, self.clock() + SECONDS_MAX)
        tally = Tally()
        try:
            while end - self.clock() >= SECONDS_MIN and await self._page(end, tally):
                pass
        except (StoreFailed, TimeoutError) as failed:
            detail = str(failed) or "no answer"
            return Line(Level.WARNING, "receipts_not_asked", {"detail": detail})
        return tally.line() if tally.taken else None

    async def _page(self, end: float, tally: Tally) -> bool:
        """Whether there was one."""
        async with asyncio.timeout(end - self.clock()):
            page = await self.book.take(self.channels, PAGE)
            if not page:
                return False
            channels = await self.book.channels(sorted({due.channel for due in page}))
        tally.taken += len(page)
        answers = await self._answers(page, channels, end, tally)
        if answers:
            async with asyncio.timeout(max(end - self.clock(), SECONDS_MIN)):
                await self.book.tell(answers)
        tally.answers.update(_kind(each) for each in answers)
        return True

    async def _answers(
        self, page: Sequence[ReceiptDue], channels: Sequence[Channel], end: float, tally: Tally
    ) -> list[ReceiptTold]:
        broken, turns = partial(_broken, tally), asyncio.Semaphore(AT_ONCE)
        questions = []
        for channel in channels:
            due = [each for each in page if each.channel == channel.id]
            for sender in await guarded(self._senders(channel), broken):
                for start in range(0, len(due), sender.receipts_max):
                    batch = due[start : start + sender.receipts_max]
                    question = self._asked(sender, batch, end, turns)
                    questions.append(guarded(question, broken))
        return list(chain.from_iterable(await asyncio.gather(*questions)))

    async def _senders(self, channel: Channel) -> list[Receipts]:
        """The one to ask; none where the channel cannot be asked just now, or not any more."""
        try:
            sender = self.senders.sender(channel)
        except SenderUnavailable:
            return []
        return [sender] if isinstance(sender, Receipts) else []

    async def _asked(
        self, sender: Receipts, batch: Sequence[ReceiptDue], end: float, turns: asyncio.Semaphore
    ) -> list[ReceiptTold]:
        """One question. Raises what a sender should not, and `TimeoutError` where it stalls."""
        references = [due.reference for due in batch]
        async with turns:
            seconds = max(0.0, min(QUESTION_SECONDS, end - self.clock()))
            latest = asyncio.get_running_loop().time() + seconds + GRACE_SECONDS
            try:
                async with Deadline(latest, turns=2 * THAW_TURNS):
                    found = await sender.receipts(references, timeout_seconds=seconds)
            except asyncio.CancelledError:  # a stopped send says so in its own way
                found = None
        return [
            told(due, found[due.reference]) for due in batch if found and due.reference in found
        ]


def _broken(tally: Tally, bug: Exception) -> list[Any]:
    """A sender that breaks or stalls has no answer (G9); a bug is told by its place."""
    if not isinstance(bug, TimeoutError):
        tally.bug = place_of(bug)
    return []
