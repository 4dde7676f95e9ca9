"""Signature Version 4, by botocore's own signer.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html
"""

import dataclasses
import logging
from typing import Any

from fencepost.senders.request import Request

UNSIGNED = (  # what a proxy on the way may change
    ("accept-encoding", "identity"),  # an answer is never unpacked
    ("user-agent", "fencepost"),
)


def signed(request: Request, keys: Any, *, service: str, region: str) -> Request:
    """The request with `authorization`, `x-amz-date` (now) and, for temporary keys, `x-amz-security-token`."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest

    # At DEBUG it would log what it signs: the session token too.
    logging.getLogger("botocore.auth").setLevel(logging.INFO)
    unsigned = AWSRequest(
        request.method,
        f"{request.origin.scheme}://{request.origin.authority}{request.target}",
        headers=dict(request.headers),
        data=request.body,
    )
    SigV4Auth(keys, service, region).add_auth(unsigned)
    headers = tuple((name.lower(), str(value)) for name, value in unsigned.headers.items())
    return dataclasses.replace(request, headers=headers + UNSIGNED)
