"""What a fact counts as: every word once, and only what the database said counts."""

import pytest
from msgspec.structs import replace

from fencepost.core.exchange import Failure, Verdict
from fencepost.core.fact import (
    BadRowParked,
    ChannelSkipped,
    ExchangeTrouble,
    Fact,
    GatePaused,
    LeasesRenewed,
    RowsClaimed,
    WordSettled,
)
from fencepost.core.line import Level, line_of
from fencepost.core.notification import (
    AttemptOutcome,
    ChannelId,
    Fence,
    Held,
    Kind,
    NotificationId,
)
from fencepost.core.tally import Count, Ending, Summary, Tally

HELD = Held(NotificationId(7), Fence(3))
CHANNEL = ChannelId(1)


def word(
    outcome: AttemptOutcome | None = None,
    kind: Kind | None = None,
    verdict: Verdict = Verdict.APPLIED,
) -> WordSettled:
    return WordSettled(
        channel=CHANNEL,
        held=HELD,
        outcome=outcome,
        kind=kind,
        verdict=verdict,
        reason="reason",
        took_ms=12,
    )


UNCERTAIN, DELIVERED = AttemptOutcome.UNCERTAIN, AttemptOutcome.DELIVERED

WORDS = [
    (word(DELIVERED, Kind.DELIVERED), {Count.DELIVERED: 1}),
    (word(DELIVERED, Kind.DELIVERED, Verdict.REPEATED), {Count.DELIVERED: 1}),
    (word(DELIVERED, Kind.DELIVERED, Verdict.LATE), {Count.LATE: 1}),
    (word(DELIVERED, Kind.DELIVERED, Verdict.UNKNOWN), {Count.LATE: 1}),
    (word(DELIVERED, Kind.DELIVERED, Verdict.CONFLICT), {Count.CONFLICTS: 1}),
    (word(AttemptOutcome.FAILED), {Count.RETRIED: 1}),
    (word(AttemptOutcome.NOT_SENT), {Count.RETRIED: 1}),
    (word(UNCERTAIN), {Count.RETRIED: 1, Count.DOUBT: 1}),
    (word(UNCERTAIN, Kind.UNCERTAIN), {Count.PARKED: 1, Count.UNCERTAIN: 1, Count.DOUBT: 1}),
    (word(AttemptOutcome.REJECTED, Kind.DEAD), {Count.PARKED: 1, Count.DEAD: 1}),
    (word(AttemptOutcome.HELD, Kind.UNCERTAIN), {Count.PARKED: 1, Count.UNCERTAIN: 1}),
    (word(None, Kind.EXPIRED), {Count.EXPIRED: 1}),
    (word(None, Kind.CANCELLED), {Count.EXPIRED: 1}),
    (word(), {Count.RELEASED: 1}),
]
OTHERS: list[tuple[Fact, dict[Count, int]]] = [
    (
        RowsClaimed(channel=CHANNEL, count=9, taken_over=2, in_doubt=3, oldest_due_seconds=1.5),
        {Count.CLAIMED: 9, Count.TAKEN_OVER: 2, Count.CLAIMED_IN_DOUBT: 3},
    ),
    (LeasesRenewed(count=4, lost=1), {Count.RENEWALS: 4, Count.LOST_LEASES: 1}),
    (GatePaused(channel=CHANNEL, seconds=9.0, reason="throttled"), {Count.PAUSES: 1}),
    (
        ExchangeTrouble(failure=Failure.RETRY, detail="deadlock", consecutive=1),
        {Count.EXCHANGE_TROUBLES: 1},
    ),
    (BadRowParked(held=HELD, detail="numeric overflow"), {Count.PARKED: 1}),
    (ChannelSkipped(channel=CHANNEL, reason="no secret"), {Count.SKIPPED_CHANNELS: 1}),
]


@pytest.mark.parametrize(("fact", "counts"), [*WORDS, *OTHERS])
def test_a_fact_counts_as_what_it_came_to(fact: Fact, counts: dict[Count, int]) -> None:
    tally = Tally()
    tally.add(fact)
    assert {count: number for count, number in tally.counts.items() if number} == counts


@pytest.mark.parametrize("fact", [fact for fact, _ in [*WORDS, *OTHERS]])
def test_every_fact_reads_as_a_line_with_an_action(fact: Fact) -> None:
    line = line_of(fact)
    assert line.action.replace("_", "").isalpha()
    assert "message" not in line.particulars, "a name the log formatter keeps for itself"
    if isinstance(fact, WordSettled):
        assert (line.particulars["notification"], line.particulars["fence"]) == HELD


@pytest.mark.parametrize(
    "fact", [fact for fact, _ in [*WORDS, *OTHERS] if hasattr(fact, "channel")]
)
def test_a_line_says_the_name_of_its_channel(fact: Fact) -> None:
    assert line_of(fact, {CHANNEL: "push"}).particulars["channel"] == "push"
    assert line_of(fact, {}).particulars["channel"] == CHANNEL, "not known: its number"


def test_what_somebody_should_look_at_is_louder() -> None:
    conflict = word(DELIVERED, Kind.DELIVERED, Verdict.CONFLICT)
    late = word(DELIVERED, Kind.DELIVERED, Verdict.LATE)
    levels = [line_of(fact).level for fact in (conflict, late, word(DELIVERED, Kind.DELIVERED))]
    assert levels == [Level.ERROR, Level.WARNING, Level.DEBUG]


def test_a_question_without_an_answer_is_a_warning() -> None:
    given_back = word(AttemptOutcome.NOT_SENT)
    levels = [line_of(fact).level for fact in (replace(given_back, reason="no_answer"), given_back)]
    assert levels == [Level.WARNING, Level.INFO]


def test_the_summary_is_plain_json_with_every_count() -> None:
    none = dict.fromkeys(Count, 0)
    summary = Summary(run="r", ended=Ending.DRAINED, counts=none, unsaid=2, skipped=("push",))
    answer = summary.as_json()
    told = {"run", "ended", "drained", "skipped", "unsaid", *(c.value for c in Count)}
    assert set(answer) == told
    assert answer["skipped"] == ["push"]
    assert (answer["ended"], answer["drained"], answer["unsaid"]) == ("drained", True, 2)
