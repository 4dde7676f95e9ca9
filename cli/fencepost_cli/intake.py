"""Lines into the database in batches, with a count of what became of them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fencepost.backfill.lines import Bad, Batch, Good, Rest, batches

if TYPE_CHECKING:
    from fencepost.store.operator import Operator

SHOWN_MAX = 100  # bad lines repeated in the JSON answer; all of them go to stderr


@dataclass(slots=True)
class Intake:
    """What became of the lines so far. `through`: every line up to here is accounted for. Not `ids_stand`: what was
    enqueued may be rolled back, and its id with it."""

    ids_stand: bool = True
    enqueued: int = 0
    existing: int = 0
    differing: int = 0
    refused: int = 0
    through: int = 0
    notes: list[tuple[int, str]] = field(default_factory=list)

    def note(self, created: bool, differs: bool) -> None:
        self.enqueued += created
        self.existing += not created
        self.differing += differs

    def take_notes(self) -> list[tuple[int, str]]:
        notes, self.notes = self.notes, []
        return notes


Tell = Callable[[int, str], None]  # line number, what is wrong with it


def take(
    database: "Operator",
    lines: Iterable[Good | Bad | Rest],
    tell: Tell,
    done: Callable[[Batch], None],
    intake: Intake,
) -> None:
    """Enqueue what is good and tell what is not, each batch in a transaction of its own."""
    for batch in batches(lines):
        faults = [(line.number, line.fault) for line in batch.bad]
        if batch.good:
            faults += _enqueue(database, batch.good, intake)
        intake.refused += len(faults)
        for number, fault in sorted([*faults, *intake.take_notes()]):
            tell(number, fault)
        intake.through = batch.end.line
        done(batch)


def _enqueue(database: "Operator", good: Sequence[Good], intake: Intake) -> list[tuple[int, str]]:
    """The faults the database found. What is there already with another content is noted, and no fault."""
    from fencepost import Refused

    faults = []
    for line, answer in zip(good, database.enqueue([one.words for one in good]), strict=True):
        if isinstance(answer, Refused):
            faults.append((line.number, answer.fault))
            continue
        intake.note(answer.created, answer.differs)
        if answer.differs:
            whose = f"notification {answer.id}" if intake.ids_stand else "a notification"
            other = f"its dedupe_key belongs to {whose}, whose content is another"
            intake.notes.append((line.number, other))
    return faults
