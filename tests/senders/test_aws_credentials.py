"""Keys are there before a byte leaves: looked up once for all who wait, renewed by age, and once more when refused."""

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from fencepost.core.outcome import CredentialFailure, NotSent
from fencepost.core.reply import Phase, Reply
from fencepost.ports import SendCancelled
from fencepost.senders.aws.credentials import AwsCredentials, finder_of
from fencepost.senders.aws.fault import fault_of, not_answered, shared_meaning
from fencepost.senders.aws.service import AwsService, aws_service, place_of
from fencepost.senders.progress import Progress
from fencepost.senders.trouble import Trouble
from tests.senders.aws_receiver import KEYS, SECRET, answered, json_fault, judge, says, xml_fault
from tests.senders.peers import Peer
from tests.senders.stage import HOST, Stage, answers, never, stage, until

ENVIRONMENT = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_PROFILE",
    "AWS_DEFAULT_REGION",
)
EXPIRED = (403, *json_fault("ExpiredTokenException"))
GOOD = (200, b'{"MessageId":"m-1"}', ())


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Nothing around that could lend keys."""
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


def service(on: Stage, secret: str | None = SECRET) -> AwsService:
    return aws_service(on.transport, secret, place(on))


def place(on: Stage) -> Any:
    return place_of("ses", "email", region="eu-central-1", url=f"{on.scheme}://{HOST}/")


async def post(aws: AwsService, timeout_seconds: float = 10) -> Reply:
    return await aws.post("/v2/x", "application/json", b"{}", timeout_seconds=timeout_seconds)


class Metadata:
    """The service that lends a container or a function its role's keys."""

    def __init__(self) -> None:
        self.asked = 0
        self.seconds_left = 3600.0
        self.status = 200
        self.open = threading.Event()
        self.open.set()
        self.at_door = threading.Event()

    def lend(self) -> bytes:
        self.asked += 1
        self.at_door.set()
        assert self.open.wait(20)
        until = datetime.now(UTC) + timedelta(seconds=self.seconds_left)
        return json.dumps(
            {
                "AccessKeyId": f"ROLE{self.asked}",
                "SecretAccessKey": KEYS["secret_access_key"],
                "Token": f"token-{self.asked}",
                "Expiration": until.strftime("%Y-%m-%dT%H:%M:%SZ"),
            }
        ).encode()


@pytest.fixture
def metadata(monkeypatch: pytest.MonkeyPatch) -> Iterator[Metadata]:
    lender = Metadata()
    with _served(lender) as port:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"http://127.0.0.1:{port}/role")
        yield lender


@contextmanager
def _served(lender: Metadata) -> Iterator[int]:
    class Door(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = lender.lend()
            self.send_response(lender.status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    serving = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    serving.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


# --- where they come from ---


async def test_the_channels_own_keys_sign() -> None:
    async with stage() as on:
        server = await on.serve(answers)
        assert (await post(service(on))).status == 200
        judged = judge(server.log.requests[0])
        assert judged.right
        assert (judged.access_key_id, judged.region, judged.service) == (
            "AKIDEXAMPLE",
            "eu-central-1",
            "ses",
        )
        assert server.log.requests[0].headers["host"] == HOST


async def test_the_environments_keys_sign_where_the_channel_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What Lambda gives a function for its role."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ASIAROLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEYS["secret_access_key"])
    monkeypatch.setenv("AWS_SESSION_TOKEN", "session")
    async with stage() as on:
        server = await on.serve(answers)
        assert (await post(service(on, None))).status == 200
        asked = server.log.requests[0]
        judged = judge(asked)
        assert (judged.right, judged.access_key_id) == (True, "ASIAROLE")
        assert asked.headers["x-amz-security-token"] == "session"


@pytest.mark.parametrize(
    "secret",
    [
        "hunter2",
        "{}",
        '["hunter2"]',
        '{"access_key_id": "a", "hunter2": "b"}',
        '{"access_key_id": "hunter2", "secret_access_key": 5}',
    ],
)
def test_a_secret_that_is_none_is_refused_without_being_quoted(secret: str) -> None:
    with pytest.raises(ValueError, match="access_key_id") as refused:
        finder_of(secret)
    assert "hunter2" not in str(refused.value)
    assert refused.value.__cause__ is None


async def test_nothing_leaves_where_nobody_lends_keys() -> None:
    async with stage() as on:
        server = await on.serve(answers)
        reply = await post(service(on, None))
        assert (reply.phase, reply.reason) == (Phase.NOT_SENT, Trouble.NO_KEYS)
        assert not_answered(reply) == CredentialFailure(
            "AWS keys: none in the environment, a profile or a role"
        )
        assert server.log.connections == 0


# --- how they are looked up ---


async def test_one_look_up_serves_all_who_wait_for_it(metadata: Metadata) -> None:
    async with stage() as on:
        server = await on.serve(answers)
        aws = service(on, None)
        replies = await asyncio.gather(*(post(aws) for _ in range(20)))
        assert {reply.status for reply in replies} == {200}
        assert metadata.asked == 1
        assert all(judge(asked).right for asked in server.log.requests)
        await post(aws)
        assert metadata.asked == 1, "and those after it"


async def test_keys_are_renewed_by_age(metadata: Metadata) -> None:
    metadata.seconds_left = 30.0  # botocore renews from fifteen minutes on
    async with stage() as on:
        server = await on.serve(answers)
        aws = service(on, None)
        await post(aws)
        await post(aws)
        names = [judge(asked).access_key_id for asked in server.log.requests]
        assert len(set(names)) == 2


async def test_a_look_up_that_takes_too_long_is_not_sent_and_stops_nobody_else(
    metadata: Metadata,
) -> None:
    metadata.open.clear()
    async with stage() as on:
        server = await on.serve(answers)
        aws = service(on, None)
        patient = asyncio.ensure_future(post(aws, timeout_seconds=20))
        await until(metadata.at_door.is_set, "the look-up is under way")
        hasty = await post(aws, timeout_seconds=0.05)
        assert not_answered(hasty) == NotSent("timeout: the look-up of AWS keys took too long")
        assert server.log.connections == 0
        metadata.open.set()
        assert (await patient).status == 200
        assert metadata.asked == 1


async def test_whoever_is_stopped_during_the_look_up_sent_nothing(metadata: Metadata) -> None:
    metadata.open.clear()
    async with stage() as on:
        await on.serve(answers)
        aws = service(on, None)
        stopped = asyncio.ensure_future(post(aws))
        await until(metadata.at_door.is_set, "the look-up is under way")
        stopped.cancel()
        with pytest.raises(SendCancelled) as told:
            await stopped
        assert told.value.reply.phase is Phase.NOT_SENT
        metadata.open.set()
        assert (await post(aws)).status == 200


async def test_a_lender_in_trouble_is_told_by_kind() -> None:
    """The text of such an error may quote what was said."""
    _configured("[default]\ncredential_process = sh -c 'echo hunter2 >&2; exit 1'\n")
    async with stage() as on:
        await on.serve(answers)
        reply = await post(service(on, None))
        told = CredentialFailure("AWS keys: cannot be had: CredentialRetrievalError")
        assert not_answered(reply) == told


async def test_one_look_up_that_finds_nothing_serves_all_who_wait_for_it(tmp_path: Path) -> None:
    """A slow lender in trouble is not asked by a hundred sends one after the other."""
    asked = tmp_path / "asked"
    _configured(f"[default]\ncredential_process = sh -c 'echo once >> {asked}; exit 1'\n")
    async with stage() as on:
        await on.serve(answers)
        aws = service(on, None)
        replies = await asyncio.gather(*(post(aws) for _ in range(10)))
        assert {reply.reason for reply in replies} == {Trouble.NO_KEYS}
        assert _lines(asked) == ["once"]


async def test_whoever_stops_waiting_stops_no_look_up_that_has_not_begun() -> None:
    credentials, open_ = AwsCredentials(finder_of(SECRET)), threading.Event()
    credentials._thread.submit(open_.wait, 20)  # what the look-up must wait for
    first, second = (asyncio.ensure_future(credentials.look_up()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait({first})
    open_.set()
    assert (await second).keys.access_key == KEYS["access_key_id"]


def _lines(file: Path) -> list[str]:
    return file.read_text().split()


def _configured(text: str) -> None:
    Path(os.environ["AWS_CONFIG_FILE"]).write_text(text)


# --- keys that are refused ---


async def test_expired_keys_are_looked_up_anew_once(metadata: Metadata) -> None:
    """Not counted, and never in doubt: AWS refused it before it did anything."""
    async with stage() as on:
        server = await on.serve(says(EXPIRED, GOOD))
        aws = service(on, None)
        outcome = not_answered(await post(aws))
        assert outcome == NotSent(
            "ExpiredTokenException (403): keys are looked up anew", blameless=True
        )
        assert not_answered(await post(aws)) is None
        assert [judge(asked).access_key_id for asked in server.log.requests] == ["ROLE1", "ROLE2"]


async def test_new_keys_that_are_refused_too_are_a_credential_failure(metadata: Metadata) -> None:
    async with stage() as on:
        await on.serve(says(EXPIRED))
        aws = service(on, None)
        assert isinstance(not_answered(await post(aws)), NotSent)
        for _ in range(2):
            reply = await post(aws)
            assert not_answered(reply) is None
            assert shared_meaning(fault_of(reply), reply) == CredentialFailure(
                "ExpiredTokenException (403)"
            )
        assert metadata.asked == 3, "whenever the channel is tried again, keys are looked up"


async def test_those_in_flight_with_the_old_keys_all_go_again(metadata: Metadata) -> None:
    """Twenty answers about one expiry are one refusal, not twenty."""
    async with stage() as on:
        await on.serve(says(EXPIRED), protocol="h2")
        aws = service(on, None)
        for expected in (NotSent, type(None)):
            replies = await asyncio.gather(*(post(aws) for _ in range(20)))
            assert {type(not_answered(reply)) for reply in replies} == {expected}


async def test_keys_that_were_good_may_expire_again(metadata: Metadata) -> None:
    async with stage() as on:
        await on.serve(says(EXPIRED, GOOD, EXPIRED, GOOD))
        aws = service(on, None)
        kinds = [type(not_answered(await post(aws))) for _ in range(4)]
        assert kinds == [NotSent, type(None), NotSent, type(None)]


async def test_fixed_keys_get_one_more_try_and_then_fail() -> None:
    async with stage() as on:
        await on.serve(says((403, xml_fault("InvalidClientTokenId"), ())))
        aws = service(on)
        assert isinstance(not_answered(await post(aws)), NotSent)
        reply = await post(aws)
        assert shared_meaning(fault_of(reply), reply) == CredentialFailure(
            "InvalidClientTokenId (403)"
        )


async def test_a_send_that_is_stopped_after_the_refusal_goes_again_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heads, answered_of = [], Progress.answered

    def noted(progress: Progress, status: int, headers: dict[str, str]) -> None:
        answered_of(progress, status, headers)
        heads.append(status)

    async def refuses_slowly(peer: Peer) -> None:
        await peer.head(await peer.request(), 403, json_fault("ExpiredToken")[1])
        await never()

    monkeypatch.setattr(Progress, "answered", noted)
    async with stage() as on:
        await on.serve(refuses_slowly)
        sending = asyncio.ensure_future(post(service(on)))
        await until(lambda: bool(heads), "the head has come")
        sending.cancel()
        with pytest.raises(SendCancelled) as told:
            await sending
        assert isinstance(not_answered(told.value.reply), NotSent)


def test_nothing_of_them_is_shown() -> None:
    credentials = AwsCredentials(finder_of(SECRET))
    lent = credentials._look()
    assert KEYS["secret_access_key"] not in repr(lent) + repr(credentials)


# --- where a service is ---


@pytest.mark.parametrize(
    ("region", "authority"),
    [
        ("eu-central-1", "email.eu-central-1.amazonaws.com"),
        ("us-gov-west-1", "email.us-gov-west-1.amazonaws.com"),
        ("cn-north-1", "email.cn-north-1.amazonaws.com.cn"),
        ("eusc-de-east-1", "email.eusc-de-east-1.amazonaws.eu"),
    ],
)
def test_a_service_is_where_aws_has_it(region: str, authority: str) -> None:
    found = place_of("ses", "email", region=region, url=None)
    assert (found.origin.authority, found.origin.secure, found.path) == (authority, True, "")
    assert found.origin.private_allowed, "a VPC endpoint answers under the same name"


def test_an_endpoint_of_its_own_keeps_its_path() -> None:
    found = place_of("sns", "sns", region="eu-central-1", url="http://localhost:4566/aws/")
    assert (found.origin.authority, found.path) == ("localhost:4566", "/aws")


def test_the_region_is_the_environments_or_there_is_no_sender(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ValueError, match="no region"):
        place_of("sns", "sns", region=None, url=None)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    assert place_of("sns", "sns", region=None, url=None).region == "eu-west-1"


def test_an_answer_needs_no_body_to_be_read() -> None:
    assert fault_of(answered(403, b"\xff\x00")).code == ""
