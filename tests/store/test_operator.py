"""The operator's side of a real database."""

import math
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from fencepost.core.bound import Bound
from fencepost.core.exchange import Facts, GateWord
from fencepost.core.notification import AttemptOutcome, Kind
from fencepost.core.operation import (
    DatabaseAway,
    Moved,
    Refused,
    Resolution,
    SchemaMissing,
    Selector,
)
from fencepost.core.reply import Phase
from fencepost.store.operator import Operator
from tests.store.bench import Worker, word
from tests.store.postgres_bench import PostgresBench

pytestmark = pytest.mark.postgres
HOOK: dict[str, Any] = {"name": "hook", "sender": "webhook", "on_uncertain": "hold"}


@pytest.fixture
def bench(database_url: str) -> Iterator[PostgresBench]:
    """Runs in the operator's own database."""
    with PostgresBench(database_url) as opened:
        yield opened


@pytest.fixture
def operator(database_url: str) -> Iterator[Operator]:
    with Operator(database_url, who="tester") as opened:
        yield opened


def park(bench: PostgresBench, count: int, kind: Kind, *, channel: str = "web") -> list[int]:
    """Notifications that a run closed as this kind. Only where nothing else is due."""
    bench.enqueue(count, channel=channel)
    outcome = AttemptOutcome.REJECTED if kind is Kind.DEAD else AttemptOutcome.UNCERTAIN
    worker = Worker(bench, channel)
    claimed = worker.claim(count, channel=channel)
    worker.settle(*(word(one.held, outcome, kind, reason=f"{kind}-reason") for one in claimed))
    return [one.id for one in claimed]


def parked_by_hand(bench: PostgresBench, count: int) -> list[int]:
    """Many dead ones, all closed at one instant: paging must tell them apart."""
    ids = bench.enqueue(count)
    bench.admin.execute("delete from fencepost.queue")
    bench.admin.execute(
        "insert into fencepost.closed (notification_id, closed_at, fence, attempts, kind) "
        "select unnest(%s::bigint[]), fencepost.now_(), 1, 1, 'dead'",
        [ids],
    )
    return list(ids)


def ids_of(operator: Operator, selector: Selector) -> list[int]:
    return [id for page in operator.pages(selector) for id in page]


class TestChannels:
    def test_are_created_all_or_none(self, operator: Operator) -> None:
        faulty = {**HOOK, "name": "second", "policy": {"attemps_max": 3}}
        with pytest.raises(Refused, match=r"channel second: policy.attemps_max is unknown"):
            operator.apply_channels([HOOK, faulty])
        assert operator.channels() == []

    def test_the_policy_for_doubt_must_be_chosen(self, operator: Operator) -> None:
        silent = {"name": "hook", "sender": "webhook"}
        with pytest.raises(Refused, match="on_uncertain must be chosen"):
            operator.apply_channels([silent])
        operator.apply_channels([HOOK])
        (change,) = operator.apply_channels([{**silent, "slots": 7}])
        assert change.change == "changed"
        assert operator.channels()[0].on_uncertain == "hold"

    def test_a_change_raises_the_revision_and_no_change_does_not(self, operator: Operator) -> None:
        (created,) = operator.apply_channels([HOOK])
        (same,) = operator.apply_channels([HOOK])
        (changed,) = operator.apply_channels([{**HOOK, "slots": 9}])
        assert [(one.change, one.revision) for one in (created, same, changed)] == [
            ("created", 1),
            ("unchanged", 1),
            ("changed", 2),
        ]
        assert operator.channels()[0].revision == 2

    def test_applying_a_file_does_not_open_a_paused_channel(self, operator: Operator) -> None:
        operator.apply_channels([HOOK])
        operator.pause("hook", reason="provider is down")
        (change,) = operator.apply_channels([{**HOOK, "slots": 9}])
        assert (change.paused, change.pause_reason) == (True, "provider is down")
        assert operator.channels()[0].paused

    def test_a_dry_run_writes_nothing(self, operator: Operator) -> None:
        (change,) = operator.apply_channels([HOOK], dry=True)
        assert change.change == "created"
        assert operator.channels() == []

    def test_a_rate_without_burst_is_a_limit_all_the_same(self, operator: Operator) -> None:
        operator.apply_channels([{**HOOK, "rate": 20}])
        assert operator.channels()[0].burst == 20

    @pytest.mark.parametrize(
        ("words", "fault"),
        [
            ({"name": "Hook"}, "a channel name is"),
            ({"sender": ""}, "sender is missing"),
            ({"slots": 0}, "slots must lie"),
            ({"rate": 0}, "rate must lie"),
            ({"rate": 1e-320}, "rate must lie"),
            ({"rate": 1e308}, "rate must lie"),
            ({"rate": "NaN"}, "rate must lie"),
            ({"burst": 3}, "burst without rate"),
            ({"rate": 1, "burst": 0.5}, "burst must lie"),
            ({"rate": 1, "burst": 1e10}, "burst must lie"),
            ({"rate": 1, "burst": "infinity"}, "burst must lie"),
            ({"on_uncertain": "maybe"}, "on_uncertain is"),
            ({"payload_bytes_max": 0}, "payload_bytes_max must"),
            ({"policy": {"attempts_max": 0}}, "must be a number above 0"),
            ({"policy": {"attempts_max": 1.5}}, "whole number"),
            ({"policy": {"age_max_seconds": "long"}}, "must be a number above 0"),
            ({"policy": []}, "policy is no table"),
            ({"settings": []}, "settings is no table"),
        ],
    )
    def test_bad_words_are_refused_in_one_line(
        self, operator: Operator, words: dict[str, Any], fault: str
    ) -> None:
        with pytest.raises(Refused, match=fault) as refused:
            operator.apply_channels([{**HOOK, **words}])
        assert "\n" not in str(refused.value)

    def test_a_pasted_secret_is_refused_and_not_repeated(self, operator: Operator) -> None:
        with pytest.raises(Refused, match="says where the secret is") as refused:
            operator.apply_channels([{**HOOK, "secret_reference": "whsec_c2VjcmV0"}])
        assert "whsec" not in str(refused.value)

    def test_the_same_name_twice_is_refused(self, operator: Operator) -> None:
        with pytest.raises(Refused, match="named twice"):
            operator.apply_channels([HOOK, HOOK])


class TestPause:
    def test_nothing_is_claimed_until_it_is_resumed(
        self, bench: PostgresBench, operator: Operator
    ) -> None:
        bench.enqueue()
        operator.pause("web", reason="maintenance")
        worker = Worker(bench)
        bench.advance(86400 * 400)
        assert worker.claim() == ()
        assert operator.resume("web").was_paused_for == "maintenance"
        assert len(worker.claim()) == 1

    def test_it_ends_by_itself_after_its_time(
        self, bench: PostgresBench, operator: Operator
    ) -> None:
        bench.enqueue()
        operator.pause("web", reason="a minute", seconds=60)
        worker = Worker(bench)
        bench.advance(59)
        assert worker.claim() == ()
        bench.advance(2)
        assert len(worker.claim()) == 1

    def test_what_a_run_learnt_before_cannot_pause_a_resumed_channel(
        self, bench: PostgresBench, operator: Operator
    ) -> None:
        worker = Worker(bench)
        old = worker.channels["web"]
        operator.resume("web")
        stale = GateWord(channel=old.id, revision=old.revision, pause_seconds=60, reason="stale")
        worker.say(gates=(stale,))
        assert not operator.channels()[-1].paused

    @pytest.mark.parametrize("seconds", [0.0, -1.0, 1e12, float("nan")])
    def test_odd_durations_are_refused(self, operator: Operator, seconds: float) -> None:
        operator.apply_channels([HOOK])
        with pytest.raises(Refused, match="a pause lasts"):
            operator.pause("hook", reason="x", seconds=seconds)

    def test_a_reason_and_a_channel_are_needed(self, operator: Operator) -> None:
        with pytest.raises(Refused, match="needs a reason"):
            operator.pause("hook", reason=" ")
        with pytest.raises(Refused, match="there is no channel hook"):
            operator.pause("hook", reason="x")
        with pytest.raises(Refused, match="there is no channel hook"):
            operator.resume("hook")


class TestBinding:
    def test_binds_once_and_needs_force_for_another_name(self, operator: Operator) -> None:
        assert operator.bound_to() is None
        assert operator.bind("production") == "bound"
        assert operator.bind("production") == "already"
        with pytest.raises(Refused, match="bound to installation production"):
            operator.bind("staging")
        assert operator.bound_to() == "production"
        assert operator.bind("staging", force=True) == "rebound"
        assert operator.bound_to() == "staging"

    def test_an_odd_name_is_refused(self, operator: Operator) -> None:
        with pytest.raises(Refused, match="installation name"):
            operator.bind("two words")


class TestStatus:
    def test_counts_each_state_once(self, bench: PostgresBench, operator: Operator) -> None:
        park(bench, 2, Kind.DEAD)
        park(bench, 1, Kind.UNCERTAIN)
        bench.enqueue(4, due_in=3600)
        bench.enqueue(5)
        bench.advance(30)
        Worker(bench).claim(3)
        web = next(row for row in operator.status() if row.channel == "web")
        assert (web.due, web.scheduled, web.leased, web.in_doubt) == (2, 4, 3, 0)
        assert (web.dead, web.uncertain) == (2, 1)
        assert web.oldest_due_seconds == pytest.approx(30)
        assert (web.open_more, web.parked_more) == (False, False)

    def test_a_lease_that_ran_out_is_in_doubt(
        self, bench: PostgresBench, operator: Operator
    ) -> None:
        bench.enqueue(2)
        Worker(bench).claim(1)
        bench.advance(3600)
        web = next(row for row in operator.status() if row.channel == "web")
        assert (web.due, web.leased, web.in_doubt) == (2, 0, 1)

    def test_says_when_it_stopped_counting(self, bench: PostgresBench, operator: Operator) -> None:
        bench.enqueue(5)
        park(bench, 3, Kind.DEAD, channel="post")
        rows = {row.channel: row for row in operator.status(at_most=2)}
        assert (rows["web"].due, rows["web"].open_more) == (2, True)
        assert (rows["post"].dead, rows["post"].parked_more) == (2, True)
        exact = {row.channel: row for row in operator.status(at_most=None)}
        assert (exact["web"].due, exact["web"].open_more) == (5, False)
        assert (exact["post"].dead, exact["post"].parked_more) == (3, False)


class TestSelectors:
    def test_page_over_many_and_meet_each_once(
        self, bench: PostgresBench, operator: Operator
    ) -> None:
        ids = parked_by_hand(bench, 2500)
        pages = list(operator.pages(Selector(kinds=(Kind.DEAD,))))
        assert [len(page) for page in pages] == [1000, 1000, 500]
        assert sorted(id for page in pages for id in page) == ids

    def test_limit_counts_all_pages(self, bench: PostgresBench, operator: Operator) -> None:
        parked_by_hand(bench, 2500)
        pages = list(operator.pages(Selector(kinds=(Kind.DEAD,), limit=1200)))
        assert [len(page) for page in pages] == [1000, 200]

    def test_by_channel_kind_and_reason(self, bench: PostgresBench, operator: Operator) -> None:
        dead, held = park(bench, 2, Kind.DEAD), park(bench, 1, Kind.UNCERTAIN)
        park(bench, 1, Kind.DEAD, channel="post")
        assert ids_of(operator, Selector(kinds=(Kind.DEAD,), channel="web")) == dead
        assert ids_of(operator, Selector(kinds=(Kind.UNCERTAIN,))) == held
        assert ids_of(operator, Selector(kinds=(Kind.DEAD,), reason="other")) == []
        assert (
            ids_of(operator, Selector(kinds=(Kind.DEAD,), reason="dead-reason", channel="web"))
            == dead
        )

    def test_by_age(self, bench: PostgresBench, operator: Operator) -> None:
        old = park(bench, 1, Kind.DEAD)
        bench.advance(3600)
        new = park(bench, 1, Kind.DEAD)
        assert ids_of(operator, Selector(kinds=(Kind.DEAD,), since=Bound(seconds_ago=60))) == new
        assert ids_of(operator, Selector(kinds=(Kind.DEAD,), until=Bound(seconds_ago=60))) == old

    def test_by_instant(self, bench: PostgresBench, operator: Operator) -> None:
        """The bench's clock began at midnight UTC; an hour later the second one died."""
        old = park(bench, 1, Kind.DEAD)
        bench.advance(3600)
        new = park(bench, 1, Kind.DEAD)
        middle = Bound(at="2030-01-01T01:30:00+01:00")
        assert ids_of(operator, Selector(kinds=(Kind.DEAD,), since=middle)) == new
        assert ids_of(operator, Selector(kinds=(Kind.DEAD,), until=middle)) == old
        future = Bound(at="2031-01-01T00:00:00+00:00")
        assert ids_of(operator, Selector(kinds=(Kind.DEAD,), since=middle, until=future)) == new
        assert ids_of(operator, Selector(kinds=(Kind.DEAD,), since=future)) == []

    def test_what_dies_again_meanwhile_is_not_met_again(
        self, bench: PostgresBench, operator: Operator
    ) -> None:
        park(bench, 1, Kind.DEAD)
        seen = 0
        for page in operator.pages(Selector(kinds=(Kind.DEAD,))):
            bench.advance(1)
            seen += len(page)
            assert seen == 1, "the command met its own work again"
            operator.redrive(page)
            worker = Worker(bench)
            worker.settle(word(worker.claim_one().held, AttemptOutcome.REJECTED, Kind.DEAD))
        assert seen == 1

    def test_open_ones_by_channel_and_doubt(self, bench: PostgresBench, operator: Operator) -> None:
        web = bench.enqueue(2)
        post = bench.enqueue(1, channel="post")
        assert ids_of(operator, Selector()) == [*web, *post]
        assert ids_of(operator, Selector(channel="post")) == post
        assert ids_of(operator, Selector(in_doubt=True)) == []

    def test_an_unknown_channel_is_refused(self, bench: PostgresBench, operator: Operator) -> None:
        with pytest.raises(Refused, match="there is no channel nowhere"):
            ids_of(operator, Selector(channel="nowhere"))


class TestMoves:
    def test_redrive_opens_dead_ones_and_asks_for_a_word_on_uncertain_ones(
        self, bench: PostgresBench, operator: Operator
    ) -> None:
        (dead,), (held,) = park(bench, 1, Kind.DEAD), park(bench, 1, Kind.UNCERTAIN)
        assert operator.redrive([dead, held, 99]) == [
            Moved(id=dead, became="redriven"),
            Moved(id=held, became="needs_resend"),
            Moved(id=99, became="unknown"),
        ]
        assert operator.redrive([held], resend=True) == [Moved(id=held, became="redriven")]

    def test_giving_up_never_takes_the_doubt_from_an_open_one(
        self, bench: PostgresBench, operator: Operator
    ) -> None:
        (held,) = park(bench, 1, Kind.UNCERTAIN)
        (open_,) = bench.enqueue()
        worker = Worker(bench)
        worker.settle(word(worker.claim_one().held, AttemptOutcome.UNCERTAIN))
        assert operator.resolve([open_, held], Resolution.DEAD, why="over") == [
            Moved(id=open_, became="due"),
            Moved(id=held, became="dead"),
        ]
        assert bench.standing(open_).doubt

    def test_an_operators_word_is_kept_with_his_name(
        self, bench: PostgresBench, operator: Operator
    ) -> None:
        (held,) = park(bench, 1, Kind.UNCERTAIN)
        assert operator.resolve([held], Resolution.DELIVERED, why="saw it in their log") == [
            Moved(id=held, became="delivered")
        ]
        seen = operator.inspect(held)
        assert seen is not None
        assert [(one.who, one.why) for one in seen.operations] == [
            ("tester", "saw it in their log"),
            (None, "evidence"),  # and what the word made of it
        ]

    def test_cancel_says_what_was_under_way(self, bench: PostgresBench, operator: Operator) -> None:
        (leased,) = bench.enqueue()
        Worker(bench).claim_one()
        (waiting,) = bench.enqueue()
        assert [one.became for one in operator.cancel([leased, waiting])] == [
            "cancelled_leased",
            "cancelled",
        ]

    def test_quarantine_puts_everything_open_in_doubt(
        self, bench: PostgresBench, operator: Operator
    ) -> None:
        bench.enqueue(3)
        assert operator.quarantine(why="restored from backup") == 3
        web = next(row for row in operator.status() if row.channel == "web")
        assert web.in_doubt == 3


class TestInspection:
    def test_a_payload_that_cannot_be_read_has_a_story_too(
        self, operator: Operator, bench: PostgresBench
    ) -> None:
        (id,) = bench.enqueue()
        bench.admin.execute(
            """update fencepost.notification set payload = '{"data": {"n": 1e5000}}'"""
        )
        seen = operator.inspect(id, payload=True)
        assert seen is not None
        assert seen.payload == {"data": {"n": math.inf}}

    def test_recipient_and_payload_only_when_asked_for(
        self, bench: PostgresBench, operator: Operator
    ) -> None:
        (id,) = bench.enqueue()
        discreet, frank = operator.inspect(id), operator.inspect(id, recipient=True, payload=True)
        assert discreet is not None
        assert frank is not None
        assert (discreet.recipient, discreet.payload) == (None, None)
        assert (frank.recipient, frank.payload) == ("recipient 1", {"title": "hello"})

    def test_tells_attempts_evidence_journal_and_who_holds_it(
        self, bench: PostgresBench, operator: Operator
    ) -> None:
        (id,) = bench.enqueue()
        first = Worker(bench)
        claimed = first.claim_one()
        bench.advance(60)
        second = Worker(bench)
        second.claim_one()
        facts = Facts(phase=Phase.ANSWERED, status=503, took_ms=12, detail="busy")
        first.settle(word(claimed.held, AttemptOutcome.FAILED, facts=facts))
        seen = operator.inspect(id)
        assert seen is not None
        assert seen.open is not None
        assert (seen.open.run, seen.open.invocation) == (str(second.run), "bench")
        assert [(one.fence, one.outcome, one.taken_over) for one in seen.attempts] == [
            (1, AttemptOutcome.UNCERTAIN, True)
        ]
        assert [(one.fence, one.outcome, one.source) for one in seen.evidence] == [
            (1, AttemptOutcome.FAILED, "late")
        ]
        verdicts = [line.verdict for line in seen.journal if line.verdict]
        assert [verdict.value for verdict in verdicts] == ["late"]
        assert sum(line.claimed for line in seen.journal) == 2

    def test_there_is_no_story_of_what_is_not_there(self, operator: Operator) -> None:
        assert operator.inspect(7) is None
        assert operator.inspect(2**63 - 1) is None


class TestErrors:
    def test_no_database(self) -> None:
        with pytest.raises(DatabaseAway, match="the database is away") as away:
            Operator("postgresql://user:hidden@127.0.0.1:1/none").__enter__()
        assert "hidden" not in str(away.value)
        assert "\n" not in str(away.value)

    @pytest.mark.parametrize("conninfo", ["postgres:/u:hidden@h/d", "hidden", "host=a hidden=b"])
    def test_a_connection_string_that_cannot_be_read_is_not_repeated(self, conninfo: str) -> None:
        with pytest.raises(DatabaseAway) as away:
            Operator(conninfo).__enter__()
        assert "hidden" not in str(away.value)

    def test_a_database_that_is_not_migrated(self, server_url: str) -> None:
        with Operator(server_url) as operator, pytest.raises(SchemaMissing, match="migrate"):
            operator.status()

    def test_a_connection_that_breaks(self, database_url: str) -> None:
        with Operator(database_url) as operator, psycopg.connect(database_url) as admin:
            pid = operator.say.connection.info.backend_pid
            admin.execute("select pg_terminate_backend(%s)", [pid])
            with pytest.raises(DatabaseAway):
                operator.status()

    def test_a_role_that_may_not(self, database_url: str, connection: psycopg.Connection) -> None:
        connection.execute("create role fencepost_nosy login")
        try:
            with (
                Operator(make_conninfo(database_url, user="fencepost_nosy")) as nosy,
                pytest.raises(Refused, match="the database role may not do this"),
            ):
                nosy.status()
        finally:
            connection.execute("drop role fencepost_nosy")
