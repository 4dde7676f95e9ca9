"""cancel, redrive, resolve, quarantine: by id, and by selector after a question."""

from functools import partial

import pytest

from tests.cli.conftest import Fencepost
from tests.store.bench import Worker, dead, hold, uncertain
from tests.store.postgres_bench import PostgresBench

pytestmark = pytest.mark.postgres


@pytest.fixture
def fencepost(inline: Fencepost, database_url: str) -> Fencepost:
    """In this process: what these tests ask needs no process of its own."""
    return partial(inline, database_url)


def parked(bench: PostgresBench, *, held: bool = False, count: int = 1) -> list[str]:
    """Ids of notifications that a run closed as dead, or as uncertain."""
    bench.enqueue(count)
    worker = Worker(bench)
    claimed = worker.claim(count)
    worker.settle(*((hold if held else dead)(one.held) for one in claimed))
    return [str(one.id) for one in claimed]


class TestRedrive:
    def test_by_id(self, bench: PostgresBench, fencepost: Fencepost) -> None:
        (id,) = parked(bench)
        assert fencepost("redrive", id).out == f"{id}: redriven\n"
        assert len(Worker(bench).claim()) == 1

    def test_an_uncertain_one_needs_the_word_resend(
        self, bench: PostgresBench, fencepost: Fencepost
    ) -> None:
        (id,) = parked(bench, held=True)
        said = fencepost("redrive", id)
        assert (said.code, said.out) == (
            1,
            f"{id}: not moved: it is uncertain; --resend sends it again, and it may arrive twice\n",
        )
        assert fencepost("redrive", id, "--resend").out == f"{id}: redriven\n"

    def test_by_selector_means_dead_ones_and_needs_a_yes(
        self, bench: PostgresBench, fencepost: Fencepost
    ) -> None:
        parked(bench, count=3)
        parked(bench, held=True)
        assert fencepost("redrive", "--channel", "web", "--dry-run").out == "would redrive 3\n"
        said = fencepost("redrive", "--all")  # no terminal: nobody to ask
        assert (said.code, said.out) == (2, "")
        assert "means 3 notifications: say --yes" in said.err
        said = fencepost("redrive", "--reason", "rejected", "--yes", "--json")
        assert said.json == {"dry_run": False, "counts": {"redriven": 3}}
        said = fencepost("redrive", "--all", "--resend", "--yes")
        assert (said.code, said.out) == (0, "1 redriven\n")
        assert fencepost("redrive", "--all", "--yes").out == "nothing to redrive\n"

    def test_a_limit_is_kept(self, bench: PostgresBench, fencepost: Fencepost) -> None:
        parked(bench, count=3)
        assert fencepost("redrive", "--all", "--limit", "2", "--yes").out == "2 redriven\n"

    def test_a_range_that_nothing_can_be_in_is_a_slip(
        self, bench: PostgresBench, fencepost: Fencepost
    ) -> None:
        parked(bench)
        for command in (("redrive",), ("backfill", "redrive")):
            said = fencepost(*command, "--since", "1h", "--until", "2h", "--yes")
            assert (said.code, "nothing is in that range" in said.err) == (2, True), said.err

    def test_a_range_may_be_said_in_instants(
        self, bench: PostgresBench, fencepost: Fencepost
    ) -> None:
        """The bench's clock stands at midnight UTC."""
        parked(bench)
        for command in (("redrive",), ("backfill", "redrive")):
            later = fencepost(*command, "--since", "2030-01-01T02:30+02:00", "--dry-run")
            assert later.out == f"would {' '.join(command[-1:])} 0\n", later
            meant = fencepost(
                *command, "--since", "2029-12-31T23:00Z", "--until", "5m", "--dry-run"
            )
            assert meant.out == f"would {' '.join(command[-1:])} 0\n", meant
            meant = fencepost(*command, "--since", "2029-12-31T23:00Z", "--dry-run")
            assert meant.out == f"would {' '.join(command[-1:])} 1\n", meant
        said = fencepost("redrive", "--since", "2030-01-01T02:30", "--yes")
        assert said.code == 2
        assert "an instant with its time zone" in said.err

    @pytest.mark.parametrize(
        "words",
        [
            (),
            ("--yes",),
            ("--limit", "5"),
            ("1", "--all"),
            ("1", "--limit", "5"),
            ("--since", "soon"),
        ],
        ids=" ".join,
    )
    def test_a_forgotten_option_never_means_everything(
        self, bench: PostgresBench, inline: Fencepost, words: tuple[str, ...]
    ) -> None:
        (id,) = parked(bench)
        assert inline(bench.url, "redrive", *words).code == 2
        assert fencepost_kind(bench, id) == "dead"

    def test_what_is_not_parked_is_told_and_counts_as_refused(
        self, bench: PostgresBench, fencepost: Fencepost
    ) -> None:
        (id,) = bench.enqueue()
        said = fencepost("redrive", str(id), "999")
        assert (said.code, said.out) == (
            1,
            f"{id}: not moved: it is open\n999: not moved: there is no such notification\n",
        )


def fencepost_kind(bench: PostgresBench, id: str) -> str:
    ((kind,),) = bench.rows(
        "select kind::text from fencepost.closed where notification_id = %s", [id]
    )
    return str(kind)


class TestResolve:
    def test_each_word(self, bench: PostgresBench, fencepost: Fencepost) -> None:
        arrived, lost, hopeless, again = parked(bench, held=True, count=4)
        why = ("--why", "their log")
        assert (
            fencepost("uncertain", "resolve", arrived, "--delivered", *why).out
            == f"{arrived}: delivered\n"
        )
        assert (
            fencepost("uncertain", "resolve", lost, "--not-delivered", *why).out
            == f"{lost}: open\n"
        )
        assert (
            fencepost("uncertain", "resolve", hopeless, "--dead", *why).out == f"{hopeless}: dead\n"
        )
        assert (
            fencepost("uncertain", "resolve", again, "--resend", *why).out == f"{again}: redriven\n"
        )

    def test_dead_is_no_word_for_an_open_one(
        self, bench: PostgresBench, fencepost: Fencepost
    ) -> None:
        (id,) = bench.enqueue()
        worker = Worker(bench)
        worker.settle(uncertain(worker.claim_one().held))
        said = fencepost("uncertain", "resolve", str(id), "--dead", "--why", "x")
        assert (said.code, said.out) == (1, f"{id}: not moved: it is due\n")
        assert bench.standing(id).doubt

    @pytest.mark.parametrize(
        "words",
        [
            ("1", "--why", "x"),
            ("1", "--dead", "--resend", "--why", "x"),
            ("1", "--dead"),
            ("1", "--dead", "--why", ""),
            ("1", "--dead", "--why", " "),
            ("--dead", "--why", "x"),
        ],
        ids=" ".join,
    )
    def test_needs_one_word_a_reason_and_something_to_resolve(
        self, inline: Fencepost, database_url: str, words: tuple[str, ...]
    ) -> None:
        assert inline(database_url, "uncertain", "resolve", *words).code == 2

    @pytest.mark.parametrize(
        "command",
        [("redrive", "1"), ("cancel", "1"), ("quarantine", "--yes"), ("backfill", "redrive", "1")],
        ids=" ".join,
    )
    def test_a_reason_that_says_nothing_is_a_slip(
        self, inline: Fencepost, database_url: str, command: tuple[str, ...]
    ) -> None:
        said = inline(database_url, *command, "--why", " ")
        assert said.code == 2
        assert "it is empty" in said.err

    def test_by_selector_means_uncertain_ones(
        self, bench: PostgresBench, fencepost: Fencepost
    ) -> None:
        parked(bench, held=True, count=2)
        parked(bench)
        said = fencepost(
            "uncertain", "resolve", "--channel", "web", "--delivered", "--why", "x", "--yes"
        )
        assert (said.code, said.out) == (0, "2 delivered\n")


class TestCancel:
    def test_says_what_was_under_way(self, bench: PostgresBench, fencepost: Fencepost) -> None:
        (leased,) = bench.enqueue()
        Worker(bench).claim_one()
        (waiting,) = bench.enqueue()
        said = fencepost("cancel", str(leased), str(waiting), "--why", "a mistake", "--json")
        assert said.code == 0
        assert said.json["notifications"] == [
            {"id": leased, "became": "cancelled_leased"},
            {"id": waiting, "became": "cancelled"},
        ]
        assert "a mistake" in fencepost("explain", str(waiting)).out

    def test_a_dry_run_by_id_says_how_they_stand(
        self, bench: PostgresBench, fencepost: Fencepost
    ) -> None:
        (id,) = bench.enqueue()
        assert fencepost("cancel", str(id), "--dry-run").out == f"{id}: due\n"
        assert not bench.standing(id).kind

    def test_by_selector(self, bench: PostgresBench, fencepost: Fencepost) -> None:
        bench.enqueue(3)
        bench.enqueue(1, channel="post")
        said = fencepost("cancel", "--channel", "web", "--yes")
        assert (said.code, said.out) == (0, "3 cancelled\n")
        assert fencepost("status", "--json").json["channels"][0]["due"] == 1


class TestQuarantine:
    def test_puts_everything_open_in_doubt(
        self, bench: PostgresBench, fencepost: Fencepost
    ) -> None:
        (id,) = bench.enqueue()
        assert fencepost("quarantine", "--why", "restored").code == 2
        said = fencepost("quarantine", "--why", "restored", "--yes")
        assert (said.code, said.out) == (0, "1 open notifications are in doubt now\n")
        assert "put in doubt: quarantine" in fencepost("explain", str(id)).out


class TestExplain:
    def test_recipient_and_payload_only_when_asked_for(
        self, bench: PostgresBench, fencepost: Fencepost
    ) -> None:
        (id,) = bench.enqueue()
        plain = fencepost("explain", str(id)), fencepost("explain", str(id), "--json")
        for said in plain:
            assert said.code == 0
            assert "recipient 1" not in said.out
            assert "hello" not in said.out
        said = fencepost("explain", str(id), "--show-recipient", "--show-payload")
        assert "recipient 1" in said.out
        assert '{"title":"hello"}' in said.out

    def test_json_has_the_facts_and_the_words(
        self, bench: PostgresBench, fencepost: Fencepost
    ) -> None:
        (id,) = parked(bench, held=True)
        said = fencepost("explain", id, "--json").json
        assert said["facts"]["closed"]["kind"] == "uncertain"
        assert said["explanation"]["next"].startswith("nothing, until evidence comes")

    def test_an_unknown_id_is_refused(self, fencepost: Fencepost) -> None:
        said = fencepost("explain", "7")
        assert (said.code, said.err) == (1, "fencepost: there is no notification 7\n")
