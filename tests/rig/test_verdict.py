"""The demo's judgement: each guarantee it can see, broken on paper, must break the verdict."""

from dataclasses import replace
from typing import Any

import pytest

from demo.database import Account, ClosedRow, Fate, HeldRow
from demo.provoke import Accident, Stage
from demo.verdict import Evidence, broken, doubt, table
from rig.provider.count import count
from rig.provider.ledger import Arrival

SLOTS = 80


def arrival(number: int, subject: str, **other: object) -> Arrival:
    usual: dict[str, object] = {
        "number": number,
        "at": 1.0,
        "subject": subject,
        "key": f"key of {subject}",
        "door": "dedupes",
        "behaviour": "ok",
        "digest": f"bytes of {subject}",
        "acted": True,
        "duplicate": False,
        "status": 200,
        "ended": "answered",
    }
    return Arrival(**{**usual, **other})  # type: ignore[arg-type]


def accident(*, thawed: bool) -> Accident:
    done = Accident("done", thawed=thawed, stage=Stage.ENDED, in_flight=1)
    done.held = [HeldRow(dedupe_key="a", notification_id=1, fence=1, claimed_at=1.0)]
    done.fate = Fate(taken_over=1, late_words=int(thawed), example=None)
    return done


def evidence() -> Evidence:
    arrivals = [arrival(0, "a"), arrival(1, "b")]
    return Evidence(
        account=Account(
            enqueued=2,
            open=0,
            closed=2,
            misplaced=0,
            leased=0,
            delivered=2,
            dead=0,
            held=0,
            retried=0,
            taken_over=1,
            late_words=1,
            late_evidence=0,
            runs=3,
            overlapping=3,
        ),
        count=count(arrivals, 0),
        closed=[
            ClosedRow(dedupe_key=subject, kind="delivered", fence=1, reason=None)
            for subject in ("a", "b", "chat-1", "chat-2")
        ],
        arrivals=arrivals,
        pushes={"shown_then_503": 2, "replaced": 2, "shown_twice": 0},
        mails=0,
        chats={"one": 1, "two": 1},
        chat_lost=1,
        chat_asked=1,
        kill=accident(thawed=False),
        stale=accident(thawed=True),
        lines_in_file=2,
        slots=SLOTS,
    )


def verdict(changed: Evidence) -> list[str]:
    return [line.label for line in broken(table(changed) + doubt(changed))]


def test_all_kept() -> None:
    assert verdict(evidence()) == []


@pytest.mark.parametrize(
    ("change", "label"),
    [
        ({"open": 1, "closed": 1}, "still open"),
        ({"closed": 1}, "open + closed = enqueued"),
        ({"misplaced": 1}, "open + closed = enqueued"),
        ({"enqueued": 1, "closed": 1}, "open + closed = enqueued"),
        ({"leased": 1}, "still leased"),
        ({"overlapping": 2}, "3 runs or more at one time"),
    ],
)
def test_what_the_database_would_show(change: dict[str, int], label: str) -> None:
    right = evidence()
    assert label in verdict(replace(right, account=replace(right.account, **change)))


@pytest.mark.parametrize(
    ("second", "label"),
    [
        ({"key": "another"}, "duplicate effects after dedupe"),
        ({"key": "another"}, "sent under a second key"),
        ({"acted": False, "duplicate": True, "digest": "others"}, "sent with other bytes"),
        ({"door": "plain", "acted": False, "status": 500}, "held ones sent twice"),
        ({"door": "plain", "acted": False, "status": 500}, "alerts: hold"),
        ({"key": "another"}, "orders: resend"),
    ],
)
def test_what_the_providers_ledger_would_show(second: dict[str, object], label: str) -> None:
    first = arrival(0, "a", door=second.get("door", "dedupes"))
    arrivals = [first, arrival(1, "b"), arrival(2, "a", **second)]
    right = evidence()
    assert label in verdict(replace(right, arrivals=arrivals, count=count(arrivals, 0)))


def test_delivered_without_an_effect() -> None:
    assert verdict(replace(evidence(), arrivals=[arrival(0, "a")])) == [
        "delivered, and had no effect"
    ]


def test_accidents_that_did_not_happen() -> None:
    for_the_stale = replace(evidence(), stale=Accident("frozen", thawed=True))
    assert verdict(for_the_stale) == ["frozen past its lease, spoke late"]
    for_the_kill = replace(evidence(), kill=Accident("killed", thawed=False))
    assert verdict(for_the_kill) == ["killed by its timeout in mid-send"]


def test_a_killed_run_that_held_more_than_its_slots() -> None:
    assert verdict(replace(evidence(), slots=0)) == ["killed by its timeout in mid-send"]


@pytest.mark.parametrize(
    ("change", "label"),
    [
        ({"shown_twice": 1}, "push: resend"),
        ({"replaced": 1}, "push: resend"),
        ({"shown_then_503": 0}, "push: resend"),
    ],
)
def test_what_the_push_service_would_show(change: dict[str, int], label: str) -> None:
    right = evidence()
    assert label in verdict(replace(right, pushes={**right.pushes, **change}))


@pytest.mark.parametrize("mails", [0, 3])
def test_a_mail_too_few_or_too_many_is_seen(mails: int) -> None:
    right = evidence()
    closed = [
        ClosedRow(dedupe_key=f"mail-{kind}", kind=kind, fence=1, reason=None)
        for kind in ("delivered", "uncertain")
    ]
    changed = replace(right, closed=[*right.closed, *closed], mails=mails)
    assert "mail: hold" in verdict(changed)


@pytest.mark.parametrize(
    "change",
    [{"chats": {"one": 2, "two": 1}}, {"chats": {"one": 1}}, {"chat_asked": 0}, {"chat_lost": 0}],
)
def test_what_the_chat_would_show(change: dict[str, Any]) -> None:
    assert verdict(replace(evidence(), **change)) == ["chat: reconcile"]
