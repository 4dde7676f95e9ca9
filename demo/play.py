"""The play itself: a tick a second until everything is closed, two accidents meanwhile, and the count at the end."""

import time

from demo.others import TIMEOUT_SECONDS
from demo.provoke import Accident
from demo.screen import Screen
from demo.stage import Stage
from demo.ticks import Invocation, Schedule
from demo.verdict import Evidence
from rig.ground import state_of

TICK_SECONDS = 1.0
LOOK_SECONDS = 0.15
ENCORE = 2000  # notifications, where the first file was closed before both accidents had begun
ENCORES_MAX = 3
PATIENCE_SECONDS = 150.0  # then it ends as it is, and the table says what is missing


def play(stage: Stage, screen: Screen) -> Evidence:
    """Deliver everything; then count on both sides."""
    kill = Accident("killed by its timeout", thawed=False)
    stale = Accident("frozen past its lease", thawed=True)
    schedule = Schedule(stage.runtimes, lambda ended: _tell(screen, ended))
    try:
        _until_over(stage, screen, schedule, kill, stale)
    except BaseException:
        schedule.report = lambda _: None  # what is stopped now has no news
        raise
    return _counted(stage, kill, stale)


def _until_over(
    stage: Stage, screen: Screen, schedule: Schedule, kill: Accident, stale: Accident
) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    next_tick = time.monotonic()
    while time.monotonic() < end and not _over(stage, kill, stale):
        if time.monotonic() >= next_tick:
            schedule.tick()
            next_tick += TICK_SECONDS
        _step(stage, screen, schedule, kill, stale)
        progress = stage.book.progress()
        screen.progress(progress, stage.lines, _states(schedule))
        if not progress.open and not (kill.begun and stale.begun) and stage.files <= ENCORES_MAX:
            screen.say(f"all closed too soon for both accidents: {stage.enqueue(ENCORE):,} more")
        time.sleep(LOOK_SECONDS)
    schedule.join(TIMEOUT_SECONDS + 2)


def _over(stage: Stage, kill: Accident, stale: Accident) -> bool:
    return kill.happened and stale.happened and not stage.book.progress().open


def _step(
    stage: Stage, screen: Screen, schedule: Schedule, kill: Accident, stale: Accident
) -> None:
    """The two accidents never share a runtime."""
    for accident, other in ((kill, stale), (stale, kill)):
        before = accident.stage
        busy = {name for name in (other.runtime_name(),) if name}
        accident.step(schedule, stage.book, stage.provider, busy)
        if accident.stage is not before:
            screen.say(f"{accident.runtime_name() or 'accident'}: {accident.told()}")


def _tell(screen: Screen, ended: Invocation) -> None:
    result = ended.ended
    if result is not None and result.summary is None:
        what = "killed by its timeout" if result.timed_out else (result.error or "no summary")
        screen.say(f"{ended.runtime.name}: {what} after {result.took_seconds:.1f} s")


def _states(schedule: Schedule) -> list[str]:
    at_work = {one.runtime.name for one in schedule.under_way()}
    in_order = sorted(schedule.runtimes, key=lambda one: one.name)
    return [f"{one.name}:{_state(one.pid(), one.name in at_work)}" for one in in_order]


def _state(pid: int | None, at_work: bool) -> str:
    if pid is not None and state_of(pid) == "T":
        return "frozen"
    return "sending" if at_work else "idle"


def _counted(stage: Stage, kill: Accident, stale: Accident) -> Evidence:
    return Evidence(
        account=stage.book.account(),
        count=stage.provider.count(),
        closed=stage.book.closed(),
        arrivals=stage.provider.arrivals(),
        pushes=stage.others.pushes(),
        mails=stage.others.mails(),
        chats=stage.others.chat.stored(),
        chat_lost=stage.others.chat.lost,
        chat_asked=stage.others.chat.asked,
        kill=kill,
        stale=stale,
        lines_in_file=stage.lines,
        slots=stage.slots,
    )
