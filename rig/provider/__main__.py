"""`python -m rig.provider --folder DIR`: serve (on loopback) until SIGTERM; the first line on stdout says where."""

import argparse
import asyncio
import json
import signal
import ssl
from pathlib import Path

from rig.provider.ledger import Ledger
from rig.provider.server import Receiver


def main() -> None:
    arguments = read_arguments()
    asyncio.run(serve(arguments))


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="rig.provider", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="for ledger.jsonl (and ca.pem)")
    parser.add_argument("--secret", action="append", required=True, help="whsec_…; twice: rotation")
    parser.add_argument("--address", default="127.0.0.1", help="of this machine, to listen on")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tls", action="store_true", help="https, under a CA written to ca.pem")
    return parser.parse_args()


async def serve(arguments: argparse.Namespace) -> None:
    ledger = Ledger(arguments.folder / "ledger.jsonl")
    receiver = Receiver(ledger, tuple(arguments.secret), arguments.seed)
    tls = certified(arguments.folder / "ca.pem") if arguments.tls else None
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        receiver.connection, arguments.address, arguments.port, ssl=tls, backlog=1024
    )
    port = server.sockets[0].getsockname()[1]
    scheme = "https" if tls else "http"
    print(json.dumps({"url": f"{scheme}://{arguments.address}:{port}"}), flush=True)
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    await ended.wait()
    server.close()
    for connection in list(receiver.connections):
        connection.cut()
    for _ in range(3):  # turns of the loop, in which each writes down how its request ended
        await asyncio.sleep(0)
    ledger.close()


def certified(authority_file: Path) -> ssl.SSLContext:
    """A certificate for loopback under an authority of this one run."""
    import trustme

    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(authority_file))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1", "localhost").configure_cert(context)
    return context


if __name__ == "__main__":
    main()
