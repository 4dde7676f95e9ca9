"""What a fresh sandbox does: `python -S cold.py FOLDER import|tick`, FOLDER the handler's, the layers on the path.

Tells the CPU and wall milliseconds of importing the handler, and (tick) of its first invocation, and whether boto3 is
loaded then. Standard library only, and nothing of it that the handler would have had to load by itself counts.
"""

import json
import sys
import time


class Context:
    """As much of Lambda's context as the handler reads."""

    aws_request_id = "bench"

    def get_remaining_time_in_millis(self) -> int:
        return 60_000


def clocked() -> tuple[float, float]:
    return time.process_time() * 1000, time.perf_counter() * 1000


def main(folder: str, what: str) -> None:
    sys.path.insert(0, folder)
    cpu, wall = clocked()
    from handler import handler  # type: ignore[import-not-found]

    cpu_after, wall_after = clocked()
    told = {"cpu_ms": cpu_after - cpu, "wall_ms": wall_after - wall, "modules": len(sys.modules)}
    if what == "tick":
        told["answer"] = handler({"id": "bench"}, Context())
        told["tick_cpu_ms"] = time.process_time() * 1000 - cpu_after
        told["tick_ms"] = time.perf_counter() * 1000 - wall_after
    # Powertools imports the bare package `botocore` (1 ms, to name itself in user agents); its weight is the session.
    told["boto3"] = "boto3" in sys.modules or "botocore.session" in sys.modules
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
