"""Operations of the API, their areas, and the contexts and replies of their handlers."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import pairwise
from typing import Any, Generic, TypeVar

from adapters.api_json.cursors import CursorSigner
from adapters.api_json.resource import Body, JsonResource
from domain.access.model import SCOPES, Principal
from domain.agents.model import AgentTool
from domain.agents.usecases.tools import ToolManifest
from domain.assistant.ports import ToolResult
from domain.audit.model import AuditAct
from domain.jobs.usecases.lane_processor import Handler
from domain.jobs.usecases.ticks import Tick
from domain.kernel import ids as kernel_ids
from domain.kernel.errors import FeatureUnavailable, PermissionDenied
from domain.kernel.paging import Page, PageRequest
from domain.kernel.resource import RenderContext
from domain.kernel.schema import id_schema, text
from domain.kernel.tenancy import AuditContext
from domain.people.usecases.sessions import ClientInfo
from entrypoints.dependencies import Dependencies
from entrypoints.operations.event_stream import ResponseStream
from ports.unit_of_work import Tx

PREVIEW_TYPE = b"application/vnd.furniops.preview+json"


@dataclass(slots=True)
class Reply:
    """Reply of an operation's handler, from which the HTTP response is built.

    Attributes:
        body: JSON value, or encoded bytes.
        status: HTTP status, if it differs from the status that the operation declares.
        headers: Further response headers.
        version: Version of the resource, which becomes part of the ETag.
        etag: Strong ETag. If it is None, the ETag is a hash of the body.
        etag_source: JSON value that is hashed for the ETag instead of a body with time-dependent parts.
        stream: Event stream that is sent instead of a body.
        complete_later: Function that computes the final reply, which replaces this one. It is called after the database
            connection is released, and may wait, for example for the effects of the committed change.
    """

    body: Any = None
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    version: int | None = None
    etag: str | None = None
    etag_source: Any = None
    stream: ResponseStream | None = None
    complete_later: Callable[[], Awaitable["Reply"]] | None = None


S = TypeVar("S")
R = TypeVar("R")


@dataclass(slots=True)
class RequestContext(Generic[S]):
    """Context of one request for the operation's handler. The request has been parsed, validated and authorised.

    Attributes:
        service: The use cases of the operation's area.
        principal: The caller.
        ids: The path parameters by name.
        query: The query parameters without those of paging; times are datetimes in UTC.
        page_request: The requested page.
        version: The Service-Version of the response.
        cursor_context: Encoded operation, tenant, IDs and filters. A cursor is valid only in the same context.
        cursors: Signs and verifies cursors.
        base_url: URL of the service.
        now: The time of the request.
    """

    service: S
    principal: Principal
    ids: Mapping[str, str]
    query: Mapping[str, Any]
    page_request: PageRequest
    version: str
    cursor_context: bytes
    cursors: CursorSigner
    base_url: str
    now: datetime

    @property
    def render_context(self) -> RenderContext:
        """Tenant and time of the request, on which the JSON of a resource depends."""
        return RenderContext(self.principal.tenant, self.now)

    def sign_cursor(self, key: str | None) -> str | None:
        """Return the signed cursor that contains the key of the next page; None if `key` is None."""
        return self.cursors.sign(self.cursor_context, key)

    def build_page_reply(self, page: Page[Any], render: Callable[[Any], Any]) -> Reply:
        """Return the reply with a page of a list, whose items `render` converts to JSON values."""
        return Reply(
            {
                "object": "list",
                "data": [render(item) for item in page.items],
                "has_more": page.has_more,
                "next_cursor": self.sign_cursor(page.next_key),
            }
        )

    def build_list_reply(self, resource: JsonResource[R], page: Page[R]) -> Reply:
        """Return the reply with a page of a list of resources."""
        reply = self.build_page_reply(page, lambda row: resource.render(row, self.render_context))
        if resource.etag_source is not None:
            reply.etag_source = reply.body | {"data": [resource.etag_source(item) for item in reply.body["data"]]}
        return reply

    def build_resource_reply(self, resource: JsonResource[R], row: R, **properties: Any) -> Reply:
        """Return the reply with the resource stored in `row`. `properties` are added to the resource's JSON."""
        body = resource.render(row, self.render_context) | properties
        etag_source = resource.etag_source(body) if resource.etag_source is not None else None
        return Reply(body, version=getattr(row, "version", None), etag_source=etag_source)

    def build_created_reply(self, resource: JsonResource[R], row: R, **properties: Any) -> Reply:
        """Return the reply with the created resource stored in `row`, and with the resource's URL in the header Location.

        `properties` are added to the resource's JSON.
        """
        reply = self.build_resource_reply(resource, row, **properties)
        reply.headers["Location"] = self.base_url + resource.build_path(row)
        return reply


@dataclass(slots=True)
class ReadContext(RequestContext[S]):
    """Context of an operation that reads from the database. Each statement of `tx` sees the newest data."""

    tx: Tx


@dataclass(slots=True)
class WriteContext(ReadContext[S]):
    """Context of an operation that changes data: `tx` is a transaction."""

    expected_version: int | None
    """Version in the header If-Match; None accepts any version. The use case compares it with the stored version."""

    command: Any
    """The request body, decoded by the operation's `body`."""

    client: ClientInfo
    """The client's IP address and User-Agent header, as in the request log."""

    audit_context: AuditContext
    """The request, for transactions that the handler begins after the request's own."""

    request_key: str
    """Key of the request for external systems, equal for repetitions with the same Idempotency-Key."""


@dataclass(slots=True)
class DetachedContext(RequestContext[S]):
    """Context of a read without a database connection, for an operation that waits or needs no database."""

    count_as_waiting: Callable[[], AbstractContextManager[None]]
    """Returns a context manager, within which the request counts as waiting and not as load of the process."""


@dataclass(slots=True)
class StreamContext(RequestContext[S]):
    """Context of the handler of an event stream."""

    last_event_id: str | None
    """Cursor of the last event that a reconnecting client received, from the header Last-Event-ID."""

    command: Any
    """The request body, decoded by the operation's `body`."""

    audit_context: AuditContext
    """The request, for transactions of the handler."""

    idempotency_key: str
    """The Idempotency-Key; empty if the operation requires none."""

    fingerprint: bytes
    """A digest of the request, which is equal for repetitions."""

    is_dry_run: bool
    """True if the handler checks the request without effects."""

    tools: ToolManifest
    """The tools for agents."""

    call_tool: Callable[[Principal, AgentTool, Mapping[str, Any], str | None, str | None], Awaitable[ToolResult]]
    """Calls a tool with arguments under an identity; the last arguments are the idempotency key and the kind of dry run."""


Schema = Mapping[str, Any]
CALLER_KINDS = ("any", "person", "member_session", "owner")
RATES = ("read", "write", "expensive", "export", "stream")
_PREFIX_BY_SEGMENT = {
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
    "claims": "vcl",
    "vendor-profiles": "vnd",
    "purchases": "crp",
    "conversations": "cnv",
    "memories": "mem",
    "agents": "agt",
    "proposals": "pro",
}
"""Prefix of the ID that follows a path segment, by segment: `src` in `/v1/sources/{id}`."""


@dataclass(frozen=True, slots=True)
class AgentToolSettings:
    """Settings of an operation that AI agents can call as a tool.

    Attributes:
        requires_approval: Whether a person must confirm each call of the tool.
        contacts_external_systems: Whether the tool contacts external systems, such as vendors or webhook endpoints.
    """

    requires_approval: bool = False
    contacts_external_systems: bool = False


@dataclass(frozen=True, slots=True)
class UndoSupport:
    """Description and function for undoing a write through the audit log.

    Attributes:
        description: One sentence that describes the effect of the undo.
        restore: Function that restores the previous state. It receives the area's service, the transaction and the
            recorded change.
        find_executed_operation: Function that returns the ID of the operation that the recorded change has executed, whose
            permission the undo also requires; None if the operation executes no other.
    """

    description: str
    restore: Callable[[Any, Tx, AuditAct], Awaitable[None]]
    find_executed_operation: Callable[[AuditAct], str] | None = None


@dataclass(frozen=True, kw_only=True)
class Operation:
    """Endpoint of the API, declared as a row of the operation table. Raises ValueError for inconsistent attributes.

    Attributes:
        id: The ID, such as `sources.create`.
        handler: Function that executes the operation and returns its reply.
        scope: The required scope; None if every credential may use the operation.
        reply: JSON schema of the response body; None for a response without a body.
        rate: The rate class, one of RATES.
        caller_kind: The required kind of caller, one of CALLER_KINDS.
        organisation_kind: The required kind of organisation, `retailer` or `vendor`; None for both.
        feature: The required plan feature.
        query: JSON schemas of the query parameters by name.
        status: HTTP status of a successful response.
        errors: Error codes in addition to those that list_error_codes derives.
        agent: Settings of the tool for AI agents; None if agents cannot call the operation.
        example: Example of the response body; by default, it is built from the schema.
        body: Schema and decoder of the request body.
        requires_if_match: Whether the header If-Match is required.
    """

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
    """ID prefixes by path parameter. Prefixes that follow from the preceding path segment are added."""
    path_schemas: Mapping[str, Schema] = field(default_factory=dict)
    """JSON schemas of path parameters that are no IDs, by name."""
    caller_kind: str = "any"
    organisation_kind: str | None = None
    feature: str | None = None
    body_feature: str | None = None
    """Plan feature that is required for some values of the body."""
    paging: str | None = None
    """Kind of list, or None. `forward` adds the parameters limit and starting_after, `both` also ending_before."""
    query: Mapping[str, Schema] = field(default_factory=dict)
    status: int = 200
    errors: tuple[str, ...] = ()
    agent: AgentToolSettings | None = None
    example: Any = None
    dataset: str | None = None
    """Name of the export file with everything that the operation returns, for all IDs in its path."""
    no_dataset_reason: str | None = None
    """One sentence with the reason why exports do not contain the list."""

    is_exclusive: bool = False
    """True if the operation is compute-intensive, so that an organisation can execute only one request at a time."""

    body: Body[Any] | None = None
    requires_if_match: bool = False
    ignores_idempotency_key: bool = False
    """True if the operation is a POST that ignores the header Idempotency-Key; other POST operations require this header."""
    encrypts_replay: bool = False
    """True if the response contains a secret, so that its stored copy is encrypted."""
    preview: Mapping[str, Schema] = field(default_factory=dict)
    """JSON schemas of the preview's properties besides changes, events and jobs."""
    undo: UndoSupport | str | None = None
    """Undo of a write, or a sentence with the reason why it cannot be undone; None for a read."""

    @cached_property
    def area(self) -> str:
        """Name of the operation's area, the part of the ID before the dot."""
        return self.id.partition(".")[0]

    @cached_property
    def slug(self) -> str:
        """The ID with underscores, as in names of types, tools and methods: `sources_create`."""
        return self.id.replace(".", "_")

    @cached_property
    def path_parameters(self) -> tuple[str, ...]:
        """Names of the path parameters in order."""
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))

    def build_path_schema(self, parameter: str) -> Schema:
        """Return the JSON schema of a path parameter."""
        if parameter in self.ids:
            return id_schema(self.ids[parameter])
        return self.path_schemas.get(parameter) or text(parameter)

    @cached_property
    def is_write(self) -> bool:
        """True unless the method is GET. A write supports dry runs, and changes data unless it is an ExternalCall."""
        return self.method != "GET"

    @cached_property
    def is_reversible(self) -> bool:
        """True if the operation can be undone through the audit log."""
        return isinstance(self.undo, UndoSupport)

    @cached_property
    def is_stream(self) -> bool:
        """True if the response is a stream of server-sent events."""
        return isinstance(self, StreamOperation)

    @cached_property
    def requires_idempotency_key(self) -> bool:
        """True if an Idempotency-Key is required."""
        return self.method == "POST" and not self.ignores_idempotency_key

    def __post_init__(self) -> None:
        """Add the ID prefixes that the path implies, and raise ValueError for inconsistent attributes."""
        known = [
            (word, part)
            for word, part in pairwise(self.path.split("/"))
            if part.startswith("{") and word in _PREFIX_BY_SEGMENT
        ]
        object.__setattr__(self, "ids", {part[1:-1]: _PREFIX_BY_SEGMENT[word] for word, part in known} | dict(self.ids))
        if self.scope is not None and self.scope not in SCOPES:
            raise ValueError(f"{self.id}: unknown scope {self.scope}")
        if self.caller_kind not in CALLER_KINDS or self.rate not in RATES:
            raise ValueError(f"{self.id}: unknown caller kind or rate class")
        if self.body is not None and self.body.schema.get("additionalProperties") is not False:
            raise ValueError(f"{self.id}: the body schema must have `additionalProperties: false`")
        if unknown := set(self.ids.values()) - kernel_ids.PREFIXES:
            raise ValueError(f"{self.id}: unknown ID prefixes {unknown}")
        if self.dataset and self.no_dataset_reason:
            raise ValueError(f"{self.id}: dataset and no_dataset_reason are mutually exclusive")
        if self.requires_if_match and self.method != "PATCH":
            raise ValueError(f"{self.id}: only PATCH operations can use If-Match")


@dataclass(frozen=True, kw_only=True)
class Read(Operation):
    """GET operation that reads from the database."""

    handler: Callable[[ReadContext[Any]], Awaitable[Reply]]
    agent: AgentToolSettings | None = AgentToolSettings()


@dataclass(frozen=True, kw_only=True)
class Write(Operation):
    """Operation that changes data, in one transaction with its audit entry, events, jobs and stored response."""

    handler: Callable[[WriteContext[Any]], Awaitable[Reply]]
    rate: str = "write"


@dataclass(frozen=True, kw_only=True)
class DetachedRead(Operation):
    """GET operation that holds no database connection, because it waits or needs no database."""

    handler: Callable[[DetachedContext[Any]], Awaitable[Reply]]
    agent: AgentToolSettings | None = AgentToolSettings()


@dataclass(frozen=True, kw_only=True)
class ExternalCall(Operation):
    """Operation that reads, releases the database connection, then contacts external systems.

    The handler returns the function that contacts the external systems, which is called after the connection is
    released. If the function changes something, a repeated call with the same `request_key` must have no further
    effect, because the response is stored for the Idempotency-Key only afterwards. In a dry run, the handler returns
    the reply itself, or a function that changes nothing.
    """

    handler: Callable[[WriteContext[Any]], Awaitable[Callable[[], Awaitable[Reply]] | Reply]]
    rate: str = "write"


@dataclass(frozen=True, kw_only=True)
class StreamOperation(Operation):
    """Operation whose response is a stream of server-sent events. The handler of a POST begins its own transactions."""

    handler: Callable[[StreamContext[Any]], Awaitable[Reply]]
    rate: str = "stream"


async def _refuse_call(_: Any) -> Any:
    raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class ConsoleAction(Operation):
    """Change that only pages of the console make, by use cases; declared so that the audit log can undo it."""

    path: str = ""
    summary: str = ""
    method: str = "POST"
    reply: Schema | None = None
    handler: Callable[[Any], Awaitable[Any]] = _refuse_call


_SENTENCE_BY_CALLER_KIND = {
    "person": "Only a signed-in person may do this, not an API key or an app.",
    "member_session": "Only a member signed in to the console may do this.",
    "owner": "Only an owner, signed in as a person, may do this.",
}


def check_caller(operation: Operation, caller: Principal) -> None:
    """Check that the caller may perform the operation.

    Raises:
        PermissionDenied: The kind of caller or organisation is not permitted, or the credential lacks the scope.
        FeatureUnavailable: The organisation's plan lacks the feature.
    """
    kind, is_person = operation.caller_kind, caller.is_personal_token or caller.is_console_session
    if (
        kind != "any"
        and not {
            "person": is_person,
            "member_session": caller.is_console_session,
            "owner": is_person and caller.role == "owner",
        }[kind]
    ):
        raise PermissionDenied(_SENTENCE_BY_CALLER_KIND[kind])
    if operation.scope is not None and operation.scope not in caller.scopes:
        raise PermissionDenied(f"Your credential lacks the scope {operation.scope}. Use a key with this scope.")
    if operation.organisation_kind not in (None, caller.organisation.kind):
        raise PermissionDenied(
            f"Only a {operation.organisation_kind} may do this. Your organisation is a {caller.organisation.kind}."
        )
    if operation.feature is not None and operation.feature not in caller.organisation.plan.features:
        raise FeatureUnavailable(
            f"Your organisation's plan ({caller.organisation.plan.code}) does not include {operation.feature}. Ask the operator for a larger plan."
        )


@dataclass(frozen=True, slots=True)
class Area:
    """Part of the service with its operations, jobs and ticks.

    The functions in `create_service`, `handler_factories` and `create_ticks` receive the dependencies whose types their parameters have.

    Attributes:
        name: First part of the IDs of the area's operations.
        title: Heading in the documentation.
        description: One sentence for the documentation.
        create_service: Function that creates the area's use cases.
        operations: The area's operations.
        console_actions: The area's changes that only the console makes, and that can be undone.
        handler_factories: Functions that create the handlers of jobs, by kind of job.
        create_ticks: Function that creates the periodic tasks of the leading scheduler.
        create_service_across_areas: Function that creates the use cases from the results of `create_service` of all areas, by name, and the
            operations and console actions of all areas; None if `create_service` creates them.
        webhook_builders: Functions that build the OpenAPI path item of the webhook request, by event type.
    """

    name: str
    title: str
    description: str
    create_service: Callable[..., Any]
    operations: tuple[Operation, ...]
    console_actions: tuple[ConsoleAction, ...] = ()
    handler_factories: Mapping[str, Callable[..., Handler]] = field(default_factory=dict)
    create_ticks: Callable[..., Sequence[Tick]] = lambda: ()
    create_service_across_areas: Callable[[Mapping[str, Any], Sequence[Operation]], Any] | None = None
    webhook_builders: Mapping[str, Callable[[Callable[[Any, str], Any]], Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ValueError if an operation belongs to another area."""
        if foreign_ids := [row.id for row in (*self.operations, *self.console_actions) if row.area != self.name]:
            raise ValueError(f"{self.name}: {foreign_ids} belong to another area")


def create_services(areas: Iterable[Area], dependencies: Dependencies) -> dict[str, Any]:
    """Create the use cases of all areas, and return them by name of the area."""
    areas = list(areas)
    services: dict[str, Any] = {area.name: dependencies.call(area.create_service) for area in areas}
    operations = [row for area in areas for row in (*area.operations, *area.console_actions)]
    for area in areas:
        if area.create_service_across_areas is not None:
            services[area.name] = area.create_service_across_areas(services, operations)
    return services


def create_handlers(areas: Iterable[Area], dependencies: Dependencies) -> dict[str, Handler]:
    """Create the job handlers of all areas, and return them by kind of job."""
    return {kind: dependencies.call(factory) for area in areas for kind, factory in area.handler_factories.items()}
