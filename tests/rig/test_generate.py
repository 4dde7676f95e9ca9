"""The demo's file: the same for the same seed, every behaviour in it, every address its own."""

from collections import Counter

from rig.generate import WAYS, notifications
from rig.provider.behaviour import read_address

URL = "http://127.0.0.1:1"


def test_the_same_seed_makes_the_same_file() -> None:
    first = list(notifications(seed=3, count=400, url=URL))
    assert first == list(notifications(seed=3, count=400, url=URL))
    assert first != list(notifications(seed=4, count=400, url=URL))


def test_every_channel_misbehaves_in_each_of_its_ways() -> None:
    lines = list(notifications(seed=1, count=5200, url=URL))
    assert len(lines) >= 5000
    met = Counter()  # type: Counter[tuple[str, str, int]]
    for line in lines:
        address = read_address(line["recipient"].removeprefix(URL))
        assert address is not None
        met[line["channel"], address.behaviour, address.times] += 1
    for way in WAYS:
        for one in way.misbehaviours:
            assert met[way.channel, one.behaviour, one.times] >= 1, (way.channel, one)


def test_no_two_notifications_share_an_address_or_a_dedupe_key() -> None:
    lines = list(notifications(seed=1, count=5200, url=URL))
    assert len({line["recipient"] for line in lines}) == len(lines)
    assert len({line["dedupe_key"] for line in lines}) == len(lines)
