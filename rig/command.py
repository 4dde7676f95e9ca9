"""The `fencepost` command, as a person at a terminal would use it."""

import subprocess
import sys
from collections.abc import Mapping

FENCEPOST = [sys.executable, "-m", "fencepost_cli"]


def fencepost(environment: Mapping[str, str], *arguments: str) -> str:
    """Run the `fencepost` command; what it printed. Raises RuntimeError with its one line of trouble."""
    done = subprocess.run(
        [*FENCEPOST, *arguments], env=dict(environment), capture_output=True, text=True
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip()
        raise RuntimeError(f"fencepost {' '.join(arguments)}: {said} (exit {done.returncode})")
    return done.stdout.strip()
