"""What to dial with: a connection string made anew for each connection, so that no password or token is an old one.

Credentials of AWS travel only over TLS that is verified in full: certificate, and host name.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, assert_never
from urllib.parse import urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from fencepost.core.access import (
    Database,
    FromIam,
    FromSecret,
    FromUrl,
    ImpossibleAccess,
)
from fencepost.ports import Access, AccessUnavailable

FetchSecret = Callable[[str, float, bool], str]  # id, seconds it may be old, whether anew
SignToken = Callable[[str, int, str], str]  # host, port, user
Parts = Mapping[str, Any]

SHAPE = "postgresql://user@host:5432/name"
PORT = 5432
OF_SECRET = {"username": "user", "password": "password"}  # these are the secret's to say
FILLED_BY_SECRET = {"host": "host", "port": "port", "dbname": "dbname"}  # where the URL is silent


def access_to(database: Database, *, fetch: FetchSecret, sign: SignToken) -> Access:
    """Raises `ImpossibleAccess` before anything is dialled, fetched or signed."""
    parts = read_url(database.url)
    match database.credentials:
        case FromUrl():
            return Written(make_conninfo("", **_believing(parts, database.ca_file)))
        case FromSecret() as secret:
            return WithSecret(_verified(parts, database.ca_file), secret, fetch)
        case FromIam():
            return WithToken(_verified(parts, database.ca_file), sign)
        case _:
            assert_never(database.credentials)


class Written:
    """A connection string as somebody wrote it."""

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo

    def conninfo(self, *, anew: bool = False) -> str:
        return self._conninfo


class WithSecret:
    """User and password of Secrets Manager. While it does not answer, what it said last is still good."""

    def __init__(self, parts: Parts, secret: FromSecret, fetch: FetchSecret) -> None:
        self._parts = parts
        self._secret = secret
        self._fetch = fetch
        self._last: str | None = None

    def conninfo(self, *, anew: bool = False) -> str:
        try:
            text = self._fetch(self._secret.secret_id, self._secret.max_age_seconds, anew)
        except AccessUnavailable:
            if self._last is None:
                raise
            return self._last
        self._last = make_conninfo("", **_with_secret(self._parts, text, self._secret.secret_id))
        return self._last


class WithToken:
    """A token of AWS IAM as the password. It opens connections for 15 minutes; an open one it does not end."""

    def __init__(self, parts: Parts, sign: SignToken) -> None:
        for name in ("host", "user"):
            if not parts.get(name):
                raise ImpossibleAccess(f"DATABASE_URL names no {name}, and a token needs one.")
        if "," in str(parts["host"]):
            raise ImpossibleAccess("DATABASE_URL names several hosts, and a token is for one.")
        self._parts = parts
        self._sign = sign

    def conninfo(self, *, anew: bool = False) -> str:
        host, user = str(self._parts["host"]), str(self._parts["user"])
        token = self._sign(host, int(self._parts.get("port") or PORT), user)
        return make_conninfo("", **{**self._parts, "password": token})


def read_url(url: str) -> Parts:
    """The parts of a connection string. What cannot be read is never quoted: it may hold the password."""
    try:
        parts = {name: part for name, part in conninfo_to_dict(url).items() if part != ""}
    except psycopg.ProgrammingError:
        raise ImpossibleAccess(f"DATABASE_URL cannot be read: {SHAPE}") from None
    port = str(parts.get("port") or PORT)
    if "@" in str(parts.get("host", "")) or not port.replace(",", "0").isdecimal():
        raise ImpossibleAccess(
            f"DATABASE_URL cannot be read: {SHAPE}, with @ / % in a password written as %40 %2F %25"
        )
    return parts


def _believing(parts: Parts, ca_file: str | None) -> Parts:
    """With a CA file, TLS is verified in full; without one, the URL has its will."""
    if ca_file is None:
        return parts
    if parts.get("sslrootcert", ca_file) != ca_file:
        raise ImpossibleAccess(
            "FENCEPOST_DATABASE_CA_FILE and sslrootcert in DATABASE_URL name different files."
        )
    mode = parts.get("sslmode", "verify-full")
    if mode != "verify-full":
        raise ImpossibleAccess(
            f"DATABASE_URL says sslmode={mode}, and with a CA file or credentials of AWS only verify-full will do."
        )
    return {**parts, "sslmode": "verify-full", "sslrootcert": ca_file}


def _verified(parts: Parts, ca_file: str | None) -> Parts:
    """For credentials that are not in the URL."""
    believed = ca_file or parts.get("sslrootcert")
    if not believed:
        raise ImpossibleAccess(
            "FENCEPOST_DATABASE_CA_FILE is not set, and credentials of AWS travel only where TLS can be verified."
        )
    if parts.get("password"):
        raise ImpossibleAccess("DATABASE_URL holds a password, and so do the credentials of AWS.")
    return _believing(parts, str(believed))


def _with_secret(parts: Parts, text: str, secret_id: str) -> Parts:
    said = _said_by(text, secret_id)
    own = {ours: said[theirs] for theirs, ours in OF_SECRET.items() if said.get(theirs)}
    fills = {ours: said[theirs] for theirs, ours in FILLED_BY_SECRET.items() if said.get(theirs)}
    whole = {**fills, **parts, **own}
    missing = [name for name in ("host", "user", "password") if not whole.get(name)]
    if missing:
        raise AccessUnavailable(
            f"neither the secret {secret_id} nor DATABASE_URL says: {', '.join(missing)}"
        )
    return whole


def _said_by(text: str, secret_id: str) -> Parts:
    """A secret as RDS and its rotation write it (JSON), or a connection string."""
    try:
        if urlsplit(text.strip()).scheme.startswith("postgres"):
            said = read_url(text.strip())
            return {**said, "username": said.get("user")}
        found = json.loads(text)
    except (ValueError, ImpossibleAccess):
        found = None
    if not isinstance(found, dict):
        raise AccessUnavailable(
            f"the secret {secret_id} is neither JSON with username and password nor {SHAPE}"
        )
    return found
