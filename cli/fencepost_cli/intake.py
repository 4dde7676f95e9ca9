"""Lines into the database in batches, with a count of what became of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fencepost_cli.jsonl import Bad, Good

if TYPE_CHECKING:
    from fencepost.store.operator import Operator

BATCH_LINES_MAX = 1000
BATCH_BYTES_MAX = 4 * 1024 * 1024  # memory, and the longest that one statement keeps others waiting
SHOWN_MAX = 100  # bad lines repeated in the JSON answer; all of them go to stderr


@dataclass(slots=True)
class Intake:
    """What became of the lines so far. `through`: every line up to here is accounted for."""

    enqueued: int = 0
    existing: int = 0
    differing: int = 0
    refused: int = 0
    through: int = 0

    def note(self, created: bool, differs: bool) -> None:
        self.enqueued += created
        self.existing += not created
        self.differing += differs


@dataclass(frozen=True, slots=True)
class Batch:
    good: list[Good]
    bad: list[Bad]
    last_line: int
    size: int


Tell = Callable[[int, str], None]  # line number, what is wrong with it


def take(
    database: "Operator",
    lines: Iterable[Good | Bad],
    tell: Tell,
    done: Callable[[Batch], None],
    intake: Intake,
) -> None:
    """Enqueue what is good and tell what is not, each batch in a transaction of its own."""
    for batch in batches(lines):
        _tell_all(batch.bad, tell, intake)
        if batch.good:
            _enqueue(database, batch.good, tell, intake)
        intake.through = batch.last_line
        done(batch)


def batches(lines: Iterable[Good | Bad]) -> Iterator[Batch]:
    """In the order of the file, as many as fit."""
    good: list[Good] = []
    bad: list[Bad] = []
    size = 0
    number = 0
    for line in lines:
        (good if isinstance(line, Good) else bad).append(line)  # type: ignore[arg-type]
        size, number = size + line.size, line.number
        if len(good) + len(bad) >= BATCH_LINES_MAX or size >= BATCH_BYTES_MAX:
            yield Batch(good, bad, number, size)
            good, bad, size = [], [], 0
    if good or bad:
        yield Batch(good, bad, number, size)


def _tell_all(bad: Sequence[Bad], tell: Tell, intake: Intake) -> None:
    for line in bad:
        tell(line.number, line.fault)
        intake.refused += 1


def _enqueue(database: "Operator", good: Sequence[Good], tell: Tell, intake: Intake) -> None:
    from fencepost import Refused

    answers = database.enqueue([line.words for line in good])
    for line, answer in zip(good, answers, strict=True):
        if isinstance(answer, Refused):
            tell(line.number, answer.fault)
            intake.refused += 1
            continue
        intake.note(answer.created, answer.differs)
        if answer.differs:
            tell(
                line.number,
                f"its dedupe_key belongs to notification {answer.id}, whose content is another",
            )
