"""The SMTP sender: the mail it makes, the session it keeps for one letter, and what a server's answers mean."""

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
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
from fencepost.senders.registry import fault_of
from fencepost.senders.smtp import Smtp, smtp
from fencepost.senders.smtp_answer import meaning_of
from fencepost.senders.smtp_mail import Letter, letter_of
from fencepost.senders.smtp_settings import Account, SmtpSettings, read_account
from tests.senders.claimed import KEY, claimed
from tests.senders.mail_server import (
    NAME,
    PASSWORD,
    USER,
    Line,
    client_tls,
    mail_server,
    read,
    says,
    scripted,
    text_of,
)
from tests.senders.stage import stage, until
from tests.senders.test_registry import CHANNEL

NOW = 1_700_000_000.0
ROW = claimed(recipient="somebody@mail.example")
FROM = "Shop Ünique <shop@shop.example>"
ACCOUNT = Account(USER, PASSWORD)


def sender(port: int, account: Account | None = ACCOUNT, **settings: Any) -> Smtp:
    known = {"host": NAME, "from": FROM, "port": port, **settings}
    read_settings = msgspec.convert(known, SmtpSettings)
    return Smtp(read_settings, account, context=client_tls(), now=lambda: NOW)


def clear(port: int, **settings: Any) -> Smtp:
    return sender(port, None, host="127.0.0.1", security="none", **settings)


def prepared(of: Smtp, row: Claimed = ROW) -> Prepared:
    message = of.prepare(row)
    assert isinstance(message, Prepared), message
    return message


async def sent(of: Smtp, row: Claimed = ROW, *, timeout_seconds: float = 20) -> Outcome:
    reply = await of.send(row, prepared(of, row), timeout_seconds=timeout_seconds)
    return of.classify(row, reply)


# --- with a whole server ---


@pytest.mark.parametrize("security", ["starttls", "tls"])
async def test_it_arrives_encrypted_and_logged_in(security: str) -> None:
    async with stage(), mail_server(tls=security == "tls") as server:
        outcome = await sent(sender(server.port, security=security))
        assert outcome == Delivered("4F1C2")
        assert server.logins == ["PLAIN"]
        assert server.encrypted == [True]
        assert server.envelopes == [("shop@shop.example", ["somebody@mail.example"])]
        mail = server.mail()
        assert mail["To"] == "somebody@mail.example"
        assert mail["From"] == FROM
        assert mail["Subject"] == "Your order has left"
        assert mail["Message-ID"] == f"<{KEY}@shop.example>"
        assert mail["Date"] == "Tue, 14 Nov 2023 22:13:20 +0000"
        assert text_of(mail) == "It comes on Tuesday.\n"


async def test_a_server_that_knows_login_only_is_logged_in_to() -> None:
    async with stage(), mail_server(auth_exclude_mechanism=["PLAIN"], auth_required=True) as server:
        assert await sent(sender(server.port)) == Delivered("4F1C2")
        assert server.logins == ["LOGIN"]


async def test_a_wrong_password_is_said_once_and_pauses_the_channel() -> None:
    async with stage(), mail_server(auth_required=True) as server:
        wrong = sender(server.port, Account(USER, "other"))
        assert await sent(wrong) == CredentialFailure("answered 535 5.7.8 to auth")
        assert server.logins == ["PLAIN"]
        assert not server.mails


async def test_without_encryption_nothing_is_said() -> None:
    async with stage(), mail_server(starttls=False) as server:
        refused = await sent(sender(server.port))
        assert refused == CredentialFailure("the server offers no STARTTLS")
        assert not server.logins
        assert not server.mails


async def test_a_certificate_of_somebody_else_is_not_accepted() -> None:
    async with stage(), mail_server(tls=True) as server:
        refused = await sent(sender(server.port, security="tls", host="127.0.0.1"))
        assert isinstance(refused, NotSent)
        assert refused.reason.startswith("tls: ")
    async with stage(), mail_server() as server:
        refused = await sent(sender(server.port, host="127.0.0.1"))
        assert isinstance(refused, NotSent)
        assert refused.reason.startswith("tls: ")
        assert not server.logins


async def test_a_server_without_a_way_to_log_in_pauses_the_channel() -> None:
    async with stage(), scripted(says()) as told:
        one = Smtp(
            msgspec.convert(
                {"host": "127.0.0.1", "from": FROM, "port": told.port, "security": "none"},
                SmtpSettings,
            ),
            ACCOUNT,
        )
        refused = await sent(one)
        assert refused == CredentialFailure("the server offers no way to log in that we know")
        assert told.verbs == ["EHLO"]


async def test_what_the_server_does_not_take_is_rejected_before_with_both_numbers() -> None:
    async with stage(), mail_server(data_size_limit=3000) as server:
        row = replace(ROW, payload={"title": "T", "body": "x" * 4000})
        refused = await sent(sender(server.port), row)
        assert isinstance(refused, Rejected)
        size = len(letter_of(row, _settings())[1].dated(NOW))
        assert refused.reason == f"mail has {size} bytes, the server takes 3000"
        assert not server.envelopes


async def test_lines_that_begin_with_a_dot_arrive_as_they_are() -> None:
    async with stage(), mail_server() as server:
        text = ".\n..\n.x\nend"
        await sent(sender(server.port), replace(ROW, payload={"body": text}))
        assert text_of(server.mail()) == f"{text}\n"


async def test_text_and_html_travel_together_and_every_attempt_is_the_same_bytes() -> None:
    payload = {"title": "Grüße 😀", "body": "Hallo", "url": "https://a/1", "html": "<p>Hallo ü</p>"}
    async with stage(), mail_server() as server:
        row = replace(ROW, payload=payload)
        one = sender(server.port)
        later = Smtp(
            _settings(port=server.port), ACCOUNT, context=client_tls(), now=lambda: NOW + 60
        )
        await sent(one, row)
        await sent(later, replace(row, attempts=2))
        first, second = server.mails
        assert first != second
        assert first.replace(b"22:13:20", b"22:14:20") == second
        assert prepared(one, row).digest == prepared(later, row).digest
        mail = read(first)
        assert mail["Subject"] == "Grüße 😀"
        text, html = mail.iter_parts()
        assert text_of(text) == "Hallo\n\nhttps://a/1\n"
        assert text_of(html) == "<p>Hallo ü</p>\n"


# --- the dot ---


async def test_a_server_that_waits_after_the_dot_leaves_doubt_in_one_session() -> None:
    """The reply may come ten minutes later: stopped before, nobody knows."""
    async with stage(), scripted(says(dot="")) as told:
        one = clear(told.port)
        sending = asyncio.create_task(one.send(ROW, prepared(one), timeout_seconds=60))
        await until(lambda: bool(told.letters), "it is taken")
        sending.cancel()
        with pytest.raises(SendCancelled) as stopped:
            await sending
        assert isinstance(one.classify(ROW, stopped.value.reply), Uncertain)
        assert told.sessions == len(told.letters) == 1
        assert one.facility.nothing
        assert await one.ask(ROW, timeout_seconds=1) is None


async def test_an_answer_lost_after_the_dot_leaves_doubt() -> None:
    async with stage(), scripted(says(dot="cut")) as told:
        assert isinstance(await sent(clear(told.port)), Uncertain)
        assert told.sessions == len(told.letters) == 1


async def test_an_answer_that_is_no_smtp_after_the_dot_leaves_doubt() -> None:
    async with stage(), scripted(says(dot="HTTP/1.1 200 OK")) as told:
        assert isinstance(await sent(clear(told.port)), Uncertain)


@pytest.mark.parametrize("step", ["greeting", "EHLO", "MAIL", "RCPT", "DATA"])
async def test_a_session_cut_before_the_dot_was_not_sent(step: str) -> None:
    async with stage(), scripted(says(**{step: "cut"})) as told:
        assert isinstance(await sent(clear(told.port)), NotSent)
        assert told.sessions == 1
        assert not told.letters


@pytest.mark.parametrize("step", ["greeting", "EHLO", "MAIL", "RCPT", "DATA"])
async def test_a_server_silent_before_the_dot_was_not_sent(step: str) -> None:
    async with stage(), scripted(says(**{step: ""})) as told:
        one = clear(told.port)
        before = {"greeting": 0, "EHLO": 1, "MAIL": 2, "RCPT": 3, "DATA": 4}[step]
        sending = asyncio.create_task(one.send(ROW, prepared(one), timeout_seconds=60))
        await until(lambda: told.sessions == 1 and len(told.commands) == before, "it waits")
        sending.cancel()
        with pytest.raises(SendCancelled) as stopped:
            await sending
        assert isinstance(one.classify(ROW, stopped.value.reply), NotSent)


async def test_time_is_over_before_the_greeting() -> None:
    async with stage(), scripted(says(greeting="")) as told:
        assert isinstance(await sent(clear(told.port), timeout_seconds=0.05), NotSent)
        assert await sent(clear(told.port), timeout_seconds=0) == NotSent("timeout: no time at all")


async def test_what_stalls_in_the_middle_of_the_content_was_not_sent() -> None:
    """The dot leaves when all before it has: a mail without its dot is none."""
    going_on = asyncio.Event()

    async def takes_little(line: Line) -> None:
        await line.say("220 x")
        for text in ("250 x", "250 x", "250 x", "354 x"):
            await line.command()
            await line.say(text)
        await line.some(1000)
        going_on.set()
        await asyncio.Event().wait()

    async with stage(), scripted(takes_little) as told:
        one = clear(told.port)
        row = replace(ROW, payload={"body": "x" * 14_000_000})
        sending = asyncio.create_task(one.send(row, prepared(one, row), timeout_seconds=60))
        await going_on.wait()
        for _ in range(50):
            await asyncio.sleep(0)
        sending.cancel()
        with pytest.raises(SendCancelled) as stopped:
            await sending
        assert isinstance(one.classify(row, stopped.value.reply), NotSent)


async def test_nobody_there() -> None:
    async with stage(), scripted(says()) as told:
        port = told.port
    refused = await sent(clear(port))
    assert refused == NotSent("connect: ConnectionRefusedError")


@pytest.mark.parametrize("goodbye", ["cut", "500 what?"])
async def test_an_answer_stands_however_the_server_says_goodbye(goodbye: str) -> None:
    async with stage(), scripted(says(QUIT=goodbye)) as told:
        assert await sent(clear(told.port)) == Delivered("4F1C2")
        assert told.verbs == ["EHLO", "MAIL", "RCPT", "DATA", "QUIT"]


# --- what is answered, and where ---


@pytest.mark.parametrize(
    ("step", "said", "outcome"),
    [
        ("greeting", "421 too many connections", Throttled("answered 421 to connect")),
        ("greeting", "554 no service", CredentialFailure("answered 554 to connect")),
        ("EHLO", "550 who are you", CredentialFailure("answered 550 to ehlo")),
        ("MAIL", "451 4.3.0 try later", Failed("answered 451 4.3.0 to mail")),
        ("MAIL", "530 5.7.0 log in", CredentialFailure("answered 530 5.7.0 to mail")),
        ("MAIL", "553 5.7.1 not your address", CredentialFailure("answered 553 5.7.1 to mail")),
        ("MAIL", "552 5.3.4 too big", Rejected("answered 552 5.3.4 to mail")),
        ("RCPT", "550 5.1.1 no such user", Unregistered("answered 550 5.1.1 to rcpt")),
        ("RCPT", "556 5.1.10 null MX", Unregistered("answered 556 5.1.10 to rcpt")),
        ("RCPT", "550-5.1.1 no\r\n550 5.1.1 such", Unregistered("answered 550 5.1.1 to rcpt")),
        ("RCPT", "550 unwanted", Rejected("answered 550 to rcpt")),
        ("RCPT", "554 5.7.1 relay denied", Rejected("answered 554 5.7.1 to rcpt")),
        ("RCPT", "450 4.2.0 greylisted", Failed("answered 450 4.2.0 to rcpt")),
        ("RCPT", "452 4.2.2 mailbox full", Failed("answered 452 4.2.2 to rcpt")),
        ("RCPT", "421 4.7.0 closing", Throttled("answered 421 4.7.0 to rcpt")),
        ("DATA", "454 Throttling failure", Throttled("answered 454 to data")),
        ("DATA", "503 no recipients", Rejected("answered 503 to data")),
        ("DATA", "250 what?", Failed("answered 250 to data")),
        ("dot", "250 ok", Delivered()),
        ("dot", "550 5.1.1 no such user", Unregistered("answered 550 5.1.1 to end")),
        ("dot", "552 5.3.4 too big", Rejected("answered 552 5.3.4 to end")),
        ("dot", "554 5.7.1 spam", Rejected("answered 554 5.7.1 to end")),
        ("dot", "451 4.7.1 later", Failed("answered 451 4.7.1 to end")),
        ("dot", "354 what?", Uncertain("answered 354 to end")),
    ],
)
async def test_what_an_answer_means(step: str, said: str, outcome: Outcome) -> None:
    async with stage(), scripted(says(**{step: said})) as told:
        assert await sent(clear(told.port)) == outcome
        assert told.sessions == 1


@pytest.mark.parametrize(
    ("stage_", "code", "outcome"),
    [
        ("auth", 535, CredentialFailure("answered 535 to auth")),
        ("auth", 534, CredentialFailure("answered 534 to auth")),
        ("auth", 454, Throttled("answered 454 to auth")),
        ("auth", 500, CredentialFailure("answered 500 to auth")),
        ("starttls", 454, Throttled("answered 454 to starttls")),
        ("starttls", 501, CredentialFailure("answered 501 to starttls")),
        ("rcpt", 530, CredentialFailure("answered 530 to rcpt")),
    ],
)
def test_what_an_answer_before_the_mail_means(stage_: str, code: int, outcome: Outcome) -> None:
    reply = Reply(phase=Phase.ANSWERED, status=code, headers={"stage": stage_})
    assert meaning_of(reply) == outcome


# --- the mail ---


def _settings(**changes: Any) -> SmtpSettings:
    return msgspec.convert({"host": NAME, "from": FROM, **changes}, SmtpSettings)


def mail_of(payload: dict[str, Any], **settings: Any) -> Any:
    return read(letter_of(replace(ROW, payload=payload), _settings(**settings))[1].dated(NOW))


def test_who_answers_and_who_gets_the_bounces() -> None:
    asked = _settings(reply_to="Help <help@shop.example>", return_path="bounces@shop.example")
    _, letter = letter_of(ROW, asked)
    assert letter.sender == "bounces@shop.example"
    assert read(letter.content)["Reply-To"] == "Help <help@shop.example>"


def test_a_raw_block_is_laid_over_it() -> None:
    raw = {
        "subject": "S",
        "headers": {"List-Unsubscribe": "<https://shop.example/u>", "X-Tag": "ü"},
    }
    mail = mail_of({"title": "T", "body": "B", "raw": {"smtp": raw}})
    assert mail["Subject"] == "S"
    assert mail["List-Unsubscribe"] == "<https://shop.example/u>"
    assert mail["X-Tag"] == "ü"
    assert text_of(mail) == "B\n"


def test_null_takes_a_key_away() -> None:
    mail = mail_of({"title": "T", "body": "B", "html": "<b>B</b>", "raw": {"smtp": {"html": None}}})
    assert not mail.is_multipart()
    assert text_of(mail) == "B\n"


def test_html_alone_is_a_mail_too() -> None:
    mail = mail_of({"title": "T", "html": "<p>x</p>"})
    assert mail.get_content_type() == "text/html"


@settings(deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=2000))
def test_whatever_is_written_is_read(text: str) -> None:
    mail = mail_of({"body": text})
    assert text_of(mail) == f"{text}\n"
    lines = letter_of(replace(ROW, payload={"body": text}), _settings())[1].content.split(b"\r\n")
    assert all(len(line) <= 998 and line.isascii() for line in lines)
    assert lines[-1] == b""


@pytest.mark.parametrize(
    ("recipient", "payload", "reason"),
    [
        ("a@b.c\r\nRCPT TO:<x@y.z>", {}, "recipient is no mail address"),
        ("a@b.c>\x00", {}, "recipient is no mail address"),
        ("a@b.c, x@y.z", {}, "recipient is no mail address"),
        ("Name <a@b.c>", {}, "recipient is no mail address"),
        ("nobody", {}, "recipient is no mail address"),
        ("ü@b.c", {}, "recipient has other than ASCII before the @"),
        ("a@b..c", {}, "recipient has a domain that is no name"),
        ("a@b.c", {"title": "T"}, "nothing to read: no body, url, html or raw block with one"),
        ("a@b.c", {"body": "\ud800"}, "payload has no form as a mail"),
        (
            "a@b.c",
            {"body": "B", "raw": {"smtp": {"to": "x"}}},
            "raw.smtp knows headers, html, subject, text, and holds 1 other",
        ),
        (
            "a@b.c",
            {"body": "B", "raw": {"smtp": {"headers": {"Bcc": "x@y.z"}}}},
            "raw.smtp.headers names one that is ours, or none at all",
        ),
        (
            "a@b.c",
            {"body": "B", "raw": {"smtp": {"headers": {"X: y\r\nBcc": "x@y.z"}}}},
            "raw.smtp.headers names one that is ours, or none at all",
        ),
        (
            "a@b.c",
            {"body": "B", "raw": {"smtp": {"headers": {"X-A": "x\r\nBcc: x@y.z"}}}},
            "raw.smtp.headers holds what is no line of text",
        ),
        (
            "a@b.c",
            {"raw": {"smtp": {"text": 1}}},
            "raw.smtp: subject, text and html are text",
        ),
    ],
)
async def test_what_would_be_no_mail_or_another_one_is_rejected_before(
    recipient: str, payload: dict[str, Any], reason: str
) -> None:
    row = replace(ROW, recipient=recipient, payload=payload or {"body": "B"})
    assert clear(25).prepare(row) == Rejected(reason)


ODD = st.text(st.sampled_from("ab.-_é1%'\"()<>[]:;,@\\ \t\r\n\0\x7f\x85\u2028"), max_size=8)


@settings(deadline=None)
@given(local=ODD | st.just("a"), domain=ODD | st.just("b.c"), title=ODD, header=ODD)
def test_whatever_is_asked_for_it_is_one_mail_to_one_address_or_none(
    local: str, domain: str, title: str, header: str
) -> None:
    raw = {"smtp": {"headers": {"X-A": header}}}
    row = replace(
        ROW, recipient=f"{local}@{domain}", payload={"title": title, "body": "B", "raw": raw}
    )
    made = clear(25).prepare(row)
    assert isinstance(made, Prepared | Rejected)
    if isinstance(made, Prepared):
        letter = made.request
        assert isinstance(letter, Letter)
        assert letter.recipient.isascii()
        assert letter.recipient.isprintable()
        assert not set(letter.recipient) & set(' <>,;:"')
        names = [
            line.split(b":")[0] for line in letter.content.split(b"\r\n\r\n")[0].split(b"\r\n")
        ]
        said = {name.decode() for name in names if not name.startswith((b" ", b"\t"))}
        assert said <= {
            "From", "To", "Subject", "Message-ID", "X-A", "Content-Type", "Content-Transfer-Encoding", "MIME-Version"
        }  # fmt: skip


def test_a_subject_is_one_line() -> None:
    mail = mail_of({"title": "Left\r\nBcc: x@y.z", "body": "B"})
    assert mail["Subject"] == "Left Bcc: x@y.z"
    assert mail["Bcc"] is None


def test_a_domain_is_written_as_dns_knows_it() -> None:
    _, letter = letter_of(replace(ROW, recipient="a@bücher.example"), _settings())
    assert letter.recipient == "a@xn--bcher-kva.example"


async def test_nothing_private_is_shown() -> None:
    async with stage(), scripted(says(RCPT="550 5.1.1 <somebody@mail.example> unknown")) as told:
        one = clear(told.port)
        reply = await one.send(ROW, prepared(one), timeout_seconds=20)
        shown = repr(prepared(one)) + repr(one) + repr(ACCOUNT) + str(one.classify(ROW, reply))
        for secret in ("somebody", "Tuesday", "order", USER, PASSWORD):
            assert secret not in shown
            assert secret not in reply.error


# --- the channel ---


@pytest.mark.parametrize(
    ("secret", "account"),
    [
        (None, None),
        ("", None),
        ("user:pass:word \n", Account("user", "pass:word ")),
    ],
)
def test_how_the_secret_is_written(secret: str | None, account: Account | None) -> None:
    assert read_account(secret) == account


@pytest.mark.parametrize("secret", ["verysecret", ":verysecret", "user:", "a:very\nsecret"])
def test_a_secret_that_is_none_is_refused_and_not_repeated(secret: str) -> None:
    with pytest.raises(ValueError, match=r"^the secret is no user:password$"):
        read_account(secret)


async def test_a_password_never_travels_in_the_clear() -> None:
    open_ = {"host": NAME, "from": FROM, "security": "none"}
    channel = replace(CHANNEL, settings=open_)
    async with stage() as on:
        with pytest.raises(ValueError, match="in the clear"):
            smtp(channel, f"{USER}:{PASSWORD}", on.transport)
        assert isinstance(smtp(channel, None, on.transport), Smtp)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"host": NAME},
        {"host": NAME, "from": "nobody"},
        {"host": NAME, "from": "a@b.c\r\nBcc: x@y.z"},
        {"host": "a b", "from": FROM},
        {"host": NAME, "from": FROM, "security": "ssl"},
        {"host": NAME, "from": FROM, "port": 0},
        {"host": NAME, "from": FROM, "password": "x"},
        {"host": NAME, "from": FROM, "return_path": "x"},
        {"host": NAME, "from": FROM, "hello_name": "a b"},
    ],
)
def test_settings_are_strict(settings: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(settings, SmtpSettings)


def test_the_port_is_that_of_the_security() -> None:
    ports = [_settings(security=one).port_number for one in ("starttls", "tls", "none")]
    assert ports == [587, 465, 25]


def test_a_mail_server_cannot_be_asked() -> None:
    found = fault_of("smtp", {"host": NAME, "from": FROM}, None, "reconcile")
    assert "reconcile cannot work" in str(found)
