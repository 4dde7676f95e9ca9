"""Enqueue in SQL: in the caller's transaction, one notification for a dedupe key, every refusal by row and field."""

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

pytestmark = pytest.mark.postgres

Call = Callable[..., list[tuple[Any, ...]]]
MANY = """
select row_number, id, created, differs, error
  from fencepost.enqueue_many(
    channels => %(channels)s::text[], recipients => %(recipients)s::text[],
    payloads => %(payloads)s::text[], due_ats => %(due_ats)s::timestamptz[],
    delays => %(delays)s::interval[], expire_ats => %(expire_ats)s::timestamptz[],
    ttls => %(ttls)s::interval[], priorities => %(priorities)s::int[],
    dedupe_keys => %(dedupe_keys)s::text[], on_uncertains => %(on_uncertains)s::text[],
    replays_of => %(replays_of)s::bigint[], atomic => %(atomic)s)"""
FIELDS = {
    "channels": "channel",
    "recipients": "recipient",
    "payloads": "payload",
    "due_ats": "due_at",
    "delays": "delay",
    "expire_ats": "expires_at",
    "ttls": "ttl",
    "priorities": "priority",
    "dedupe_keys": "dedupe_key",
    "on_uncertains": "on_uncertain",
    "replays_of": "replay_of",
}
COUNTS = "(select count(*) from fencepost.notification), (select count(*) from fencepost.queue)"


@pytest.fixture(autouse=True)
def channels(connection: psycopg.Connection) -> None:
    connection.execute(
        "insert into fencepost.channel (name, sender, on_uncertain, payload_bytes_max)"
        " values ('push', 'webhook', 'hold', 1000), ('mail', 'webhook', 'hold', 300000)"
    )


@pytest.fixture
def other(database_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database_url, autocommit=True) as opened:
        yield opened


def many(
    connection: psycopg.Connection, rows: list[dict[str, Any]], *, atomic: bool = True
) -> list[tuple[Any, ...]]:
    """Rows as dictionaries of singular names; a channel, a recipient and a payload are filled in."""
    filled = [{"channel": "push", "recipient": "r", "payload": "{}", **row} for row in rows]
    values = {name: [row.get(field) for row in filled] for name, field in FIELDS.items()}
    return connection.execute(MANY, {**values, "atomic": atomic}).fetchall()


def refusal(connection: psycopg.Connection, *rows: dict[str, Any]) -> str:
    with pytest.raises(psycopg.DataError) as caught:
        many(connection, list(rows))
    assert caught.value.sqlstate == "22X01"
    return caught.value.diag.message_primary or ""


def test_one_call_from_sql_makes_an_open_notification(connection: psycopg.Connection) -> None:
    made = connection.execute(
        "select id, created, differs from fencepost.enqueue('push', 'token', '{\"title\": \"Hi\"}')"
    ).fetchone()
    assert made == (1, True, False)
    body = "select channel, recipient, payload, priority, expires_at, due_at <= now() from fencepost.notification"
    assert connection.execute(body).fetchone() == (1, "token", {"title": "Hi"}, 1, None, True)
    row = "select notification_id, channel, priority, fence, attempts, doubt from fencepost.queue"
    assert connection.execute(row).fetchone() == (1, 1, 1, 0, 0, False)


@pytest.mark.parametrize("cast", ["", "::text", "::jsonb"])
def test_the_payload_may_be_text_or_jsonb(connection: psycopg.Connection, cast: str) -> None:
    call = f"select created from fencepost.enqueue('push', 'token', %s{cast})"
    assert connection.execute(call, ['{"badge": 3}']).fetchone() == (True,)


def test_it_rolls_back_with_the_callers_own_data(
    connection: psycopg.Connection, other: psycopg.Connection
) -> None:
    connection.execute("create table orders (id int)")
    with connection.transaction(force_rollback=True):
        connection.execute("insert into orders values (1)")
        many(connection, [{}, {"dedupe_key": "k"}])
    counts = f"select (select count(*) from orders), {COUNTS}"
    assert other.execute(counts).fetchone() == (0, 0, 0)
    with connection.transaction():
        connection.execute("insert into orders values (1)")
        many(connection, [{}, {"dedupe_key": "k"}])
        assert other.execute(counts).fetchone() == (0, 0, 0)
    assert other.execute(counts).fetchone() == (1, 2, 2)


def test_answers_come_in_the_order_given(connection: psycopg.Connection) -> None:
    rows = [{"dedupe_key": key, "recipient": key} for key in ("c", "a", "d", "b")]
    answers = many(connection, rows)
    assert [answer[0] for answer in answers] == [1, 2, 3, 4]
    recipients: dict[int, str] = dict(
        connection.execute("select id, recipient from fencepost.notification").fetchall()
    )
    assert [recipients[answer[1]] for answer in answers] == ["c", "a", "d", "b"]


def test_the_same_key_again_answers_the_first_and_says_whether_the_content_differs(
    connection: psycopg.Connection,
) -> None:
    payload = '{"title": "a", "body": "b"}'
    [(_, first, *_)] = many(connection, [{"dedupe_key": "k", "payload": payload}])
    again = '{"body":"b",   "title":"a"}'
    rows: list[dict[str, Any]] = [
        {"dedupe_key": "k", "payload": again},
        {"dedupe_key": "k", "payload": "{}"},
        {"dedupe_key": "k", "payload": payload, "recipient": "else"},
        {"dedupe_key": "k", "payload": payload, "priority": 0, "delay": "1 hour"},
    ]
    answers = many(connection, rows)
    assert [answer[1:4] for answer in answers] == [
        (first, False, False),
        (first, False, True),
        (first, False, True),
        (first, False, False),
    ]
    kept = connection.execute("select recipient, payload from fencepost.notification").fetchall()
    assert kept == [("r", json.loads(payload))]
    assert connection.execute("select count(*) from fencepost.queue").fetchone() == (1,)


def test_a_key_counts_once_within_one_call_and_for_each_channel(
    connection: psycopg.Connection,
) -> None:
    rows: list[dict[str, Any]] = [
        {"dedupe_key": "k"},
        {"dedupe_key": "k", "payload": '{"badge": 1}'},
        {"dedupe_key": "k", "channel": "mail"},
        {},
        {},
    ]
    answers = many(connection, rows)
    assert answers[0][1] == answers[1][1]
    assert [answer[2] for answer in answers] == [True, False, True, True, True]
    assert [answer[3] for answer in answers] == [False, True, False, False, False]


def test_a_duplicate_of_a_closed_notification_is_one_too(connection: psycopg.Connection) -> None:
    [(_, first, *_)] = many(connection, [{"dedupe_key": "k"}])
    connection.execute("delete from fencepost.queue")
    connection.execute(
        "insert into fencepost.closed (notification_id, closed_at, fence, attempts, kind)"
        " values (%s, now(), 1, 1, 'delivered')",
        [first],
    )
    assert many(connection, [{"dedupe_key": "k"}])[0][1:4] == (first, False, False)
    assert connection.execute("select count(*) from fencepost.queue").fetchone() == (0,)


def test_a_duplicate_waits_for_the_first_and_takes_over_when_that_rolls_back(
    connection: psycopg.Connection, other: psycopg.Connection
) -> None:
    for commits in (True, False):
        key = f"k-{commits}"
        with ThreadPoolExecutor(1) as pool:
            with connection.transaction(force_rollback=not commits):
                [(_, first, *_)] = many(connection, [{"dedupe_key": key}])
                waiting = pool.submit(many, other, [{"dedupe_key": key}])
                wait_until_blocked(connection, other)
            [(_, second, created, *_)] = waiting.result(120)
        assert (second == first, created) == (commits, not commits)


def wait_until_blocked(observer: psycopg.Connection, blocked: psycopg.Connection) -> None:
    query = "select cardinality(pg_blocking_pids(%s)) > 0"
    for _ in range(2000):
        if observer.execute(query, [blocked.info.backend_pid]).fetchone() == (True,):
            return
    raise AssertionError("the other session never waited")


def test_the_same_keys_in_opposite_orders_at_once_never_deadlock(database_url: str) -> None:
    keys = [f"key-{number:03d}" for number in range(200)]
    together = threading.Barrier(4)

    def submit(shift: int) -> list[int]:
        order = keys[::-1] if shift % 2 else keys[shift * 50 :] + keys[: shift * 50]
        with psycopg.connect(database_url) as session:
            ids: list[int] = []
            for round_ in range(5):
                together.wait(120)
                rows = [{"dedupe_key": f"{round_}-{key}"} for key in order]
                answers = dict(zip(order, (row[1] for row in many(session, rows)), strict=True))
                ids += [answers[key] for key in keys]
                session.commit()
            return ids

    with ThreadPoolExecutor(4) as pool:
        first, *others = pool.map(submit, range(4))
    assert None not in first
    assert len(set(first)) == 5 * len(keys)
    assert all(ids == first for ids in others)


# fmt: off
BAD_ROWS: list[tuple[dict[str, Any], str]] = [
    ({"payload": '{"title": "a\\u0000b"}'}, "payload: holds the character U+0000"),
    ({"payload": '{"data": {"x": ["\\ud83d"]}}'}, "payload: is not JSON, or holds a lone surrogate"),
    ({"payload": '{"data": {"x": "\\ude00"}}'}, "payload: is not JSON, or holds a lone surrogate"),
    ({"payload": '{"title": "secret words'}, "payload: is not JSON"),
    ({"payload": '{"badge": NaN}'}, "payload: is not JSON"),
    ({"payload": ""}, "payload: is not JSON"),
    ({"payload": '{"data": ' + "[" * 50000}, "payload: is not JSON"),
    ({"payload": None}, "payload: is missing"),
    ({"payload": "null"}, "payload: must be a JSON object"),
    ({"payload": '["title"]'}, "payload: must be a JSON object"),
    ({"payload": '{"titel": "x"}'}, 'payload: unknown key "titel"'),
    ({"payload": json.dumps({"body": "x" * 990})}, "payload: 1002 bytes, and channel push takes 1000 at most"),
    ({"payload": json.dumps({"body": "😀" * 250})}, "payload: 1012 bytes, and channel push takes 1000 at most"),
    ({"payload": '{"data": {"n": 1e2000}}'}, "payload: holds a number beyond 1.8e308"),
    ({"payload": '{"data": {"n": [1, "2", {"m": -1e5000}]}}'}, "payload: holds a number beyond 1.8e308"),
    ({"payload": '{"data": {"n": ' + "[" * 100 + "]" * 100 + "}}"}, "payload: nested deeper than 100"),
    ({"payload": '{"data": {"n": ' + "[" * 5000 + "]" * 5000 + "}}"}, "payload: nested deeper than 100"),
    ({"channel": "pusch"}, 'channel: there is no channel "pusch"'),
    ({"channel": None}, "channel: is missing"),
    ({"recipient": ""}, "recipient: is missing"),
    ({"recipient": None}, "recipient: is missing"),
    ({"recipient": "é" * 4097}, "recipient: longer than 8192 bytes"),
    ({"due_at": "infinity"}, "due_at: must be finite"),
    ({"due_at": "-infinity"}, "due_at: must be finite"),
    ({"due_at": "294276-12-30Z"}, "due_at: lies beyond the year 9999"),
    ({"due_at": "294276-12-30Z", "ttl": "3650 days"}, "due_at: lies beyond the year 9999"),
    ({"expires_at": "294276-12-30Z"}, "expires_at: lies beyond the year 9999"),
    ({"due_at": "2030-01-01Z", "delay": "1 s"}, "delay: and due_at exclude each other"),
    ({"delay": "-1 s"}, "delay: must lie between 0 and 3650 days"),
    ({"delay": "170000000 years"}, "delay: must lie between 0 and 3650 days"),
    ({"expires_at": "2020-01-01Z"}, "expires_at: is past"),
    ({"expires_at": "-infinity"}, "expires_at: is past"),
    ({"expires_at": "2090-01-01Z", "due_at": "2090-01-01Z"}, "expires_at: is not after due_at"),
    ({"expires_at": "2090-01-01Z", "ttl": "1 s"}, "ttl: and expires_at exclude each other"),
    ({"ttl": "0 s"}, "ttl: must be more than 0 and at most 3650 days"),
    ({"ttl": "100000000 years"}, "ttl: must be more than 0 and at most 3650 days"),
    ({"priority": 3}, "priority: must be 0 (first), 1 or 2"),
    ({"priority": -1}, "priority: must be 0 (first), 1 or 2"),
    ({"priority": 2147483647}, "priority: must be 0 (first), 1 or 2"),
    ({"dedupe_key": ""}, "dedupe_key: is empty"),
    ({"dedupe_key": "k" * 513}, "dedupe_key: longer than 512 bytes"),
    ({"on_uncertain": "retry"}, "on_uncertain: must be resend, hold or reconcile"),
    ({"replay_of": 77}, "replay_of: there is no such notification"),
]
# fmt: on


def test_a_bad_row_is_refused_by_row_and_field(
    connection: psycopg.Connection, subtests: pytest.Subtests
) -> None:
    for row, message in BAD_ROWS:
        with subtests.test(message):
            assert refusal(connection, {}, row, {}) == f"row 2, {message}"
    assert connection.execute(f"select {COUNTS}").fetchone() == (0, 0)


def test_an_error_quotes_neither_recipient_nor_key_nor_payload(
    connection: psycopg.Connection,
) -> None:
    row = {"recipient": "SECRET", "dedupe_key": "SECRET" * 99, "payload": '{"SECRET'}
    for bad in (row, {**row, "payload": "{}"}, {**row, "payload": '{"title": "SECRET", "x": 1}'}):
        with pytest.raises(psycopg.DataError) as caught:
            many(connection, [bad])
        assert "SECRET" not in str(caught.value)


def test_several_bad_rows_name_the_first_and_count_the_rest(connection: psycopg.Connection) -> None:
    said = refusal(connection, {}, {"priority": 7}, {"recipient": ""}, {"payload": "x"})
    assert said == "row 2, priority: must be 0 (first), 1 or 2 (and 2 more bad rows)"


def test_not_atomic_enqueues_the_good_and_tells_the_bad(connection: psycopg.Connection) -> None:
    rows = [
        {"recipient": "one"},
        {"payload": '{"title": "\\u0000"}'},
        {"recipient": "three", "dedupe_key": "k"},
        {"channel": "nope", "dedupe_key": "k"},
        {"recipient": "five", "dedupe_key": "k"},
    ]
    answers = many(connection, rows, atomic=False)
    assert [answer[4] for answer in answers] == [
        None,
        "payload: holds the character U+0000",
        None,
        'channel: there is no channel "nope"',
        None,
    ]
    assert [answer[1] is None for answer in answers] == [False, True, False, True, False]
    assert answers[4][1:4] == (answers[2][1], False, True)
    kept = connection.execute("select recipient from fencepost.notification order by id").fetchall()
    assert sorted(kept) == [("one",), ("three",)]


def test_arrays_of_uneven_length_are_refused(connection: psycopg.Connection) -> None:
    call = "select * from fencepost.enqueue_many('{push}', '{a,b}', '{\"{}\",\"{}\"}', priorities => '{1}')"
    with pytest.raises(psycopg.DataError, match="priorities: has 1 entries for 2 rows"):
        connection.execute(call)
    assert many(connection, []) == []


def test_due_and_expiry_are_instants_of_the_database(connection: psycopg.Connection) -> None:
    connection.execute(
        "create or replace function fencepost.now_() returns timestamptz language sql stable"
        " as $$select '2030-01-01 12:00Z'::timestamptz$$"
    )
    rows = [
        {"delay": "90 s", "ttl": "1 hour"},
        {"due_at": "2030-02-01Z", "expires_at": "2030-02-02Z"},
        {"due_at": "2029-01-01Z", "ttl": "10 s"},
        {"expires_at": "infinity"},
    ]
    many(connection, rows)
    times = connection.execute(
        "select due_at::text, expires_at::text from fencepost.notification order by id"
    ).fetchall()
    assert times == [
        ("2030-01-01 12:01:30+00", "2030-01-01 13:01:30+00"),
        ("2030-02-01 00:00:00+00", "2030-02-02 00:00:00+00"),
        ("2030-01-01 12:00:00+00", "2030-01-01 12:00:10+00"),  # past: due now
        ("2030-01-01 12:00:00+00", None),
    ]


def test_what_is_said_of_a_row_reaches_it(connection: psycopg.Connection) -> None:
    [(_, first, *_)] = many(connection, [{}])
    many(connection, [{"priority": 0, "on_uncertain": "resend", "replay_of": first}])
    said = (
        "select n.priority, q.priority, n.on_uncertain, n.replay_of from fencepost.notification n"
        " join fencepost.queue q on q.notification_id = n.id where n.id > %s"
    )
    assert connection.execute(said, [first]).fetchone() == (0, 0, "resend", first)


def test_a_large_payload_within_the_limit_commits(connection: psycopg.Connection) -> None:
    [(_, id_, *_)] = many(
        connection, [{"channel": "mail", "payload": json.dumps({"html": "é" * 100_000})}]
    )
    size = "select octet_length(payload::text) from fencepost.notification where id = %s"
    assert connection.execute(size, [id_]).fetchone() == (200_012,)


def test_a_plan_made_while_the_table_was_empty_still_finds_duplicates_by_key(
    connection: psycopg.Connection,
) -> None:
    """Without its pin the plan reads the whole table for every duplicate: 3.8 s for 500 instead of 16 ms."""
    connection.execute("vacuum analyze fencepost.notification")
    many(connection, [{"dedupe_key": "k0"}])
    many(connection, [{"dedupe_key": "k0"}])
    rows = [{"dedupe_key": f"k{number}"} for number in range(5000)]
    first = [answer[1] for answer in many(connection, rows)]
    before = table_scans(connection)
    assert [answer[1] for answer in many(connection, rows)] == first
    assert len(set(first)) == 5000
    assert table_scans(connection) == before


def table_scans(connection: psycopg.Connection) -> int:
    connection.execute("select pg_stat_force_next_flush()")
    query = (
        "select seq_scan from pg_stat_user_tables where relid = 'fencepost.notification'::regclass"
    )
    row = connection.execute(query).fetchone()
    assert row is not None
    scans: int = row[0]
    return scans


def test_status_tells_a_producer_what_became_of_it(connection: psycopg.Connection) -> None:
    rows = [{"dedupe_key": "a"}, {"dedupe_key": "b", "delay": "1 hour"}, {"dedupe_key": "c"}]
    first, second, third = (answer[1] for answer in many(connection, rows))
    status = "select state, kind, attempts, doubt from fencepost.status(%s)"
    assert connection.execute(status, [first]).fetchone() == ("due", None, 0, False)
    assert connection.execute(status, [second]).fetchone() == ("open", None, 0, False)
    connection.execute(
        "update fencepost.queue set lease_until = now() + interval '20 s', attempts = 2, doubt = true"
        " where notification_id = %s",
        [first],
    )
    assert connection.execute(status, [first]).fetchone() == ("leased", None, 2, True)
    connection.execute("delete from fencepost.queue where notification_id = %s", [third])
    connection.execute(
        "insert into fencepost.closed (notification_id, closed_at, fence, attempts, kind, reason)"
        " values (%s, '2026-01-01Z', 3, 3, 'uncertain', 'held')",
        [third],
    )
    by_key = "select id, state, kind, reason, attempts, doubt, closed_at::date::text from fencepost.status(%s, %s)"
    assert connection.execute(by_key, ["push", "c"]).fetchall() == [
        (third, "closed", "uncertain", "held", 3, True, "2026-01-01")
    ]
    assert connection.execute(by_key, ["push", "nope"]).fetchall() == []
    assert connection.execute(by_key, ["nope", "c"]).fetchall() == []
    assert connection.execute(status, [999]).fetchall() == []


def test_enqueue_costs_little_log(connection: psycopg.Connection) -> None:
    """Goal: 1,600 B of write-ahead log from enqueue to closed, of which at most 1,000 here."""
    payload = json.dumps({"title": "x" * 50, "body": "y" * 180, "data": {"order": "o" * 20}})
    assert 280 <= len(payload) <= 300

    def rows(start: int) -> list[dict[str, Any]]:
        numbers = range(start, start + 500)
        return [
            {"recipient": f"device-token-{n}", "dedupe_key": f"order-{n}", "payload": payload}
            for n in numbers
        ]

    position = "select pg_current_wal_insert_lsn() - '0/0'::pg_lsn"
    many(connection, rows(0))
    connection.execute("checkpoint")
    many(connection, rows(500))  # what a checkpoint makes dearer (whole pages) is behind us
    [(before,)] = connection.execute(position).fetchall()
    many(connection, rows(1000))
    many(connection, rows(1500))
    [(after,)] = connection.execute(position).fetchall()
    assert (after - before) / 1000 <= 1000
