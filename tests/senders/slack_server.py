"""Slack's Web API as far as a sender sees it: bearer tokens, JSON in, history with metadata and cursors."""

import json
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.senders.peers import Asked, Headers, Peer
from tests.senders.stage import never

TOKEN = "xoxb-1-secret"
JSON: Headers = (("content-type", "application/json; charset=utf-8"),)

After = Callable[[Peer, Asked], Awaitable[None]]


class SlackServer:
    """Its messages, newest first in a history. `cuts`: so many posts are stored and then never answered."""

    def __init__(self, *, now: float, cuts: int = 0) -> None:
        self.now = now
        self.cuts = cuts
        self.messages: list[dict[str, Any]] = []
        self.asked: list[dict[str, str]] = []
        self.refuses: dict[str, Any] | None = None  # what a history is refused with
        self.hides = False
        self.keeps_silent = False  # stores posts and answers none

    async def __call__(self, peer: Peer) -> None:
        while True:
            asked = await peer.request()
            if asked.headers.get("authorization") != f"Bearer {TOKEN}":
                await self._answer(peer, asked, {"ok": False, "error": "invalid_auth"})
                continue
            target = urlsplit(asked.headers[":path"])
            match target.path.removeprefix("/api/"):
                case "chat.postMessage":
                    await self._post(peer, asked)
                case ("conversations.history" | "conversations.replies") as method:
                    await self._history(peer, asked, method, dict(parse_qsl(target.query)))
                case unknown:
                    await self._answer(peer, asked, {"ok": False, "error": f"unknown {unknown}"})

    async def _post(self, peer: Peer, asked: Asked) -> None:
        assert asked.headers[":method"] == "POST"
        assert asked.headers["content-type"].startswith("application/json")
        message = json.loads(asked.body)
        ts = self.store(message)
        if self.keeps_silent:
            await never()
        if self.cuts > 0:
            self.cuts -= 1
            peer.reset()
            await never()
        answer = {"ok": True, "channel": message["channel"], "ts": ts, "message": message}
        await self._answer(peer, asked, answer)

    def store(self, message: dict[str, Any], *, at: float | None = None) -> str:
        ts = f"{(self.now if at is None else at) + len(self.messages) / 1000:.6f}"
        self.messages.insert(0, {**message, "ts": ts})
        return ts

    async def _history(
        self, peer: Peer, asked: Asked, method: str, parameters: dict[str, str]
    ) -> None:
        assert asked.headers[":method"] == "GET"
        self.asked.append(parameters)
        if self.refuses is not None:
            await self._answer(peer, asked, self.refuses)
            return
        thread = parameters.get("ts") if method == "conversations.replies" else None
        found = [
            self._shown(message, parameters)
            for message in self.messages
            if message["channel"] == parameters["channel"]
            and float(message["ts"]) >= float(parameters["oldest"])
            and message.get("thread_ts") == thread
        ]
        begin, limit = int(parameters.get("cursor", "0")), int(parameters["limit"])
        more = begin + limit < len(found)
        answer = {
            "ok": True,
            "messages": found[begin : begin + limit],
            "has_more": more,
            "response_metadata": {"next_cursor": str(begin + limit) if more else ""},
            **({"is_limited": True} if self.hides else {}),
        }
        await self._answer(peer, asked, answer)

    def _shown(self, message: dict[str, Any], parameters: dict[str, str]) -> dict[str, Any]:
        whole = parameters.get("include_all_metadata") == "true"
        return {k: v for k, v in message.items() if whole or k != "metadata"}

    async def _answer(self, peer: Peer, asked: Asked, answer: dict[str, Any]) -> None:
        await peer.answer(asked, 200, json.dumps(answer).encode(), JSON)
