"""uncertain, unregistered: what nobody knows for sure, shown without recipients and payloads, decided in bulk."""

from functools import partial
from typing import Any

import pytest

from fencepost.core.exchange import Facts
from fencepost.core.notification import AttemptOutcome, Kind, NotificationId
from tests.cli.conftest import Fencepost
from tests.store.bench import Worker, hold, uncertain, word
from tests.store.postgres_bench import PostgresBench

pytestmark = pytest.mark.postgres
FACTS = Facts(status=504, reference="sid-1", detail="answered 504")


@pytest.fixture
def fencepost(inline: Fencepost, database_url: str) -> Fencepost:
    return partial(inline, database_url)


def in_doubt(bench: PostgresBench, channel: str = "web") -> NotificationId:
    """Open, after an attempt of unknown outcome."""
    (id,) = bench.enqueue(channel=channel)
    worker = Worker(bench)
    worker.settle(uncertain(worker.claim_one(channel=channel).held, 60.0, FACTS))
    return id


def held(bench: PostgresBench, channel: str = "web", reason: str = "held") -> NotificationId:
    """Closed by its policy, the attempt before left in doubt."""
    id = in_doubt(bench, channel)
    bench.advance(61)
    worker = Worker(bench)
    closing = hold(worker.claim_one(channel=channel).held)
    worker.settle(word(closing.held, AttemptOutcome.HELD, Kind.UNCERTAIN, reason=reason))
    return id


def shown(fencepost: Fencepost, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = fencepost("uncertain", "list", *words, "--json").json[
        "notifications"
    ]
    return found


class TestUncertain:
    def test_open_and_closed_ones_are_shown_oldest_first_with_their_last_attempt(
        self, bench: PostgresBench, fencepost: Fencepost
    ) -> None:
        first = held(bench)
        bench.advance(10)
        second = in_doubt(bench)
        bench.advance(5)
        one, two = shown(fencepost)
        assert (one["id"], one["state"], one["reason"], one["policy"]) == (
            first, "held", "held", "hold",
        )  # fmt: skip
        assert (two["id"], two["state"], two["reason"]) == (second, "waits", None)
        for shown_one in (one, two):
            assert (shown_one["fence"], shown_one["outcome"]) == (1, "uncertain")
            assert (shown_one["status"], shown_one["reference"]) == (504, "sid-1")
        assert (one["age_seconds"], two["age_seconds"]) == (15.0, 5.0)
        said = fencepost("uncertain", "list").out
        assert "answered 504" in said
        assert "fence 1, status 504, reference sid-1" in said
        assert "recipient" not in said
        assert "hello" not in said

    def test_what_a_dead_run_held_is_shown_before_anybody_takes_it_over(
        self, bench: PostgresBench, fencepost: Fencepost
    ) -> None:
        (id,) = bench.enqueue()
        Worker(bench).claim_one()
        assert shown(fencepost) == []
        bench.advance(21)
        (one,) = shown(fencepost)
        assert (one["id"], one["state"]) == (id, "abandoned")

    def test_it_is_narrowed_by_channel_reason_age_and_number(
        self, bench: PostgresBench, fencepost: Fencepost
    ) -> None:
        old = held(bench, reason="window_passed")
        bench.advance(3600)
        young = held(bench, "post")
        waits = in_doubt(bench)
        ids = partial(self.ids, fencepost)
        assert ids() == [old, young, waits]
        assert ids("--channel", "post") == [young]
        assert ids("--reason", "window_passed") == [old]
        assert ids("--since", "10m") == [young, waits]
        assert ids("--until", "10m") == [old]
        assert ids("--limit", "1") == [old]
        assert fencepost("uncertain", "list", "--limit", "1").out.endswith(
            "these are the 1 oldest; --limit shows more\n"
        )
        assert fencepost("uncertain", "list", "--reason", "no_such").out == "nothing is in doubt\n"

    def ids(self, fencepost: Fencepost, *words: str) -> list[int]:
        return [one["id"] for one in shown(fencepost, *words)]

    def test_an_unknown_channel_is_refused(self, fencepost: Fencepost) -> None:
        said = fencepost("uncertain", "list", "--channel", "nowhere")
        assert (said.code, said.out) == (1, "")

    def test_resolved_in_bulk_by_channel_and_time_with_who_and_why(
        self, bench: PostgresBench, fencepost: Fencepost
    ) -> None:
        """And never out by another channel: what is sent again is the same notification."""
        old, other = held(bench), held(bench, "post")
        bench.advance(3600)
        young = held(bench)
        words = ("--channel", "web", "--until", "10m", "--why", "their log", "--yes")
        said = fencepost("uncertain", "resolve", *words, "--resend")
        assert (said.code, said.out) == (0, "1 redriven\n")
        again = Worker(bench)
        assert [one.id for one in again.claim()] == [old]
        assert again.claim(channel="post") == ()
        assert {bench.standing(one).kind for one in (other, young)} == {Kind.UNCERTAIN}
        ((who, why),) = bench.rows(
            "select who, why from fencepost.operation where notification_id = %s", [old]
        )
        assert (bool(who), why) == (True, "their log")


class TestUnregistered:
    def gone(self, bench: PostgresBench, count: int) -> None:
        bench.enqueue(count)
        worker = Worker(bench)
        worker.settle(
            *(
                word(one.held, AttemptOutcome.REJECTED, Kind.DEAD, reason="unregistered")
                for one in worker.claim(count)
            )
        )

    def test_shown_and_a_mass_decided(self, bench: PostgresBench, fencepost: Fencepost) -> None:
        self.gone(bench, 20)
        bench.advance(121)
        bench.rows("select * from fencepost.unregistered()")
        (one,) = fencepost("unregistered", "list", "--limit", "1", "--json").json["unregistered"]
        assert (one["state"], one["recipient"], one["channel"]) == ("withheld: mass", None, "web")
        assert "recipient 1" not in fencepost("unregistered", "list").out
        assert "recipient 1" in fencepost("unregistered", "list", "--show-recipient").out
        assert fencepost("unregistered", "resolve", "--channel", "web").code == 2
        said = fencepost("unregistered", "resolve", "--channel", "web", "--true")
        assert said.out == "web: 20 told to producers\n"
        assert len(bench.rows("select * from fencepost.unregistered()")) == 20
        assert "told (said by" in fencepost("unregistered", "list").out
        assert fencepost("unregistered", "list", "--withheld").out == "none\n"

    def test_status_says_how_many_are_withheld(
        self, bench: PostgresBench, fencepost: Fencepost
    ) -> None:
        self.gone(bench, 20)
        bench.advance(121)
        bench.rows("select * from fencepost.unregistered()")
        held(bench, "post")
        assert "20 said to be gone are withheld" in fencepost("status").out
        counts = {
            one["channel"]: one["withheld"]
            for one in fencepost("status", "--json").json["channels"]
        }
        assert (counts["web"], counts["post"]) == (20, 0)
        fencepost("unregistered", "resolve", "--channel", "web", "--true")
        assert "withheld" not in fencepost("status").out

    def test_a_mass_found_false_is_forgotten(
        self, bench: PostgresBench, fencepost: Fencepost
    ) -> None:
        self.gone(bench, 20)
        bench.advance(121)
        bench.rows("select * from fencepost.unregistered()")
        said = fencepost("unregistered", "resolve", "--channel", "web", "--false", "--json")
        assert said.json == {"channel": "web", "true": False, "count": 20}
        assert bench.rows("select * from fencepost.unregistered()") == []
