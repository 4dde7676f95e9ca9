"""What the database's errors become: one line, of the right branch, without what DETAIL would quote."""

import psycopg
import pytest
from psycopg import errors

from fencepost.core.operation import DatabaseAway, OperatorError, Refused, SchemaMissing
from fencepost.store.operator_error import translated
from fencepost.store.statement import TRIES_MAX, Statements, connected

CASES: list[tuple[psycopg.Error, type[OperatorError], str]] = [
    (errors.UndefinedFunction("x"), SchemaMissing, "fencepost migrate"),
    (errors.InvalidSchemaName("x"), SchemaMissing, "fencepost migrate"),
    (errors.InsufficientPrivilege("denied for f"), Refused, "may not do this"),
    (errors.DeadlockDetected("deadlock"), DatabaseAway, "busy, say it again"),
    (errors.LockNotAvailable("lock timeout"), DatabaseAway, "busy, say it again"),
    (errors.QueryCanceled("x"), DatabaseAway, "cut the statement off"),
    (errors.ReadOnlySqlTransaction("cannot execute UPDATE"), DatabaseAway, "only reads"),
    (errors.AdminShutdown("terminating"), DatabaseAway, "the database is away"),
    (psycopg.OperationalError("one\ntwo"), DatabaseAway, "the database is away: one"),
    (errors.NotNullViolation("x"), Refused, "refuses a value (NotNullViolation)"),
    (errors.UntranslatableCharacter("PIN 1234"), Refused, "refuses a value"),
    (errors.InternalError_("odd"), OperatorError, "XX000"),
]


@pytest.mark.parametrize(
    ("error", "kind", "words"), CASES, ids=[type(case[0]).__name__ for case in CASES]
)
def test_each_error_has_its_branch(
    error: psycopg.Error, kind: type[OperatorError], words: str
) -> None:
    ours = translated(error)
    assert type(ours) is kind
    assert words in str(ours)
    assert "\n" not in str(ours)
    assert "PIN" not in str(ours)


@pytest.mark.postgres
def test_a_deadlocks_victim_says_the_same_words_again(database_url: str) -> None:
    """Wrote nothing, so nothing is done twice; but not inside a transaction, whose other words were lost too."""
    heard = 0

    def unlucky(times: int) -> str:
        nonlocal heard
        heard += 1
        if heard <= times:
            raise errors.DeadlockDetected("deadlock detected")
        return "done"

    with connected(database_url) as connection:
        say = Statements(connection)
        assert say.insist(lambda: unlucky(TRIES_MAX - 1)) == "done"
        heard = 0
        with pytest.raises(DatabaseAway):
            say.insist(lambda: unlucky(TRIES_MAX))
        heard = 0
        with connection.transaction():
            connection.execute("select 1")
            with pytest.raises(DatabaseAway):
                say.insist(lambda: unlucky(1))
