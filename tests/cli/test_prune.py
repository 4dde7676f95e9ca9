"""`fencepost prune` and `fencepost retention`: what goes, what would go, how long things are kept."""

from tests.cli.conftest import Fencepost
from tests.store.bench import Worker, delivered
from tests.store.postgres_bench import PostgresBench

DAY = 86400
COMMAND = "select verdict from fencepost.begin_command(gen_random_uuid(), 'enqueue', '', 0, null, null, null, null)"
EVENTS = """
insert into fencepost.unregistered (notification_id, channel, at)
select n, c.id, fencepost.now_() - interval '16 days'
  from generate_series(1, 3) n, fencepost.channel c where c.name = 'web' returning 1"""


def a_delivery(bench: PostgresBench) -> None:
    bench.enqueue()
    worker = Worker(bench)
    worker.say(delivered(worker.claim_one().held), last=True)


def test_what_is_old_goes_and_a_dry_run_only_counts_it(
    inline: Fencepost, bench: PostgresBench
) -> None:
    a_delivery(bench)
    bench.advance(100 * DAY)
    closed = {"notifications": 1, "attempts": 0, "evidence": 0, "operations": 0, "kept_for_key": 0}
    history = {"journal": 2, "runs": 1, "strays": 0, "events": 0, "commands": 0}
    told = {**history, "closed": closed}
    words = ("prune", "--closed-older-than", "90d", "--json")
    assert inline(bench.url, *words, "--dry-run").json == {"dry_run": True, **told}
    assert inline(bench.url, *words).json == {"dry_run": False, **told}
    assert bench.rows("select count(*) from fencepost.notification") == [(0,)]
    nothing = "0 journal rows, 0 runs, 0 commands, 0 events of unregistered recipients"
    assert inline(bench.url, "prune").out == f"gone: {nothing}\n"


def test_commands_and_events_that_would_go_are_counted_too(
    inline: Fencepost, bench: PostgresBench
) -> None:
    bench.rows(COMMAND)
    bench.rows(EVENTS)
    bench.advance(29 * DAY)
    words = ("prune", "--dry-run", "--json")
    told = inline(bench.url, *words).json
    assert (told["commands"], told["events"]) == (0, 3), "commands stay for thirty days"
    bench.advance(2 * DAY)
    dry, gone = inline(bench.url, *words).json, inline(bench.url, "prune", "--json").json
    assert dry == {**gone, "dry_run": True}
    assert (gone["commands"], gone["events"]) == (1, 3)
    left = "select (select count(*) from fencepost.command), (select count(*) from fencepost.unregistered)"
    assert bench.rows(left) == [(0, 0)]


def test_closed_ones_stay_unless_they_are_named(inline: Fencepost, bench: PostgresBench) -> None:
    a_delivery(bench)
    bench.advance(100 * DAY)
    assert inline(bench.url, "prune", "--json").json["closed"] is None
    assert bench.rows("select count(*) from fencepost.notification") == [(1,)]
    said = inline(bench.url, "prune", "--closed-older-than", "1h")
    assert said.code == 1
    assert "a day at least" in said.err


def test_how_long_things_are_kept(inline: Fencepost, bench: PostgresBench) -> None:
    assert inline(bench.url, "retention").out == "journal and runs: 14 d, dedupe keys: 90 d\n"
    said = inline(bench.url, "retention", "--journal", "30d", "--json").json
    assert said == {"journal_seconds": 30.0 * DAY, "dedupe_keys_seconds": 90.0 * DAY}
    assert inline(bench.url, "retention", "--journal", "5m").code == 1
