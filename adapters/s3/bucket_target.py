"""Targets of scheduled exports in S3-compatible buckets of other parties."""

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from adapters.s3.address import BucketAddress
from adapters.s3.presign import sign_url
from domain.exports.ports import DeliveryFailed
from domain.exports.schedules import ExportTarget
from ports.clock import Clock
from ports.outbound import OutboundClient, OutboundFailed, OutboundResponse

PART_BYTES = 8 << 20
"""Bytes of a part of a multipart upload, and maximum size of a file that is sent at once."""
_MAX_PARTS = 10_000
_LINK_SECONDS = 300
_TEST_KEY = ".joinery-test"
_UPLOAD_ID = re.compile(rb"<UploadId>([^<]{1,2000})</UploadId>")
_ERROR_CODE = re.compile(rb"<Code>([A-Za-z0-9.]{1,100})</Code>")


@dataclass(frozen=True, slots=True)
class BucketTarget:
    """Client of buckets (port FileTarget in domain/exports/ports.py).

    Requests are sent by the client for untrusted hosts. The operator's object store has a library instead, which
    cannot vet addresses.
    """

    http: OutboundClient
    clock: Clock

    async def test(self, target: ExportTarget, credentials: Mapping[str, Any]) -> ExportTarget:
        address = _build_address(target, credentials)
        await self._request(address, "PUT", _TEST_KEY, body=b"test\n")
        await self._request(address, "DELETE", _TEST_KEY)
        return target

    async def send(
        self, target: ExportTarget, credentials: Mapping[str, Any], name: str, size: int, chunks: AsyncIterator[bytes]
    ) -> None:
        address = _build_address(target, credentials)
        if size <= PART_BYTES:
            await self._request(address, "PUT", name, body=b"".join([chunk async for chunk in chunks]))
            return
        if size > PART_BYTES * _MAX_PARTS:
            raise DeliveryFailed("The file is too large for the bucket.", is_final=True)
        begun = await self._request(address, "POST", name, {"uploads": ""}, b"")
        match = _UPLOAD_ID.search(begun.body)
        if match is None:
            raise DeliveryFailed("The response of the bucket's server is invalid.")
        upload = {"uploadId": match[1].decode()}
        try:
            tags = [
                (await self._request(address, "PUT", name, {"partNumber": str(number), **upload}, part)).headers.get(
                    "ETag", ""
                )
                async for number, part in _split_parts(chunks)
            ]
            parts = "".join(
                f"<Part><PartNumber>{number}</PartNumber><ETag>{escape(tag, quote=False)}</ETag></Part>"
                for number, tag in enumerate(tags, 1)
            )
            document = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>"
            await self._request(address, "POST", name, upload, document.encode())
        except BaseException:
            await self._abort(address, name, upload)
            raise

    async def _abort(self, address: BucketAddress, name: str, upload: Mapping[str, str]) -> None:
        """Abort a multipart upload, so that its parts are deleted; if this fails, the bucket's rules delete them."""
        try:
            await self._request(address, "DELETE", name, upload)
        except DeliveryFailed:
            return

    async def _request(
        self,
        address: BucketAddress,
        method: str,
        key: str,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> OutboundResponse:
        """Send a signed request and return the successful response. Raises DeliveryFailed."""
        url = sign_url(address, method, key, now=self.clock.now(), lifetime_seconds=_LINK_SECONDS, query=query)
        try:
            response = await self.http.request(method, url, body=body)
        except OutboundFailed as error:
            raise DeliveryFailed(str(error)) from error
        if response.status not in (200, 204) or b"<Error>" in response.body:  # a completion may fail with status 200
            code = _ERROR_CODE.search(response.body)
            reason = f" ({code[1].decode()})" if code else ""
            raise DeliveryFailed(f"The bucket's server returned {response.status}{reason}.")
        return response


async def _split_parts(chunks: AsyncIterator[bytes]) -> AsyncIterator[tuple[int, bytes]]:
    """Yield the contents in numbered parts of PART_BYTES; the last one may be smaller."""
    buffer, number = bytearray(), 1
    async for chunk in chunks:
        buffer += chunk
        while len(buffer) >= PART_BYTES:
            yield number, bytes(buffer[:PART_BYTES])
            del buffer[:PART_BYTES]
            number += 1
    if buffer:
        yield number, bytes(buffer)


def _build_address(target: ExportTarget, credentials: Mapping[str, Any]) -> BucketAddress:
    region = target.region or "us-east-1"
    return BucketAddress(
        bucket=target.bucket or "",
        prefix=(target.prefix or "").strip("/"),
        endpoint=(target.endpoint or f"https://s3.{region}.amazonaws.com").rstrip("/"),
        region=region,
        access_key=str(credentials.get("access_key", "")),
        secret_key=str(credentials.get("secret_key", "")),
    )
