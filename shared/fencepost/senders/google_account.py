"""A service account of Google's, and what it says to be given an access token (Using OAuth 2.0 for server to server
applications, developers.google.com)."""

from dataclasses import dataclass, field
from typing import Annotated

import msgspec
from cryptography.hazmat.primitives.asymmetric import rsa

from fencepost.senders.jwt import BadKey, rsa_key, signed_rs256

GRANTED_AT = "https://oauth2.googleapis.com/token"
LIFE_SECONDS = 3600  # of what it says; Google takes no longer one


class BadAccount(ValueError):
    """The secret is no key file of a service account. The message does not repeat it."""


class _KeyFile(msgspec.Struct, frozen=True):
    """As the console of Google Cloud writes it; what else it holds is of no use here."""

    type: str
    project_id: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9:.-]{1,100}$")]
    private_key_id: str
    private_key: str
    client_email: str
    token_uri: str = GRANTED_AT


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAccount:
    """Who we are to Google."""

    project_id: str
    token_uri: str
    email: str = field(repr=False)
    key_id: str = field(repr=False)
    key: rsa.RSAPrivateKey = field(repr=False)

    def assertion(self, scope: str, now: float) -> str:
        """A signed word that asks for a token of this scope. `now`: unix seconds."""
        claims = {
            "iss": self.email,
            "scope": scope,
            "aud": self.token_uri,
            "iat": int(now),
            "exp": int(now) + LIFE_SECONDS,
        }
        return signed_rs256(claims, self.key, kid=self.key_id)


def read_account(secret: str) -> ServiceAccount:
    """From the JSON of the key file. Raises `BadAccount`."""
    try:
        file = msgspec.json.decode(secret, type=_KeyFile)
    except (msgspec.DecodeError, RecursionError):  # its text may quote what it was given
        raise BadAccount("the secret is no key file (JSON) of a service account") from None
    if file.type != "service_account":
        raise BadAccount("the secret is a key file, but not of a service account")
    try:
        key = rsa_key(file.private_key)
    except BadKey as wrong:
        raise BadAccount(f"private_key of the service account: {wrong}") from None
    return ServiceAccount(
        project_id=file.project_id,
        token_uri=file.token_uri,
        email=file.client_email,
        key_id=file.private_key_id,
        key=key,
    )
