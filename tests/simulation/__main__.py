"""`python -m tests.simulation --seeds N` plays N schedules; `--seed n` plays one again."""

import argparse
import sys
import time
from collections import Counter

from tests.simulation.faults import Fault
from tests.simulation.schedule import Schedule
from tests.simulation.world import Broken


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=2000, help="how many schedules")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="one schedule only")
    chosen = parser.parse_args()
    seeds = range(chosen.first, chosen.first + chosen.seeds)
    if chosen.seed is not None:
        seeds = range(chosen.seed, chosen.seed + 1)
    began, fired = time.monotonic(), Counter[Fault]()
    for seed in seeds:
        try:
            fired += Schedule(seed).run()
        except Broken as broken:
            print(broken, file=sys.stderr)
            return 1
    print(f"{len(seeds)} schedules in {time.monotonic() - began:.1f} s; faults that fired:")
    for fault in Fault:
        print(f"  {fault.value:16} {fired[fault]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
