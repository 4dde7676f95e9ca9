"""The image of the Lambda runtime: the official one where it can be pulled, else a stand-in built from Debian."""

import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from rig.sam.debian import install
from rig.sam.engine import Engine

BUILDER = Path(__file__).parent / "build-image.sh"
VERSION = "3.13"
ARCHITECTURE = "arm64" if platform.machine() in ("arm64", "aarch64") else "x86_64"
IMAGE = f"public.ecr.aws/lambda/python:{VERSION}-{ARCHITECTURE}"
PULL_SECONDS = 900.0


def ensure_image(engine: Engine) -> str:
    """Where the image came from: here already, pulled or built. Raises RuntimeError where there is no way to it."""
    if engine.docker("images", "--quiet", IMAGE):
        return "there already"
    try:
        engine.docker("pull", "--quiet", IMAGE, seconds=PULL_SECONDS)
    except RuntimeError as error:
        return _built(engine, error)
    return "pulled"


def _built(engine: Engine, error: RuntimeError) -> str:
    if sys.platform != "linux" or os.geteuid() != 0:
        raise RuntimeError(f"{IMAGE} cannot be pulled, and only root can build it: {error}")
    install({"debootstrap": "debootstrap"})
    with tempfile.TemporaryDirectory(prefix="fencepost-image-") as folder:
        done = subprocess.run(
            ["bash", str(BUILDER), folder, VERSION],
            env={**os.environ, **engine.environment, "PYTHON": sys.executable},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            said = (done.stderr or done.stdout).strip()[-600:]
            raise RuntimeError(f"the image cannot be pulled ({error}) and not be built: {said}")
    return "built from Debian, for want of a registry"
