"""What an exception of the driver says about the effect of what was said: the only place that reads SQLSTATEs."""

import re

import psycopg
from psycopg.pq import ConnStatus

from fencepost.core.exchange import Failure
from fencepost.ports import NotMigrated, StoreFailed

# By SQLSTATE: the driver's exception classes do not follow its first two characters.
RETRY = ("40", "53", "55P03", "57014")  # rolled back: deadlock, no memory, busy, statement_timeout
DATA = ("22", "23", "54")
NOT_THERE = ("3F000", "42883", "42P01")  # schema, function, table
GONE = ("08", "57P")  # the connection, or the server under it
ELSEWHERE = "25006"  # a server that only reads: after a failover the next dial may find the writer
LINE_CHARACTERS_MAX = 300
NO_SUCH_ROLE = re.compile(r'fatal: +role ".*" does not exist')


def translate(failure: Exception, connection: psycopg.AsyncConnection) -> StoreFailed:
    """A broken connection or FATAL: unknown. ERROR on a connection that is ready again: not committed."""
    detail = one_line(failure)
    if _gone(failure, connection):
        return StoreFailed(Failure.UNKNOWN, detail)
    state = _state(failure)
    if state == ELSEWHERE:
        return StoreFailed(Failure.AWAY, detail)
    if state.startswith(RETRY):
        return StoreFailed(Failure.RETRY, detail)
    if state.startswith(DATA):
        return StoreFailed(Failure.DATA, detail)
    if state in NOT_THERE:
        return NotMigrated(Failure.REFUSED, detail)
    return StoreFailed(Failure.REFUSED, detail)


def must_dial_anew(failure: Exception) -> bool:
    """Whether this server, though it answers, is the wrong one."""
    return _state(failure) == ELSEWHERE


def asked_for_password(failure: Exception) -> bool:
    """Whether a dial came as far as showing a password. (The driver keeps no SQLSTATE of a failed dial, and its text
    is in the server's language: so this is asked before a secret is read anew.)"""
    broken = failure.pgconn if isinstance(failure, psycopg.Error) else None
    return broken is not None and broken.used_password


def login_refused(failure: Exception) -> bool:
    """Whether it was the login that was refused, in the words of servers and poolers."""
    text = str(failure).lower()
    if no_such_role(failure):
        return True
    return asked_for_password(failure) and ("password" in text or "authentication" in text)


def no_such_role(failure: Exception) -> bool:
    """Where no password is asked for, a server says it plainly; in English, that is."""
    return NO_SUCH_ROLE.search(str(failure).lower()) is not None


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
    if _state(failure).startswith(GONE) or isinstance(failure, psycopg.InterfaceError):
        return True
    fatal = isinstance(failure, psycopg.Error) and failure.diag.severity_nonlocalized
    return fatal in ("FATAL", "PANIC")


def _state(failure: Exception) -> str:
    """The SQLSTATE; a class of its own kind where the driver refused before the server saw anything."""
    if isinstance(failure, psycopg.Error) and failure.sqlstate:
        return failure.sqlstate
    return "22" if isinstance(failure, psycopg.DataError | UnicodeEncodeError) else ""
