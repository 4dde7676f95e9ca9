"""Secrets of channels, kept by AWS (moto's server, over real HTTP) or here: found, aged, read anew, never shown."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer
from msgspec.structs import replace

from fencepost import bootstrap
from fencepost.core.access import Database
from fencepost.ports import AccessUnavailable, SenderUnavailable
from fencepost.secret_places import AWAY_SECONDS, SecretPlaces
from fencepost.senders.registry import RENEWALS_APART_SECONDS, SenderRegistry
from fencepost.senders.transport import Transport
from fencepost.settings import SecretMissing, Settings
from tests.senders.peers import Asked, Peer
from tests.senders.test_registry import CHANNEL, SECRET
from tests.senders.threaded import serving

OTHER = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    moto = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    moto.start()
    host, port = moto.get_host_and_port()
    yield f"http://{host}:{port}"
    moto.stop()


@pytest.fixture
def aws(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", server)


@pytest.fixture
def secrets(aws: None) -> Iterator[Any]:
    client = boto3.client("secretsmanager")
    yield client
    for one in client.list_secrets()["SecretList"]:
        client.delete_secret(SecretId=one["ARN"], ForceDeleteWithoutRecovery=True)
    client.close()


@pytest.fixture
def parameters(aws: None) -> Iterator[Any]:
    client = boto3.client("ssm")
    yield client
    client.close()


@pytest.fixture
def places(aws: None) -> SecretPlaces:
    return bootstrap.secret_places(Settings(database=Database(), installation="test"))


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def registry(places: SecretPlaces, clock: Clock) -> SenderRegistry:
    return SenderRegistry(places.read, Transport(), renew_secret=places.read_anew, clock=clock)


def test_a_secret_or_one_value_of_it_or_a_parameter(
    secrets: Any, parameters: Any, places: SecretPlaces
) -> None:
    many = {"hooks": SECRET, "fcm": {"project_id": "shop"}, "port": 8080}
    secrets.create_secret(Name="fencepost/one", SecretString=f" {SECRET}\n")
    secrets.create_secret(Name="fencepost/many", SecretString=json.dumps(many))
    parameters.put_parameter(Name="/fencepost/hooks", Value=SECRET, Type="SecureString")
    assert places.read("secretsmanager:fencepost/one") == SECRET
    assert places.read("secretsmanager:fencepost/many#hooks") == SECRET
    assert json.loads(places.read("secretsmanager:fencepost/many#fcm")) == {"project_id": "shop"}
    assert places.read("ssm:/fencepost/hooks") == SECRET


def test_what_is_on_this_machine_is_asked_of_nobody(
    places: SecretPlaces, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    file = tmp_path / "secret"
    file.write_text(SECRET)
    monkeypatch.setenv("HOOK", SECRET)
    assert places.read(f"file:{file}") == places.read("env:HOOK") == SECRET


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("secretsmanager:nowhere", "secretsmanager:nowhere: the secret nowhere cannot be read"),
        ("ssm:/nowhere", "ssm:/nowhere: the parameter /nowhere cannot be read"),
        ("secretsmanager:many#other", "there is no such text in it"),
        ("secretsmanager:many#port", "there is no such text in it"),
        ("secretsmanager:plain#hooks", "no JSON object"),
        ("secretsmanager:blank", "secretsmanager:blank is empty"),
        ("vault:hooks", "a secret reference starts with env:, file:, secretsmanager: or ssm:"),
    ],
)
def test_what_is_missing_is_named_and_nothing_is_quoted(
    reference: str, words: str, secrets: Any, places: SecretPlaces
) -> None:
    secrets.create_secret(Name="many", SecretString=json.dumps({"hooks": SECRET, "port": 80}))
    secrets.create_secret(Name="plain", SecretString=SECRET)
    secrets.create_secret(Name="blank", SecretString=" ")
    with pytest.raises(SecretMissing) as missing:
        places.read(reference)
    assert words in str(missing.value)
    assert "\n" not in str(missing.value)
    assert "whsec" not in str(missing.value)
    assert missing.value.__cause__ is None


def test_a_secret_is_kept_for_its_time_and_read_anew_when_it_is_refused(
    secrets: Any, places: SecretPlaces
) -> None:
    """Case: a key is rotated while sandboxes are warm."""
    secrets.create_secret(Name="hooks", SecretString=SECRET)
    clock = Clock()
    senders = registry(places, clock)
    channel = replace(CHANNEL, secret_reference="secretsmanager:hooks")
    first = senders.sender(channel)
    secrets.put_secret_value(SecretId="hooks", SecretString=OTHER)
    assert senders.sender(channel) is first, "not old yet: nobody is asked"
    second = asyncio.run(senders.renewed(channel.id))
    assert second is not None
    assert second is not first
    assert senders.sender(channel) is second
    secrets.put_secret_value(SecretId="hooks", SecretString=SECRET)
    clock.now += RENEWALS_APART_SECONDS - 1
    assert asyncio.run(senders.renewed(channel.id)) is None, "once a minute"
    clock.now += 1
    assert asyncio.run(senders.renewed(channel.id)) is not None


def test_nothing_else_to_be_had_is_told_as_that(secrets: Any, places: SecretPlaces) -> None:
    secrets.create_secret(Name="hooks", SecretString=SECRET)
    clock = Clock()
    senders = registry(places, clock)
    assert asyncio.run(senders.renewed(CHANNEL.id)) is None, "never built"
    channel = replace(CHANNEL, secret_reference="secretsmanager:hooks")
    senders.sender(channel)
    assert asyncio.run(senders.renewed(channel.id)) is None, "the same secret"
    for bad in ("whsec_aHVudGVyMg==", None):
        clock.now += RENEWALS_APART_SECONDS
        if bad is None:
            secrets.delete_secret(SecretId="hooks", ForceDeleteWithoutRecovery=True)
        else:
            secrets.put_secret_value(SecretId="hooks", SecretString=bad)
        assert asyncio.run(senders.renewed(channel.id)) is None


def test_a_store_that_is_away_stops_no_channel_that_has_its_secret(secrets: Any, aws: None) -> None:
    secrets.create_secret(Name="hooks", SecretString=SECRET)
    settings = Settings(database=Database(), installation="test", secret_max_age_seconds=1.0)
    places = bootstrap.secret_places(settings)
    senders = SenderRegistry(places.read_anew, Transport())  # as if it were always too old
    channel = replace(CHANNEL, secret_reference="secretsmanager:hooks")
    first = senders.sender(channel)
    secrets.delete_secret(SecretId="hooks", ForceDeleteWithoutRecovery=True)
    assert senders.sender(channel) is first
    with pytest.raises(SenderUnavailable, match="cannot be read"):
        senders.sender(replace(channel, revision=2))


class Away:
    """A store that lets everybody wait, and then answers nothing: the clock is moved by the wait."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self.clock, self.seconds, self.asked = clock, seconds, 0

    def __call__(self, name: str, max_age_seconds: float, anew: bool) -> str:
        self.asked += 1
        self.clock.now += self.seconds
        raise AccessUnavailable("Read timeout")


@pytest.mark.parametrize(("seconds", "asked"), [(4.0, 2), (0.05, 30)])
def test_a_store_that_is_away_keeps_a_run_waiting_twice_and_not_for_each_channel(
    seconds: float, asked: int
) -> None:
    """Thirty channels with a secret each; a store that refuses at once is asked for each."""
    clock = Clock()
    away = Away(clock, seconds)
    places = SecretPlaces(
        local=lambda reference: SECRET, stores={"ssm": away}, max_age_seconds=300.0, clock=clock
    )
    for number in range(30):
        with pytest.raises(SecretMissing, match=f"ssm:/{number}: "):
            places.read(f"ssm:/{number}")
        assert places.read("env:HOOK") == SECRET, "other places are none of its business"
    assert away.asked == asked
    clock.now += AWAY_SECONDS
    with pytest.raises(SecretMissing, match="Read timeout"):
        places.read_anew("ssm:/1")


JSON = (("content-type", "application/x-amz-json-1.1"),)
ODD = (
    (400, b'{"__type":"ThrottlingException","message":"Rate exceeded"}'),
    (
        400,
        b'{"__type":"AccessDeniedException","Message":"role/x is not authorized\\nto perform it"}',
    ),
    (400, b'{"__type":"DecryptionFailure","message":"no key"}'),
    (503, b"<html>away</html>"),
    (200, b"<html>welcome</html>"),
    (200, b"{}"),
    (302, b""),
    (200, b'{"SecretString":null,"SecretBinary":"!!!","Parameter":null}'),
)


@pytest.mark.parametrize("reference", ["secretsmanager:one", "ssm:/one"])
def test_whatever_a_store_answers_a_secret_is_missing_and_nothing_else_breaks(
    reference: str, aws: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Throttled, refused, a proxy's page, an answer that is none: one line each, asked once each."""
    asked: list[Asked] = []

    async def script(peer: Peer) -> None:
        while True:
            asked.append(await peer.request())
            status, body = ODD[len(asked) - 1]
            await peer.answer(asked[-1], status, body, JSON)

    with serving(script) as port:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        places = bootstrap.secret_places(Settings(database=Database(), installation="test"))
        for _ in ODD:
            with pytest.raises(SecretMissing) as missing:
                places.read(reference)
            assert "\n" not in str(missing.value)
            assert str(missing.value).startswith(reference)
    assert len(asked) == len(ODD), "no retries"


def test_a_secret_in_bytes_is_read_as_text_or_refused(secrets: Any, places: SecretPlaces) -> None:
    secrets.create_secret(Name="bytes", SecretBinary=SECRET.encode())
    assert places.read("secretsmanager:bytes") == SECRET
    secrets.create_secret(Name="noise", SecretBinary=b"\xff\xfe\x00")
    with pytest.raises(SecretMissing, match="holds bytes, and no text"):
        places.read("secretsmanager:noise")


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 50_000, "1" * 5_000, "\x00"])
def test_what_is_no_json_is_told_as_that(text: str) -> None:
    places = SecretPlaces(
        local=lambda reference: SECRET, stores={"ssm": lambda *_: text}, max_age_seconds=300.0
    )
    with pytest.raises(SecretMissing, match=r"no JSON object|no such text"):
        places.read("ssm:/one#a")


def test_no_secret_is_in_what_a_registry_shows(secrets: Any, places: SecretPlaces) -> None:
    secrets.create_secret(Name="hooks", SecretString=SECRET)
    senders = registry(places, Clock())
    senders.sender(replace(CHANNEL, secret_reference="secretsmanager:hooks"))
    assert SECRET not in repr(vars(senders))
