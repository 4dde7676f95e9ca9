"""What an operator is shown of what nobody knows for sure: notifications in doubt, recipients said to be gone."""

from fencepost.core.operation import Doubtful, GoneRecipient, Selector
from fencepost.store.selection import ends_of
from fencepost.store.statement import Statements


class Doubts:
    """Over the operator's own connection. Everything raises `OperatorError`."""

    def __init__(self, say: Statements, who: str | None) -> None:
        self._say = say
        self._who = who

    def uncertain(self, selector: Selector, *, limit: int) -> list[Doubtful]:
        """The oldest of what is in doubt, open or closed."""
        params = {
            "channel": selector.channel,
            "reason": selector.reason,
            **ends_of(selector),
            "limit": limit,
        }
        return self._say.answers("operator_uncertain", params, Doubtful)

    def unregistered(
        self, *, channel: str | None, withheld: bool, recipient: bool, limit: int
    ) -> list[GoneRecipient]:
        """The newest events. The recipient only when asked for."""
        params = {
            "channel": channel,
            "withheld": withheld,
            "recipient": recipient,
            "limit": limit,
        }
        return self._say.answers("operator_unregistered", params, GoneRecipient)

    def resolve_unregistered(self, channel: str, *, true: bool) -> int:
        """What is withheld in the channel is told to producers, or forgotten. How many."""
        params = {"channel": channel, "true": true, "who": self._who}
        count: int = self._say.value("operator_unregistered_resolve", params)
        return count
