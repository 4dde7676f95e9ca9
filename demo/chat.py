"""A chat that speaks Slack's Web API: it drops no repeat, but can be asked what stands in a conversation.

It stores each `chat.postMessage`. A text that begins with LOST is stored and its answer never sent, once.
"""

import contextlib
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

TOKEN = "xoxb-demo"
LOST = "lost"


class Chat:
    """What it has stored, newest first, and how often it was asked. Used from the threads of its server."""

    def __init__(self) -> None:
        self.url = ""
        self.asked = 0
        self.lost = 0
        self._messages: list[Mapping[str, Any]] = []
        self._guard = threading.Lock()

    def stored(self) -> Counter[str]:
        """How often each text stands there."""
        with self._guard:
            return Counter(one["text"] for one in self._messages)

    def post(self, message: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The answer; None: it gets lost."""
        with self._guard:
            again = any(one["text"] == message["text"] for one in self._messages)
            stamp = f"{time.time():.6f}"
            self._messages.insert(0, {**message, "ts": stamp})
            if message["text"].startswith(LOST) and not again:
                self.lost += 1
                return None
        return {"ok": True, "channel": message["channel"], "ts": stamp}

    def history(self, asked: Mapping[str, str]) -> Mapping[str, Any]:
        with self._guard:
            self.asked += 1
            found = [
                one
                for one in self._messages
                if one["channel"] == asked["channel"] and float(one["ts"]) >= float(asked["oldest"])
            ]
        begin, limit = int(asked.get("cursor", "0")), int(asked["limit"])
        rest = str(begin + limit) if begin + limit < len(found) else ""
        return {
            "ok": True,
            "messages": found[begin : begin + limit],
            "has_more": bool(rest),
            "response_metadata": {"next_cursor": rest},
        }


def handler(chat: Chat) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            self._answer(chat.post(json.loads(body)) if self._is_known() else REFUSED)

        def do_GET(self) -> None:
            asked = dict(parse_qsl(urlsplit(self.path).query))
            self._answer(chat.history(asked) if self._is_known() else REFUSED)

        def _is_known(self) -> bool:
            return self.headers["authorization"] == f"Bearer {TOKEN}"

        def _answer(self, said: Mapping[str, Any] | None) -> None:
            if said is None:
                self.close_connection = True
                return
            body = json.dumps(said).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json; charset=utf-8")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None: ...

    return Handler


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A run that was killed hangs up in mid-request; anything else is a bug."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


REFUSED = {"ok": False, "error": "invalid_auth"}


@contextlib.contextmanager
def chat_service() -> Iterator[Chat]:
    """On a free port; it ends with the block."""
    chat = Chat()
    server = Server(("127.0.0.1", 0), handler(chat))
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    chat.url = f"http://127.0.0.1:{server.server_port}/api"
    try:
        yield chat
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
