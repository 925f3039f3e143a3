"""What an operation is: the row that drives routing, access, limits, validation and description, the areas that have them, and what their handlers are given and answer."""

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
    """`body` is a JSON value, or bytes already encoded. `version` makes the versioned ETag.

    `etag` is the strong validator's text when it is known without hashing the body; `etag_source` is hashed in place of the body,
    where the body has parts that change with the time alone. `stream` is sent instead of a body.
    `later`, of a write, waits a little for what it set going, once that is committed and no connection is held: what it gives is
    answered and kept in place of this. Of a read, it computes the answer once no connection is held.
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
    """What every kind is given: all is parsed, permitted and decoded before.

    Attributes:
        service: The use cases of the operation's area.
        principal: Who calls.
        ids: The parameters in the path.
        query: The filters given: no paging parameters; `date-time` ones are aware datetimes in UTC.
        page_request: Which page is asked for.
        version: The Service-Version that the answer will be shaped for.

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
        """As whom and when rows are looked at."""
        return View(self.principal.tenant, self.now)

    def cursor(self, key: str | None) -> str | None:
        """A page's next key as the opaque cursor of this list."""
        return self.cursors.sign(self.cursor_context, key)

    def listing(self, page: Page[Any], render: Callable[[Any], Any]) -> Reply:
        """The envelope of a list around a page."""
        return Reply(
            {
                "object": "list",
                "data": [render(item) for item in page.items],
                "has_more": page.has_more,
                "next_cursor": self.cursor(page.next_key),
            }
        )

    def list(self, resource: Resource[R], page: Page[R]) -> Reply:
        """A page of resources."""
        reply = self.listing(page, lambda row: resource.render(row, self.view))
        if resource.etag_source is not None:
            reply.etag_source = reply.body | {"data": [resource.etag_source(item) for item in reply.body["data"]]}
        return reply

    def one(self, resource: Resource[R], row: R, **more: Any) -> Reply:
        """One resource, under its version if it has one; `more` are further properties."""
        body = resource.render(row, self.view) | more
        etag_source = resource.etag_source(body) if resource.etag_source is not None else None
        return Reply(body, version=getattr(row, "version", None), etag_source=etag_source)

    def made(self, resource: Resource[R], row: R, **more: Any) -> Reply:
        """A resource that was made, with its address."""
        reply = self.one(resource, row, **more)
        reply.headers["Location"] = self.base_url + resource.path_of(row)
        return reply


@dataclass(slots=True)
class ReadContext(RequestContext[S]):
    """Reads: each statement by itself, on a connection that is held until the reply."""

    tx: Tx


@dataclass(slots=True)
class WriteContext(ReadContext[S]):
    """Writes: in a transaction."""

    expected_version: int | None
    """The version that If-Match names; None when any will do. The use case compares and raises PreconditionFailed."""

    command: Any
    """The decoded body."""


@dataclass(slots=True)
class DetachedContext(RequestContext[S]):
    """Reads that hold no connection, because they wait or find all they need elsewhere."""

    idle: Callable[[], AbstractContextManager[None]]
    """While in it, the request only waits, and does not count as pressing the process."""


@dataclass(slots=True)
class StreamContext(RequestContext[S]):
    """Streams."""

    last_event_id: str | None
    """Where a client that comes back had got to."""


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
"""The prefix of the ids that follow a word in a path."""


@dataclass(frozen=True, slots=True)
class Tool:
    """The operation is offered to AI agents, as reads are unless they say otherwise; `approval` has a person confirm each call.

    `outside`: it makes the service ask or tell others, such as vendors' systems and receivers of events.
    """

    approval: bool = False
    outside: bool = False


@dataclass(frozen=True, slots=True)
class Undoing:
    """A write can be undone through the audit log: `how` says what that does, in a sentence.

    `back` is given the area's service, the transaction and the act, and brings what that changed to what it was before.
    """

    how: str
    back: Callable[[Any, Tx, Act], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One endpoint. Wrong rows are refused when the module is imported."""

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
    """The prefix of each id in the path; those that the word before it tells are added."""
    who: str = "any"
    feature: str | None = None
    body_feature: str | None = None
    """What the plan must include for something that the body may ask for."""
    paging: str | None = None
    """`both`, `forward`, `log` or None; the first two add limit, starting_after and (both) ending_before."""
    query: Mapping[str, Schema] = field(default_factory=dict)
    status: int = 200
    errors: tuple[str, ...] = ()
    agent: Tool | None = None
    example: Any = None
    dataset: str | None = None
    """The file of an organisation's export that holds all that the operation answers; of one with an id in its path, of every one."""
    apart: str | None = None
    """Why a list is in no such file."""

    alone: bool = False
    """Much is computed: an organisation has one such request carried out at a time, a process a few; the others wait."""

    body: Body[Any] | None = None
    if_match: bool = False
    keyless: bool = False
    """A POST that needs no Idempotency-Key."""
    encrypt_replay: bool = False
    """The answer tells a secret: what is kept of it for repeating is encrypted."""
    preview: Mapping[str, Schema] = field(default_factory=dict)
    """What `explain` tells beside changes, events and jobs."""
    undo: Undoing | str | None = None
    """Of a write, how it is undone, or a sentence why it cannot be. None means that nobody has thought of it."""

    @cached_property
    def area(self) -> str:
        """The slug that the id starts with."""
        return self.id.partition(".")[0]

    @cached_property
    def slug(self) -> str:
        """The id in the characters that names of types, tools and methods may have."""
        return self.id.replace(".", "_")

    @cached_property
    def path_parameters(self) -> tuple[str, ...]:
        """The names between braces in the path, in their order."""
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))

    @cached_property
    def writes(self) -> bool:
        """Whether the operation changes anything (and so honours dry run and is audited)."""
        return self.method != "GET"

    @cached_property
    def reversible(self) -> bool:
        """Whether what it does can be undone through the audit log."""
        return isinstance(self.undo, Undoing)

    @cached_property
    def streams(self) -> bool:
        """Whether it answers server-sent events without an end."""
        return isinstance(self, Stream)

    @cached_property
    def idempotent(self) -> bool:
        """Whether an Idempotency-Key is required."""
        return self.method == "POST" and not self.keyless

    def __post_init__(self) -> None:
        """Complete the ids, and refuse a row that contradicts itself."""
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
    """A GET out of the store."""

    handler: Callable[[ReadContext[Any]], Awaitable[Reply]]
    agent: Tool | None = Tool()


@dataclass(frozen=True, kw_only=True)
class Write(Operation):
    """A change, in one transaction with its audit entry, events, jobs and stored answer."""

    handler: Callable[[WriteContext[Any]], Awaitable[Reply]]
    rate: str = "write"


@dataclass(frozen=True, kw_only=True)
class DetachedRead(Operation):
    """A GET that waits, or finds all it needs elsewhere, with no connection held."""

    handler: Callable[[DetachedContext[Any]], Awaitable[Reply]]
    agent: Tool | None = Tool()


@dataclass(frozen=True, kw_only=True)
class DetachedWrite(Operation):
    """Reads what is needed, lets the connection go, then reaches out; it stores nothing (trying a source).

    The handler answers what is to be done once the connection is let go.
    """

    handler: Callable[[WriteContext[Any]], Awaitable[Callable[[], Awaitable[Reply]]]]
    rate: str = "write"


@dataclass(frozen=True, kw_only=True)
class Stream(Operation):
    """Server-sent events without an end."""

    handler: Callable[[StreamContext[Any]], Awaitable[Reply]]
    rate: str = "stream"


_WHO_SENTENCES = {
    "person": "Only a person's own sign-in may do this, not a key or an app.",
    "member_session": "Only a member signed in to the console may do this.",
    "owner": "Only an owner, signed in as a person, may do this.",
}


def permit(operation: Operation, caller: Principal) -> None:
    """Raises PermissionDenied for who or scope, FeatureUnavailable for the plan, in this order."""
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
        raise PermissionDenied(
            f"Your credential lacks the scope {operation.scope}. Use a key that has it, or have one made."
        )
    if operation.feature is not None and operation.feature not in caller.organisation.plan.features:
        raise FeatureUnavailable(
            f"Your organisation's plan ({caller.organisation.plan.code}) does not include {operation.feature}. A larger plan does: ask the operator."
        )


@dataclass(frozen=True, slots=True)
class Area:
    """`name` is the slug that the ids of its operations start with; `service` makes its use cases, once a process.

    `across` makes them of an area that works through all others: of their services and the whole table.

    `jobs` make the handlers of its kinds of job, `ticks` what the leading scheduler does for it now and then; all three are given the parts that their parameters name. `webhooks` are the requests that it sends to others, as OpenAPI has them.
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
        """Refuse operations of other areas."""
        if strange := [row.id for row in self.operations if row.area != self.name]:
            raise ValueError(f"{self.name}: {strange} are another area's")


def services_of(areas: Iterable[Area], dependencies: Dependencies) -> dict[str, Any]:
    """The use cases of every area, by its name."""
    listed = list(areas)
    services = {area.name: dependencies.call(area.service) for area in listed if area.across is None}
    operations = [row for area in listed for row in area.operations]
    across = {area.name: area.across(services, operations) for area in listed if area.across is not None}
    return services | across


def handlers_of(areas: Iterable[Area], dependencies: Dependencies) -> dict[str, Handler]:
    """The handlers of the areas' kinds of job."""
    return {kind: dependencies.call(maker) for area in areas for kind, maker in area.jobs.items()}
