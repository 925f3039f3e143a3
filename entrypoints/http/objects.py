"""ASGI application for uploads (PUT) and downloads (GET) of objects by signed links."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from math import ceil
from typing import Any, Final
from urllib.parse import parse_qsl

from adapters.files.links import LinkPermissions
from adapters.files.objects import FileObjects
from domain.kernel import retention
from domain.kernel.concurrency import ConcurrencyLimit
from domain.kernel.errors import (
    Conflict,
    InvalidRequest,
    MethodNotAllowed,
    NotFound,
    PayloadTooLarge,
    RateLimited,
    UnsupportedMediaType,
)
from domain.kernel.ids import new_id
from domain.storage.model import parse_tenant
from domain.uploads.usecases import UploadService
from entrypoints.http.body import FILE_MINIMUM_RATE, BodyLimits, BodyTooSlow, IncomingBody
from entrypoints.http.checks import TIERS
from entrypoints.http.exchange import COMMON_HEADERS, CROSS_ORIGIN_HEADERS, HeaderList, Response, build_request
from entrypoints.http.fast_path import send_response
from entrypoints.http.problems import ProblemResponses
from ports.clock import Clock
from ports.limits import RateLimitBucket, RateLimits
from ports.objects import ObjectMissing, download_headers
from ports.unit_of_work import UnitOfWork

OBJECTS_PREFIX = "/objects/"
PUT_SECONDS = retention.UPLOADS.total_seconds()
"""Maximum seconds of one PUT; after that time, the upload expires and its storage is released."""
_TOO_SLOW = (
    f"The file arrived too slowly. Send at least {FILE_MINIMUM_RATE.bytes_per_second} bytes per second on average, "
    f"without pauses of more than {FILE_MINIMUM_RATE.max_pause_seconds:g} s."
)


MAX_PUTS_PER_ORGANISATION = 4
"""Maximum concurrent uploads of one organisation in a process. Each object accepts one upload at a time."""


class ObjectAdmission:
    """Limits of PUT requests for objects, which do not pass the pipeline's checks."""

    def __init__(self, uow: UnitOfWork, limits: RateLimits, uploads: UploadService) -> None:
        self._uow, self._limits, self._uploads = uow, limits, uploads
        self._limit_by_key = ConcurrencyLimit(None, 1)
        self._limit_by_org = ConcurrencyLimit(
            None, MAX_PUTS_PER_ORGANISATION, noun="file uploads in progress", retry_after=5
        )

    @asynccontextmanager
    async def admit_put(self, key: str) -> AsyncIterator[None]:
        """Count one PUT for the object `key` against the limits, for the duration of the context.

        Raises:
            RateLimited: The organisation sends too many files, in a short time or concurrently.
            Conflict: The upload expects no file, or its file is already being sent.
        """
        tenant = parse_tenant(key)
        if tenant is None:
            yield
            return
        per_second, burst = TIERS["standard"]["write"]  # links do not contain the organisation's tier
        result = await self._limits.take_token(
            RateLimitBucket(f"{tenant.org}:{tenant.mode}:objects", burst, per_second)
        )
        if not result.allowed:
            raise RateLimited(
                "Too many files in a short time. Nothing was stored. Try again later.",
                retry_after=max(1, ceil(result.seconds_to_next)),
            )
        async with self._uow.begin_reading(tenant) as tx:
            await self._uploads.refuse_unless_pending(tx, key.rpartition("/")[2])
        if self._limit_by_key.get_used(key):
            raise Conflict("The file of this upload is already being sent. Wait until that request ends.")
        with self._limit_by_key.immediate_slot(key), self._limit_by_org.immediate_slot(tenant.org):
            yield


class ObjectApplication:
    """ASGI application that serves /objects/: uploads and downloads of objects by signed links."""

    def __init__(
        self,
        server: FileObjects,
        clock: Clock,
        problems: ProblemResponses,
        bodies: BodyLimits,
        admission: ObjectAdmission,
    ) -> None:
        self._server = server
        self._clock = clock
        self._problems = problems
        self._bodies = bodies
        self._admission = admission

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request; an error is returned as a problem response."""
        request_id, body = new_id("req"), IncomingBody(receive)
        try:
            response = await self._respond(scope, body)
        except ConnectionError:
            return
        except Exception as error:
            domain_error = (
                InvalidRequest(_TOO_SLOW)
                if isinstance(error, BodyTooSlow)
                else self._problems.to_domain_error(error, request_id)
            )
            response = self._problems.respond(domain_error, request_id)
            response.headers.append((b"request-id", request_id.encode()))
        await send_response(response, body.receive, body.wrap_send(send))

    async def _respond(self, scope: Any, body: IncomingBody) -> Response:
        method, key = scope["method"], scope["path"][len(OBJECTS_PREFIX) :]
        if method == "OPTIONS":
            return Response(204, list(_PREFLIGHT))
        if method not in ("GET", "HEAD", "PUT"):
            raise MethodNotAllowed(extra={"allow": "GET, HEAD, OPTIONS, PUT"})
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        link = self._server.verify_link(method, key, query, self._clock.now())
        if method == "PUT":
            with self._bodies.incoming_bodies.immediate_slot(key.rpartition("/")[0]):
                await self._receive_object(key, link, scope, body)
            return Response(200, [*COMMON_HEADERS, *CROSS_ORIGIN_HEADERS, (b"content-length", b"0")])
        try:
            size = await self._server.get_size(key)
        except ObjectMissing:
            raise NotFound(
                "The file of this link does not exist or was deleted. Get a new link from the API."
            ) from None
        name_headers = [(name.encode(), value.encode()) for name, value in download_headers(link.filename).items()]
        size_headers = [(b"cache-control", b"private, no-store"), (b"content-length", str(size).encode())]
        headers = [*COMMON_HEADERS, *CROSS_ORIGIN_HEADERS, *name_headers, *size_headers]
        return Response(200, headers, stream=self._read_chunks(key) if method == "GET" else None)

    async def _read_chunks(self, key: str) -> AsyncGenerator[bytes, None]:
        async for chunk in self._server.read(key):
            yield chunk

    async def _receive_object(self, key: str, link: LinkPermissions, scope: Any, body: IncomingBody) -> None:
        headers = build_request(scope, body.read).headers
        if headers.get("content-type", "") != link.content_type:
            raise UnsupportedMediaType(f"This link accepts {link.content_type} only.")
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length) > link.max_bytes:
            raise PayloadTooLarge(f"This link accepts at most {link.max_bytes} bytes.")
        async with self._admission.admit_put(key):
            try:
                async with asyncio.timeout(PUT_SECONDS):
                    await self._server.store_upload(key, body.iter_chunks(FILE_MINIMUM_RATE), link.max_bytes)
            except TimeoutError:
                raise ConnectionError("The upload took too long.") from None


_PREFLIGHT: Final[HeaderList] = [
    *COMMON_HEADERS,
    *CROSS_ORIGIN_HEADERS,
    (b"allow", b"GET, HEAD, OPTIONS, PUT"),
    (b"access-control-allow-methods", b"GET, HEAD, PUT"),
    (b"access-control-allow-headers", b"Content-Type"),
    (b"access-control-max-age", b"86400"),
]
