"""`make demo`: a file of notifications through overlapping real Lambda runtimes, with two accidents on the way."""

import argparse
import contextlib
import signal
import sys
import tempfile
import time
from pathlib import Path

from demo.play import play
from demo.screen import screen, show_sentences, show_table
from demo.stage import set_stage
from demo.verdict import broken, doubt, table
from rig.command import fencepost
from rig.runtimes import unavailable


def main() -> int:
    arguments = read_arguments()
    if why := unavailable():
        print(f"demo: {why}", file=sys.stderr)
        return 2
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    began = time.monotonic()
    try:
        code = run(arguments)
    except KeyboardInterrupt:
        print("demo: stopped; everything it started has ended", file=sys.stderr)
        return 130
    except RuntimeError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    print(f"{time.monotonic() - began:.0f} s in all")
    return code


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="demo", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=5200)
    parser.add_argument("--runtimes", type=int, default=5, choices=range(3, 17))
    return parser.parse_args()


def run(arguments: argparse.Namespace) -> int:
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fencepost-demo-")))
        shown = screen()
        stack.callback(shown.close)
        stage = stack.enter_context(
            set_stage(
                shown,
                folder,
                seed=arguments.seed,
                count=arguments.count,
                runtimes=arguments.runtimes,
            )
        )
        evidence = play(stage, shown)
        shown.close()
        lines = table(evidence)
        if (example := evidence.stale.fate.example) is not None:
            print(f"\nThe one that was spoken of too late (fencepost explain {example}):\n")
            print(fencepost(stage.environment, "explain", str(example)))
        show_table("What happened", lines)
        decided = doubt(evidence)
        show_sentences(
            "Who got it, where an answer was lost: each channel's policy decides", decided
        )
        for line in broken(lines + decided):
            print(f"BROKEN: {line.label}: {line.value} (according to: {line.source})")
        return 1 if broken(lines + decided) else 0


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
