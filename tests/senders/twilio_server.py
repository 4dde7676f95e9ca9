"""Twilio's message resource as far as a sender sees it: basic auth, forms in, a list in pages."""

import base64
import json
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from tests.senders.peers import Asked, Peer
from tests.senders.stage import never

ACCOUNT = "AC" + "0" * 32
SECRET = "SK" + "1" * 32 + ":verysecret"
MESSAGES = f"/2010-04-01/Accounts/{ACCOUNT}/Messages.json"


class TwilioServer:
    """Its messages, newest first. `cuts`: so many are stored and then never answered."""

    def __init__(self, *, now: float, cuts: int = 0) -> None:
        self.now = now
        self.cuts = cuts
        self.keeps_silent = False  # answers no message
        self.drops = 0  # so many it reads and forgets
        self.messages: list[dict[str, Any]] = []
        self.forms: list[dict[str, list[str]]] = []
        self.asked: list[dict[str, str]] = []
        self.refuses: tuple[int, bytes] | None = None  # what a list is refused with

    async def __call__(self, peer: Peer) -> None:
        while True:
            asked = await peer.request()
            target = urlsplit(asked.headers[":path"])
            if asked.headers.get("authorization") != basic(SECRET):
                await peer.answer(asked, 401, b'{"code":20003,"status":401}')
            elif target.path != MESSAGES:
                await peer.answer(asked, 404, b'{"code":20404,"status":404}')
            elif asked.headers[":method"] == "POST":
                await self._create(peer, asked)
            else:
                await self._list(peer, asked, dict(parse_qsl(target.query)))

    async def _create(self, peer: Peer, asked: Asked) -> None:
        assert asked.headers["content-type"] == "application/x-www-form-urlencoded"
        form = parse_qs(asked.body.decode(), strict_parsing=True)
        self.forms.append(form)
        if self.drops > 0:
            self.drops -= 1
            await never()
        message = self.store(form["To"][0], form["Body"][0])
        if self.keeps_silent:
            await never()
        if self.cuts > 0:
            self.cuts -= 1
            peer.reset()
            await never()
        await peer.answer(asked, 201, json.dumps(message).encode())

    def store(self, to: str, body: str, **changes: Any) -> dict[str, Any]:
        created = datetime.fromtimestamp(changes.pop("at", self.now), UTC)
        message = {
            "sid": f"SM{len(self.messages):032x}",
            "to": to,
            "body": body,
            "status": "queued",
            "direction": "outbound-api",
            "error_code": None,
            "date_created": format_datetime(created),
            "date_sent": None,
            **changes,
        }
        self.messages.insert(0, message)
        return message

    async def _list(self, peer: Peer, asked: Asked, query: dict[str, str]) -> None:
        self.asked.append(query)
        if self.refuses is not None:
            await peer.answer(asked, *self.refuses)
            return
        found = [one for one in self.messages if one["to"] == query["To"]]
        begin, size = int(query.get("Page", "0")), int(query["PageSize"])
        more = (begin + 1) * size < len(found)
        following = f"{MESSAGES}?{urlencode({**query, 'Page': begin + 1})}" if more else None
        shown = found[begin * size : (begin + 1) * size]
        answer = {"messages": shown, "next_page_uri": following}
        await peer.answer(asked, 200, json.dumps(answer).encode())


def basic(pair: str) -> str:
    return "Basic " + base64.b64encode(pair.encode()).decode()
