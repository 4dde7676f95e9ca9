"""Signature Version 4: AWS's published vectors, and the judge that the other tests rely on."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.credentials import ReadOnlyCredentials

from fencepost.senders.aws.signature import signed
from fencepost.senders.request import Request, read_url
from tests.senders.aws_receiver import KEYS, judge
from tests.senders.peers import Asked

# aws-sig-v4-test-suite, as AWS published it: 30 August 2015, us-east-1, "service".
TOKEN = (
    "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUu"
    "wthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNV"
    "XAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA=="
)
VECTORS = {
    "post-vanilla": (
        {},
        b"",
        None,
        "host;x-amz-date",
        "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
    ),
    "post-x-www-form-urlencoded": (
        {"content-type": "application/x-www-form-urlencoded"},
        b"Param1=value1",
        None,
        "content-type;host;x-amz-date",
        "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
    ),
    "post-sts-header-before": (
        {},
        b"",
        TOKEN,
        "host;x-amz-date;x-amz-security-token",
        "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
    ),
}


@contextmanager
def at(moment: datetime) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("botocore.auth.get_current_datetime", lambda: moment)
        yield


def keys(token: str | None = None) -> Any:
    return ReadOnlyCredentials(KEYS["access_key_id"], KEYS["secret_access_key"], token)


def request(
    headers: dict[str, str], body: bytes, url: str = "https://example.amazonaws.com/"
) -> Request:
    origin, target = read_url(url)
    return Request(origin=origin, target=target, headers=tuple(headers.items()), body=body)


def as_received(message: Request) -> Asked:
    headers = {
        ":method": message.method,
        ":path": message.target,
        "host": message.origin.authority,
        **dict(message.headers),
    }
    return Asked(0, headers, message.body, 1)


@pytest.mark.parametrize("name", VECTORS)
def test_it_is_signed_as_aws_published_it(name: str) -> None:
    headers, body, token, names, signature = VECTORS[name]
    with at(datetime(2015, 8, 30, 12, 36, tzinfo=UTC)):
        made = signed(request(headers, body), keys(token), service="service", region="us-east-1")
    assert dict(made.headers)["authorization"] == (
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
        f"SignedHeaders={names}, Signature={signature}"
    )
    assert judge(as_received(made)).right, "the judge agrees with AWS"


def test_the_judge_finds_every_change_on_the_way() -> None:
    made = signed(
        request({"content-type": "text/x"}, b"body", "https://sns.test:8443/a"),
        keys("token"),
        service="sns",
        region="eu-central-1",
    )
    good = as_received(made)
    assert judge(good).right
    assert judge(good).signed >= {"content-type", "host", "x-amz-security-token"}
    changes = {
        "host": "other.test",
        "content-type": "text/y",
        "x-amz-security-token": "t",
        ":path": "/b",
    }
    for name, value in changes.items():
        assert not judge(Asked(0, {**good.headers, name: value}, good.body, 1)).right, name
    assert not judge(Asked(0, good.headers, b"other", 1)).right
    assert not judge(good, "other key").right


def test_what_a_proxy_may_change_is_not_signed() -> None:
    made = as_received(signed(request({}, b""), keys(), service="ses", region="eu-central-1"))
    assert made.headers["accept-encoding"] == "identity"
    assert not judge(made).signed & {"accept-encoding", "user-agent"}


def test_no_token_reaches_a_log_however_much_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """G10."""
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("botocore").setLevel(logging.DEBUG)
        try:
            signed(request({}, b""), keys("the-token"), service="sns", region="eu-central-1")
        finally:
            logging.getLogger("botocore").setLevel(logging.NOTSET)
    assert "the-token" not in caplog.text
