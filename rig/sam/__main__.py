"""`python -m rig.sam`: every file of events/ through `sam local invoke`, then three ticks at once through
`sam local start-lambda`. Exit code 0: all of it came out as declared in events/expected/."""

import argparse
import contextlib
import fcntl
import signal
import sys
import time
from collections.abc import Iterator

from rig.ground import ROOT
from rig.receiver import SECRET
from rig.sam.cli import SAM, Said, Sam, interpreter_folder
from rig.sam.engine import docker_engine
from rig.sam.expected import Expected, Found, differences, in_order, read_expected
from rig.sam.ground import OF_EVENTS, PRIVATE, TWILIO_TOKEN, Ground, Place, lay_ground
from rig.sam.image import ensure_image
from rig.sam.leftover import nothing_left
from rig.sam.overlap import overlap

CACHE = ROOT / ".cache" / "sam-local"
EVENTS = ROOT / "events"
EXPECTED = EVENTS / "expected"
OVERLAP = "start-lambda"


def main() -> int:
    arguments = read_arguments()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    began = time.monotonic()
    try:
        wrong = run(arguments)
    except KeyboardInterrupt:
        print("sam-local: stopped; everything it started has ended", file=sys.stderr)
        return 130
    except (RuntimeError, TimeoutError) as error:
        print(f"sam-local: {error}", file=sys.stderr)
        return 1
    print(f"{time.monotonic() - began:.0f} s in all; {wrong or 'nothing'} not as declared")
    return 1 if wrong else 0


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="rig.sam", description=__doc__)
    parser.add_argument(
        "--only", default="", help=f"events whose name has this in it, or {OVERLAP}"
    )
    parser.add_argument("--logs", action="store_true", help="show what each invocation logged")
    return parser.parse_args()


def run(arguments: argparse.Namespace) -> int:
    """How many events came out otherwise than declared."""
    if not SAM.exists():
        raise RuntimeError("SAM is not installed: make sam-local does it")
    interpreter_folder()  # an image takes minutes: what would be missed after it is looked for before
    with contextlib.ExitStack() as stack:
        stack.enter_context(_alone())
        engine = stack.enter_context(docker_engine(CACHE))
        stack.enter_context(nothing_left(engine))
        whose = "started for this" if engine.own else "that was running"
        say(f"docker engine {engine.version}, {whose}; this machine is {engine.address} to it")
        say(f"image {ensure_image(engine)}")
        ground = stack.enter_context(lay_ground(engine))
        sam = Sam(engine, ground.folder)
        sam.build()
        say("sam build: done; PostgreSQL, a receiver, a queue and a bucket are up")
        chosen = _chosen(arguments.only).items()
        wrong = sum(_event(ground, sam, *one, arguments.logs) for one in chosen)
        if arguments.only in OVERLAP:  # all, or this alone
            wrong += _overlap(ground, sam)
        return wrong


def say(text: str) -> None:
    print(text, flush=True)


def declared() -> dict[str, Expected]:
    """What is expected of every event, by its name, in the order in which they can come. One without is an error."""
    found = {}
    for event in EVENTS.glob("*.json"):
        file = EXPECTED / f"{event.stem}.toml"
        if not file.exists():
            raise RuntimeError(f"events/{event.name} has no events/expected/{file.name}")
        found[event.stem] = read_expected(file)
    return {name: found[name] for name in in_order(found)}


def _chosen(part: str) -> dict[str, Expected]:
    """Those named, and those whose databases they want."""
    found = declared()
    wanted = {name for name in found if part in name}
    for name in reversed(found):
        if name in wanted:
            wanted.add(found[name].database)
    return {name: expected for name, expected in found.items() if name in wanted}


def _event(ground: Ground, sam: Sam, name: str, expected: Expected, logs: bool) -> bool:
    """Whether something was not as declared."""
    place = ground.place(expected.database)
    if expected.database == "due":
        place.migrate()
        place.enqueue_the_usual()
    place.prepare(expected)
    file = EVENTS / f"{name}.json"
    said = [sam.invoke(expected.function, file, place.environments) for _ in range(expected.times)]
    wrong = _differences(place, expected, said)
    _report(f"events/{name}.json", expected, said, place, wrong, logs)
    ground.remember(place, name)
    return bool(wrong)


def _differences(place: Place, expected: Expected, said: list[Said]) -> list[str]:
    log = "".join(one.log for one in said)
    account, secrets = (
        place.account(),
        (SECRET, TWILIO_TOKEN, PRIVATE, *OF_EVENTS, place.ground.receiver_url),
    )
    wrong = []
    for one in said:
        found = Found(answer=one.answer, log=log, account=account, secrets=secrets)
        wrong += differences(expected, found)
    return list(dict.fromkeys(wrong))


def _report(
    name: str, expected: Expected, said: list[Said], place: Place, wrong: list[str], logs: bool
) -> None:
    account = place.account()
    numbers = ", ".join(f"{n} {account[n]}" for n in expected.after if n in account)
    took = "+".join(f"{one.took_seconds:.1f}" for one in said)
    say(f"{'WRONG' if wrong else 'ok   '} {name}: {expected.function}, {took} s; {numbers}")
    for one in said:
        say(f"      answered {one.answer}")
    for sentence in wrong:
        say(f"      {sentence}")
    if logs or wrong:
        say("".join(f"      | {line}\n" for one in said for line in one.log.splitlines()))


def _overlap(ground: Ground, sam: Sam) -> bool:
    place = ground.place("empty")
    place.migrate()
    seen = overlap(ground, sam, place)
    mark = "WRONG" if seen.differences else "ok   "
    say(
        f"{mark} sam local start-lambda: {seen.holding} runs held {seen.held} rows at one time; then"
        f" {seen.account['delivered']} delivered in {seen.account['attempts']} attempts,"
        f" {seen.account['arrivals']} requests, {seen.account['effects']} effects"
    )
    for answer in seen.answers:
        say(f"      answered {answer}")
    for sentence in seen.differences:
        say(f"      {sentence}")
    if seen.differences:
        say("".join(f"      | {line}\n" for line in sam.log().splitlines()))
    return bool(seen.differences)


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """One at a time in one checkout: they share the build and the images."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "turn").open("w") as turn:
        try:
            fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RuntimeError("another make sam-local is at work here") from None
        yield


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
