"""Cleanup of abandoned multipart uploads, by requests that the client library does not support."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from xml.etree import ElementTree as ET

import aiohttp
from yarl import URL

from adapters.s3.address import BucketAddress
from adapters.s3.presign import sign_url
from domain.kernel.clock import CLOCK

_TIMEOUT_SECONDS = 60
_TIMEOUT = aiohttp.ClientTimeout(total=_TIMEOUT_SECONDS)


@dataclass(frozen=True, slots=True)
class OpenMultipartUpload:
    """Multipart upload that is not complete.

    Attributes:
        key: The key of the object, without the prefix of the address.
        id: The ID of the upload.
        begun_at: The time at which the upload began.
    """

    key: str
    id: str
    begun_at: datetime


async def abort_old_uploads(address: BucketAddress, min_age: timedelta) -> int:
    """Abort all multipart uploads below the address's prefix that are older than `min_age`; return their number.

    Raises OSError if the object store returns an error.
    """
    before, aborted = CLOCK.now() - min_age, 0
    async with aiohttp.ClientSession(timeout=_TIMEOUT, trust_env=False) as session:
        async for upload in _iterate_open_uploads(session, address):
            if upload.begun_at < before:
                await _send_signed(session, address, "DELETE", upload.key, {"uploadId": upload.id})
                aborted += 1
    return aborted


async def _iterate_open_uploads(
    session: aiohttp.ClientSession, address: BucketAddress
) -> AsyncIterator[OpenMultipartUpload]:
    """Yield the multipart uploads that are not complete (Amazon S3 API reference, ListMultipartUploads)."""
    own = address.prefix_key("")
    query = {"uploads": "", "prefix": own}
    while True:
        answer = await _send_signed(session, address, "GET", None, query)
        root = ET.fromstring(answer)  # noqa: S314  the operator's own store answers, expat bounds entities
        for upload in root.iterfind("{*}Upload"):
            begun_at = datetime.fromisoformat(_find_child_text(upload, "Initiated"))
            yield OpenMultipartUpload(
                _find_child_text(upload, "Key").removeprefix(own), _find_child_text(upload, "UploadId"), begun_at
            )
        if _find_child_text(root, "IsTruncated") != "true":
            return
        query |= {
            "key-marker": _find_child_text(root, "NextKeyMarker"),
            "upload-id-marker": _find_child_text(root, "NextUploadIdMarker"),
        }


def _find_child_text(element: ET.Element, name: str) -> str:
    """Return the text of the child element with the name, in any namespace; empty if there is none."""
    return element.findtext(f"{{*}}{name}") or ""


async def _send_signed(
    session: aiohttp.ClientSession, address: BucketAddress, method: str, key: str | None, query: Mapping[str, str]
) -> bytes:
    """Send a signed request and return the response's body.

    `key` is the key of the object, or None for a request to the bucket. A DELETE with status 404 succeeds. Raises
    OSError for other error statuses.
    """
    url = sign_url(address, method, key, now=CLOCK.now(), lifetime_seconds=_TIMEOUT_SECONDS, query=query)
    async with session.request(method, URL(url, encoded=True)) as answer:
        body = await answer.read()
        gone = method == "DELETE" and answer.status == 404
        if answer.status not in (200, 204) and not gone:
            raise OSError(f"The object store returned {answer.status} for {method} of multipart uploads.")
    return body
