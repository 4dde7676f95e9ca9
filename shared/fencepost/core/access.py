"""Where the database is and how we say who we are there, as values."""

import math
from dataclasses import dataclass, field

SECRET_MAX_AGE_SECONDS = 300.0


class ImpossibleAccess(ValueError):
    """Settings of the database that cannot be, or not together: one sentence that names them, without a secret."""


@dataclass(frozen=True, slots=True)
class FromUrl:
    """Whatever the URL says, its password included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FromSecret:
    """User and password are in Secrets Manager; the rest is too where the URL does not say it."""

    secret_id: str  # name or ARN
    max_age_seconds: float = SECRET_MAX_AGE_SECONDS  # read again before a dial once it is older

    def __post_init__(self) -> None:
        if not math.isfinite(self.max_age_seconds) or self.max_age_seconds < 1.0:
            raise ImpossibleAccess(
                f"secret_max_age_seconds is {self.max_age_seconds:g}; it must be at least 1 and finite"
            )


@dataclass(frozen=True, slots=True)
class FromIam:
    """The password is a token that AWS IAM vouches for, signed here for each connection (RDS, Aurora, RDS Proxy)."""


Credentials = FromUrl | FromSecret | FromIam


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """All that is known of the way to the database."""

    url: str = field(default="", repr=False)  # may lack what the credentials bring
    credentials: Credentials = field(default_factory=FromUrl)
    ca_file: str | None = None  # whom to believe; with it, or with credentials of AWS: verify-full
