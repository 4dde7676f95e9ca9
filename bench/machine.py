"""Where and when it was measured: figures without that say nothing."""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path


def machine_line() -> str:
    system = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    return (
        f"{_processor()}, {os.cpu_count()} cores, {_memory_gib():.0f} GiB, {system}, Linux "
        f"{platform.release()}; load when it began: {os.getloadavg()[0]:.1f}"
    )


def versions_line(servers: list[str]) -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in ("psycopg", "httpunk", "msgspec"))
    return f"PostgreSQL {' and '.join(servers)}; Python {platform.python_version()}, {packages}"


def date_line() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
