"""Requests and responses as plain values, independent of server and framework."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

HeaderList = list[tuple[bytes, bytes]]
BodyReader = Callable[[int], Awaitable[bytes]]
"""Reads the whole body of at most the given number of bytes. Raises PayloadTooLarge beyond it."""

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
_HEADER_NAMES = {name.encode(): name for name in READ}


EXPOSED = (
    b"RateLimit, RateLimit-Policy, ETag, Request-Id, Retry-After, Location, Service-Version, Service-Dry-Run, "
    b"Idempotent-Replayed, Service-Stream-From"
)
"""Response headers that scripts of other origins may read (docs/conventions.md#cross-origin)."""

VARY = (b"vary", b"Authorization, Service-Version, Service-Mode, Accept-Encoding")
CACHE = (b"cache-control", b"private, no-cache")
NO_STORE = (b"cache-control", b"no-store")
JSON = (b"content-type", b"application/json")
CROSS_ORIGIN: Final[tuple[tuple[bytes, bytes], ...]] = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", EXPOSED),
)
"""Headers of responses to cross-origin requests, which carry an Origin header (Fetch standard, CORS protocol)."""
COMMON: Final[tuple[tuple[bytes, bytes], ...]] = ((b"x-content-type-options", b"nosniff"),)
"""Headers of every response under /v1."""
BODILESS = {reads: [VARY, CACHE if reads else NO_STORE, *COMMON] for reads in (True, False)}
"""Common headers of successful responses without a body, by whether the operation reads."""
WITH_BODY = {reads: [JSON, *headers] for reads, headers in BODILESS.items()}
STREAMED: Final[HeaderList] = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
    VARY,
    *COMMON,
]
"""Headers of an event stream: proxies must not buffer or change it."""


@dataclass(slots=True)
class Request:
    """One HTTP request. `path` is percent-encoded as sent, `query` is the raw query string.

    `headers` holds those of `READ` under lower-case names; repeated headers are joined by ", " and named in `repeated`.
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
        """True if a body is announced (RFC 9112 §6)."""
        return self.headers.get("content-length", "0") != "0" or "transfer-encoding" in self.headers


@dataclass(slots=True)
class Response:
    """One HTTP response with lower-case header names and either a whole body or a stream of chunks."""

    status: int
    headers: HeaderList = field(default_factory=list)
    body: bytes = b""
    stream: AsyncGenerator[bytes, None] | None = None

    def header(self, name: str) -> str | None:
        """Return the first value of the header, or None; a linear search."""
        key_bytes = name.lower().encode()
        return next((value.decode("latin-1") for key, value in self.headers if key == key_bytes), None)


async def no_body(_limit: int) -> bytes:
    """Return no body, for a request whose body is ignored."""
    return b""


def from_scope(scope: Any, read_body: BodyReader) -> Request:
    """Build a Request from an ASGI HTTP scope, with the headers in `READ`."""
    headers: dict[str, str] = {}
    repeated: tuple[str, ...] = ()
    for key, value in scope["headers"]:
        name = _HEADER_NAMES.get(key)
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
