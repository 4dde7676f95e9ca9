"""nginx as the provider: it answers 200 after as many milliseconds as the path ends with (four digits or more).

`python -m bench.nginx FOLDER http/1.1|h2 CORE`: as `bench.provider`, which stands in where nginx or its module echo
(`apt-get install nginx libnginx-mod-http-echo`) is not installed. One in Python shares its core with PostgreSQL just
when an exchange begins: with 100 in flight an exchange took 2.35 ms beside it and 1.95 beside nginx, and what is
measured then is partly the provider.
"""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import trustme

from bench.member import tell
from rig.ground import wait_until

PATIENCE_SECONDS = 10.0
ECHO = Path("/usr/lib/nginx/modules/ngx_http_echo_module.so")
CONFIGURATION = """
load_module {echo};
daemon off;
master_process off;
{user}
pid {folder}/pid;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  keepalive_requests 100000000;
  keepalive_timeout 600;
  http2_max_concurrent_streams 256;
  server {{
    listen 127.0.0.1:{port} ssl {http2} backlog=2048;
    ssl_certificate {folder}/server.pem;
    ssl_certificate_key {folder}/server.pem;
    location ~ "^/after/([0-9]+)([0-9][0-9][0-9])$" {{
      echo_read_request_body;
      echo_sleep $1.$2;
      echo -n ok;
    }}
  }}
}}
"""


def available() -> bool:
    return shutil.which("nginx") is not None and ECHO.exists()


def version() -> str:
    told = subprocess.run(["nginx", "-v"], capture_output=True, text=True, check=True).stderr
    return told.strip().rpartition("/")[2]


def serve(folder: Path, protocol: str, core: int) -> None:
    """Tell its URL, and serve until our input closes."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    issued = authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem
    issued.write_to_path(str(folder / "server.pem"))
    port = _free_port()
    (folder / "nginx.conf").write_text(
        CONFIGURATION.format(
            echo=ECHO,
            user="user root;" if os.geteuid() == 0 else "",
            folder=folder,
            port=port,
            http2="http2" if protocol == "h2" else "",
        )
    )
    os.sched_setaffinity(0, {core})
    command = ["nginx", "-p", str(folder), "-c", "nginx.conf", "-e", "error.log"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as nginx:
        try:
            wait_until(lambda: _answers(port), PATIENCE_SECONDS, "nginx to listen")
            tell(ready=True, url=f"https://127.0.0.1:{port}")
            sys.stdin.read()
        finally:
            nginx.terminate()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port: int = reserved.getsockname()[1]
    return port


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    serve(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
