"""Apple's provider token: who sends, said with every request (Establishing a token-based connection to APNs).

Apple wants it changed no more than once in 20 minutes, and no less than once in 60, whoever of us sends. So its time of
issue is not now but the last half hour that has struck; and as the signature is drawn from the text (senders/jwt.py),
every sandbox has the very same token without sharing anything.
"""

from collections.abc import Callable

from cryptography.hazmat.primitives.asymmetric import ec

from fencepost.senders.jwt import signed_es256

STEP_SECONDS = 1800
# The step is counted from so long ago: a clock that is fast by less never tells Apple a time that has not come. A token
# is then 5 to 35 minutes old, and a clock that is slow by 25 minutes is still young enough.
SKEW_SECONDS = 300


class ProviderToken:
    """The tokens of one key. `now` is wall time in unix seconds."""

    def __init__(
        self,
        key: ec.EllipticCurvePrivateKey,
        *,
        team_id: str,
        key_id: str,
        now: Callable[[], float],
    ) -> None:
        self._key = key
        self._team_id = team_id
        self._key_id = key_id
        self._now = now
        self._issued_at = 0
        self._token = ""

    def current(self) -> str:
        """The one of this half hour; signed when it is first wanted."""
        issued_at = issue_time(self._now())
        if issued_at != self._issued_at:
            claims = {"iss": self._team_id, "iat": issued_at}
            self._token = signed_es256(claims, self._key, kid=self._key_id)
            self._issued_at = issued_at
        return self._token


def issue_time(now: float) -> int:
    """Unix seconds."""
    counted = int(now) - SKEW_SECONDS
    return counted - counted % STEP_SECONDS
