"""One service of AWS in one region, over our own transport: no SDK, so no hidden retry, and the phase is known."""

import asyncio
from dataclasses import dataclass, field

from msgspec.structs import replace

from fencepost.core.reply import Reply
from fencepost.deadline import Deadline
from fencepost.ports import SendCancelled
from fencepost.senders.aws.credentials import AwsCredentials, Lent, NoCredentials, finder_of
from fencepost.senders.aws.fault import KEYS_REFUSED, fault_of
from fencepost.senders.aws.signature import signed
from fencepost.senders.endpoint import endpoint
from fencepost.senders.progress import Progress
from fencepost.senders.request import Origin, Request
from fencepost.senders.transport import Transport
from fencepost.senders.trouble import Trouble

SUFFIXES = {  # of regions outside the partition `aws`; the isolated ones are named by `endpoint`
    "cn-": "amazonaws.com.cn",
    "eusc-": "amazonaws.eu",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a service is, and what a signature for it names."""

    service: str
    region: str
    origin: Origin
    path: str = field(repr=False, default="")


def place_of(service: str, host: str, *, region: str | None, url: str | None) -> Place:
    """Where the settings say, else where AWS has it. Raises ValueError where no region is known.

    A VPC endpoint with private DNS answers under AWS's own name from a private address, so those are allowed.
    """
    region = region or _region_around()
    if not region:
        raise ValueError(
            "no region: neither in the settings nor in AWS_DEFAULT_REGION or a profile"
        )
    suffix = next((end for start, end in SUFFIXES.items() if region.startswith(start)), None)
    origin, path = endpoint(url or f"https://{host}.{region}.{suffix or 'amazonaws.com'}")
    return Place(service=service, region=region, origin=origin, path=path)


def _region_around() -> str | None:
    """AWS_DEFAULT_REGION, which Lambda sets, or the profile's: as botocore finds it."""
    from botocore.session import Session

    region: str | None = Session().get_config_variable("region")
    return region


class AwsService:
    """Posts to one place."""

    def __init__(self, transport: Transport, place: Place, credentials: AwsCredentials) -> None:
        self._transport = transport
        self._credentials = credentials
        self.place = place

    async def post(
        self,
        path: str,
        content_type: str,
        body: bytes,
        *,
        timeout_seconds: float,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> Reply:
        """Send once. Raises nothing for the network or for missing keys; `SendCancelled` as the transport does."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_seconds
        lent = self._credentials.at_hand() or await self._looked_up(deadline)
        if isinstance(lent, Reply):
            return lent
        request = Request(
            origin=self.place.origin,
            target=f"{self.place.path}{path}",
            headers=(("content-type", content_type), *headers),
            body=body,
        )
        place = self.place
        message = signed(request, lent.keys, service=place.service, region=place.region)
        try:
            reply = await self._transport.send(message, timeout_seconds=deadline - loop.time())
        except SendCancelled as stopped:
            raise SendCancelled(self._judged(stopped.reply, lent)) from None
        return self._judged(reply, lent)

    async def _looked_up(self, deadline: float) -> Lent | Reply:
        """The keys, or the reply of a send that never began."""
        began = asyncio.get_running_loop().time()
        try:
            async with Deadline(deadline, asked=lambda: False):
                return await self._credentials.look_up()
        except NoCredentials as missing:
            return _unsent(Trouble.NO_KEYS, f"AWS keys: {missing}", began)
        except TimeoutError:
            return _unsent(Trouble.TIMEOUT, "the look-up of AWS keys took too long", began)
        except asyncio.CancelledError:
            stopped = _unsent(Trouble.CANCELLED, "stopped before AWS keys were there", began)
            raise SendCancelled(stopped) from None

    def _judged(self, reply: Reply, lent: Lent) -> Reply:
        """Keys that were refused are dropped; where new ones may be had, the reply says that it is not final."""
        if reply.status is None:
            return reply
        if reply.status < 400 or fault_of(reply).code not in KEYS_REFUSED:
            self._credentials.accepted(lent)
            return reply
        if not self._credentials.refused(lent):
            return reply
        return replace(reply, reason=Trouble.KEYS_REFUSED.value)


def aws_service(transport: Transport, secret: str | None, place: Place) -> AwsService:
    """With the secret's keys, or without a secret with those around. Raises ValueError."""
    return AwsService(transport, place, AwsCredentials(finder_of(secret)))


def _unsent(trouble: Trouble, detail: str, began: float) -> Reply:
    return Progress().reply(trouble, detail, asyncio.get_running_loop().time() - began)
