"""Files in S3, read from any byte on, in ranges: one range in memory at a time, no connection left waiting."""

from io import BufferedReader, RawIOBase
from typing import Any

from fencepost.backfill.ports import Opened, SourceAway
from fencepost.core.command import CommandRefused, S3Object

RANGE_BYTES = 4 * 1024 * 1024
GZIP = b"\x1f\x8b"  # RFC 1952 §2.3.1: how every such file begins
CONNECT_SECONDS = 2.0
READ_SECONDS = 10.0
TRIES = 3  # reading again is harmless, and S3 says "slow down" in its best hours
GONE = {"NoSuchKey", "NoSuchBucket", "NoSuchVersion", "404"} | {
    "MethodNotAllowed",
    "405",  # a version that is a deletion
}
FORBIDDEN = {"AccessDenied", "403"}
CHANGED = {"PreconditionFailed", "412"}


class Bucket:
    """Implements `ports.Objects`. The client is made at the first question."""

    def __init__(self) -> None:
        self._client: Any = None

    def open(self, file: S3Object, *, byte: int, etag: str | None) -> Opened:
        """Raises `CommandRefused` where it is not there, not ours or not what it was; `SourceAway` otherwise."""
        self._client = self._client or _client()
        which = {"Bucket": file.bucket, "Key": file.key}
        if file.version:
            which["VersionId"] = file.version
        head = asked(self._client.head_object, **which)
        if etag is not None and head["ETag"] != etag:
            raise CommandRefused("the object is not the one the command began with")
        raw = Ranges(self._client, {**which, "IfMatch": head["ETag"]}, byte, head["ContentLength"])
        stream = BufferedReader(raw, RANGE_BYTES)
        if byte == 0 and stream.peek(len(GZIP)).startswith(GZIP):
            raise CommandRefused("the object is gzip, and it is not unpacked here")
        return Opened(stream=stream, etag=head["ETag"], size=head["ContentLength"])


class Ranges(RawIOBase):
    """An object as a raw stream."""

    def __init__(self, client: Any, which: dict[str, str], byte: int, size: int) -> None:
        self._client, self._which, self._byte, self._size = client, which, byte, size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer).cast("B")
        wanted = min(len(view), RANGE_BYTES, self._size - self._byte)
        if wanted <= 0:
            return 0
        last = self._byte + wanted - 1
        text = asked(self._read, Range=f"bytes={self._byte}-{last}")
        view[: len(text)] = text
        self._byte += len(text)
        return len(text)

    def _read(self, **where: str) -> bytes:
        body: bytes = self._client.get_object(**self._which, **where)["Body"].read()
        return body


def asked(ask: Any, **words: str) -> Any:
    """The answer, or what its failure means."""
    from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

    try:
        return ask(**words)
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code"))
        if code in GONE:
            raise CommandRefused(f"there is no such object in S3 ({code})") from None
        if code in FORBIDDEN:
            raise CommandRefused(f"this function may not read the object ({code})") from None
        if code in CHANGED:
            raise CommandRefused("the object is not the one the command began with") from None
        raise SourceAway(f"S3 says {code}") from None
    except ParamValidationError:
        raise CommandRefused("s3: no bucket or key can be called so") from None
    except BotoCoreError as error:
        raise SourceAway(f"S3 is away: {type(error).__name__}") from None


def _client() -> Any:
    import boto3  # here: it costs more to import than a whole page of rows takes
    from botocore.config import Config

    patience = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        retries={"total_max_attempts": TRIES, "mode": "standard"},
    )
    return boto3.client("s3", config=patience)
