#!/usr/bin/env bash
# A docker engine of one's own, by hand, where there is no systemd (a bare VM, CI), without touching the host's
# firewall: no iptables rules, no forwarding, no masquerade. Containers reach the host by the bridge's gateway, the
# host reaches published ports through docker-proxy, and nothing reaches further: all that `sam local` needs.
#   rig/sam/dockerd.sh DATA RUN & export DOCKER_HOST=unix://RUN/docker.sock
# DATA holds the images and may be kept; RUN holds sockets (a short path: they may have 107 characters) and the log.
# End it: kill "$(cat RUN/docker.pid)"; ip link delete docker0
set -euo pipefail
DATA=${1:?folder for images}; RUN=${2:?folder for sockets}
mkdir -p "$DATA" "$RUN"
# The bridge is needed: without one SAM cannot publish the port of a container.
exec dockerd --data-root "$DATA" --exec-root "$RUN/exec" --pidfile "$RUN/docker.pid" --host "unix://$RUN/docker.sock" \
  --iptables=false --ip6tables=false --ip-forward=false --ip-masq=false >>"$RUN/log" 2>&1
