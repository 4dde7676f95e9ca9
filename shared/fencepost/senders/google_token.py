"""Access tokens for a service account, fetched over our own transport: RFC 7523, as Google speaks it."""

import re
from collections.abc import Callable
from urllib.parse import urlencode

from fencepost.core.reply import Phase, Reply
from fencepost.senders.access_token import AccessToken, Granted, unsent
from fencepost.senders.answer import code_of, read_object
from fencepost.senders.endpoint import endpoint
from fencepost.senders.google_account import ServiceAccount
from fencepost.senders.request import Request
from fencepost.senders.transport import Transport
from fencepost.senders.trouble import Trouble

GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
HEADERS = (
    ("content-type", "application/x-www-form-urlencoded"),
    ("accept-encoding", "identity"),  # an answer is never unpacked
    ("user-agent", "fencepost"),
)
LIFE_SECONDS = 600.0  # where the answer names none that makes sense
LIFE_SECONDS_MAX = 86_400.0  # Google's live an hour, twelve at most
TOKEN = re.compile(r"[!-~]+", re.ASCII)


def google_token(
    transport: Transport, account: ServiceAccount, scope: str, *, now: Callable[[], float]
) -> AccessToken:
    """Raises `InvalidUrl` for a `token_uri` that is none."""
    origin, path = endpoint(account.token_uri)

    async def fetch(timeout_seconds: float) -> Granted | Reply:
        asked = {"grant_type": GRANT, "assertion": account.assertion(scope, now())}
        body = urlencode(asked).encode()
        request = Request(origin=origin, target=path, headers=HEADERS, body=body)
        return granted_by(await transport.send(request, timeout_seconds=timeout_seconds))

    return AccessToken(fetch, now=now)


def granted_by(reply: Reply) -> Granted | Reply:
    """What the token service's answer is worth. Pure. A refusal (RFC 6749, 5.2) is about the account: a revoked key, a
    deleted account, a wrong clock. Everything else may be better soon."""
    if reply.phase is not Phase.ANSWERED:
        reason = Trouble(reply.reason) if reply.reason else Trouble.NOT_GRANTED
        return unsent(reason, f"no access token: {reply.error}")
    said, status = read_object(reply.body), reply.status or 0
    token, seconds = said.get("access_token"), said.get("expires_in")
    if status == 200 and isinstance(token, str) and TOKEN.fullmatch(token):
        return Granted(token, _life(seconds))
    if status in (400, 401, 403):
        code = code_of(said["error"]) if "error" in said else f"answered {status}"
        return unsent(Trouble.NO_KEYS, f"no access token: {code}")
    return unsent(Trouble.NOT_GRANTED, f"the token service answered {status}")


def _life(said: object) -> float:
    known = isinstance(said, int | float) and 0 < said <= LIFE_SECONDS_MAX
    return float(said) if known else LIFE_SECONDS  # type: ignore[arg-type]
