"""HTTP requests and responses as plain values, independent of server and framework."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

HeaderList = list[tuple[bytes, bytes]]
BodyReader = Callable[[int], Awaitable[bytes]]
"""Function that reads the whole body; raises PayloadTooLarge if it has more bytes than the argument."""

READ_HEADERS = (
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
"""Headers that a Request contains."""
_HEADER_NAMES = {name.encode(): name for name in READ_HEADERS}


EXPOSED_HEADERS = (
    b"RateLimit, RateLimit-Policy, ETag, Request-Id, Retry-After, Location, Service-Version, Service-Dry-Run, "
    b"Idempotent-Replayed, Service-Stream-From"
)
"""Response headers that scripts of other origins may read (docs/conventions.md#cross-origin)."""

VARY = (b"vary", b"Authorization, Service-Version, Service-Mode, Accept-Encoding")
PRIVATE_NO_CACHE = (b"cache-control", b"private, no-cache")
NO_STORE = (b"cache-control", b"no-store")
JSON = (b"content-type", b"application/json")
CROSS_ORIGIN_HEADERS: Final[tuple[tuple[bytes, bytes], ...]] = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", EXPOSED_HEADERS),
)
"""Headers of responses to requests with an Origin header (Fetch standard, CORS protocol)."""
COMMON_HEADERS: Final[tuple[tuple[bytes, bytes], ...]] = ((b"x-content-type-options", b"nosniff"),)
"""Headers of every response under /v1."""
BODILESS_HEADERS = {reads: [VARY, PRIVATE_NO_CACHE if reads else NO_STORE, *COMMON_HEADERS] for reads in (True, False)}
"""Headers of successful responses without a body, by whether the operation is a read."""
BODY_HEADERS = {reads: [JSON, *headers] for reads, headers in BODILESS_HEADERS.items()}
"""Headers of successful responses with a body, by whether the operation is a read."""
STREAM_HEADERS: Final[HeaderList] = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
    VARY,
    *COMMON_HEADERS,
]
"""Headers of an event stream, which proxies must not buffer or change."""


@dataclass(slots=True)
class Request:
    """One HTTP request.

    Attributes:
        path: The path, percent-encoded as sent.
        query: The raw query string.
        headers: The headers in READ_HEADERS by lower-case name; values of repeated headers are joined by ", ".
        client_address: The IP address from which the connection comes.
        read_body: Function that reads the whole body.
        repeated_headers: The names of headers that were sent more than once.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    client_address: str
    read_body: BodyReader
    repeated_headers: tuple[str, ...] = ()

    @property
    def has_body(self) -> bool:
        """True if the headers announce a body (RFC 9112 §6)."""
        return self.headers.get("content-length", "0") != "0" or "transfer-encoding" in self.headers


@dataclass(slots=True)
class Response:
    """One HTTP response, with lower-case header names and either a `body` or a `stream` of chunks."""

    status: int
    headers: HeaderList = field(default_factory=list)
    body: bytes = b""
    stream: AsyncGenerator[bytes, None] | None = None

    def find_header(self, name: str) -> str | None:
        """Return the first value of the header, or None."""
        key_bytes = name.lower().encode()
        return next((value.decode("latin-1") for key, value in self.headers if key == key_bytes), None)


async def read_no_body(_limit: int) -> bytes:
    """Return an empty body; this is the `read_body` of requests whose body is ignored."""
    return b""


def build_request(scope: Any, read_body: BodyReader) -> Request:
    """Build a Request from an ASGI HTTP scope, with the headers in READ_HEADERS."""
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
        client_address=client[0] if client else "",
        read_body=read_body,
        repeated_headers=repeated,
    )
