"""One message of a backfill: read it, take its command up, do pages of it while they fit, and say how that ended.

What fits no more is carried on by another message, which is in the queue before this one is acknowledged. Where
nothing can be sent the message itself comes back: the place it got to is in the database.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from fencepost.backfill.commands import BODY_BYTES_MAX, continuation_message, read_command
from fencepost.backfill.pages import enqueue_pages, pages_from
from fencepost.backfill.ports import Commands, Objects, SourceAway
from fencepost.core.backfill import ENDINGS, Ended, Ending, Pace, Paged, Turn, Verdict, over, why
from fencepost.core.callback import Callback
from fencepost.core.command import (
    Command,
    CommandId,
    CommandRefused,
    Drain,
    Enqueue,
    Evidence,
    Lasting,
    Move,
    Replay,
    what_of,
)
from fencepost.core.operation import DatabaseAway, OperatorError, Refused, SchemaMissing
from fencepost.core.tally import Count, Summary
from fencepost.core.tally import Ending as RunEnding
from fencepost.ports import Clock, StoreFailed

Send = Callable[[Sequence[str], float], Sequence[str]]  # bodies and seconds; those taken
RunOnce = Callable[[float, CommandId], Summary]  # seconds, for which command; raises StoreFailed
Told = Callable[[str], Sequence[Callback] | None]  # a body → what a provider tells in it
Progress = Callable[[Paged], None]
NO_TIME = "no time left for it in this invocation"


class Means(Struct, frozen=True, kw_only=True):
    """What a backfill works with. `send` None: nothing can carry a command on but its own message."""

    commands: Commands
    objects: Objects
    run_once: RunOnce
    clock: Clock
    installation: str | None = None  # whose evidence is taken; None: anybody's
    send: Send | None = None
    told: Told = lambda body: None
    progress: Progress = lambda page: None


class Backfill:
    """Commands, one after the other. `swept`: a run of this invocation has drained already."""

    def __init__(self, means: Means) -> None:
        self._means = means
        self.swept = False
        self._checked = means.installation is None
        self._away: DatabaseAway | None = None  # dialled twice in vain: the rest need not wait

    def take(self, body: str, pace: Pace) -> Ended:
        """What one message came to. Raises nothing of the database's, the queue's or S3's."""
        if (callbacks := self._means.told(body)) is not None:
            return replace(self._taken(callbacks, pace), named={"command": "callback"})
        try:
            command = read_command(body)
        except CommandRefused as refused:
            return Ended(ending=Ending.REFUSED, reason=str(refused))
        return replace(self._taken(command, pace), named=_named(command))

    def _taken(self, command: Command | Sequence[Callback], pace: Pace) -> Ended:
        if not pace.fits(self._means.clock()):
            return Ended(ending=Ending.PUT_BACK, reason=NO_TIME)
        try:
            return self._twice(command, pace)
        except (CommandRefused, Refused, SchemaMissing) as refused:
            return Ended(ending=Ending.REFUSED, reason=str(refused))
        except StoreFailed as failed:
            return Ended(ending=Ending.AWAY, reason=failed.detail)
        except (OperatorError, SourceAway) as away:
            return Ended(ending=Ending.AWAY, reason=str(away))

    def do(self, command: Command | Sequence[Callback], pace: Pace) -> Ended:
        """The same for a command at hand; raises what is wrong with it or with the database."""
        if isinstance(command, Sequence):
            return self._hear(command)
        match command:
            case Evidence():
                return self._note(command)
            case Drain():
                return self._drain(command, pace)
            case Enqueue() | Move() | Replay():
                return self._go_on(command, pace)
            case _:
                assert_never(command)

    def _twice(self, command: Command | Sequence[Callback], pace: Pace) -> Ended:
        """Once more where the connection broke: begun again, it goes on from where it got to. What was dialled anew
        may be another server: whose database it is, is asked anew too."""
        if self._away is not None:
            raise self._away
        try:
            self._check_installation()
            return self.do(command, pace)
        except (Refused, SchemaMissing):
            raise
        except OperatorError:
            if not pace.fits(self._means.clock()):
                raise
        self._checked = self._means.installation is None
        self._insist_on_installation()
        return self.do(command, pace)

    def _insist_on_installation(self) -> None:
        try:
            self._check_installation()
        except DatabaseAway as away:
            self._away = away
            raise

    def _check_installation(self) -> None:
        """A queue must not reach another installation's database: once an invocation and connection."""
        if self._checked:
            return
        here, bound_to = self._means.installation, self._means.commands.bound_to()
        if bound_to != here:
            raise CommandRefused(
                f"this database belongs to installation {bound_to}, and FENCEPOST_INSTALLATION is {here}"
            )
        self._checked = True

    def _note(self, evidence: Evidence) -> Ended:
        here = self._means.installation
        if here is not None and evidence.installation != here:
            raise CommandRefused("the evidence is of another installation's run")
        letters = self._means.commands.evidence(evidence)
        counts = {"facts": len(letters), "conflicts": letters.count("C")}
        return Ended(ending=Ending.DONE, counts=counts)

    def _hear(self, callbacks: Sequence[Callback]) -> Ended:
        letters = self._means.commands.callback(callbacks) if callbacks else ""
        counts = {"facts": len(letters), "conflicts": letters.count("C")}
        return Ended(ending=Ending.DONE, counts={**counts, "unknown": letters.count("U")})

    def _drain(self, command: Drain, pace: Pace) -> Ended:
        begun = self._means.commands.begin(command)
        if ended := over(begun):
            return ended
        counts = {} if self.swept else self._run(command, pace.limit - self._means.clock())
        if isinstance(counts, Ended):
            return counts
        self.swept = True
        self._means.commands.end(begun.turn, Verdict.DONE, counts=counts)
        return Ended(ending=Ending.DONE, counts=counts)

    def _run(self, command: Drain, seconds: float) -> dict[str, int] | Ended:
        """What it did, or why it counts as none."""
        summary = self._means.run_once(seconds, command.label.id)
        if summary.ended is RunEnding.NO_TIME:
            return Ended(ending=Ending.PUT_BACK, reason=NO_TIME)
        if summary.ended is RunEnding.REFUSED:
            return Ended(ending=Ending.AWAY, reason="the database refused what the run said")
        told = (Count.CLAIMED, Count.DELIVERED, Count.PARKED)
        return {count.value: summary.counts[count] for count in told}

    def _go_on(self, command: Lasting, pace: Pace) -> Ended:
        begun = self._means.commands.begin(command)
        if ended := over(begun):
            return ended
        counts = dict(begun.counts)
        for page in self._timed(self._pages(command, begun.turn), pace):
            for name, count in page.counts.items():
                counts[name] = counts.get(name, 0) + count
            self._means.progress(page)
            if page.verdict is not Verdict.GOING:
                return Ended(ending=ENDINGS[page.verdict], reason=why(page), counts=counts)
        return self._continue(command, begun.turn, pace, counts)

    def _timed(self, pages: Iterator[Paged], pace: Pace) -> Iterator[Paged]:
        began = self._means.clock()
        while not pace.pages or pace.fits(began):
            page = next(pages)
            pace.took(self._means.clock() - began)
            yield page
            began = self._means.clock()

    def _pages(self, command: Lasting, turn: Turn) -> Iterator[Paged]:
        """Pages until one ends the command or is stale."""
        commands = self._means.commands
        match command:
            case Enqueue():
                return enqueue_pages(commands, self._means.objects, command, turn)
            case Move():
                return pages_from(turn, lambda turn: commands.move(turn, command))
            case Replay():
                return pages_from(turn, lambda turn: commands.replay(turn, command))
            case _:
                assert_never(command)

    def _continue(self, command: Lasting, turn: Turn, pace: Pace, counts: dict[str, int]) -> Ended:
        """The queue has it first, then the table knows it, then this message is acknowledged."""
        body = continuation_message(command.label)
        if self._means.send is None or len(body) > BODY_BYTES_MAX:
            reason = "time is up; it goes on when this message comes back"
            return Ended(ending=Ending.PUT_BACK, reason=reason, counts=counts)
        if not self._means.send([body], max(0.0, pace.limit - self._means.clock())):
            reason = "the queue took no message to carry it on"
            return Ended(ending=Ending.AWAY, reason=reason, counts=counts)
        self._means.commands.continued(turn, command.label.continuation + 1)
        return Ended(ending=Ending.CONTINUED, counts=counts)


def _named(command: Command) -> dict[str, str]:
    if isinstance(command, Evidence):
        return {"command": "evidence", "run": str(command.run)}
    return {"command": what_of(command), "command_id": str(command.label.id)}
