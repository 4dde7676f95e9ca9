"""Who we are to AWS: keys from botocore's own chain (environment, profile, role), or the channel's own.

A look-up may ask a metadata service or STS. That happens in a thread, once for all the sends that wait for it, and
before a byte of any of them leaves.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec


class NoCredentials(Exception):
    """There are none, or they cannot be had now: one line why, without secrets."""


@dataclass(slots=True, eq=False)
class Lent:
    """Keys as one send uses them. `suspect`: looked up because the ones before were refused."""

    keys: Any = field(repr=False)  # botocore's ReadOnlyCredentials
    suspect: bool


class AwsCredentials:
    """`find` gives what botocore calls credentials, or None; it may block."""

    def __init__(self, find: Callable[[], Any]) -> None:
        self._find = find
        self._source: Any = None  # botocore's own, which knows when to renew itself
        self._lent: Lent | None = None
        self._refused = False
        self._looking: Future[Lent] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="aws-credentials")

    def at_hand(self) -> Lent | None:
        """The ones of the send before; None where they must be looked up or renewed first."""
        return None if self._source is None or _ageing(self._source) else self._lent

    async def look_up(self) -> Lent:
        """Raises `NoCredentials`. Whoever stops waiting stops nobody else's look-up."""
        if self._looking is None or self._looking.done():
            self._looking = self._thread.submit(self._look)
        return await asyncio.shield(asyncio.wrap_future(self._looking))

    def refused(self, lent: Lent) -> bool:
        """They were refused as expired or unknown. Whether others may be had: not where these were already new."""
        if lent is self._lent:
            self._source, self._lent, self._refused = None, None, True
        return not lent.suspect

    def accepted(self, lent: Lent) -> None:
        """They were good for an answer of any other kind."""
        if lent.suspect:
            lent.suspect = self._refused = False

    def _look(self) -> Lent:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            source = self._source or self._find()
            keys = None if source is None else source.get_frozen_credentials()
        except (BotoCoreError, ClientError, OSError, RuntimeError) as wrong:
            raise NoCredentials(f"cannot be had: {type(wrong).__name__}") from None
        if keys is None:
            raise NoCredentials("none in the environment, a profile or a role")
        self._lent = Lent(keys, suspect=self._refused)
        self._source = source
        return self._lent


def _ageing(source: Any) -> bool:
    """Whether botocore would renew them at the next use. Fixed ones never age."""
    renews = getattr(source, "refresh_needed", None)
    return renews is not None and bool(renews())


Key = Annotated[str, msgspec.Meta(pattern=r"^[!-~]{1,8192}$")]  # it travels in headers


class _Keys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    access_key_id: Key
    secret_access_key: Key
    session_token: Key | None = None


def finder_of(secret: str | None) -> Callable[[], Any]:
    """Where keys come from: the secret's own, or where there is none botocore's chain. Raises ValueError."""
    if secret is None:
        return _from_chain
    try:
        keys = msgspec.json.decode(secret, type=_Keys)
    except msgspec.DecodeError:  # its text may quote what it was given
        raise ValueError(
            "the secret is no JSON object of access_key_id, secret_access_key and, if need be, session_token"
        ) from None
    return lambda: _fixed(keys)


def _from_chain() -> Any:
    from botocore.session import Session

    return Session().get_credentials()


def _fixed(keys: _Keys) -> Any:
    from botocore.credentials import Credentials

    return Credentials(keys.access_key_id, keys.secret_access_key, keys.session_token)
