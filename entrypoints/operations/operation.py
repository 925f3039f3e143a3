"""Operations (rows that drive routing, access, limits, validation and OpenAPI), their areas, and the contexts and replies of handlers."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import pairwise
from typing import Any, Generic, TypeVar

from adapters.wire.cursors import Cursors
from adapters.wire.resource import Body, Resource
from domain.access.model import SCOPES, Principal
from domain.audit.model import Act
from domain.jobs.usecases.draining import Handler
from domain.jobs.usecases.ticks import Tick
from domain.kernel import ids as kernel_ids
from domain.kernel.errors import FeatureUnavailable, PermissionDenied
from domain.kernel.paging import Page, PageRequest
from domain.kernel.resource import View
from entrypoints.dependencies import Dependencies
from entrypoints.operations.event_stream import EventStream
from ports.unit_of_work import Tx

PREVIEW_TYPE = b"application/vnd.furniops.preview+json"


@dataclass(slots=True)
class Reply:
    """Reply of a handler. `body` is a JSON value, or encoded bytes. `version` makes the ETag versioned.

    `etag` is the strong validator if it is known without hashing the body; `etag_source` is hashed instead of a body with
    time-dependent parts. `stream` is sent instead of a body.
    `later` is awaited once no connection is held. For a write, it waits briefly for the effects of the committed change; its
    result is returned and stored instead of this reply. For a read, it computes the reply.
    """

    body: Any = None
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    version: int | None = None
    etag: str | None = None
    etag_source: Any = None
    stream: EventStream | None = None
    later: Callable[[], Awaitable["Reply"]] | None = None


S = TypeVar("S")
R = TypeVar("R")


@dataclass(slots=True)
class RequestContext(Generic[S]):
    """Context that every handler gets: the request is parsed, validated and permitted.

    Attributes:
        service: The use cases of the operation's area.
        principal: The caller.
        ids: The parameters in the path.
        query: The filters without paging parameters; `date-time` values are datetimes in UTC.
        page_request: The requested page.
        version: The Service-Version of the response.

    """

    service: S
    principal: Principal
    ids: Mapping[str, str]
    query: Mapping[str, Any]
    page_request: PageRequest
    version: str
    cursor_context: bytes
    cursors: Cursors
    base_url: str
    now: datetime

    @property
    def view(self) -> View:
        """Tenant and time for which rows are rendered."""
        return View(self.principal.tenant, self.now)

    def cursor(self, key: str | None) -> str | None:
        """Return the signed cursor of a page's next key."""
        return self.cursors.sign(self.cursor_context, key)

    def listing(self, page: Page[Any], render: Callable[[Any], Any]) -> Reply:
        """Return the list envelope of a page."""
        return Reply(
            {
                "object": "list",
                "data": [render(item) for item in page.items],
                "has_more": page.has_more,
                "next_cursor": self.cursor(page.next_key),
            }
        )

    def list(self, resource: Resource[R], page: Page[R]) -> Reply:
        """Return a page of resources."""
        reply = self.listing(page, lambda row: resource.render(row, self.view))
        if resource.etag_source is not None:
            reply.etag_source = reply.body | {"data": [resource.etag_source(item) for item in reply.body["data"]]}
        return reply

    def one(self, resource: Resource[R], row: R, **more: Any) -> Reply:
        """Return one resource with its version, if any; `more` are further properties."""
        body = resource.render(row, self.view) | more
        etag_source = resource.etag_source(body) if resource.etag_source is not None else None
        return Reply(body, version=getattr(row, "version", None), etag_source=etag_source)

    def made(self, resource: Resource[R], row: R, **more: Any) -> Reply:
        """Return a created resource with its URL."""
        reply = self.one(resource, row, **more)
        reply.headers["Location"] = self.base_url + resource.path_of(row)
        return reply


@dataclass(slots=True)
class ReadContext(RequestContext[S]):
    """Context of a read: single statements on a connection that is held until the reply."""

    tx: Tx


@dataclass(slots=True)
class WriteContext(ReadContext[S]):
    """Context of a write, in a transaction."""

    expected_version: int | None
    """The version of If-Match; None for any. The use case compares it and raises PreconditionFailed."""

    command: Any
    """The decoded body."""


@dataclass(slots=True)
class DetachedContext(RequestContext[S]):
    """Context of a read that holds no connection, because it waits or needs no database."""

    idle: Callable[[], AbstractContextManager[None]]
    """Returns a context during which the request only waits and does not count as load."""


@dataclass(slots=True)
class StreamContext(RequestContext[S]):
    """Context of an event stream."""

    last_event_id: str | None
    """The last event that a reconnecting client has received."""


Schema = Mapping[str, Any]
WHO = ("any", "person", "member_session", "owner")
RATES = ("read", "write", "expensive", "export", "stream")
_PREFIXES = {
    "sources": "src",
    "runs": "run",
    "uploads": "upl",
    "source-probes": "prb",
    "variants": "var",
    "mappings": "map",
    "products": "prod",
    "match-pairs": "mpr",
    "merges": "mrg",
    "media": "img",
    "exports": "exp",
    "webhook-endpoints": "whe",
    "deliveries": "dlv",
    "audit-events": "aud",
    "request-logs": "req",
}
"""The ID prefix of the path parameter after each word."""


@dataclass(frozen=True, slots=True)
class Tool:
    """Offer of an operation to AI agents, the default for reads. `approval`: a person must confirm each call.

    `outside`: the operation contacts external systems, such as vendors or webhook endpoints.
    """

    approval: bool = False
    outside: bool = False


@dataclass(frozen=True, slots=True)
class Undoing:
    """Undo of a write through the audit log; `how` describes its effect in one sentence.

    `back` gets the area's service, the transaction and the act, and restores the previous state.
    """

    how: str
    back: Callable[[Any, Tx, Act], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One endpoint of the API. An inconsistent row raises ValueError on import."""

    id: str
    path: str
    summary: str
    handler: Callable[[Any], Awaitable[Any]]
    scope: str | None
    reply: Schema | None
    method: str = "GET"
    rate: str = "read"
    description: str = ""
    ids: Mapping[str, str] = field(default_factory=dict)
    """The ID prefix of each path parameter; those implied by the preceding word are added."""
    who: str = "any"
    feature: str | None = None
    body_feature: str | None = None
    """Plan feature that some values of the body require."""
    paging: str | None = None
    """`both`, `forward`, `log` or None; the first two add limit, starting_after and (both) ending_before."""
    query: Mapping[str, Schema] = field(default_factory=dict)
    status: int = 200
    errors: tuple[str, ...] = ()
    agent: Tool | None = None
    example: Any = None
    dataset: str | None = None
    """The export file that contains everything the operation returns; if its path has an ID, for every ID."""
    apart: str | None = None
    """Reason why a list is not part of exports."""

    alone: bool = False
    """Whether the operation is compute-intensive: one request per organisation and a few per process run at a time."""

    body: Body[Any] | None = None
    if_match: bool = False
    keyless: bool = False
    """Whether a POST needs no Idempotency-Key."""
    encrypt_replay: bool = False
    """Whether the response contains a secret, so that its stored copy is encrypted."""
    preview: Mapping[str, Schema] = field(default_factory=dict)
    """Further properties of the `explain` preview, besides changes, events and jobs."""
    undo: Undoing | str | None = None
    """How a write is undone, or a sentence why it cannot be; None means undecided."""

    @cached_property
    def area(self) -> str:
        """The slug that the ID starts with."""
        return self.id.partition(".")[0]

    @cached_property
    def slug(self) -> str:
        """The ID in the characters allowed in names of types, tools and methods."""
        return self.id.replace(".", "_")

    @cached_property
    def path_parameters(self) -> tuple[str, ...]:
        """Names of the path parameters in order."""
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))

    @cached_property
    def writes(self) -> bool:
        """True if the operation changes data, and so supports dry run and is audited."""
        return self.method != "GET"

    @cached_property
    def reversible(self) -> bool:
        """True if the operation can be undone through the audit log."""
        return isinstance(self.undo, Undoing)

    @cached_property
    def streams(self) -> bool:
        """True if the response is an endless stream of server-sent events."""
        return isinstance(self, Stream)

    @cached_property
    def idempotent(self) -> bool:
        """True if an Idempotency-Key is required."""
        return self.method == "POST" and not self.keyless

    def __post_init__(self) -> None:
        """Complete the IDs, and reject an inconsistent row."""
        known = [
            (word, part) for word, part in pairwise(self.path.split("/")) if part.startswith("{") and word in _PREFIXES
        ]
        object.__setattr__(self, "ids", {part[1:-1]: _PREFIXES[word] for word, part in known} | dict(self.ids))
        if self.scope is not None and self.scope not in SCOPES:
            raise ValueError(f"{self.id}: unknown scope {self.scope}")
        if self.who not in WHO or self.rate not in RATES:
            raise ValueError(f"{self.id}: unknown who or rate")
        if self.body is not None and self.body.schema.get("additionalProperties") is not False:
            raise ValueError(f"{self.id}: the body schema is not closed")
        if unknown := set(self.ids.values()) - kernel_ids.PREFIXES:
            raise ValueError(f"{self.id}: unknown id prefixes {unknown}")
        if self.dataset and self.apart:
            raise ValueError(f"{self.id}: in an export and apart from it")
        if self.if_match and self.method != "PATCH":
            raise ValueError(f"{self.id}: If-Match belongs to PATCH")


@dataclass(frozen=True, kw_only=True)
class Read(Operation):
    """A GET from the database."""

    handler: Callable[[ReadContext[Any]], Awaitable[Reply]]
    agent: Tool | None = Tool()


@dataclass(frozen=True, kw_only=True)
class Write(Operation):
    """A change in one transaction, with its audit entry, events, jobs and stored response."""

    handler: Callable[[WriteContext[Any]], Awaitable[Reply]]
    rate: str = "write"


@dataclass(frozen=True, kw_only=True)
class DetachedRead(Operation):
    """A GET that waits or needs no database, without holding a connection."""

    handler: Callable[[DetachedContext[Any]], Awaitable[Reply]]
    agent: Tool | None = Tool()


@dataclass(frozen=True, kw_only=True)
class DetachedWrite(Operation):
    """A POST that reads, releases the connection, then contacts external systems; it stores nothing.

    The handler returns a function that is called after the connection is released.
    """

    handler: Callable[[WriteContext[Any]], Awaitable[Callable[[], Awaitable[Reply]]]]
    rate: str = "write"


@dataclass(frozen=True, kw_only=True)
class Stream(Operation):
    """Endless server-sent events."""

    handler: Callable[[StreamContext[Any]], Awaitable[Reply]]
    rate: str = "stream"


_WHO_SENTENCES = {
    "person": "Only a signed-in person may do this, not an API key or an app.",
    "member_session": "Only a member signed in to the console may do this.",
    "owner": "Only an owner, signed in as a person, may do this.",
}


def permit(operation: Operation, caller: Principal) -> None:
    """Check the caller. Raises PermissionDenied for kind of caller or scope, then FeatureUnavailable for the plan."""
    who, is_person = operation.who, caller.person or caller.session
    if (
        who != "any"
        and not {
            "person": is_person,
            "member_session": caller.session,
            "owner": is_person and caller.role == "owner",
        }[who]
    ):
        raise PermissionDenied(_WHO_SENTENCES[who])
    if operation.scope is not None and operation.scope not in caller.scopes:
        raise PermissionDenied(f"Your credential lacks the scope {operation.scope}. Use a key with this scope.")
    if operation.feature is not None and operation.feature not in caller.organisation.plan.features:
        raise FeatureUnavailable(
            f"Your organisation's plan ({caller.organisation.plan.code}) does not include {operation.feature}. Ask the operator for a larger plan."
        )


@dataclass(frozen=True, slots=True)
class Area:
    """Part of the service with its operations, jobs and ticks.

    `name` is the slug that the IDs of its operations start with. `service` creates its use cases, `jobs` the handlers by kind
    of job, `ticks` the periodic tasks of the leading scheduler; each gets the dependencies that its parameters name.
    `across` creates the use cases of an area that needs the services and operations of all others. `webhooks` are the path
    items of the requests that the area sends, for OpenAPI.
    """

    name: str
    title: str
    description: str
    service: Callable[..., Any]
    operations: tuple[Operation, ...]
    jobs: Mapping[str, Callable[..., Handler]] = field(default_factory=dict)
    ticks: Callable[..., Sequence[Tick]] = lambda: ()
    across: Callable[[Mapping[str, Any], Sequence[Operation]], Any] | None = None
    webhooks: Mapping[str, Callable[[Callable[[Any, str], Any]], Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Reject operations of other areas."""
        if foreign_ids := [row.id for row in self.operations if row.area != self.name]:
            raise ValueError(f"{self.name}: {foreign_ids} belong to another area")


def services_of(areas: Iterable[Area], dependencies: Dependencies) -> dict[str, Any]:
    """Return the use cases of every area by name."""
    listed = list(areas)
    services = {area.name: dependencies.call(area.service) for area in listed if area.across is None}
    operations = [row for area in listed for row in area.operations]
    across = {area.name: area.across(services, operations) for area in listed if area.across is not None}
    return services | across


def handlers_of(areas: Iterable[Area], dependencies: Dependencies) -> dict[str, Handler]:
    """Return the handlers of the areas' kinds of job."""
    return {kind: dependencies.call(maker) for area in areas for kind, maker in area.jobs.items()}
