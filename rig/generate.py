"""Make a file of notifications, the same for the same seed: `python -m rig.generate --url URL > notifications.jsonl`.

Three channels (demo/channels.toml): `orders` doubts by resending to a receiver that drops repeats, `alerts` holds and
its receiver acts at every request, `digest` is held to a rate. Each address says how the provider will misbehave.
"""

import argparse
import json
import random
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from rig.provider.behaviour import Behaviour, Door

ALWAYS = 1000  # more often than any policy tries


@dataclass(frozen=True, slots=True)
class Misbehaviour:
    """`each_mille` of a channel's notifications meet this behaviour the first `times` they arrive."""

    behaviour: Behaviour
    each_mille: float
    times: int = 1


@dataclass(frozen=True, slots=True)
class Way:
    """A channel as the generator fills it; what is left over by the misbehaviours is answered at once."""

    channel: str
    door: Door
    share: float
    misbehaviours: tuple[Misbehaviour, ...]


WAYS = (
    Way(
        "orders",
        Door.DEDUPES,
        0.72,
        (
            Misbehaviour(Behaviour.CREATED, 60),
            Misbehaviour(Behaviour.SLOW, 80),
            Misbehaviour(Behaviour.ERROR, 30),
            Misbehaviour(Behaviour.ERROR, 2, ALWAYS),
            Misbehaviour(Behaviour.BUSY, 6),
            Misbehaviour(Behaviour.GONE, 6, ALWAYS),
            Misbehaviour(Behaviour.REFUSE, 5, ALWAYS),
            Misbehaviour(Behaviour.DROP, 15),
            Misbehaviour(Behaviour.STALL, 3),
            Misbehaviour(Behaviour.HANG, 2),
            Misbehaviour(Behaviour.DRIP, 2),
        ),
    ),
    Way(
        "alerts",
        Door.PLAIN,
        0.18,
        (
            Misbehaviour(Behaviour.SLOW, 80),
            Misbehaviour(Behaviour.ERROR, 25),
            Misbehaviour(Behaviour.GONE, 5, ALWAYS),
            Misbehaviour(Behaviour.DROP, 15),
            Misbehaviour(Behaviour.STALL, 3),
            Misbehaviour(Behaviour.HANG, 2),
        ),
    ),
    Way(
        "digest",
        Door.DEDUPES,
        0.10,
        (
            Misbehaviour(Behaviour.THROTTLE, 4),
            Misbehaviour(Behaviour.SLOW, 50),
            Misbehaviour(Behaviour.DROP, 10),
        ),
    ),
)

WORDS = (
    "Order shipped",
    "Ihre Bestellung ist unterwegs",
    "Votre commande est expédiée",
    "ご注文の品を発送しました",
    "您的订单已发货",
    "주문이 발송되었습니다",
    "Ваш заказ отправлен",
    "طلبك في الطريق",
    "ההזמנה שלך בדרך",
    "आपका ऑर्डर भेज दिया गया है",
    "Gửi hàng rồi nhé",
    "👩🏽‍🚀 liftoff 🚀",
    'e\u0301 combining, " quotes, \\ slashes, \t tabs',
)


def notifications(*, seed: int, count: int, url: str) -> Iterator[dict[str, Any]]:
    """Lines for `fencepost enqueue`, channels mixed, each address unique by seed and number."""
    dice = random.Random(seed)
    order = [pick for way in WAYS for pick in _picks(way, count)]
    dice.shuffle(order)
    for number, (way, misbehaviour) in enumerate(order):
        subject = f"{way.channel}-{seed}-{number:06d}"
        path = f"{way.door}/{misbehaviour.behaviour}/{misbehaviour.times}/{subject}"
        line: dict[str, Any] = {
            "channel": way.channel,
            "recipient": f"{url}/{path}",
            "payload": _payload(dice, number),
            "dedupe_key": subject,
        }
        if dice.random() < 0.1:
            line["priority"] = dice.choice((0, 2))
        yield line


def write_file(file: Path, *, seed: int, count: int, url: str) -> int:
    """How many lines it has."""
    with file.open("wb") as out:
        return write(out, seed=seed, count=count, url=url)


def write(out: BinaryIO, *, seed: int, count: int, url: str) -> int:
    lines = 0
    for line in notifications(seed=seed, count=count, url=url):
        out.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        lines += 1
    return lines


def _picks(way: Way, count: int) -> list[tuple[Way, Misbehaviour]]:
    """Exact quotas, at least one of each: a small file misbehaves in every way too."""
    total = max(1, round(count * way.share))
    picks = [
        (way, one)
        for one in way.misbehaviours
        for _ in range(max(1, round(total * one.each_mille / 1000)))
    ]
    usual = (way, Misbehaviour(Behaviour.OK, 0))
    return picks + [usual] * max(0, total - len(picks))


def _payload(dice: random.Random, number: int) -> dict[str, Any]:
    """One of several shapes of the vocabulary, in many scripts."""
    words = dice.choice(WORDS)
    payload: dict[str, Any] = {"title": words, "body": f"{words} #{number}"}
    match number % 5:
        case 1:
            payload["data"] = {"order": str(number), "list": [1, None, True, {"deep": words}]}
        case 2:
            payload["url"] = f"https://example.com/orders/{number}"
            payload["badge"] = dice.randrange(100)
        case 3:
            payload["body"] = " ".join(dice.choices(WORDS, k=120))
        case 4:
            payload["collapse"] = f"order-{number}"
            payload["sound"] = "default"
    return payload


def main() -> None:
    parser = argparse.ArgumentParser(prog="rig.generate", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=5200)
    parser.add_argument("--url", required=True, help="the provider's root")
    arguments = parser.parse_args()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` is no error
    write(sys.stdout.buffer, seed=arguments.seed, count=arguments.count, url=arguments.url)


if __name__ == "__main__":
    main()
