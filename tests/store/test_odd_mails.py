"""Whole runs against mail servers that answer nonsense: before the final dot nothing is in doubt, at it all is."""

import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, cycle, repeat
from pathlib import Path

import pytest

from tests.senders.mail_server import CERTIFICATE, GOOD, PASSWORD, USER
from tests.senders.peers import H1Peer, Peer
from tests.senders.stage import CA, never
from tests.senders.threaded import serving
from tests.store.nonsense import BRIEF, ground
from tests.store.postgres_bench import PostgresBench

pytestmark = pytest.mark.postgres
RECIPIENT = "recipient-secret@mail.example"
CUT, SILENT, FIN = b"cut", b"silent", b"fin"
ODD = (
    CUT, FIN, b"hello\r\n", b"\r\n" * 5, b"999 what\r\n", b"-50 what\r\n", b"000 what\r\n", b"2\r\n",
    b"25\xb2 what\r\n", b"100 what\r\n", b"650 what\r\n", b"250-more\r\n" * 8000,
    b"5" * 60_000, b"550 " + b"y" * 9000 + b"\r\n",
    b"550 5.1.1 <recipient-secret@mail.example> payload-secret \xff\0\xf0\x9f\x98\x80\r\n",
    b"550-5.7.1 recipient-secret\r\n550 5.7.1 payload-secret\r\n", b"421 4.3.2 later\r\n", b"452 4.2.2 full\r\n",
    b"552 5.3.4 too large\r\n", b"535 5.7.8 recipient-secret\r\n", b"\0" * 64 + b"\r\n",
    b"HTTP/1.1 400 Bad Request\r\n\r\n",
)  # fmt: skip
BEFORE = ("greeting", "EHLO", "MAIL", "RCPT", "DATA")
STRANGE = (b"250 go on\r\n", b"354 go on\r\n")  # good, but not as an answer to that
LOGINS = (
    b"250-mail.test\r\n250 AUTH PLAIN\r\n", b"250-mail.test\r\n250 AUTH LOGIN\r\n",
    b"250-mail.test\r\n250 AUTH CRAM-MD5\r\n", b"250-mail.test\r\n250 AUTH=\r\n",
    b"250-mail.test\r\n250 AUTH X-OWN \xff\xf0\r\n", b"250 mail.test\r\n",
)  # fmt: skip


@dataclass
class Mails:
    """Plays another session each time: what it says where, and for the rest it is good."""

    sessions: Iterator[dict[str, bytes]]
    begun: int = 0

    async def script(self, peer: Peer) -> None:
        assert isinstance(peer, H1Peer)  # raw bytes
        self.begun += 1
        says = {
            **{place: f"{text}\r\n".encode() for place, text in GOOD.items()},
            **next(self.sessions),
        }
        await _say(peer, says["greeting"])
        while True:
            line = await peer._reader.readuntil(b"\r\n")
            verb = line.split()[0].decode().upper()
            await _say(peer, says.get(verb, says.get("more", b"500 what\r\n")))
            if verb == "DATA" and says["DATA"].startswith(b"354"):
                await peer._reader.readuntil(b"\r\n.\r\n")
                await _say(peer, says["dot"])


async def _say(peer: H1Peer, said: bytes) -> None:
    if said == SILENT:
        await never()
    if said in (CUT, FIN):
        (peer.reset if said == CUT else peer.fin)()
        raise ConnectionError
    await peer.write(said)


def settings(port: int, security: str = "none") -> dict[str, object]:
    host = "127.0.0.1" if security == "none" else "localhost"
    return {"host": host, "port": port, "from": "Shop <shop@shop.example>", "security": security}


def drained(bench: PostgresBench, sessions: Sequence[dict[str, bytes]]) -> set[str]:
    """The outcomes of as many mails as sessions."""
    server = Mails(cycle(sessions))
    with (
        serving(server.script) as port,
        ground(
            bench, "smtp", settings(port), "", hidden=(RECIPIENT,), slots=8, timing=BRIEF
        ) as odd,
    ):
        odd.enqueue(RECIPIENT, len(sessions))
        odd.run_until(lambda: server.begun >= len(sessions), 2 * len(sessions))
        assert odd.delivered() == 0
        odd.assert_honest()
        return odd.outcomes()


def test_nothing_a_mail_server_says_before_the_dot_puts_a_mail_in_doubt(
    bench: PostgresBench,
) -> None:
    rows = [{place: text} for place in BEFORE for text in ODD]
    rows += [{"greeting": SILENT}, {"DATA": SILENT}]
    rows += [{place: text} for place, text in zip(BEFORE, cycle(STRANGE), strict=False)][1:4:2]
    outcomes = drained(bench, rows)
    assert outcomes <= {"not_sent", "failed", "rejected"}


def test_nothing_but_a_2xx_to_the_dot_is_a_delivery(bench: PostgresBench) -> None:
    outcomes = drained(bench, [{"dot": text} for text in (*ODD, SILENT, b"354 go on\r\n")])
    assert "uncertain" in outcomes
    assert "delivered" not in outcomes


def test_what_a_server_says_at_goodbye_changes_nothing(bench: PostgresBench) -> None:
    server = Mails(chain(({"QUIT": text} for text in ODD), repeat({})))
    with (
        serving(server.script) as port,
        ground(bench, "smtp", settings(port), "", hidden=(RECIPIENT,), slots=8) as odd,
    ):
        odd.enqueue(RECIPIENT, len(ODD))
        odd.run_until(lambda: odd.delivered() == len(ODD), 3)
        assert odd.outcomes() == {"delivered"}
        odd.assert_honest()


def test_nothing_a_server_says_to_a_login_is_doubt_or_told(
    bench: PostgresBench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trusted = tmp_path / "ca.pem"
    CA.cert_pem.write_to_path(str(trusted))
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    odd_texts = (*ODD, b"334 !!!not base64!!!\r\n", b"334 \r\n", b"334 " + b"A" * 5000 + b"\r\n")
    rows = [
        {"EHLO": login, "AUTH": text, "more": b"334 \r\n"}
        for login in LOGINS[:3]
        for text in odd_texts
    ]
    rows += [{"EHLO": LOGINS[0], "AUTH": SILENT}]
    rows += [{"EHLO": login, "AUTH": b"235 ok\r\n"} for login in LOGINS[3:]]
    server = Mails(cycle(rows))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    CERTIFICATE.configure_cert(context)
    secret = f"{USER}:{PASSWORD}"
    with (
        serving(server.script, context) as port,
        ground(
            bench, "smtp", settings(port, "tls"), secret, hidden=(RECIPIENT, PASSWORD), slots=8
        ) as odd,
    ):
        odd.enqueue(RECIPIENT, len(rows))
        odd.run_until(lambda: server.begun >= len(rows), 2 * len(rows))
        assert odd.delivered() == 0
        assert odd.outcomes() <= {"not_sent", "failed", "rejected"}
        odd.assert_honest()
