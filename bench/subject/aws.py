"""Calls to SES and SNS: our senders beside a plain boto3 client in a pool of threads, a hundred in flight."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median

from bench.aws_caller import IN_FLIGHT
from bench.aws_provider import ANSWER_MS
from bench.crew import Crew
from bench.paired import interleaved, ratio
from bench.plan import Plan
from bench.subject.sends import CLIENT_CORE, provider
from bench.table import Table, number, times

SERVICES = ("ses", "sns")


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    rate: float  # calls a second
    cpu_ms: float  # of the caller, a call


def measure(plan: Plan) -> list[Table]:
    count = plan.rows(8_000)
    with provider("http/1.1", "bench.aws_provider") as (folder, url):
        rows = [_row(service, plan, partial(_called, folder, url, count)) for service in SERVICES]
    return [
        Table(
            title=f"SES and SNS beside boto3 {version('boto3')}, {IN_FLIGHT} in flight, {ANSWER_MS} ms answers",
            columns=(
                "service",
                "calls/s: boto3 / ours",
                "ours against boto3",
                "CPU ms/call: boto3 / ours",
                "boto3's CPU against ours",
            ),
            rows=rows,
            notes=(
                "One core for the caller; HTTP/1.1 over TLS to a server on the other, connections open before it "
                f"begins. Ideal: {IN_FLIGHT * 1000 // ANSWER_MS:,} calls/s.",
                "Ours renders the payload, digests it, signs (botocore's signer), sends and classifies. boto3: one "
                f"client, {IN_FLIGHT} threads, retries off, parameters made before.",
            ),
        )
    ]


def _row(service: str, plan: Plan, called: Callable[[str, str], Called]) -> tuple[str, ...]:
    rounds = {who: partial(called, who, service) for who in ("boto3", "ours")}
    taken = interleaved(rounds, plan.repeats)
    theirs, ours = taken["boto3"], taken["ours"]
    rates = ratio([one.rate for one in ours], [one.rate for one in theirs])
    costs = ratio([one.cpu_ms for one in theirs], [one.cpu_ms for one in ours])
    return (
        service,
        f"{number(median(one.rate for one in theirs))} / {number(median(one.rate for one in ours))}",
        times(rates),
        f"{median(one.cpu_ms for one in theirs):.3f} / {median(one.cpu_ms for one in ours):.3f}",
        times(costs),
    )


def _called(folder: Path, url: str, count: int, who: str, service: str) -> Called:
    arguments = [who, service, url, str(count), str(CLIENT_CORE)]
    environment = {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "SSL_CERT_FILE": str(folder / "ca.pem"),
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    with Crew([[sys.executable, "-m", "bench.aws_caller", *arguments]], environment) as crew:
        crew.await_ready()
        crew.say("go")
        (told,) = crew.results()
    return Called(rate=count / (told["ended"] - told["began"]), cpu_ms=told["cpu"] / count * 1000)
