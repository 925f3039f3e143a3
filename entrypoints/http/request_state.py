"""One request on its way through the steps: what each step has found out so far."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from time import perf_counter
from typing import TYPE_CHECKING, Any

from domain.access.model import Principal
from domain.kernel.paging import PageRequest
from entrypoints.http.exchange import HeaderList, Request
from entrypoints.http.operation import Operation
from entrypoints.http.reply import Reply
from entrypoints.http.route import Route
from entrypoints.http.table import Match

if TYPE_CHECKING:
    from entrypoints.http.event_stream import EventStream

FIRST_PAGE = PageRequest()


@dataclass(slots=True)
class RequestState:
    """Filled in by the steps, in their order; what a step needs, an earlier one has set."""

    request: Request
    match: Match
    now: datetime
    started: float = field(default_factory=perf_counter)
    request_id: str = ""
    address: str = ""
    """The client's own address, behind trusted proxies."""
    credential: bytes = b""
    """The digest under which the credential is stored."""
    principal: Principal | None = None
    via: str | None = None
    """The way it came, where that is not the one its credential says."""
    place: str = ""
    """The address of what is no operation but shares the pipeline's way in and out."""
    relayed: bool = False
    """An operation was answered for it, which is logged by itself."""
    version: str = ""
    budget: HeaderList = field(default_factory=list)
    """The RateLimit headers, once the request has been charged."""
    query: Mapping[str, Any] = field(default_factory=dict)
    held: int = 0
    """Bytes of the body that are counted until the request is answered."""
    body: Any = None
    """JSON values; numbers that are not whole are Decimal."""
    command: Any = None
    """The body as the operation's command."""
    page_request: PageRequest = FIRST_PAGE
    cursor_context: bytes = b""
    idempotency_key: str | None = None
    dry_run: str | None = None
    """None, `true` or `explain`."""
    expected_versions: tuple[int, ...] | None = None
    """The versions that If-Match names, the newest first; None for `*` or no condition."""
    error_code: str | None = None
    stream: "EventStream | None" = None
    """What is answered instead of a body."""

    later: Callable[[], Awaitable[Reply]] | None = None
    """What is waited for once the change is committed."""

    @property
    def route(self) -> Route:
        """The route, after the step that refuses requests without one."""
        if self.match.route is None:
            raise LookupError("no route")
        return self.match.route

    @property
    def operation(self) -> Operation:
        """The operation of the route."""
        return self.route.operation

    @property
    def caller(self) -> Principal:
        """The principal, after authentication."""
        if self.principal is None:
            raise LookupError("not authenticated")
        return self.principal


Step = Callable[[RequestState], Awaitable[None] | None]
"""A step sets fields of the state or raises a DomainError; it answers an awaitable only when it must wait."""
