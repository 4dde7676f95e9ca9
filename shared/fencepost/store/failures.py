"""What an exception of the driver says about the effect of what was said: the only place that reads SQLSTATEs."""

import psycopg
from psycopg import errors
from psycopg.pq import ConnStatus

from fencepost.core.exchange import Failure
from fencepost.ports import StoreFailed

RETRY = (  # rolled back, and may go through the next time
    errors.TransactionRollback,  # 40001, 40P01 …
    errors.LockNotAvailable,
    errors.QueryCanceled,  # the role's statement_timeout
    errors.InsufficientResources,
)
DATA = (psycopg.DataError, psycopg.IntegrityError, errors.ProgramLimitExceeded, UnicodeEncodeError)
ELSEWHERE = (
    "25006",
)  # a server that only reads: after a failover the next dial may find the writer
LINE_CHARACTERS_MAX = 300


def translate(failure: Exception, connection: psycopg.AsyncConnection) -> StoreFailed:
    """A broken connection or FATAL: unknown. ERROR on a connection that is ready again: not committed."""
    detail = one_line(failure)
    if _gone(failure, connection):
        return StoreFailed(Failure.UNKNOWN, detail)
    if isinstance(failure, RETRY):
        return StoreFailed(Failure.RETRY, detail)
    if isinstance(failure, DATA):
        return StoreFailed(Failure.DATA, detail)
    return StoreFailed(Failure.REFUSED, detail)


def must_dial_anew(failure: Exception) -> bool:
    """Whether this server, though it answers, is the wrong one."""
    return isinstance(failure, psycopg.Error) and failure.sqlstate in ELSEWHERE


def one_line(failure: BaseException) -> str:
    """The message without its context (which may quote data), or the exception's name."""
    primary = failure.diag.message_primary if isinstance(failure, psycopg.Error) else None
    if isinstance(failure, UnicodeEncodeError):
        primary = "text that is not Unicode"
    text = primary or str(failure).strip().partition("\n")[0] or type(failure).__name__
    return text[:LINE_CHARACTERS_MAX]


def _gone(failure: Exception, connection: psycopg.AsyncConnection) -> bool:
    if connection.closed or connection.pgconn.status != ConnStatus.OK:
        return True
    if not isinstance(failure, psycopg.Error):
        return False
    fatal = failure.diag.severity_nonlocalized in ("FATAL", "PANIC")
    return fatal or isinstance(failure, psycopg.InterfaceError)
