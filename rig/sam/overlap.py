"""`sam local start-lambda` with three ticks at once: judged by what the database and the receiver say."""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from rig.ground import ROOT, wait_until
from rig.sam.cli import Sam
from rig.sam.doors import doors
from rig.sam.expected import ALWAYS
from rig.sam.ground import Ground, Place

RUNS = 3
SLOTS = 10  # of channel `orders` (channels.toml): each run can hold so many and no more
ROWS = RUNS * SLOTS
TIMING = {  # containers start one after the other: a send waits for the slowest of them
    "FENCEPOST_SEND_TIMEOUT_SECONDS": "45",
    "FENCEPOST_LEASE_SECONDS": "50",
}
TOGETHER_SECONDS = 10.0  # four times that at most: less than a send's timeout
HOSTS = 5  # with two slots of ten each
FUNCTION = "DeliverFunction"


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """What was seen: while all three were at work, and afterwards."""

    holding: int  # runs that held rows at one time
    held: int  # rows
    answers: list[Any]
    account: Mapping[str, int]
    differences: list[str]


def overlap(ground: Ground, sam: Sam, place: Place) -> Overlap:
    """Every send waits at the receiver's gate until three runs hold their rows; then the gate is opened."""
    deliver = {**place.environments[FUNCTION], **TIMING}
    environments = {**place.environments, FUNCTION: deliver}
    receiver = urlsplit(ground.provider.url)
    with (
        doors(ground.engine.address, receiver.port or 80, HOSTS) as ports,
        sam.lambda_endpoint(environments) as endpoint,
        ThreadPoolExecutor(RUNS) as threads,
    ):
        place.enqueue(_by_many_doors(ground.lines("gate", ROWS), receiver.port or 80, ports))
        invoked = [threads.submit(_invoke, endpoint, number) for number in range(RUNS)]
        try:
            wait_until(
                lambda: _holding(place) == RUNS and _waiting(ground) == ROWS,
                TOGETHER_SECONDS,
                "three runs that hold rows at one time",
            )
            holding, held = _holding(place), place.number(HELD)
        except TimeoutError:
            holding, held = _holding(place), place.number(HELD)
        finally:
            ground.provider.open_gate()
        answers = [one.result() for one in invoked]
    account = place.account()
    return Overlap(
        holding=holding,
        held=held,
        answers=answers,
        account=account,
        differences=_judge(holding, held, answers, account),
    )


def _by_many_doors(
    lines: list[dict[str, Any]], port: int, ports: list[int]
) -> list[dict[str, Any]]:
    """Neighbours go to different hosts: one that has not answered yet gets a quarter of a run's slots."""
    return [
        {**line, "recipient": line["recipient"].replace(f":{port}/", f":{ports[n % HOSTS]}/", 1)}
        for n, line in enumerate(lines)
    ]


HOLDING = "select count(distinct run_id) from fencepost.queue where lease_until > now()"
HELD = "select count(*) from fencepost.queue where lease_until > now()"
EXPECTED = {
    **ALWAYS,
    "delivered": ROWS,
    "open": 0,
    "attempts": ROWS,  # one for each: none was sent twice
    "arrivals": ROWS,
    "effects": ROWS,
    "duplicate_arrivals": 0,
    "runs": RUNS,
}


def _judge(holding: int, held: int, answers: list[Any], account: Mapping[str, int]) -> list[str]:
    found = {**account, "holding": holding, "held": held}
    wanted = {**EXPECTED, "holding": RUNS, "held": ROWS}
    wrong = [f"{n} is {found.get(n)}, not {w}" for n, w in wanted.items() if found.get(n) != w]
    shares = [one.get("delivered") if isinstance(one, dict) else one for one in answers]
    if shares != [SLOTS] * RUNS:
        wrong.append(f"the runs delivered {shares}, not {SLOTS} each")
    return wrong


def _holding(place: Place) -> int:
    return place.number(HOLDING)


def _waiting(ground: Ground) -> int:
    return ground.effects()["arrivals"]


def _invoke(endpoint: str, number: int) -> Any:
    client = boto3.client(
        "lambda",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="local",
        aws_secret_access_key="local",
        config=Config(read_timeout=120, retries={"total_max_attempts": 1}),
    )
    tick = {**json.loads((ROOT / "events" / "tick.json").read_text()), "id": f"overlap-{number}"}
    try:
        answer = client.invoke(FunctionName=FUNCTION, Payload=json.dumps(tick).encode())
        return json.loads(answer["Payload"].read())
    except (BotoCoreError, ClientError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
