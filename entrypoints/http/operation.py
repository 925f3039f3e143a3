"""The row of the operation table: everything that routing, access, limits, validation, docs and tools need to know."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from adapters.wire.cursors import FeedCursors
from domain.access.model import SCOPES, Principal
from domain.kernel import ids as kernel_ids
from domain.kernel.paging import Page, PageRequest
from ports.unit_of_work import Tx

if TYPE_CHECKING:
    from entrypoints.http.event_stream import EventStream
    from entrypoints.http.use_cases import UseCases

Schema = Mapping[str, Any]
WHO: Final = ("any", "person", "member_session", "owner")
RATES: Final = ("read", "write", "expensive", "export", "stream")
KEYLESS_POSTS: Final = frozenset({"sources.test", "brand.preview_invitation"})


@dataclass(slots=True)
class Reply:
    """What a handler answers. `body` is a JSON value, or bytes already encoded. `version` makes the versioned ETag.

    `etag` is the strong validator's text when it is known without hashing the body.
    """

    body: Any = None
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    version: int | None = None
    etag: str | None = None
    later: "Callable[[], Awaitable[Any]] | None" = None
    """Makes the body, or the whole reply, once the unit of work is over and no connection is held.

    Only for operations that are `outside`. Whoever asks the database while it holds a connection takes two, and with all
    taken waits for itself.
    """
    stream: "EventStream | None" = None
    """What is sent instead of a body, for operations that are a `stream`."""


@dataclass(slots=True)
class RequestContext:
    """What a handler is given: parsed, permitted and inside a transaction (a plain read for GET; none for GETs `outside`)."""

    operation: "Operation"
    principal: Principal
    tx: Tx
    use: "UseCases"
    ids: Mapping[str, str]
    query: Mapping[str, Any]
    """The filters given: no paging parameters; `date-time` ones are aware datetimes in UTC."""
    body: Any
    """JSON values; numbers that are not whole are Decimal."""
    page_request: PageRequest
    base_url: str
    cursor: Callable[[str | None], str | None]
    """Signs a page's next key into the opaque cursor of this list."""
    feed: FeedCursors
    idle: Callable[[], AbstractContextManager[None]]
    """While in it, the request only waits, and does not count as pressing the process."""
    expected_version: int | None = None
    """The version that If-Match names; None when any will do. The use case compares and raises PreconditionFailed."""
    version: str = ""
    """The Service-Version that the answer will be shaped for."""
    request_id: str = ""
    last_event_id: str | None = None

    def listing(self, page: Page[Any], to_wire: Callable[[Any], Any]) -> Reply:
        """The list envelope of the specification around a page."""
        return Reply(
            {
                "object": "list",
                "data": [to_wire(item) for item in page.items],
                "has_more": page.has_more,
                "next_cursor": self.cursor(page.next_key),
            }
        )


@dataclass(frozen=True, slots=True)
class Tool:
    """The operation is offered to AI agents; `approval` makes a person confirm each call."""

    approval: bool = False


Handler = Callable[[RequestContext], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class Operation:
    """One endpoint. Wrong rows are refused when the module is imported."""

    id: str
    method: str
    path: str
    summary: str
    handler: Handler
    scope: str | None
    reply: Schema | None
    rate: str
    description: str = ""
    ids: Mapping[str, str] = field(default_factory=dict)
    who: str = "any"
    feature: str | None = None
    if_match: bool = False
    paging: str | None = None
    """`both`, `forward`, `log` or None; the first two add limit, starting_after and (both) ending_before."""
    query: Mapping[str, Schema] = field(default_factory=dict)
    body: Schema | None = None
    body_required: bool = True
    body_limit: int = 1 << 20
    status: int = 200
    errors: tuple[str, ...] = ()
    agent: Tool | None = None
    example: Any = None
    outside: bool = False
    """Reads, then reaches out or waits with no connection held, and stores nothing (trying a source)."""
    stream: bool = False
    """Answers server-sent events without an end."""
    sealed: bool = False
    """The answer tells a secret: what is kept of it for repeating is sealed."""

    @property
    def area(self) -> str:
        """The slug that the id starts with."""
        return self.id.partition(".")[0]

    @property
    def writes(self) -> bool:
        """Whether the operation changes anything (and so runs in a transaction, honours dry run and is audited)."""
        return self.method != "GET"

    @property
    def idempotent(self) -> bool:
        """Whether an Idempotency-Key is required."""
        return self.method == "POST" and self.id not in KEYLESS_POSTS

    def __post_init__(self) -> None:
        """Refuse a row that contradicts itself or the specification."""
        if self.scope is not None and self.scope not in SCOPES:
            raise ValueError(f"{self.id}: unknown scope {self.scope}")
        if self.who not in WHO or self.rate not in RATES:
            raise ValueError(f"{self.id}: unknown who or rate")
        if self.body is not None and self.body.get("additionalProperties") is not False:
            raise ValueError(f"{self.id}: the body schema is not closed")
        if unknown := set(self.ids.values()) - kernel_ids.PREFIXES:
            raise ValueError(f"{self.id}: unknown id prefixes {unknown}")
        if self.agent and self.path.startswith("/v1/billing/credits"):
            raise ValueError(f"{self.id}: credit routes are never an agent's tool")
        if self.stream and not self.outside:
            raise ValueError(f"{self.id}: a stream must not hold a connection")
        if self.if_match and self.method != "PATCH":
            raise ValueError(f"{self.id}: If-Match belongs to PATCH")
