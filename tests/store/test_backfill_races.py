"""Commands beside each other and beside whoever else moves the same notifications: counted once, and none is lost."""

import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from fencepost.core.backfill import Turn, Verdict
from fencepost.core.command import CommandId, Label, Move, Replay, Select, Word
from fencepost.core.operation import Selector
from fencepost.store.backfill import CommandStore
from fencepost.store.operator import Operator
from tests.store.bench import Worker, delivered, hold
from tests.store.postgres_bench import PostgresBench

pytestmark = pytest.mark.postgres
COUNT = 600
DAY = 86400.0


@pytest.fixture
def bench(database_url: str) -> Iterator[PostgresBench]:
    with PostgresBench(database_url) as opened:
        yield opened


def label() -> Label:
    return Label(id=CommandId(uuid.uuid4()), digest=b"d" * 16)


def closed(bench: PostgresBench, word: Callable[..., object], count: int = COUNT) -> list[int]:
    bench.enqueue(count)
    worker = Worker(bench)
    claimed = worker.claim(count)
    worker.settle(*(word(one.held) for one in claimed))  # type: ignore[arg-type]
    return [int(one.id) for one in claimed]


def whole(store: CommandStore, command: Move | Replay) -> Counter[str]:
    """All pages of it, and what became of what it means."""
    counts: Counter[str] = Counter()
    turn = store.begin(command).turn
    while True:
        page = (
            store.move(turn, command) if isinstance(command, Move) else store.replay(turn, command)
        )
        counts.update(page.counts)
        if page.verdict is not Verdict.GOING:
            return counts
        turn = Turn(id=turn.id, fence=turn.fence, place=page.place)


def at_once(*acts: Callable[[], Counter[str]]) -> list[Counter[str]]:
    start = threading.Barrier(len(acts))

    def ready(act: Callable[[], Counter[str]]) -> Counter[str]:
        start.wait()
        return act()

    with ThreadPoolExecutor(len(acts)) as threads:
        return list(threads.map(ready, acts))


def conserved(bench: PostgresBench) -> bool:
    ((holds,),) = bench.rows("select holds from fencepost.conservation()", [])
    return bool(holds)


def test_redrive_resolve_cancel_and_prune_of_the_same_ones(
    bench: PostgresBench, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages of all of them meet on the same rows, in the order of their ids or of their ends."""
    monkeypatch.setattr("fencepost.store.backfill.PARKED_PAGE", 25)
    closed(bench, hold)
    ids = tuple(closed(bench, hold))
    bench.advance(2 * DAY)
    kinds = Select(kinds=("dead", "uncertain"))
    moves = [
        Move(label=label(), what="redrive", word=Word.RESEND, select=kinds),
        Move(label=label(), what="redrive", word=Word.RESEND, ids=tuple(reversed(ids))),
        Move(label=label(), what="resolve", word=Word.DELIVERED, select=kinds, why="their log"),
        Move(label=label(), what="resolve", word=Word.DEAD, ids=ids, why="their log"),
    ]
    stores = [CommandStore(database_url) for _ in moves]

    def moved(store: CommandStore, command: Move) -> Callable[[], Counter[str]]:
        return lambda: whole(store, command)

    def let_go() -> Counter[str]:
        with Operator(database_url, who="test") as operator:
            pages = operator.retention.prune_closed(DAY)
            return Counter(gone=sum(page.notifications for page in pages))

    def cancelled() -> Counter[str]:
        with Operator(database_url, who="test") as operator:
            for _ in range(20):
                for page in operator.pages(Selector(limit=50)):
                    operator.cancel(list(page))
        return Counter()

    acts = [moved(store, move) for store, move in zip(stores, moves, strict=True)]
    *_, pruned, _ = at_once(*acts, let_go, cancelled)
    assert conserved(bench)
    ((count,),) = bench.rows("select count(*) from fencepost.notification", [])
    assert count == 2 * COUNT - pruned["gone"]
    assert bench.rows("select distinct ending from fencepost.command", []) == [("done",)]
    for store in stores:
        store.close()


def test_a_replay_of_a_replay(bench: PostgresBench, database_url: str) -> None:
    """Each generation is linked to the one before, and each command makes one copy however often it is said."""
    store = CommandStore(database_url)
    (first,) = closed(bench, delivered, 1)
    generations = [first]
    for _ in range(3):
        command = Replay(label=label(), ids=(generations[-1],))
        assert whole(store, command) == {"replayed": 1}
        ((copy,),) = bench.rows(
            "select id from fencepost.notification where replay_of = %s", [generations[-1]]
        )
        worker = Worker(bench)
        worker.settle(delivered(worker.claim_one().held))
        bench.rows("delete from fencepost.command returning 1", [])
        assert whole(store, command) == {"existing": 1}, "its row is gone, its copy is known"
        generations.append(copy)
    everything = Replay(label=label(), select=Select())
    assert whole(store, everything) == {"replayed": 4}
    assert conserved(bench)
    store.close()


def test_two_replays_of_the_same_ones_at_once_while_they_are_let_go(
    bench: PostgresBench, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fencepost.store.backfill.DELIVERED_PAGE", 25)
    closed(bench, delivered)
    bench.advance(2 * DAY)
    stores = [CommandStore(database_url) for _ in range(2)]
    again = Replay(label=label(), select=Select())

    def let_go() -> Counter[str]:
        with Operator(database_url, who="test") as operator:
            pages = operator.retention.prune_closed(DAY)
            return Counter(gone=sum(page.notifications for page in pages))

    first, second, third = at_once(
        lambda: whole(stores[0], Replay(label=label(), select=Select())),
        lambda: whole(stores[1], again),
        let_go,
    )
    assert third["gone"] <= COUNT
    ((copies, distinct),) = bench.rows(
        "select count(*), count(distinct dedupe_key) from fencepost.notification where replay_of is not null",
        [],
    )
    assert copies == distinct == first["replayed"] + second["replayed"]
    assert set(first) | set(second) <= {"replayed", "unknown", "refused"}
    faults = bench.rows(
        "select distinct split_part(fault, ':', 1) from fencepost.command_fault", []
    )
    assert faults in ([], [("replay_of",)]), "refused are those that went in between"
    assert conserved(bench)
    for store in stores:
        store.close()
