"""SES and SNS as far as a call needs them: each is answered as it answers, after ANSWER_MS.

`python -m bench.aws_provider FOLDER http/1.1 CORE`, as `bench.provider`.
"""

import asyncio

from httpunk.asyncio import AutoServerProtocol

from bench.provider import main

ANSWER_MS = 50
ANSWERS = {  # by path
    "/v2/email/outbound-emails": (
        "application/json",
        b'{"MessageId":"0100018c4d5e6f70-12345678-1234-1234-1234-123456789012-000000"}',
    ),
    "/": (
        "text/xml",
        b'<PublishResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><PublishResult>'
        b"<MessageId>94f20ce6-13c5-43a0-9a9e-ca52d816e90b</MessageId></PublishResult>"
        b"<ResponseMetadata><RequestId>f187a3c1</RequestId></ResponseMetadata></PublishResponse>",
    ),
}


class AwsProvider(AutoServerProtocol):
    """One connection."""

    async def handle(self, request: "object") -> None:
        kind, body = ANSWERS[request.path]  # type: ignore[attr-defined]
        await request.read()  # type: ignore[attr-defined]
        await asyncio.sleep(ANSWER_MS / 1000)
        await request.respond(200, headers=[("content-type", kind)], body=body)  # type: ignore[attr-defined]


if __name__ == "__main__":
    main(AwsProvider)
