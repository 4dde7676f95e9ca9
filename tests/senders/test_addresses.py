"""What counts as public, in every notation."""

import ipaddress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.senders.address import is_public

PUBLIC = ["8.8.8.8", "203.0.114.7", "2606:4700::1", "::ffff:8.8.8.8", "64:ff9b::808:808"]
NOT_PUBLIC = [
    "0.0.0.0", "10.0.0.5", "100.64.0.1", "127.0.0.1", "127.255.255.254", "169.254.169.254",
    "172.16.0.1", "172.31.255.255", "192.0.2.1", "192.168.0.1", "198.18.0.1", "224.0.0.1",
    "239.255.255.250", "240.0.0.1", "255.255.255.255",
    "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.5", "::ffff:169.254.169.254",
    "64:ff9b::7f00:1", "64:ff9b::a00:5", "2002:7f00:1::", "2002:a00:5::", "2001:db8::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2", "fc00::1", "fd12::1", "fe80::1", "fe80::1%eth0", "fec0::1",
    "ff02::1", "4000::1", "not an address", "", "8.8.8.8.8",
]  # fmt: skip


@pytest.mark.parametrize("address", PUBLIC)
def test_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_not_public(address: str) -> None:
    assert not is_public(address)


@settings(deadline=None)  # a busy machine is no failure
@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_judged_alike_in_every_ipv6_coat(address: ipaddress.IPv4Address) -> None:
    plain = is_public(str(address))
    number = int(address)
    mapped = ipaddress.IPv6Address(0xFFFF_0000_0000 | number)
    nat64 = ipaddress.IPv6Address(int(ipaddress.IPv6Address("64:ff9b::")) | number)
    assert is_public(str(mapped)) == plain
    assert is_public(str(nat64)) == plain
