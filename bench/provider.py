"""A provider that answers 200 after as many milliseconds as the path ends with, and does nothing else.

`python -m bench.provider FOLDER http/1.1|h2 CORE`: over TLS, under a certificate authority that it writes to
FOLDER/ca.pem; tells its URL and serves until its input closes.
"""

import asyncio
import logging
import os
import ssl
import sys
from pathlib import Path

import trustme
from httpunk.asyncio import AutoServerProtocol

from bench.member import tell

BACKLOG = 2048


class Provider(AutoServerProtocol):
    """One connection; whatever it is asked."""

    async def handle(self, request: "object") -> None:
        path: str = request.path  # type: ignore[attr-defined]
        await request.read()  # type: ignore[attr-defined]
        await asyncio.sleep(int(path.rpartition("/")[2]) / 1000)
        await request.respond(200, body=b"ok")  # type: ignore[attr-defined]


async def serve(folder: Path, protocol: str, provider: type[AutoServerProtocol] = Provider) -> None:
    loop = asyncio.get_running_loop()
    context = certified(folder / "ca.pem")
    context.set_alpn_protocols([protocol])
    server = await loop.create_server(provider, "127.0.0.1", 0, ssl=context, backlog=BACKLOG)
    port = server.sockets[0].getsockname()[1]
    tell(ready=True, url=f"https://127.0.0.1:{port}")
    await loop.run_in_executor(None, sys.stdin.read)
    os._exit(0)  # connections and all: nobody waits for a goodbye


def certified(authority_file: Path) -> ssl.SSLContext:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(authority_file))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


def main(provider: type[AutoServerProtocol] = Provider) -> None:
    os.sched_setaffinity(0, {int(sys.argv[3])})
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # it grumbles at each TLS goodbye
    asyncio.run(serve(Path(sys.argv[1]), sys.argv[2], provider))


if __name__ == "__main__":
    main()
