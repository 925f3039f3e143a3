"""Abandoned multipart uploads: listed and aborted by requests that the client library does not offer."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from xml.etree import ElementTree as ET

import aiohttp
from yarl import URL

from adapters.s3.address import Address
from adapters.s3.presign import presign
from domain.kernel.clock import CLOCK

_SECONDS = 60
_TIMEOUT = aiohttp.ClientTimeout(total=_SECONDS)


@dataclass(frozen=True, slots=True)
class OpenUpload:
    """Multipart upload: the key of its object, its ID, and when it began."""

    key: str
    id: str
    begun_at: datetime


async def abort_older(address: Address, older: timedelta) -> int:
    """Abort every upload below the address's prefix that is older than `older`, and return their number.

    Raises OSError if the store refuses.
    """
    before, aborted = CLOCK.now() - older, 0
    async with aiohttp.ClientSession(timeout=_TIMEOUT, trust_env=False) as session:
        async for upload in _open_uploads(session, address):
            if upload.begun_at < before:
                await _send(session, address, "DELETE", upload.key, {"uploadId": upload.id})
                aborted += 1
    return aborted


async def _open_uploads(session: aiohttp.ClientSession, address: Address) -> AsyncIterator[OpenUpload]:
    """Yield the open uploads, page by page (Amazon S3 API reference, ListMultipartUploads)."""
    own = address.path("")
    query = {"uploads": "", "prefix": own}
    while True:
        answer = await _send(session, address, "GET", None, query)
        root = ET.fromstring(answer)  # noqa: S314  the operator's own store answers, expat bounds entities
        for upload in root.iterfind("{*}Upload"):
            begun_at = datetime.fromisoformat(_text(upload, "Initiated"))
            yield OpenUpload(_text(upload, "Key").removeprefix(own), _text(upload, "UploadId"), begun_at)
        if _text(root, "IsTruncated") != "true":
            return
        query |= {"key-marker": _text(root, "NextKeyMarker"), "upload-id-marker": _text(root, "NextUploadIdMarker")}


def _text(element: ET.Element, name: str) -> str:
    return element.findtext(f"{{*}}{name}") or ""


async def _send(
    session: aiohttp.ClientSession, address: Address, method: str, key: str | None, query: Mapping[str, str]
) -> bytes:
    url = presign(address, method, key, now=CLOCK.now(), seconds=_SECONDS, query=query)
    async with session.request(method, URL(url, encoded=True)) as answer:
        body = await answer.read()
        gone = method == "DELETE" and answer.status == 404
        if answer.status not in (200, 204) and not gone:
            raise OSError(f"The object store answered {answer.status} to {method} of uploads in parts.")
    return body
