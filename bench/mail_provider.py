"""A mail server that demands STARTTLS and takes every mail, each after ANSWER_MS.

`python -m bench.mail_provider FOLDER smtp CORE`, as `bench.provider`; its URL is smtp://HOST:PORT.
"""

import asyncio
import os
import sys
from pathlib import Path

from aiosmtpd.smtp import SMTP, Envelope, Session

from bench.kinds_provider import ANSWER_MS
from bench.member import tell
from bench.provider import BACKLOG, certified


class Mailbox:
    """What aiosmtpd calls."""

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        await asyncio.sleep(ANSWER_MS / 1000)
        return "250 2.0.0 Ok: queued as 4F1C2"


async def serve(folder: Path) -> None:
    loop = asyncio.get_running_loop()
    context = certified(folder / "ca.pem")

    def connection() -> SMTP:
        return SMTP(
            Mailbox(), loop=loop, hostname="localhost", tls_context=context, require_starttls=True
        )

    server = await loop.create_server(connection, "127.0.0.1", 0, backlog=BACKLOG)
    tell(ready=True, url=f"smtp://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    await loop.run_in_executor(None, sys.stdin.read)
    os._exit(0)  # connections and all: nobody waits for a goodbye


if __name__ == "__main__":
    os.sched_setaffinity(0, {int(sys.argv[3])})
    asyncio.run(serve(Path(sys.argv[1])))
