"""Objects in an S3-compatible store, through obstore."""

import contextlib
import logging
import re
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from adapters.s3.address import BucketAddress, parse_bucket_address
from adapters.s3.multipart import abort_old_uploads
from adapters.s3.presign import sign_url
from domain.kernel.clock import CLOCK
from domain.kernel.errors import StorageFull, Unavailable
from domain.kernel.links import round_down_to_step
from ports.objects import ObjectInfo, ObjectMissing, SignedPut, download_headers

if TYPE_CHECKING:
    from obstore.store import ClientConfig, S3Config

MIN_CHUNK_BYTES = 256 * 1024
"""Minimum size in bytes of the chunks in which an object is read."""
PAGE_SIZE = 500
"""Maximum number of objects on a page of a listing."""
_LOG = logging.getLogger("joinery.objects")
_STORE_FULL_PATTERN = re.compile(r"StorageFull|QuotaExceeded|\b507\b")
"""Pattern of the errors of a full store.

MinIO returns `XMinioStorageFull`, Ceph 403 with `QuotaExceeded`, others 507 (RFC 4918, section 11.5).
"""
_MIN_LIFETIME = timedelta(seconds=1)
_PART_BYTES = 8 << 20
"""Bytes of a part of a multipart upload; at most 10,000 parts give 78 GiB."""
_CONCURRENT_PARTS = 2
"""Number of parts of an upload that are in memory and sent concurrently."""


class S3Objects:
    """Object store in an S3 bucket (port ObjectStore in ports/objects.py).

    If credentials are known, a link for PUT permits only a file of exactly the length that is passed to `sign_put` as
    `max_bytes`. Otherwise the link permits any length. Callers therefore check `get_size` before they accept an upload.

    Args:
        url: The `s3://…` URL of the bucket (adapters/s3/address.py).
        env: The environment variables; None for those of this process.
    """

    def __init__(self, url: str, env: Mapping[str, str] | None = None) -> None:
        self._address = parse_bucket_address(url, env)
        self._store = _create_client(self._address)

    async def put_file(self, key: str, path: Path) -> None:
        with _translate_errors():
            await obstore.put_async(self._store, self._address.prefix_key(key), path)

    async def put_stream(self, key: str, chunks: AsyncIterable[bytes]) -> None:
        path = self._address.prefix_key(key)
        with _translate_errors():
            await obstore.put_async(
                self._store,
                path,
                aiter(chunks),
                use_multipart=True,
                chunk_size=_PART_BYTES,
                max_concurrency=_CONCURRENT_PARTS,
            )

    async def get_size(self, key: str) -> int:
        try:
            with _translate_errors():
                return (await obstore.head_async(self._store, self._address.prefix_key(key)))["size"]
        except FileNotFoundError as error:
            raise ObjectMissing(key) from error

    async def read(self, key: str) -> AsyncIterator[bytes]:
        try:
            with _translate_errors():
                found = await obstore.get_async(self._store, self._address.prefix_key(key))
        except FileNotFoundError as error:
            raise ObjectMissing(key) from error
        chunks = aiter(found.stream(min_chunk_size=MIN_CHUNK_BYTES))
        while True:
            with _translate_errors():
                chunk = await anext(chunks, None)
            if chunk is None:
                return
            yield bytes(chunk)

    async def delete(self, key: str) -> None:
        with contextlib.suppress(FileNotFoundError), _translate_errors():
            await obstore.delete_async(self._store, self._address.prefix_key(key))

    async def list_objects(self, prefix: str) -> AsyncIterator[Sequence[ObjectInfo]]:
        """Yield pages of the objects whose keys begin with the prefix. Raises OSError if the store returns an error."""
        own = len(self._address.prefix_key(""))
        try:
            async for page in obstore.list(self._store, self._address.prefix_key(prefix), chunk_size=PAGE_SIZE):
                yield [ObjectInfo(found["path"][own:], found["size"], found["last_modified"]) for found in page]
        except BaseError as error:
            raise OSError(str(error)) from error

    async def delete_temporary_files(self, min_age: timedelta) -> int:
        """Abort multipart uploads that are older than `min_age`; return their number. Without known credentials, return 0."""
        return await abort_old_uploads(self._address, min_age) if self._address.has_credentials else 0

    async def sign_put(self, key: str, *, content_type: str, max_bytes: int, expires_at: datetime) -> SignedPut:
        headers = {"Content-Type": content_type}
        if self._address.has_credentials:
            now = CLOCK.now()
            seconds = int((expires_at - now).total_seconds())
            signed = headers | {"Content-Length": str(max_bytes)}  # every client sends this header by itself
            url = sign_url(self._address, "PUT", key, now=now, lifetime_seconds=seconds, headers=signed)
        else:
            url = await self._sign_by_library("PUT", key, expires_at)
        return SignedPut(url, headers, expires_at)

    async def sign_get(self, key: str, *, filename: str, expires_at: datetime) -> str:
        if not self._address.has_credentials:
            return await self._sign_by_library("GET", key, expires_at)
        now = round_down_to_step(CLOCK.now())  # links for one object that are signed within one step are equal
        query = {f"response-{name}": value for name, value in download_headers(filename).items()}
        seconds = int((expires_at - now).total_seconds())
        return sign_url(self._address, "GET", key, now=now, lifetime_seconds=seconds, query=query)

    async def _sign_by_library(self, method: Literal["PUT", "GET"], key: str, expires_at: datetime) -> str:
        """Return a link that the client library signs with the credentials of the machine's instance role."""
        left = max(_MIN_LIFETIME, expires_at - CLOCK.now())
        return await obstore.sign_async(self._store, method, self._address.prefix_key(key), left)


@contextlib.contextmanager
def _translate_errors() -> Iterator[None]:
    """Log errors of the store, and raise StorageFull or Unavailable instead."""
    try:
        yield
    except BaseError as error:
        _LOG.error("object store error: %s", error)
        raise StorageFull if _STORE_FULL_PATTERN.search(str(error)) else Unavailable from error


def _create_client(address: BucketAddress) -> S3Store:
    config: S3Config = {
        "endpoint": address.endpoint,
        "region": address.region,
        "virtual_hosted_style_request": False,
    }
    if address.has_credentials:
        config["access_key_id"] = address.access_key
        config["secret_access_key"] = address.secret_key
    if address.session_token:
        config["session_token"] = address.session_token
    options: ClientConfig = {"allow_http": address.endpoint.startswith("http://"), "timeout": "30s"}
    return S3Store(address.bucket, config=config, client_options=options)
