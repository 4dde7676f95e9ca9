"""URLs taken apart, and what may not be called at all."""

import contextlib

import pytest
from httpunk._httpunk import H1Codec
from httpunk.http import HeaderMap
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.senders.request import InvalidUrl, Request, read_url


@pytest.mark.parametrize(
    ("url", "authority", "port", "target"),
    [
        ("https://hook.test", "hook.test", 443, "/"),
        ("https://Hook.Test/a", "hook.test", 443, "/a"),
        ("https://hook.test:443/a", "hook.test", 443, "/a"),
        ("https://hook.test:8443/a?b=c&d=%20#f", "hook.test:8443", 8443, "/a?b=c&d=%20"),
        ("http://hook.test/", "hook.test", 80, "/"),
        ("https://[2606:4700::1]/a", "[2606:4700::1]", 443, "/a"),
        ("https://[2606:4700:0:0::A]:1/", "[2606:4700::a]:1", 1, "/"),
        ("https://bücher.test/é?ü=1", "xn--bcher-kva.test", 443, "/%C3%A9?%C3%BC=1"),
        ("https://hook.test?a", "hook.test", 443, "/?a"),
        ("https://my_hook.test/~a/b;c=d", "my_hook.test", 443, "/~a/b;c=d"),
    ],
)
def test_a_url_taken_apart(url: str, authority: str, port: int, target: str) -> None:
    origin, found = read_url(url)
    assert (origin.authority, origin.port, found) == (authority, port, target)


@pytest.mark.parametrize(
    "url",
    [
        "https://hook.test/" + "a" * 16_384, "https://hook.test/" + "😀" * 8_000, "https://hook.test/?" + "é" * 16_000,
        "", "hook.test", "ftp://hook.test/", "https://", "https:///a", "https://hook.test:99999/", "https://hook.test:x/",
        "https://user@hook.test/", "https://user:pw@hook.test/", "https://hook.test\\@evil.test/", "https://a b.test/",
        "https://hook.test/a b", "https://hook.test/\r\nx: y", "https://hook.test/\x00", "https://hook.test/\x7f",
        "https://[::1/", "https://[nonsense]/", "https://" + "a" * 64 + ".test/", "https://a..b.test/",
        "https://hook%2etest/", "file:///etc/passwd", "javascript:alert(1)", "https://hook.test\tx/",
        "https://[fe80::1%25eth0]/",
    ],
)  # fmt: skip
def test_what_is_no_url_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(InvalidUrl) as refused:
        read_url(url)
    assert "test" not in str(refused.value)


@settings(deadline=None)  # a busy machine is no failure
@given(host=st.text(min_size=1, max_size=20), path=st.text(), query=st.text())
def test_whatever_is_accepted_the_engine_can_write(host: str, path: str, query: str) -> None:
    for url in (f"https://hook.test/{path}?{query}", f"https://{host}/"):
        with contextlib.suppress(InvalidUrl):
            origin, target = read_url(url)
            written = H1Codec().serialize_request(
                "POST",
                target,
                HeaderMap([("host", origin.authority)]),
                http10=False,
                content_length=1,
                chunked=False,
            )
            assert written.count(b"\r\n") == 4  # the line, host, content-length, the empty one


def test_nothing_private_is_shown() -> None:
    origin, target = read_url("https://secret-host.test/secret-path")
    request = Request(origin=origin, target=target, headers=(("a", "secret"),), body=b"secret")
    assert "secret" not in repr(request)
