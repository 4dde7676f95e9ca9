"""What the exit code of a command means (docs/cli.md)."""

from enum import IntEnum

from fencepost.core.operation import DatabaseAway, OperatorError, SchemaMissing


class ExitCode(IntEnum):
    OK = 0
    REFUSED = 1  # the database or the input says no, to all of it or to some
    USAGE = 2  # the command line itself is wrong, or a setting is missing
    DATABASE_AWAY = 3
    CHECK = 4  # the database is not as this version needs it: migrations pending or changed
    INTERRUPTED = 130
    PIPE_CLOSED = 141  # whoever read the output went away


class CommandFailed(Exception):
    """One line for stderr, and the exit code."""

    def __init__(self, line: str, code: ExitCode = ExitCode.REFUSED) -> None:
        super().__init__(line)
        self.code = code


def code_of(error: OperatorError) -> ExitCode:
    if isinstance(error, DatabaseAway):
        return ExitCode.DATABASE_AWAY
    return ExitCode.CHECK if isinstance(error, SchemaMissing) else ExitCode.REFUSED
