"""Messages that cannot be made, in whole runs: each ends by itself, in as many attempts as are allowed (G9)."""

from typing import Any

import pytest

from fencepost.core.notification import Claimed
from fencepost.core.outcome import Outcome
from fencepost.core.tally import Count
from fencepost.ports import Prepared
from tests.store.test_troubled_runs import Ground, Provider, ground

__all__ = ["ground"]
pytestmark = pytest.mark.postgres
LEDGER = """
select kind::text, reason, attempts from fencepost.closed c join fencepost.notification n on n.id = c.notification_id
 where n.recipient = %s"""


class Fragile(Provider):
    """Has a bug that some payloads meet."""

    def prepare(self, claimed: Claimed) -> Prepared | Outcome:
        if claimed.recipient == "bad":
            raise RecursionError("payload-secret")
        return super().prepare(claimed)


def test_a_message_that_breaks_its_sender_ends_after_its_attempts_and_stops_nobody(
    ground: Ground,
) -> None:
    """One item that could not be serialised was once tried for ever, and took its worker along."""
    policy = "update fencepost.channel set policy = '{\"attempts_max\": 3}' where name = 'two'"
    ground.database.execute(policy.encode())
    sender = Fragile()
    ground.ways.by_name = {"one": Provider(), "two": sender}
    ground.enqueue("two", "first", 5)
    ground.enqueue("two", "bad")
    ground.enqueue("two", "last", 5)
    assert ground.tick().counts[Count.DELIVERED] == 10
    for _ in range(5):
        ground.database.execute("update fencepost.queue set due_at = now()")
        ground.tick()
    assert sorted(sender.reached) == ["first"] * 5 + ["last"] * 5
    assert closed(ground, "bad") == [("dead", "attempts_exhausted", 3)]
    assert "payload-secret" not in repr(ground.lines)
    assert ground.rows("select detail from fencepost.attempts where detail ~ 'secret'") == []


def closed(ground: Ground, recipient: str) -> list[tuple[Any, ...]]:
    return ground.database.execute(LEDGER, [recipient]).fetchall()
