"""Take the Lambda runtime interface emulator out of the (hashed) aws-sam-cli wheel: `python -m rig.fetch_rie TARGET`.

The emulator is a Linux binary; on other systems this does nothing and the runtime tests skip themselves.
"""

import platform
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

REQUIREMENTS = Path(__file__).parent.parent / "requirements" / "rie.txt"
ARCHITECTURES = {"x86_64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}


def main(target: Path) -> None:
    if sys.platform != "linux":
        print("fetch_rie: the runtime interface emulator exists for Linux only; skipped")
        return
    member = f"samcli/local/rapid/aws-lambda-rie-{ARCHITECTURES[platform.machine()]}"
    with tempfile.TemporaryDirectory() as folder:
        download = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--dest",
            folder,
        ]
        subprocess.run([*download, "--require-hashes", "-r", REQUIREMENTS], check=True)
        (wheel,) = Path(folder).glob("aws_sam_cli-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            target.write_bytes(archive.read(member))
    target.chmod(0o755)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
