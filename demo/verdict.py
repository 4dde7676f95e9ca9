"""The final table, and whether every guarantee that the demo can see was kept."""

from collections.abc import Mapping
from dataclasses import dataclass

from demo.database import Account, ClosedRow
from demo.provoke import Accident
from rig.provider.count import Count
from rig.provider.ledger import Arrival

OVERLAP_MIN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the table. `kept` is None where there is nothing to keep."""

    label: str
    value: str
    source: str  # who says so: database, provider, both, runtime
    kept: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that was counted, by whom, after everything had ended."""

    account: Account
    count: Count
    closed: list[ClosedRow]
    arrivals: list[Arrival]
    pushes: Mapping[str, int]  # what the push service counted (rig/push.py)
    mails: int  # that SES took
    chats: Mapping[str, int]  # how often each text stands in the chat
    chat_lost: int  # posted, and never answered
    chat_asked: int  # how often it was asked what stands there
    kill: Accident
    stale: Accident
    lines_in_file: int  # or files
    slots: int  # of one run, all channels together


def table(evidence: Evidence) -> list[Line]:
    """What happened, and what was kept, in numbers."""
    return [
        *_what_happened(evidence),
        *_what_was_provoked(evidence),
        *_what_was_kept(evidence),
    ]


def broken(lines: list[Line]) -> list[Line]:
    return [line for line in lines if line.kept is False]


def _what_happened(evidence: Evidence) -> list[Line]:
    account, count = evidence.account, evidence.count
    numbers = [
        ("lines in the files", evidence.lines_in_file, "file"),
        ("enqueued", account.enqueued, "database"),
        ("delivered", account.delivered, "database"),
        ("recipients that got it", count.subjects_with_effect, "provider"),
        ("retried", account.retried, "database"),
        ("in doubt by policy (held)", account.held, "database"),
        ("parked dead", account.dead, "database"),
        ("taken over from a lost lease", account.taken_over, "database"),
        ("late words refused", account.late_words, "database"),
        ("  of those, kept as evidence", account.late_evidence, "database"),
        ("runs; at one time", f"{account.runs}; {account.overlapping}", "database"),
        ("requests that arrived", count.arrivals, "provider"),
        ("requests without an answer", count.unanswered, "provider"),
    ]
    return [Line(label=label, value=str(value), source=by) for label, value, by in numbers]


def doubt(evidence: Evidence) -> list[Line]:
    """What each channel's policy made of a lost answer, as those say who got it."""
    return [
        _orders(evidence),
        _alerts(evidence),
        _pushes(evidence),
        _mails(evidence),
        _chats(evidence),
    ]


def _orders(evidence: Evidence) -> Line:
    count = evidence.count
    return Line(
        label="orders: resend",
        value=f"sent again with the same key; the receiver dropped {count.duplicate_arrivals} repeats",
        source="provider",
        kept=not count.duplicate_effects,
    )


def _alerts(evidence: Evidence) -> Line:
    held = sum(row.kind == "uncertain" for row in evidence.closed if not _of_others(row))
    return Line(
        label="alerts: hold",
        value=f"{held} held for somebody to decide; none was sent again",
        source="both",
        kept=not evidence.count.plain_sent_again,
    )


def _pushes(evidence: Evidence) -> Line:
    pushes = evidence.pushes
    return Line(
        label="push: resend",
        value=f"{pushes['replaced']} repeats replaced the first on the screen; none stands there twice",
        source="FCM",
        kept=pushes["replaced"] >= pushes["shown_then_503"] > 0 and not pushes["shown_twice"],
    )


def _mails(evidence: Evidence) -> Line:
    closed = sum(_is(row, "mail", "delivered", "uncertain") for row in evidence.closed)
    delivered = sum(_is(row, "mail", "delivered") for row in evidence.closed)
    return Line(
        label="mail: hold",
        value=f"{closed - delivered} held; SES took {evidence.mails}, none of them twice",
        source="SES",
        kept=delivered <= evidence.mails <= closed,
    )


def _chats(evidence: Evidence) -> Line:
    delivered = sum(_is(row, "chat", "delivered") for row in evidence.closed)
    posted, lost = evidence.chats, evidence.chat_lost
    twice = sum(times > 1 for times in posted.values())
    return Line(
        label="chat: reconcile",
        value=f"asked {evidence.chat_asked} times; {lost} lost answers found; {twice or 'none'} was posted twice",
        source="chat",
        kept=evidence.chat_asked >= lost > 0
        and delivered == len(posted)
        and set(posted.values()) == {1},
    )


def _of_others(row: ClosedRow) -> bool:
    """Of a channel of demo/others.py."""
    return row.dedupe_key.startswith(("push-", "mail-", "chat-"))


def _is(row: ClosedRow, channel: str, *kinds: str) -> bool:
    return row.dedupe_key.startswith(f"{channel}-") and row.kind in kinds


def _what_was_provoked(evidence: Evidence) -> list[Line]:
    kill, stale = evidence.kill, evidence.stale
    killed = f"{len(kill.held)} held, {kill.in_flight} at the provider"
    late = f"{len(stale.held)} held, {stale.fate.taken_over} taken, {stale.fate.late_words} late"
    return [
        Line(
            label="killed by its timeout in mid-send",
            value=killed if kill.happened else "did not happen",
            source="all",
            kept=kill.happened and 0 < len(kill.held) <= evidence.slots,
        ),
        Line(
            label="frozen past its lease, spoke late",
            value=late if stale.happened else "did not happen",
            source="all",
            kept=stale.happened and stale.fate.late_words > 0,
        ),
    ]


def _what_was_kept(evidence: Evidence) -> list[Line]:
    account, count = evidence.account, evidence.count
    acted = {one.subject for one in evidence.arrivals if one.acted}
    unfounded = [
        row
        for row in evidence.closed
        if row.kind == "delivered" and row.dedupe_key not in acted and not _of_others(row)
    ]
    zeros = [
        ("duplicate effects after dedupe", count.duplicate_effects, "provider"),
        ("held ones sent twice", count.plain_sent_again, "provider"),
        ("sent under a second key", count.changed_keys, "provider"),
        ("sent with other bytes", count.changed_bodies, "provider"),
        ("signatures refused", count.refused_signatures, "provider"),
        ("delivered, and had no effect", len(unfounded), "both"),
        ("still leased", account.leased, "database"),
        ("still open", account.open, "database"),
    ]
    kept = account.open + account.closed == account.enqueued and not account.misplaced
    complete = account.enqueued == evidence.lines_in_file
    return [
        *(Line(label=a, value=str(n), source=by, kept=n == 0) for a, n, by in zeros),
        Line(
            label=f"{OVERLAP_MIN} runs or more at one time",
            value="yes" if account.overlapping >= OVERLAP_MIN else "no",
            source="database",
            kept=account.overlapping >= OVERLAP_MIN,
        ),
        Line(
            label="open + closed = enqueued",
            value="yes" if kept and complete else "no",
            source="database",
            kept=kept and complete,
        ),
    ]
