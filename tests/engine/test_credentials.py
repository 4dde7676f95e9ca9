"""Refused credentials are read anew before their channel pauses; what was refused with the old ones is not sent."""

import asyncio
from dataclasses import dataclass, field

from fencepost.core.exchange import NO_FACTS
from fencepost.core.notification import ChannelId
from fencepost.core.outcome import CredentialFailure, Delivered, NotSent, Outcome
from fencepost.core.reply import Phase, Reply
from fencepost.core.step import Command, Event, Finish, Replied, Send, Started
from fencepost.credentials import Credentials
from fencepost.ports import Sender
from tests.engine.fakes import (
    BOUND_SECONDS,
    CHANNEL,
    FakeSender,
    FakeSenders,
    Script,
    Stage,
    row,
)

REFUSED = Reply(phase=Phase.ANSWERED, status=401)


def refuses(reply: Reply) -> Outcome:
    return Delivered() if reply.status == 200 else CredentialFailure("answered 401")


def old(together: int = 1) -> FakeSender:
    """Refuses so many at once."""
    flying: list[object] = []
    all_there = asyncio.Event()

    async def refused(claimed: object) -> Reply:
        flying.append(claimed)
        if len(flying) == together:
            all_there.set()
        await all_there.wait()
        return REFUSED

    return FakeSender(on_send=refused, on_classify=refuses)


@dataclass
class Renewing(FakeSenders):
    """Senders that may have others at hand when asked."""

    others: Sender | None = None
    asked: int = 0
    was_asked: asyncio.Event = field(default_factory=asyncio.Event)
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)

    async def renewed(self, channel: ChannelId) -> Sender | None:
        self.asked += 1
        self.was_asked.set()
        await self.may_answer.wait()
        return self.others


def play(senders: Renewing, count: int, then: int) -> list[Replied]:
    """So many sends at once, and when the last has come back so many more."""
    stage = Stage(sender=old(count), senders=senders)

    def answer(event: Event) -> list[Command]:
        match event:
            case Started():
                return [Send(row(n), 10.0) for n in range(1, count + 1)]
            case Replied() if len(machine.replies) == count:
                return [Send(row(n), 10.0) for n in range(100, 100 + then)] or [Finish()]
            case Replied() if len(machine.replies) == count + then:
                return [Finish()]
            case _:
                return []

    machine = Script(answer)

    async def whole() -> None:
        senders.may_answer.set()
        async with asyncio.timeout(BOUND_SECONDS):
            await stage.drive(machine).to_the_end(Started((), {}))

    asyncio.run(whole())
    return machine.replies


def test_many_refused_at_once_ask_once_and_the_next_go_out_with_the_new_ones() -> None:
    fresh = FakeSender()
    senders = Renewing(others=fresh)
    replies = play(senders, 20, 2)
    first, later = replies[:20], replies[20:]
    assert {reply.outcome for reply in first} == {
        NotSent("the credentials were read anew", blameless=True)
    }
    assert {type(reply.outcome) for reply in later} == {Delivered}
    assert (senders.asked, len(fresh.begun)) == (1, 2)


def test_where_there_are_no_others_the_channel_pauses() -> None:
    senders = Renewing(others=None)
    replies = play(senders, 2, 0)
    assert {type(reply.outcome) for reply in replies} == {CredentialFailure}


def test_a_kind_that_breaks_over_new_credentials_leaves_the_refusal_as_it_is() -> None:
    """A package of somebody else's may raise anything (G9)."""

    @dataclass
    class Breaking(Renewing):
        async def renewed(self, channel: ChannelId) -> Sender | None:
            raise KeyError("hunter2")

    replies = play(Breaking(), 2, 0)
    assert {type(reply.outcome) for reply in replies} == {CredentialFailure}


def test_senders_that_cannot_renew_are_believed() -> None:
    async def judged() -> Replied:
        mine = old()
        credentials = Credentials(FakeSenders(), {CHANNEL: mine})
        refused = Replied(row().held, CredentialFailure("401"), NO_FACTS)
        return await credentials.judge(CHANNEL, mine, refused)

    assert isinstance(asyncio.run(judged()).outcome, CredentialFailure)


def test_one_that_is_stopped_while_it_asks_is_what_the_provider_said() -> None:
    async def stopped() -> Replied:
        mine, senders = old(), Renewing(others=FakeSender())
        credentials = Credentials(senders, {CHANNEL: mine})
        refused = Replied(row().held, CredentialFailure("401"), NO_FACTS)
        judging = asyncio.create_task(credentials.judge(CHANNEL, mine, refused))
        await senders.was_asked.wait()
        judging.cancel()
        return await judging

    assert isinstance(asyncio.run(stopped()).outcome, CredentialFailure)
