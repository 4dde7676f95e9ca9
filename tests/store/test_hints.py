"""Where the next claim of a run starts to look: behind what it took, channel by channel."""

import pytest

from fencepost.core.exchange import Want
from tests.store.bench import Worker, delivered
from tests.store.postgres_bench import PostgresBench

pytestmark = pytest.mark.postgres

HINTS = """
select c.name,
       array(select date_part('epoch', nullif(due, '-infinity') - timestamptz '2030-01-01 00:00:00+00')
               from unnest(j.hints[k * 3 - 2 : k * 3]) as due)
  from (select * from fencepost.journal order by seq desc limit 1) j,
    lateral generate_series(1, cardinality(j.hinted)) as k, fencepost.channel c where c.id = j.hinted[k]
"""


def hints(bench: PostgresBench) -> dict[str, list[float | None]]:
    """By channel: seconds of the bench's clock, one a priority; None: from the beginning."""
    return dict(bench.rows(HINTS))


def both(worker: Worker, *limits: int) -> tuple[Want, ...]:
    web, post = limits
    return (*worker.want(web), *worker.want(post, channel="post"))


def test_each_channel_has_its_own_and_keeps_it_while_others_are_asked(bench: PostgresBench) -> None:
    for _ in range(4):
        bench.enqueue(2)
        bench.enqueue(2, channel="post")
        bench.advance(10)
    worker = Worker(bench)
    worker.claim(3)
    assert hints(bench) == {"web": [39.0, 10.0, None]}
    worker.claim(1, channel="post")
    assert hints(bench) == {"post": [39.0, 0.0, None], "web": [39.0, 10.0, None]}
    assert len(worker.say(claim=both(worker, 2, 4)).claimed) == 6
    assert hints(bench) == {"web": [39.0, 20.0, None], "post": [39.0, 20.0, None]}
    claimed = worker.say(claim=both(worker, 5, 1)).claimed  # web has three, less than asked
    assert len(claimed) == 4
    assert hints(bench) == {"web": [None, None, None], "post": [39.0, 20.0, None]}
    worker.say(delivered(claimed[0].held))  # who asks for nothing keeps all
    assert hints(bench) == {"web": [None, None, None], "post": [39.0, 20.0, None]}
    assert len(worker.say(claim=both(worker, 9, 9)).claimed) == 2


def test_a_priority_that_was_passed_by_is_looked_at_from_a_second_ago(bench: PostgresBench) -> None:
    bench.enqueue(2, priority=0)
    bench.enqueue(4)
    bench.advance(60)
    worker = Worker(bench)
    worker.claim(4)
    assert hints(bench) == {"web": [59.0, 0.0, None]}
    late = bench.enqueue(1, priority=0)
    assert [one.id for one in worker.claim(1)] == late
    assert hints(bench) == {"web": [60.0, 0.0, None]}  # what was not reached stays as it was


def test_after_an_idle_turn_the_next_looks_from_the_beginning(bench: PostgresBench) -> None:
    first = bench.enqueue()
    worker, killed = Worker(bench), Worker(bench)
    killed.claim(1, lease_seconds=10)
    bench.advance(1)
    bench.enqueue()
    worker.claim(1)
    assert worker.claim(1) == ()  # from the hint on there is nothing, and nobody is told
    bench.advance(11)
    assert [one.id for one in worker.claim(1)] == first
