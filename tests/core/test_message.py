"""Evidence messages: versioned JSON in which every unsaid word stands exactly once."""

import json
from uuid import UUID

from fencepost.core.exchange import NO_FACTS, Facts
from fencepost.core.message import FACTS_MAX, TEXT_MAX, evidence_messages
from fencepost.core.notification import AttemptOutcome, Fence, Held, NotificationId, RunId
from fencepost.core.reply import Phase
from fencepost.core.step import Unsaid

RUN = RunId(UUID("11111111-1111-4111-8111-111111111111"))


def unsaid(number: int, facts: Facts = NO_FACTS) -> Unsaid:
    return Unsaid(Held(NotificationId(number), Fence(7)), AttemptOutcome.DELIVERED, facts)


def test_nothing_unsaid_is_no_message() -> None:
    assert evidence_messages("production", RUN, ()) == ()


def test_a_message_says_all_that_is_known_and_leaves_out_what_is_not() -> None:
    facts = Facts(
        phase=Phase.ANSWERED, status=202, reference="r-1", digest=bytes(range(16)), took_ms=12
    )
    (body,) = evidence_messages("production", RUN, [unsaid(1, facts), unsaid(2)])
    assert json.loads(body) == {
        "fencepost": 1,
        "command": "evidence",
        "installation": "production",
        "run": str(RUN),
        "facts": [
            {
                "notification": 1,
                "fence": 7,
                "outcome": "delivered",
                "phase": "answered",
                "status": 202,
                "reference": "r-1",
                "digest": "000102030405060708090a0b0c0d0e0f",
                "took_ms": 12,
            },
            {"notification": 2, "fence": 7, "outcome": "delivered"},
        ],
    }


def test_a_message_says_which_recipients_are_gone() -> None:
    gone = Unsaid(Held(NotificationId(1), Fence(1)), AttemptOutcome.REJECTED, NO_FACTS, gone=True)
    (body,) = evidence_messages("production", RUN, [gone, unsaid(2)])
    assert [fact.get("unregistered") for fact in json.loads(body)["facts"]] == [True, None]


def test_many_words_are_paged_and_none_is_lost() -> None:
    bodies = evidence_messages("production", RUN, [unsaid(n) for n in range(2 * FACTS_MAX + 1)])
    facts = [fact["notification"] for body in bodies for fact in json.loads(body)["facts"]]
    assert facts == list(range(2 * FACTS_MAX + 1))
    assert len(bodies) == 3


def test_a_message_stays_small_and_plain_whatever_came_back() -> None:
    ugly = Facts(detail="\x00\ud800" * 5000, reference="é" * 5000)
    (body,) = evidence_messages("production", RUN, [unsaid(n, ugly) for n in range(FACTS_MAX)])
    assert body.isascii()
    assert "\x00" not in body
    assert len(body) < FACTS_MAX * (2 * TEXT_MAX * 6 + 300)
    assert len(body) * 10 < 1024 * 1024, "ten of them fit one batch"
