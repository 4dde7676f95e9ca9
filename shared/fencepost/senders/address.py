"""Which addresses may be called: only public ones, whatever notation they hide in. Pure."""

import ipaddress
from ipaddress import IPv4Address, IPv6Address

GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")  # all that was ever assigned
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def is_public(text: str) -> bool:
    """Whether a packet to this address leaves for one host on the public internet."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return all(_plainly_public(each) for each in _meant(address))


def _meant(address: IPv4Address | IPv6Address) -> tuple[IPv4Address | IPv6Address, ...]:
    """What the kernel or a gateway makes of it: IPv4 inside IPv6 is judged as the IPv4 address it is."""
    if isinstance(address, IPv4Address):
        return (address,)
    if address.ipv4_mapped is not None:
        return (address.ipv4_mapped,)
    if address in NAT64:
        return (IPv4Address(int(address) & 0xFFFFFFFF),)
    return (address, address.sixtofour) if address.sixtofour is not None else (address,)


def _plainly_public(address: IPv4Address | IPv6Address) -> bool:
    # `is_global` alone would let multicast and the unassigned parts of IPv6 pass.
    if isinstance(address, IPv6Address) and address not in GLOBAL_UNICAST:
        return False
    return address.is_global and not address.is_multicast
