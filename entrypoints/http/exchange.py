"""Requests and responses as plain values, so that nothing behind the edge knows which server or framework carried them."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

HeaderList = list[tuple[bytes, bytes]]
BodyReader = Callable[[int], Awaitable[bytes]]
"""Reads the whole body of at most that many bytes. Raises PayloadTooLarge beyond it."""

READ = (
    "authorization",
    "accept-encoding",
    "service-version",
    "service-mode",
    "service-dry-run",
    "idempotency-key",
    "if-match",
    "if-none-match",
    "last-event-id",
    "content-type",
    "content-length",
    "transfer-encoding",
    "request-id",
    "user-agent",
    "x-forwarded-for",
    "forwarded",
    "origin",
    "traceparent",
)
_KNOWN = {name.encode(): name for name in READ}


EXPOSED = (
    b"RateLimit, RateLimit-Policy, ETag, Request-Id, Retry-After, Location, Service-Version, Service-Dry-Run, "
    b"Idempotent-Replayed, Service-Stream-From"
)
"""What a page of another origin may read (docs/conventions.md#cross-origin)."""

VARY = (b"vary", b"Authorization, Service-Version, Service-Mode, Accept-Encoding")
CACHE = (b"cache-control", b"private, no-cache")
NO_STORE = (b"cache-control", b"no-store")
JSON = (b"content-type", b"application/json")
CROSS_ORIGIN: Final[tuple[tuple[bytes, bytes], ...]] = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", EXPOSED),
)
"""Headers of answers to pages of other origins, which say so by an Origin header (Fetch standard, CORS protocol)."""
COMMON: Final[tuple[tuple[bytes, bytes], ...]] = ((b"x-content-type-options", b"nosniff"),)
"""Headers of every answer under /v1."""
BODILESS = {reads: [VARY, CACHE if reads else NO_STORE, *COMMON] for reads in (True, False)}
"""Headers that successful answers without a body share, by whether the operation reads."""
WITH_BODY = {reads: [JSON, *headers] for reads, headers in BODILESS.items()}
STREAMED: Final[HeaderList] = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
    VARY,
    *COMMON,
]
"""Headers of a stream: nothing between here and the client may hold it back or change it."""


@dataclass(slots=True)
class Request:
    """One HTTP request. `path` is as sent (percent-encoded), `query` the raw query string.

    `headers` holds those of `READ` under lower-case names; a header sent more than once is joined by ", " and named in
    `repeated`.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    client: str
    read_body: BodyReader
    repeated: tuple[str, ...] = ()

    @property
    def has_body(self) -> bool:
        """Whether a body is announced (RFC 9112 §6)."""
        return self.headers.get("content-length", "0") != "0" or "transfer-encoding" in self.headers


@dataclass(slots=True)
class Response:
    """One HTTP response: lower-case header names, the body whole, or a stream of pieces instead of it."""

    status: int
    headers: HeaderList = field(default_factory=list)
    body: bytes = b""
    stream: AsyncGenerator[bytes, None] | None = None

    def header(self, name: str) -> str | None:
        """The first value of that header, for readers that are not in a hurry."""
        sought = name.lower().encode()
        return next((value.decode("latin-1") for key, value in self.headers if key == sought), None)


async def no_body(_limit: int) -> bytes:
    """The reader of a request whose body nobody looks at."""
    return b""


def from_scope(scope: Any, read_body: BodyReader) -> Request:
    """The request that an ASGI HTTP scope describes, with the headers that the service reads."""
    headers: dict[str, str] = {}
    repeated: tuple[str, ...] = ()
    for key, value in scope["headers"]:
        name = _KNOWN.get(key)
        if name is None:
            continue
        if name in headers:
            headers[name] += ", " + value.decode("latin-1")
            repeated += (name,)
        else:
            headers[name] = value.decode("latin-1")
    raw = scope.get("raw_path")
    path = raw.decode("latin-1").partition("?")[0] if raw else scope["path"]
    client = scope.get("client")
    return Request(
        method=scope["method"],
        path=path,
        query=scope["query_string"].decode("latin-1"),
        headers=headers,
        client=client[0] if client else "",
        read_body=read_body,
        repeated=repeated,
    )
