"""A Twilio channel's secret: pairs of a SID and its secret, blanks between. Pure.

The first pair sends: an API key (`SK…:secret`) or the account (`AC…:token`). Callbacks are signed with the auth token
of the account that the messages are of, whatever sent them: so behind an API key that account's pair follows. Two
pairs of one account are its primary and its secondary token.
"""

import re

PAIR = re.compile(r"(?:AC|SK)[0-9a-f]{32}:[!-~]+", re.ASCII | re.IGNORECASE)
WRONG = "the secret is no pair of a SID (SK… or AC…) and its secret, a colon between"


def pairs_in(secret: str) -> tuple[str, ...]:
    """Raises ValueError, which does not repeat it."""
    pairs = tuple(secret.split())
    if not pairs or not all(PAIR.fullmatch(pair) for pair in pairs):
        raise ValueError(WRONG)
    return pairs


def auth_tokens(secret: str, account_sid: str) -> tuple[str, ...]:
    """The tokens that this account's callbacks may be signed with. Raises ValueError."""
    taken = (pair.partition(":") for pair in pairs_in(secret))
    return tuple(token for sid, _, token in taken if sid.lower() == account_sid.lower())
