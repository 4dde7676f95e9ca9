"""A message is stored and its answer lost: what three ticks make of it, by the channel's policy.

Everything real but the database: servers on sockets, the senders, and the core's own decisions between them.
"""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

import msgspec
import pytest
from msgspec.structs import replace

from fencepost.attempt import ask, attempt
from fencepost.core.asking import AskLater, after_asking
from fencepost.core.channel import Channel
from fencepost.core.doubt import AskProvider, CloseUnsent, SendIt, advise
from fencepost.core.exchange import Facts, Word
from fencepost.core.notification import AttemptOutcome, Claimed, Fence, Kind, OnUncertain
from fencepost.core.transition import Sent, transition
from fencepost.ports import Sender
from fencepost.senders.slack import Slack, SlackSettings
from fencepost.senders.slack_webhook import SlackWebhook
from fencepost.senders.smtp import Smtp
from fencepost.senders.smtp_settings import SmtpSettings
from fencepost.senders.telegram import Telegram, TelegramSettings
from fencepost.senders.twilio import Twilio
from fencepost.senders.twilio_settings import TwilioSettings
from tests.senders.claimed import claimed
from tests.senders.mail_server import says, scripted
from tests.senders.peers import Peer
from tests.senders.slack_server import TOKEN, SlackServer
from tests.senders.stage import HOST, never, stage
from tests.senders.test_registry import CHANNEL
from tests.senders.twilio_server import ACCOUNT, SECRET, TwilioServer

NOW = 1_700_000_000.0
TICK_SECONDS = 300.0


@dataclass
class Lossy:
    """A sender, and how many messages its provider has. The first answer is lost."""

    sender: Sender
    recipient: str
    stored: Callable[[], int]


@asynccontextmanager
async def slack() -> AsyncIterator[Lossy]:
    async with stage() as on:
        server = SlackServer(now=NOW, cuts=1)
        await on.serve(server)
        settings = SlackSettings(endpoint=f"https://{HOST}/api")
        sender = Slack(on.transport, settings, TOKEN, now=lambda: NOW + TICK_SECONDS)
        yield Lossy(sender, "C0123ABC", lambda: len(server.messages))


@asynccontextmanager
async def twilio() -> AsyncIterator[Lossy]:
    async with stage() as on:
        server = TwilioServer(now=NOW, cuts=1)
        await on.serve(server)
        known = {"account_sid": ACCOUNT, "from": "+14155550123", "endpoint": f"https://{HOST}"}
        settings = msgspec.convert(known, TwilioSettings)
        sender = Twilio(
            on.transport, settings, SECRET, channel="sms", now=lambda: NOW + TICK_SECONDS
        )
        yield Lossy(sender, "+14155550100", lambda: len(server.messages))


async def stores_and_cuts(peer: Peer) -> None:
    await peer.request()
    peer.reset()
    await never()


@asynccontextmanager
async def telegram() -> AsyncIterator[Lossy]:
    async with stage() as on:
        server = await on.serve(stores_and_cuts)
        sender = Telegram(on.transport, TelegramSettings(endpoint=f"https://{HOST}"), "1:a")
        yield Lossy(sender, "42", lambda: len(server.log.requests))


@asynccontextmanager
async def slack_webhook() -> AsyncIterator[Lossy]:
    async with stage() as on:
        server = await on.serve(stores_and_cuts)
        sender = SlackWebhook(on.transport, f"https://{HOST}/services/x")
        yield Lossy(sender, "ops", lambda: len(server.log.requests))


@asynccontextmanager
async def smtp() -> AsyncIterator[Lossy]:
    async with stage(), scripted(says(dot="cut")) as told:
        known = {"host": "127.0.0.1", "port": told.port, "security": "none", "from": "a@b.example"}
        sender = Smtp(msgspec.convert(known, SmtpSettings), None)
        yield Lossy(sender, "x@y.example", lambda: len(told.letters))


async def tick(lossy: Lossy, row: Claimed, channel: Channel) -> Word | None:
    """One claim of the row, to the word that settles it. None: given back unsent, to be asked about later."""
    sender = lossy.sender
    known = Sent(claimed=row, channel=channel, facility=sender.facility, facts=Facts(), roll=0.5)
    advice = advise(row, channel, sender.facility)
    if isinstance(advice, AskProvider):
        asked = await ask(sender, row, timeout_seconds=10)
        answered = after_asking(known, asked.outcome)
        if isinstance(answered, AskLater):
            return None
        advice = answered
    if isinstance(advice, CloseUnsent):
        return advice.word
    assert isinstance(advice, SendIt)
    replied = await attempt(sender, row, timeout_seconds=10, clock=time.monotonic)
    return transition(replace(known, facts=replied.facts), replied.outcome).word


async def three_ticks(lossy: Lossy, policy: OnUncertain) -> list[Word]:
    """The words said, up to the one that closes."""
    channel = replace(CHANNEL, on_uncertain=policy)
    row, words = claimed(recipient=lossy.recipient), list[Word]()
    for number in range(3):
        word = await tick(lossy, row, channel)
        words += [word] if word is not None else []
        if word is not None and word.kind is not None:
            break
        doubt = row.doubt or (word is not None and word.outcome is AttemptOutcome.UNCERTAIN)
        age = TICK_SECONDS * (number + 1)
        row = replace(
            row,
            fence=Fence(row.fence + 1),
            attempts=row.attempts + 1,
            doubt=doubt,
            age_seconds=age,
            first_attempt_age_seconds=age if doubt else None,
            doubt_age_seconds=age if doubt else None,
        )
    return words


@pytest.mark.parametrize("provider", [slack, slack_webhook, twilio, telegram, smtp])
async def test_held_it_is_sent_once_and_closed_as_uncertain(
    provider: Callable[[], AbstractAsyncContextManager[Lossy]],
) -> None:
    async with provider() as lossy:
        words = await three_ticks(lossy, OnUncertain.HOLD)
        assert [word.kind for word in words] == [Kind.UNCERTAIN]
        assert lossy.stored() == 1


@pytest.mark.parametrize("provider", [slack, twilio])
async def test_asked_about_it_is_sent_once_and_closed_as_delivered(
    provider: Callable[[], AbstractAsyncContextManager[Lossy]],
) -> None:
    async with provider() as lossy:
        words = await three_ticks(lossy, OnUncertain.RECONCILE)
        assert [word.kind for word in words] == [None, Kind.DELIVERED]
        assert lossy.stored() == 1


@pytest.mark.parametrize("provider", [slack_webhook, telegram, smtp])
async def test_resent_it_arrives_again_because_somebody_chose_that(
    provider: Callable[[], AbstractAsyncContextManager[Lossy]],
) -> None:
    async with provider() as lossy:
        words = await three_ticks(lossy, OnUncertain.RESEND)
        assert [word.outcome for word in words] == [AttemptOutcome.UNCERTAIN] * 3
        assert lossy.stored() == 3
