"""Senders are found by kind, built once a revision, and refused in one line without secrets."""

import importlib.metadata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import EntryPoint
from typing import Any

import pytest
from msgspec.structs import replace

from fencepost.core.channel import AttemptPolicy, Channel, Facility
from fencepost.core.notification import ChannelId, Claimed, OnUncertain
from fencepost.core.outcome import Delivered, Outcome
from fencepost.core.reply import Reply
from fencepost.ports import Prepared, SenderUnavailable
from fencepost.senders.kind import SenderKind
from fencepost.senders.registry import OUR_OWN, SenderRegistry, fault_of, kind_of
from fencepost.senders.transport import Transport
from fencepost.senders.webhook import Webhook
from tests.senders.stage import client_context

KNOWN = (
    "known: allow_http, allow_private_networks, deduplicates_for_seconds, throttle_whole_channel"
)
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
SECRETS = {"env:GOOD": SECRET, "env:SHORT": "whsec_aHVudGVyMg==", "env:PLAIN": "hunter2"}
CHANNEL = Channel(
    id=ChannelId(1),
    name="hooks",
    sender="webhook",
    settings={},
    secret_reference="env:GOOD",
    slots=10,
    rate_per_second=None,
    on_uncertain=OnUncertain.RESEND,
    policy=AttemptPolicy(),
    revision=1,
    paused_for_seconds=0.0,
    pause_reason=None,
)


def resolve(reference: str) -> str:
    if reference not in SECRETS:
        raise LookupError(f"{reference} is missing or empty")
    return SECRETS[reference]


@pytest.fixture
def registry() -> SenderRegistry:
    return SenderRegistry(resolve, Transport(context=client_context()))


def test_a_webhook_channel_has_a_webhook_sender(registry: SenderRegistry) -> None:
    assert isinstance(registry.sender(CHANNEL), Webhook)


def test_a_sender_is_built_once_a_revision(registry: SenderRegistry) -> None:
    first = registry.sender(CHANNEL)
    assert registry.sender(CHANNEL) is first
    second = registry.sender(replace(CHANNEL, revision=2))
    assert second is not first
    assert registry.sender(replace(CHANNEL, revision=2)) is second


@pytest.mark.parametrize("kind", OUR_OWN)
def test_each_kind_of_ours_says_what_it_offers_against_a_duplicate(kind: str) -> None:
    """Else a policy that cannot work would be taken."""
    assert kind_of(kind).facility is not None


def test_reconcile_is_refused_where_nobody_will_ever_tell() -> None:
    assert fault_of("webhook", {}, "env:GOOD", "hold") is None
    fault = fault_of("webhook", {}, "env:GOOD", "reconcile")
    assert fault is not None
    assert "can neither be asked" in fault


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"sender": "pigeon"}, "unknown sender kind 'pigeon'"),
        ({"secret_reference": None}, "webhook: there is no signing secret"),
        ({"secret_reference": "env:GONE"}, "env:GONE is missing or empty"),
        ({"secret_reference": "env:SHORT"}, "webhook: a signing secret has 24 to 64 bytes"),
        ({"secret_reference": "env:PLAIN"}, "webhook: a signing secret starts with whsec_"),
        (
            {"settings": {"allow_http": "yes"}},
            "webhook: allow_http must be true or false",
        ),
        ({"settings": {"tiemout": 1}}, f"webhook: there is no tiemout; {KNOWN}"),
    ],
)
def test_a_channel_that_cannot_send_says_why_in_one_line(
    registry: SenderRegistry, changes: Mapping[str, Any], sentence: str
) -> None:
    with pytest.raises(SenderUnavailable) as refused:
        registry.sender(replace(CHANNEL, **changes))
    assert str(refused.value) == sentence
    assert refused.value.__cause__ is None
    assert not any(secret in str(refused.value) for secret in SECRETS.values())


def test_what_could_not_be_built_is_tried_again(registry: SenderRegistry) -> None:
    broken = replace(CHANNEL, secret_reference="env:LATER")
    with pytest.raises(SenderUnavailable):
        registry.sender(broken)
    SECRETS["env:LATER"] = SECRET
    try:
        assert isinstance(registry.sender(broken), Webhook)
    finally:
        del SECRETS["env:LATER"]


# --- other packages' senders ---


class Pigeon:
    """A third party's sender."""

    facility = Facility()

    def __init__(self, secret: str | None) -> None:
        self.secret = secret

    def prepare(self, claimed: Claimed) -> Prepared | Outcome:
        return Delivered()

    async def send(self, claimed: Claimed, prepared: Prepared, *, timeout_seconds: float) -> Reply:
        raise NotImplementedError

    def classify(self, claimed: Claimed, reply: Reply) -> Outcome:
        return Delivered()

    async def ask(self, claimed: Claimed, *, timeout_seconds: float) -> Outcome | None:
        return None


def pigeon(channel: Channel, secret: str | None, transport: Transport) -> Pigeon:
    if "loft" not in channel.settings:
        raise ValueError("a pigeon needs\na loft")
    return Pigeon(secret)


KIND = SenderKind(build=pigeon)
HOMING = SenderKind(build=pigeon, facility=lambda settings: Facility(can_be_asked=True))


@contextmanager
def offering(monkeypatch: pytest.MonkeyPatch, **kinds: str) -> Iterator[None]:
    def offered(*, group: str, name: str) -> list[EntryPoint]:
        assert group == "fencepost.senders"
        return [EntryPoint(name, kinds[name], group)] if name in kinds else []

    with monkeypatch.context() as patched:
        patched.setattr(importlib.metadata, "entry_points", offered)
        yield


def test_another_packages_sender_is_found_by_its_entry_point(
    registry: SenderRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = replace(CHANNEL, sender="pigeon", settings={"loft": "roof"})
    with offering(monkeypatch, pigeon="tests.senders.test_registry:KIND"):
        built = registry.sender(channel)
    assert getattr(built, "secret", None) == SECRET


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("tests.senders.test_registry:KIND", "pigeon: a pigeon needs a loft"),
        (
            "tests.senders.test_registry:pigeon",
            "sender kind 'pigeon' is no SenderKind",
        ),
        (
            "no_such_package:pigeon",
            "sender kind 'pigeon' cannot be loaded: No module named 'no_such_package'",
        ),
    ],
)
def test_another_packages_trouble_is_one_line_too(
    registry: SenderRegistry, monkeypatch: pytest.MonkeyPatch, place: str, sentence: str
) -> None:
    with offering(monkeypatch, pigeon=place), pytest.raises(SenderUnavailable) as refused:
        registry.sender(replace(CHANNEL, sender="pigeon"))
    assert str(refused.value) == sentence


def test_a_kind_that_does_not_say_it_can_be_asked_may_not_reconcile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    places = {"pigeon": "KIND", "homing": "HOMING"}
    offered = {kind: f"tests.senders.test_registry:{name}" for kind, name in places.items()}
    with offering(monkeypatch, **offered):
        assert "can neither be asked" in str(fault_of("pigeon", {}, None, "reconcile"))
        assert fault_of("pigeon", {}, None, "hold") is None
        assert fault_of("homing", {}, None, "reconcile") is None


def test_a_third_party_cannot_replace_our_own(
    registry: SenderRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    with offering(monkeypatch, webhook="tests.senders.test_registry:KIND"):
        assert isinstance(registry.sender(CHANNEL), Webhook)


# --- what is refused where a channel is written down ---


@pytest.mark.parametrize(
    ("settings", "reference", "fault"),
    [
        ({}, "env:GOOD", None),
        (
            {},
            None,
            "a secret reference is missing: no channel of this kind works without one",
        ),
        ({"tiemout": 1}, "env:GOOD", f"settings: there is no tiemout; {KNOWN}"),
    ],
)
def test_a_channel_that_can_never_work_is_refused_before_it_is_one(
    settings: Mapping[str, Any], reference: str | None, fault: str | None
) -> None:
    assert fault_of("webhook", settings, reference) == fault


def test_an_unknown_kind_may_be_known_elsewhere() -> None:
    with pytest.raises(SenderUnavailable, match="unknown sender kind 'pigeon'"):
        fault_of("pigeon", {}, None)


@pytest.mark.parametrize(
    ("written", "fault"),
    [
        ("https://gateway.example/push", None),
        ("http://127.0.0.1:8080", None),
        ("http://[::1]:8080", None),
        ("http://localhost:8080", None),
        ("http://10.0.0.7", None),
        ("nothing", "settings: endpoint: it is not https://host/…"),
        (
            "http://gateway.example",
            "settings: endpoint: it is http to another machine, and credentials would travel in clear",
        ),
        (
            "http://93.184.216.34",
            "settings: endpoint: it is http to another machine, and credentials would travel in clear",
        ),
    ],
)
def test_credentials_leave_this_machine_only_by_https(written: str, fault: str | None) -> None:
    assert fault_of("expo", {"endpoint": written}, "env:TOKEN") == fault
