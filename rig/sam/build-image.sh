#!/usr/bin/env bash
# A stand-in for AWS's image of a Python runtime, of nothing but Debian and PyPI, for where no image can be pulled:
#   rig/sam/build-image.sh FOLDER [VERSION [SUITE]]      3.13 of trixie by default; 3.14 is in forky
# Needs root, debootstrap, a docker engine (DOCKER_HOST) and pip; takes about a minute. FOLDER is scratch.
# It is Debian, not Amazon Linux: it proves the contract (environment, layers, timeout, memory), not the system below.
set -euo pipefail
FOLDER=${1:?scratch folder}; VERSION=${2:-3.13}; SUITE=${3:-trixie}
PYTHON=${PYTHON:-python3}
HERE=$(cd "$(dirname "$0")" && pwd)
ROOT=$FOLDER/rootfs
MACHINE=$(uname -m)
TAG=public.ecr.aws/lambda/python:$VERSION-$([ "$MACHINE" = aarch64 ] && echo arm64 || echo "$MACHINE")

# Wherever this machine gets its own Debian from.
mirror() {
  cat /etc/apt/sources.list.d/*.sources 2>/dev/null | awk '/^URIs:/ {print $2; exit}' || true
  awk '/^deb / {for (i = 2; i <= NF; i++) if ($i ~ /:\/\//) {print $i; exit}}' /etc/apt/sources.list 2>/dev/null || true
}
MIRROR=${MIRROR:-$(mirror | sed -n 1p)}

# A suite younger than this machine's debootstrap has no script of its own there.
SCRIPT=/usr/share/debootstrap/scripts/$SUITE
[ -e "$SCRIPT" ] || SCRIPT=/usr/share/debootstrap/scripts/sid
debootstrap --variant=minbase --include="python$VERSION,ca-certificates" \
  "$SUITE" "$ROOT" "${MIRROR:?say where Debian is: MIRROR=…}" "$SCRIPT" >"$FOLDER/debootstrap.log" 2>&1 ||
  { tail -n 5 "$FOLDER/debootstrap.log" >&2; exit 1; }

# As AWS lays it out.
mkdir -p "$ROOT"/var/{task,runtime,rapid} "$ROOT"/var/lang/bin "$ROOT"/opt/{python,extensions}
ln -sf "/usr/bin/python$VERSION" "$ROOT/var/lang/bin/python$VERSION"
ln -sf "python$VERSION" "$ROOT/var/lang/bin/python3"
ln -sf "python$VERSION" "$ROOT/var/lang/bin/python"

# What the managed runtime carries: its interface client and boto3, in the versions that are tested here.
mapfile -t carried < <(sed -nE 's/^((awslambdaric|boto3)==[^ ;\\]+).*/\1/p' "$HERE/../../requirements/dev.txt")
"$PYTHON" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target "$ROOT/var/runtime" \
  --python-version "$VERSION" --implementation cp --platform "manylinux2014_$MACHINE" --platform "manylinux_2_28_$MACHINE" \
  --only-binary=:all: --no-compile "${carried[@]}" >"$FOLDER/pip.log" 2>&1 || { cat "$FOLDER/pip.log" >&2; exit 1; }
cat >"$ROOT/var/runtime/bootstrap.py" <<'PYTHON_SOURCE'
import os
import sys

from awslambdaric.__main__ import main

if __name__ == "__main__":
    runtime = sys.path[0]  # this file's folder: the runtime's boto3 comes last, as on AWS
    layers = ["/opt/python/lib/python%d.%d/site-packages" % sys.version_info[:2], "/opt/python"]
    sys.path[:] = [os.environ.get("LAMBDA_TASK_ROOT", "/var/task"), *layers, *sys.path[1:], runtime]
    main(["bootstrap", os.environ["_HANDLER"]])
PYTHON_SOURCE
cat >"$ROOT/var/runtime/bootstrap" <<SHELL_SOURCE
#!/bin/sh
export AWS_EXECUTION_ENV=AWS_Lambda_python$VERSION
exec /var/lang/bin/python$VERSION /var/runtime/bootstrap.py
SHELL_SOURCE
cat >"$ROOT/lambda-entrypoint.sh" <<'SHELL_SOURCE'
#!/bin/sh
if [ $# -ne 1 ]; then echo "the handler's name must be the first argument" 1>&2; exit 142; fi
export _HANDLER="$1"
if [ -z "${AWS_LAMBDA_RUNTIME_API}" ]; then exec /usr/local/bin/aws-lambda-rie /var/runtime/bootstrap
else exec /var/runtime/bootstrap; fi
SHELL_SOURCE
chmod +x "$ROOT/var/runtime/bootstrap" "$ROOT/lambda-entrypoint.sh"

tar -C "$ROOT" --exclude=./var/cache/apt --exclude=./var/lib/apt/lists --exclude=./usr/share/doc \
  --exclude=./usr/share/locale --exclude=./usr/share/man --exclude='./proc/*' --exclude='./sys/*' --exclude='./dev/*' \
  -c . |
  docker import \
    --change 'ENV LANG=C.UTF-8' --change 'ENV TZ=UTC' \
    --change 'ENV PATH=/var/lang/bin:/usr/local/bin:/usr/bin:/bin:/opt/bin' \
    --change 'ENV LD_LIBRARY_PATH=/var/lang/lib:/lib64:/usr/lib64:/var/runtime:/var/runtime/lib:/var/task:/var/task/lib:/opt/lib' \
    --change 'ENV LAMBDA_TASK_ROOT=/var/task' --change 'ENV LAMBDA_RUNTIME_DIR=/var/runtime' \
    --change 'WORKDIR /var/task' --change 'ENTRYPOINT ["/lambda-entrypoint.sh"]' - "$TAG" >/dev/null
rm -rf "$ROOT"
