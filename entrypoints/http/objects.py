"""PUT and GET of objects by signed links, directly on ASGI: bytes are received no faster than they can be stored."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from math import ceil
from typing import Any, Final
from urllib.parse import parse_qsl

from adapters.files.links import Grant
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
from domain.storage.model import tenant_of
from domain.uploads.usecases import UploadService
from entrypoints.http.body import FILE_PACE, HeldBodies, IncomingBody, TooSlow
from entrypoints.http.checks import TIERS
from entrypoints.http.exchange import COMMON, CROSS_ORIGIN, HeaderList, Response, from_scope
from entrypoints.http.fast_path import send_response
from entrypoints.http.problems import Problems
from ports.clock import Clock
from ports.limits import Budget, Limits
from ports.objects import ObjectMissing, download_headers
from ports.unit_of_work import UnitOfWork

PREFIX = "/objects/"
PUT_SECONDS = retention.UPLOADS.total_seconds()
"""Maximum seconds of one PUT, so that none is in progress when the upload's bytes are released."""
_TOO_SLOW = (
    f"The file arrived too slowly: it may pause for {FILE_PACE.silence:g} s and needs {FILE_PACE.least} bytes a second."
)


AT_ONCE = 4
"""Maximum concurrent PUTs of one organisation in a process, each to another key."""


class ObjectAdmission:
    """Admission control of PUTs, in place of the pipeline's checks: a signed link carries its own permission."""

    def __init__(self, uow: UnitOfWork, limits: Limits, uploads: UploadService) -> None:
        self._uow, self._limits, self._uploads = uow, limits, uploads
        self._keys = ConcurrencyLimit(None, 1)
        self._orgs = ConcurrencyLimit(None, AT_ONCE, noun="files that are being sent", retry_after=5)

    @asynccontextmanager
    async def put(self, key: str) -> AsyncIterator[None]:
        """Admit one PUT for the duration of the context.

        Raises:
                RateLimited: The organisation sends too fast, or too many files at once.
                Conflict: The upload expects no bytes, or its bytes are already being sent.

        """
        tenant = tenant_of(key)
        if tenant is None:
            yield
            return
        per_second, burst = TIERS["standard"]["write"]  # links do not contain the organisation's tier
        take = await self._limits.take(Budget(f"{tenant.org}:{tenant.mode}:objects", burst, per_second))
        if not take.allowed:
            raise RateLimited(
                "Too many files in a short time. Nothing was stored. Retry later.",
                retry_after=max(1, ceil(take.next_in)),
            )
        async with self._uow.read(tenant) as tx:
            await self._uploads.refuse_bytes(tx, key.rpartition("/")[2])
        if self._keys.of(key):
            raise Conflict("The file of this upload is already being sent. Wait until that request ends.")
        with self._keys.holding(key), self._orgs.holding(tenant.org):
            yield


class ObjectEdge:
    """ASGI application that serves /objects/."""

    def __init__(
        self, server: FileObjects, clock: Clock, problems: Problems, bodies: HeldBodies, admission: ObjectAdmission
    ) -> None:
        self._server = server
        self._clock = clock
        self._problems = problems
        self._bodies = bodies
        self._admission = admission

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request; errors are returned as problems."""
        request_id, body = new_id("req"), IncomingBody(receive)
        try:
            response = await self._answer(scope, body)
        except ConnectionError:
            return
        except Exception as error:
            domain_error = (
                InvalidRequest(_TOO_SLOW) if isinstance(error, TooSlow) else self._problems.known(error, request_id)
            )
            response = self._problems.answer(domain_error, request_id)
            response.headers.append((b"request-id", request_id.encode()))
        await send_response(response, receive, body.answering(send))

    async def _answer(self, scope: Any, body: IncomingBody) -> Response:
        method, key = scope["method"], scope["path"][len(PREFIX) :]
        if method == "OPTIONS":
            return Response(204, list(_PREFLIGHT))
        if method not in ("GET", "HEAD", "PUT"):
            raise MethodNotAllowed(extra={"allow": "GET, HEAD, OPTIONS, PUT"})
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        grant = self._server.verify(method, key, query, self._clock.now())
        if method == "PUT":
            with self._bodies.arriving.holding(key.rpartition("/")[0]):
                await self._put(key, grant, scope, body)
            return Response(200, [*COMMON, *CROSS_ORIGIN, (b"content-length", b"0")])
        try:
            size = await self._server.size(key)
        except ObjectMissing:
            raise NotFound(
                "The file of this link does not exist or was deleted. Get a new link from the API."
            ) from None
        named = [(name.encode(), value.encode()) for name, value in download_headers(grant.filename).items()]
        own = [(b"cache-control", b"private, no-store"), (b"content-length", str(size).encode())]
        headers = [*COMMON, *CROSS_ORIGIN, *named, *own]
        return Response(200, headers, stream=self._chunks(key) if method == "GET" else None)

    async def _chunks(self, key: str) -> AsyncGenerator[bytes, None]:
        async for chunk in self._server.read(key):
            yield chunk

    async def _put(self, key: str, grant: Grant, scope: Any, body: IncomingBody) -> None:
        headers = from_scope(scope, body.read).headers
        if headers.get("content-type", "") != grant.content_type:
            raise UnsupportedMediaType(f"This link accepts {grant.content_type} only.")
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length) > grant.limit:
            raise PayloadTooLarge(f"This link accepts at most {grant.limit} bytes.")
        async with self._admission.put(key):
            try:
                async with asyncio.timeout(PUT_SECONDS):
                    await self._server.receive(key, body.chunks(FILE_PACE), grant.limit)
            except TimeoutError:
                raise ConnectionError("The file took too long.") from None


_PREFLIGHT: Final[HeaderList] = [
    *COMMON,
    *CROSS_ORIGIN,
    (b"allow", b"GET, HEAD, OPTIONS, PUT"),
    (b"access-control-allow-methods", b"GET, HEAD, PUT"),
    (b"access-control-allow-headers", b"Content-Type"),
    (b"access-control-max-age", b"86400"),
]
