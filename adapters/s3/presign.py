"""Links to S3 that are signed by AWS Signature Version 4 in the query.

The client library cannot sign a content type or the file name of a download.
"""

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from urllib.parse import quote, urlsplit

from adapters.s3.address import BucketAddress

MAX_LINK_SECONDS = 7 * 24 * 3600
"""Maximum lifetime of a link in S3, in seconds."""

_ALGORITHM = "AWS4-HMAC-SHA256"


def sign_url(
    address: BucketAddress,
    method: str,
    key: str | None,
    *,
    now: datetime,
    lifetime_seconds: int,
    headers: Mapping[str, str] | None = None,
    query: Mapping[str, str] | None = None,
) -> str:
    """Return a signed link for one kind of request (AWS documentation, "Authenticating Requests: Using Query Parameters").

    Args:
        address: The bucket and the credentials.
        method: The permitted method.
        key: The key of the object; None for the bucket.
        now: The time of the signature in UTC.
        lifetime_seconds: The lifetime of the link; the bounds 1 and MAX_LINK_SECONDS replace values beyond them.
        headers: Headers that the request must have.
        query: Further parameters of the link.
    """
    url = urlsplit(address.build_object_url(key) if key is not None else address.bucket_url)
    stamp, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
    scope = f"{day}/{address.region}/s3/aws4_request"
    signed = {"host": url.netloc} | {name.lower(): " ".join(value.split()) for name, value in (headers or {}).items()}
    names = ";".join(sorted(signed))
    parameters = {
        "X-Amz-Algorithm": _ALGORITHM,
        "X-Amz-Credential": f"{address.access_key}/{scope}",
        "X-Amz-Date": stamp,
        "X-Amz-Expires": str(max(1, min(MAX_LINK_SECONDS, lifetime_seconds))),
        "X-Amz-SignedHeaders": names,
        **(query or {}),
    }
    if address.session_token:
        parameters["X-Amz-Security-Token"] = address.session_token
    canonical_query = "&".join(
        f"{quote(name, safe='~')}={quote(parameters[name], safe='~')}" for name in sorted(parameters)
    )
    canonical_headers = "".join(f"{name}:{signed[name]}\n" for name in sorted(signed))
    request = f"{method}\n{url.path}\n{canonical_query}\n{canonical_headers}\n{names}\nUNSIGNED-PAYLOAD"
    text = f"{_ALGORITHM}\n{stamp}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    return f"{url.scheme}://{url.netloc}{url.path}?{canonical_query}&X-Amz-Signature={_compute_signature(address, day, text)}"


def _compute_signature(address: BucketAddress, day: str, text: str) -> str:
    """Return the signature of a text in hexadecimal.

    The signing key is derived from the secret key for the region and the day (`YYYYMMDD`).
    """
    key = f"AWS4{address.secret_key}".encode()
    for part in (day, address.region, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), hashlib.sha256)
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
