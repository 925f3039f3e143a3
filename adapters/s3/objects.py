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

from adapters.s3.address import Address, parse
from adapters.s3.multipart import abort_older
from adapters.s3.presign import presign
from domain.kernel.clock import CLOCK
from domain.kernel.errors import StorageFull, Unavailable
from domain.kernel.links import start_of_step
from ports.objects import ObjectInfo, ObjectMissing, SignedPut, download_headers

if TYPE_CHECKING:
    from obstore.store import ClientConfig, S3Config

CHUNK = 256 * 1024
PAGE = 500
"""Objects in a page of a listing."""
_LOG = logging.getLogger("joinery.objects")
_FULL = re.compile(r"StorageFull|QuotaExceeded|\b507\b")
_MIN = timedelta(seconds=1)
_PART = 8 << 20
"""Bytes of a part of an upload; at most 10,000 parts give 78 GiB."""
_PARTS = 2
"""Number of parts that are sent concurrently, each held in memory."""


class S3Objects:
    """Objects (ports/objects.py) in the bucket of `url`, see adapters/s3/address.py.

    S3 takes a link's size limit only as the exact length, and only with known credentials; callers check `size` before
    they accept an upload as complete.
    """

    def __init__(self, url: str, env: Mapping[str, str] | None = None) -> None:
        self._address = parse(url, env)
        self._store = _store(self._address)

    async def put_file(self, key: str, path: Path) -> None:
        with _translate_errors():
            await obstore.put_async(self._store, self._address.path(key), path)

    async def put_stream(self, key: str, chunks: AsyncIterable[bytes]) -> None:
        path = self._address.path(key)
        with _translate_errors():
            await obstore.put_async(
                self._store, path, aiter(chunks), use_multipart=True, chunk_size=_PART, max_concurrency=_PARTS
            )

    async def size(self, key: str) -> int:
        try:
            with _translate_errors():
                return (await obstore.head_async(self._store, self._address.path(key)))["size"]
        except FileNotFoundError as error:
            raise ObjectMissing(key) from error

    async def read(self, key: str) -> AsyncIterator[bytes]:
        try:
            with _translate_errors():
                found = await obstore.get_async(self._store, self._address.path(key))
        except FileNotFoundError as error:
            raise ObjectMissing(key) from error
        chunks = aiter(found.stream(min_chunk_size=CHUNK))
        while True:
            with _translate_errors():
                chunk = await anext(chunks, None)
            if chunk is None:
                return
            yield bytes(chunk)

    async def delete(self, key: str) -> None:
        with contextlib.suppress(FileNotFoundError), _translate_errors():
            await obstore.delete_async(self._store, self._address.path(key))

    async def list(self, prefix: str) -> AsyncIterator[Sequence[ObjectInfo]]:
        """Yield pages of the objects below the prefix. Raises OSError if the store refuses."""
        own = len(self._address.path(""))
        try:
            async for page in obstore.list(self._store, self._address.path(prefix), chunk_size=PAGE):
                yield [ObjectInfo(found["path"][own:], found["size"], found["last_modified"]) for found in page]
        except BaseError as error:
            raise OSError(str(error)) from error

    async def tidy(self, older: timedelta) -> int:
        """Abort abandoned multipart uploads and return their number; 0 without credentials in the address."""
        return await abort_older(self._address, older) if self._address.fixed else 0

    async def sign_put(self, key: str, *, content_type: str, bytes_limit: int, expires_at: datetime) -> SignedPut:
        headers = {"Content-Type": content_type}
        if self._address.fixed:
            now = CLOCK.now()
            seconds = int((expires_at - now).total_seconds())
            signed = headers | {"Content-Length": str(bytes_limit)}  # every client sends it by itself
            url = presign(self._address, "PUT", key, now=now, seconds=seconds, headers=signed)
        else:
            url = await self._signed("PUT", key, expires_at)
        return SignedPut(url, headers, expires_at)

    async def sign_get(self, key: str, *, filename: str, expires_at: datetime) -> str:
        if not self._address.fixed:
            return await self._signed("GET", key, expires_at)
        now = start_of_step(CLOCK.now())  # equal links within a step
        query = {f"response-{name}": value for name, value in download_headers(filename).items()}
        seconds = int((expires_at - now).total_seconds())
        return presign(self._address, "GET", key, now=now, seconds=seconds, query=query)

    async def _signed(self, method: Literal["PUT", "GET"], key: str, expires_at: datetime) -> str:
        left = max(_MIN, expires_at - CLOCK.now())
        return await obstore.sign_async(self._store, method, self._address.path(key), left)


@contextlib.contextmanager
def _translate_errors() -> Iterator[None]:
    """Translate errors of the store into StorageFull and Unavailable.

    A full store answers `XMinioStorageFull` (MinIO), 403 `QuotaExceeded` (Ceph) or 507 (RFC 4918, section 11.5).
    """
    try:
        yield
    except BaseError as error:
        _LOG.error("object store error: %s", error)
        raise StorageFull if _FULL.search(str(error)) else Unavailable from error


def _store(address: Address) -> S3Store:
    config: S3Config = {
        "endpoint": address.endpoint,
        "region": address.region,
        "virtual_hosted_style_request": False,
    }
    if address.fixed:
        config["access_key_id"] = address.access_key
        config["secret_access_key"] = address.secret_key
    if address.session_token:
        config["session_token"] = address.session_token
    options: ClientConfig = {"allow_http": address.endpoint.startswith("http://"), "timeout": "30s"}
    return S3Store(address.bucket, config=config, client_options=options)
