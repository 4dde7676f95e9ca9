"""Each provider as far as a send needs it: answered as it answers, after ANSWER_MS.

`python -m bench.kinds_provider FOLDER http/1.1|h2 CORE`, as `bench.provider`.
"""

import asyncio

from httpunk.asyncio import AutoServerProtocol

from bench.provider import main

ANSWER_MS = 50
ANSWERS = (  # by what the path begins with
    ("/token", 200, b'{"access_token":"bench","expires_in":3599,"token_type":"Bearer"}'),
    ("/v1/projects/", 200, b'{"name":"projects/shop/messages/0:1"}'),
    ("/3/device/", 200, b""),
    ("/push/", 201, b""),
    ("/--/api/v2/push/send", 200, b'{"data":{"status":"ok","id":"XXXXXXXX-XXXX-XXXX"}}'),
    ("/api/chat.postMessage", 200, b'{"ok":true,"channel":"C0123ABC","ts":"1503435956.000247"}'),
    ("/services/", 200, b"ok"),
    ("/2010-04-01/", 201, b'{"sid":"SM00000000000000000000000000000000","status":"queued"}'),
    ("/bot", 200, b'{"ok":true,"result":{"message_id":1}}'),
    ("/hook", 200, b"ok"),
)


class Provider(AutoServerProtocol):
    """One connection."""

    async def handle(self, request: "object") -> None:
        path: str = request.path  # type: ignore[attr-defined]
        (status, body), *_ = [
            (status, body) for begin, status, body in ANSWERS if path.startswith(begin)
        ]
        await request.read()  # type: ignore[attr-defined]
        await asyncio.sleep(ANSWER_MS / 1000)
        headers = [("content-type", "application/json")]
        await request.respond(status, headers=headers, body=body)  # type: ignore[attr-defined]


if __name__ == "__main__":
    main(Provider)
