"""The Telegram sender: a bot's message, and what the Bot API's answers mean."""

import asyncio
import json
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from fencepost.core.notification import Claimed
from fencepost.core.outcome import (
    CredentialFailure,
    Delivered,
    Failed,
    NotSent,
    Outcome,
    Rejected,
    Throttled,
    Uncertain,
    Unregistered,
)
from fencepost.core.reply import Phase, Reply
from fencepost.ports import Prepared, SendCancelled
from fencepost.senders.telegram import MOVED_MAX, Telegram, TelegramSettings, telegram
from fencepost.senders.telegram_answer import meaning_of
from tests.senders.claimed import claimed
from tests.senders.peers import Asked, Peer
from tests.senders.stage import HOST, Stage, never, stage, until
from tests.senders.test_registry import CHANNEL

TOKEN = "123456:AAsecret_-x"
ROW = claimed(recipient="-100200")


class BotServer:
    """The Bot API for one bot. `moved`: groups that have become supergroups. `stores_and`: what follows a message."""

    def __init__(self, *, moved: dict[int, int] | None = None, silent: bool = False) -> None:
        self.moved = moved or {}
        self.silent = silent
        self.messages: list[dict[str, Any]] = []

    async def __call__(self, peer: Peer) -> None:
        while True:
            asked = await peer.request()
            status, answer = self._answered(asked)
            if status == 200 and self.silent:
                await never()
            await peer.answer(asked, status, json.dumps(answer).encode())

    def _answered(self, asked: Asked) -> tuple[int, dict[str, Any]]:
        if asked.headers[":path"] != f"/bot{TOKEN}/sendMessage":
            return 401, refusal(401, "Unauthorized")
        assert asked.headers["content-type"] == "application/json"
        message = json.loads(asked.body)
        new = self.moved.get(message["chat_id"])
        if new is not None:
            told = "Bad Request: group chat was upgraded to a supergroup chat"
            return 400, refusal(400, told, migrate_to_chat_id=new)
        self.messages.append(message)
        return 200, {"ok": True, "result": {"message_id": 41 + len(self.messages)}}


def refusal(code: int, description: str, **parameters: Any) -> dict[str, Any]:
    told = {"ok": False, "error_code": code, "description": description}
    return told | ({"parameters": parameters} if parameters else {})


def sender(on: Stage, *, token: str = TOKEN, **settings: Any) -> Telegram:
    return Telegram(on.transport, TelegramSettings(endpoint=f"https://{HOST}", **settings), token)


def prepared(of: Telegram, row: Claimed = ROW) -> Prepared:
    message = of.prepare(row)
    assert isinstance(message, Prepared)
    return message


async def sent(of: Telegram, row: Claimed = ROW) -> Outcome:
    return of.classify(row, await of.send(row, prepared(of, row), timeout_seconds=10))


# --- over a real socket ---


@pytest.mark.parametrize("protocol", ["h1", "h2"])
async def test_it_goes_to_the_chat(protocol: str) -> None:
    async with stage() as on:
        server = BotServer()
        await on.serve(server, protocol=protocol)
        assert await sent(sender(on)) == Delivered("42")
        assert server.messages == [
            {"chat_id": -100200, "text": "Your order has left\nIt comes on Tuesday."}
        ]
        await sent(sender(on), replace(ROW, recipient="@news"))
        assert server.messages[1]["chat_id"] == "@news"


async def test_a_wrong_token_is_the_channels_fault() -> None:
    async with stage() as on:
        await on.serve(BotServer())
        assert isinstance(await sent(sender(on, token="1:other")), CredentialFailure)


async def test_what_was_stored_before_the_provider_stalled_stays_in_doubt_and_is_not_repeated() -> (
    None
):
    async with stage() as on:
        server = BotServer(silent=True)
        listening = await on.serve(server)
        bot = sender(on)
        sending = asyncio.create_task(bot.send(ROW, prepared(bot), timeout_seconds=60))
        await until(lambda: bool(server.messages), "it is stored")
        sending.cancel()
        with pytest.raises(SendCancelled) as stopped:
            await sending
        assert isinstance(bot.classify(ROW, stopped.value.reply), Uncertain)
        assert len(server.messages) == listening.log.connections == 1
        assert bot.facility.nothing
        assert await bot.ask(ROW, timeout_seconds=10) is None


async def test_a_group_that_moved_gets_it_at_its_new_id_by_the_next_attempt() -> None:
    """One request an attempt: the first was refused, and nothing was sent."""
    async with stage() as on:
        server = BotServer(moved={-100200: -1009000200})
        listening = await on.serve(server)
        bot = sender(on)
        assert isinstance(await sent(bot), NotSent)
        assert not server.messages
        assert len(listening.log.requests) == 1
        assert await sent(bot, replace(ROW, attempts=2)) == Delivered("42")
        assert [one["chat_id"] for one in server.messages] == [-1009000200]
        assert prepared(bot).digest == prepared(sender(on)).digest  # the same notification still


async def test_moved_groups_do_not_pile_up() -> None:
    async with stage() as on:
        bot = sender(on)
        for number in range(MOVED_MAX + 5):
            bot._remember(str(number), number)
        assert len(bot._moved) == MOVED_MAX
        assert "4" not in bot._moved


# --- the message ---


async def test_a_raw_block_is_laid_over_it_but_not_the_chat() -> None:
    async with stage() as on:
        server = BotServer()
        await on.serve(server)
        raw = {"telegram": {"text": "<b>x</b>", "parse_mode": "HTML", "chat_id": 1}}
        await sent(sender(on), replace(ROW, payload={"body": "x", "raw": raw}))
        assert server.messages == [{"chat_id": -100200, "text": "<b>x</b>", "parse_mode": "HTML"}]


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ({"badge": 1}, "nothing to show: no title, body, url or raw block with text"),
        ({"body": "x" * 4097}, "text has 4097 characters, Telegram takes 4096"),
        ({"body": "\ud800"}, "payload has no JSON form"),
    ],
)
async def test_what_telegram_would_refuse_is_rejected_before(
    payload: dict[str, Any], reason: str
) -> None:
    async with stage() as on:
        assert sender(on).prepare(replace(ROW, payload=payload)) == Rejected(reason)


async def test_text_is_never_cut_and_markup_is_counted_by_telegram() -> None:
    async with stage() as on:
        server = BotServer()
        await on.serve(server)
        await sent(sender(on), replace(ROW, payload={"body": "😀" * 4096}))
        assert server.messages[0]["text"] == "😀" * 4096
        marked = {"raw": {"telegram": {"text": "<b>x</b>" * 600, "parse_mode": "HTML"}}}
        assert isinstance(sender(on).prepare(replace(ROW, payload=marked)), Prepared)


async def test_nothing_private_is_shown() -> None:
    async with stage() as on:
        bot = sender(on)
        shown = repr(bot) + str(await bot.send(ROW, prepared(bot), timeout_seconds=1))
        for secret in (TOKEN, "-100200", "Tuesday"):
            assert secret not in shown


# --- the table (providers: Telegram) ---


def answered(status: int, description: str = "", **parameters: Any) -> Reply:
    body = json.dumps(refusal(status, description, **parameters)).encode()
    return Reply(phase=Phase.ANSWERED, status=status, body=body)


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (answered(429, "Too Many Requests", retry_after=34), Throttled("answered 429", 34.0)),
        (answered(429, "Too Many Requests", retry_after=-3), Throttled("answered 429")),
        (answered(429), Throttled("answered 429")),
        (
            answered(403, "Forbidden: bot was blocked by the user"),
            Unregistered("answered 403: bot was blocked by the user"),
        ),
        (
            answered(403, "Forbidden: user is deactivated"),
            Unregistered("answered 403: user is deactivated"),
        ),
        (
            answered(403, "Forbidden: bot was kicked from the supergroup chat"),
            Unregistered("answered 403: bot was kicked"),
        ),
        (
            answered(403, "Forbidden: the group chat was deleted"),
            Unregistered("answered 403: the group chat was deleted"),
        ),
        (
            answered(403, "Forbidden: bot is not a member of the channel chat"),
            Unregistered("answered 403: bot is not a member", guarded=True),
        ),
        (
            answered(403, "Forbidden: bot can't initiate conversation with a user"),
            Unregistered("answered 403: bot can't initiate conversation", guarded=True),
        ),
        (
            answered(400, "Bad Request: chat not found"),
            Unregistered("answered 400: chat not found", guarded=True),
        ),
        (
            answered(400, "Bad Request: group chat was upgraded", migrate_to_chat_id=-1001),
            NotSent(
                "the group has become a supergroup: its new id is used from now on", blameless=True
            ),
        ),
        (answered(400, "Bad Request: message is too long"), Rejected("answered 400")),
        (answered(400, "Bad Request: can't parse entities"), Rejected("answered 400")),
        (answered(403, "Forbidden: bots can't send messages to bots"), Rejected("answered 403")),
        (
            answered(401, "Unauthorized"),
            CredentialFailure("answered 401: the bot's token or the endpoint is wrong"),
        ),
        (
            answered(404, "Not Found"),
            CredentialFailure("answered 404: the bot's token or the endpoint is wrong"),
        ),
        (answered(409, "Conflict"), Failed("answered 409")),
        (answered(500, "Internal Server Error"), Uncertain("answered 500")),
        (answered(502), Uncertain("answered 502")),
        (Reply(phase=Phase.ANSWERED, status=200, body=b"", reason="body_lost"), Delivered()),
        (
            Reply(phase=Phase.ANSWERED, status=200, body=b"<html>"),
            Uncertain("answered 200, but not as Telegram does"),
        ),
        (Reply(phase=Phase.ANSWERED, status=504, body=b"<html>"), Uncertain("answered 504")),
        (Reply(phase=Phase.NOT_SENT, reason="connect"), NotSent("connect")),
        (Reply(phase=Phase.UNCERTAIN, reason="timeout"), Uncertain("timeout")),
    ],
)
def test_what_an_answer_means(reply: Reply, outcome: Outcome) -> None:
    assert meaning_of(reply, channel_wide=True) == outcome


async def test_who_is_throttled_is_the_channels_word() -> None:
    async with stage() as on:
        alone = sender(on, throttle_whole_channel=False)
        assert alone.classify(ROW, answered(429)) == Throttled("answered 429", channel_wide=False)


# --- the channel ---


@pytest.mark.parametrize("secret", [None, "", "hunter2", "123456:a/b", "bot123456:abc"])
async def test_a_secret_that_is_no_token_is_refused_and_not_repeated(secret: str | None) -> None:
    async with stage() as on:
        with pytest.raises(ValueError) as refused:
            telegram(CHANNEL, secret, on.transport)
        assert isinstance(telegram(CHANNEL, f"{TOKEN}\n", on.transport), Telegram)
    assert str(refused.value) == "the secret is no bot token (123456:ABC…)"


@pytest.mark.parametrize("settings", [{"token": "x"}, {"throttle_whole_channel": 1}])
def test_settings_are_strict(settings: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(settings, TelegramSettings)
