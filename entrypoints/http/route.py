"""An operation made ready to serve: what can be computed once per row is computed here, not per request."""

from dataclasses import dataclass, field
from typing import Final

from entrypoints.http.exchange import HeaderList
from entrypoints.http.operation import Operation
from entrypoints.http.query_string import QueryReader
from entrypoints.http.validation import Validator

EXPOSED: Final = (
    b"RateLimit, RateLimit-Policy, ETag, Request-Id, Retry-After, Location, Service-Version, Service-Dry-Run, "
    b"Idempotent-Replayed, Service-Stream-From"
)
"""What a page of another origin may read (docs/conventions.md#cross-origin)."""

VARY: Final = (b"vary", b"Authorization, Service-Version, Service-Mode, Accept-Encoding")
CACHE: Final = (b"cache-control", b"private, no-cache")
NO_STORE: Final = (b"cache-control", b"no-store")
JSON: Final = (b"content-type", b"application/json")
STREAMED: Final[tuple[tuple[bytes, bytes], ...]] = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
"""Headers of a stream: nothing between here and the client may hold it back or change it."""
CROSS_ORIGIN: Final[tuple[tuple[bytes, bytes], ...]] = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", EXPOSED),
)
"""Headers of answers to pages of other origins, which say so by an Origin header (Fetch standard, CORS protocol)."""
COMMON: Final[tuple[tuple[bytes, bytes], ...]] = ((b"x-content-type-options", b"nosniff"),)
"""Headers of every answer under /v1."""


@dataclass(slots=True)
class Route:
    """One operation, its readers and the headers that its successful answers share."""

    operation: Operation
    query: QueryReader = field(init=False)
    body: Validator | None = field(init=False)
    headers: HeaderList = field(init=False)
    not_modified: HeaderList = field(init=False)
    reads: bool = field(init=False)

    def __post_init__(self) -> None:
        """Compile the schemas; a wrong one is refused when the table is made."""
        self.query = QueryReader(self.operation)
        self.body = Validator(self.operation.body.schema) if self.operation.body is not None else None
        self.reads = not self.operation.writes
        caching = CACHE if self.reads else NO_STORE
        self.headers = [JSON, VARY, caching, *COMMON]
        self.not_modified = [VARY, caching, *COMMON]
        if self.operation.streams:
            self.headers = [*STREAMED, VARY, *COMMON]
