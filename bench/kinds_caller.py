"""A program that sends by one kind, a hundred at once: `python -m bench.kinds_caller KIND URL COUNT CORE`.

It renders, digests, signs, sends and classifies, as a run does; connections and access tokens are there beforehand.
"""

import asyncio
import os
import sys
import time
from collections.abc import Iterator

from msgspec.structs import replace

from bench.aws_caller import IN_FLIGHT, WARM_CALLS, row
from bench.kinds import Example, examples
from bench.member import await_end, await_word, tell
from fencepost.core.channel import AttemptPolicy, Channel
from fencepost.core.notification import ChannelId, Claimed, OnUncertain
from fencepost.core.outcome import Delivered
from fencepost.ports import Prepared, Sender
from fencepost.senders.registry import kind_of
from fencepost.senders.transport import Transport


def sender(kind: str, example: Example, url: str, transport: Transport) -> Sender:
    channel = Channel(
        id=ChannelId(1),
        name=kind,
        sender=kind,
        settings=example.settings(url),
        secret_reference=None,
        slots=IN_FLIGHT,
        rate_per_second=None,
        on_uncertain=OnUncertain.HOLD,
        policy=AttemptPolicy(),
        revision=1,
        paused_for_seconds=0.0,
        pause_reason=None,
    )
    return kind_of(kind).build(channel, example.secret(url), transport)


async def deliver(out: Sender, claimed: Claimed) -> None:
    prepared = out.prepare(claimed)
    if not isinstance(prepared, Prepared):
        raise TypeError(prepared)
    reply = await out.send(claimed, prepared, timeout_seconds=60)
    outcome = out.classify(claimed, reply)
    if not isinstance(outcome, Delivered):
        raise TypeError(outcome)


async def calls(out: Sender, recipient: str, numbers: Iterator[int]) -> None:
    async def one_after_the_other() -> None:
        for number in numbers:
            await deliver(out, replace(row("ses", number), recipient=recipient))

    await asyncio.gather(*(one_after_the_other() for _ in range(IN_FLIGHT)))


def main(kind: str, url: str, count: int, core: int) -> None:
    os.sched_setaffinity(0, {core})
    example = examples()[kind]
    with asyncio.Runner() as runner:
        out = sender(kind, example, url, Transport())
        recipient = example.recipient(url)
        runner.run(calls(out, recipient, iter(range(1, WARM_CALLS + 1))))
        await_word()
        began, cpu_began = time.monotonic(), time.process_time()
        runner.run(calls(out, recipient, iter(range(1, count + 1))))
        tell(done=True, began=began, ended=time.monotonic(), cpu=time.process_time() - cpu_began)
        await_end()
        os._exit(0)  # connections and all


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
