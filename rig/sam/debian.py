"""Debian packages that are missing, installed where that is possible."""

import os
import shutil
import subprocess
from collections.abc import Mapping


def install(packages: Mapping[str, str]) -> None:
    """`packages` by the command each is wanted for. Raises RuntimeError where one is missing and stays so."""
    missing = sorted({package for name, package in packages.items() if not shutil.which(name)})
    if not missing:
        return
    print(f"apt-get install {' '.join(missing)}", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing]
    for tried in (command, ["apt-get", "update", "-qq"], command):
        done = subprocess.run(tried, env=environment, capture_output=True, text=True)
        if tried is command and not done.returncode:
            return
    raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()[-400:]}")
