"""`python -m bench [--only exchange,latency] [--write]`: measure, print, and keep the tables in bench/README.md."""

import argparse
import sys
from importlib import import_module

from bench.machine import date_line, machine_line, versions_line
from bench.plan import Plan
from bench.readme import keep
from bench.server import available

SUBJECTS = (
    "exchange",
    "peers",
    "latency",
    "sends",
    "cold_start",
    "backfill",
    "scale",
    "aws",
    "providers",
)


def main() -> None:
    arguments = read_arguments()
    plan = Plan(
        scale=arguments.scale,
        repeats=arguments.repeats,
        servers=tuple(arguments.servers.split(",")),
        deep=arguments.deep,
    )
    for subject in arguments.only.split(","):
        section = measured(subject, plan)
        print(section, flush=True)
        if arguments.write:
            keep(subject, section)


def measured(subject: str, plan: Plan) -> str:
    """The subject's tables under the line that says where, when and with what."""
    if subject not in SUBJECTS:
        sys.exit(f"no such subject: {subject} (there are: {', '.join(SUBJECTS)})")
    where, when = machine_line(), date_line()
    tables = import_module(f"bench.subject.{subject}").measure(plan)
    head = f"*{when}, {plan.repeats} repeats. {where}. {versions_line(list(available()))}.*"
    return "\n\n".join([head, *(table.markdown() for table in tables)])


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--only", default=",".join(SUBJECTS), help="subjects, with commas")
    parser.add_argument("--write", action="store_true", help="keep the tables in bench/README.md")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of rows")
    parser.add_argument("--servers", default="15,18", help="PostgreSQL majors, with commas")
    parser.add_argument("--deep", action="store_true", help="the slow cases too (5 million rows)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
