"""What a handler is given, by kind: everything is parsed, permitted and decoded before."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from adapters.wire.cursors import Cursors
from adapters.wire.resource import Resource, View
from domain.access.model import Principal
from domain.kernel.paging import Page, PageRequest
from entrypoints.http.reply import Reply
from ports.unit_of_work import Tx

if TYPE_CHECKING:
    from entrypoints.http.request_state import RequestState

S = TypeVar("S")
R = TypeVar("R")


class RequestContext(Generic[S]):
    """What every kind is given; `service` is the use cases of the operation's area."""

    __slots__ = ("_cursors", "base_url", "now", "service", "state")

    def __init__(self, service: S, state: "RequestState", cursors: Cursors, base_url: str, now: datetime) -> None:
        self.service, self.state, self.base_url, self.now = service, state, base_url, now
        self._cursors = cursors

    @property
    def principal(self) -> Principal:
        """Who calls."""
        return self.state.caller

    @property
    def view(self) -> View:
        """As whom and when rows are looked at."""
        return View(self.state.caller.tenant, self.now)

    @property
    def ids(self) -> Mapping[str, str]:
        """The parameters in the path."""
        return self.state.match.ids

    @property
    def query(self) -> Mapping[str, Any]:
        """The filters given: no paging parameters; `date-time` ones are aware datetimes in UTC."""
        return self.state.query

    @property
    def page_request(self) -> PageRequest:
        """Which page is asked for."""
        return self.state.page_request

    @property
    def version(self) -> str:
        """The Service-Version that the answer will be shaped for."""
        return self.state.version

    def cursor(self, key: str | None) -> str | None:
        """A page's next key as the opaque cursor of this list."""
        return self._cursors.sign(self.state.cursor_context, key)

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
        return self.listing(page, lambda row: resource.render(row, self.view))

    def one(self, resource: Resource[R], row: R, **more: Any) -> Reply:
        """One resource, under its version if it has one; `more` are further properties."""
        return Reply(resource.render(row, self.view) | more, version=getattr(row, "version", None))

    def made(self, resource: Resource[R], row: R, **more: Any) -> Reply:
        """A resource that was made, with its address."""
        reply = self.one(resource, row, **more)
        reply.headers["Location"] = self.base_url + resource.path_of(row)
        return reply


class ReadContext(RequestContext[S]):
    """Reads: each statement by itself, on a connection that is held until the reply."""

    __slots__ = ("tx",)

    def __init__(
        self, service: S, state: "RequestState", cursors: Cursors, base_url: str, now: datetime, tx: Tx
    ) -> None:
        super().__init__(service, state, cursors, base_url, now)
        self.tx = tx


class WriteContext(ReadContext[S]):
    """Writes: in a transaction."""

    __slots__ = ("expected_version",)

    def __init__(
        self,
        service: S,
        state: "RequestState",
        cursors: Cursors,
        base_url: str,
        now: datetime,
        tx: Tx,
        expected_version: int | None,
    ) -> None:
        super().__init__(service, state, cursors, base_url, now, tx)
        self.expected_version = expected_version
        """The version that If-Match names; None when any will do. The use case compares, raising PreconditionFailed."""

    @property
    def command(self) -> Any:
        """The decoded body."""
        return self.state.command


class DetachedContext(RequestContext[S]):
    """Reads that hold no connection, because they wait or find all they need elsewhere."""

    __slots__ = ("idle",)

    def __init__(
        self,
        service: S,
        state: "RequestState",
        cursors: Cursors,
        base_url: str,
        now: datetime,
        idle: Callable[[], AbstractContextManager[None]],
    ) -> None:
        super().__init__(service, state, cursors, base_url, now)
        self.idle = idle
        """While in it, the request only waits, and does not count as pressing the process."""


class StreamContext(RequestContext[S]):
    """Streams."""

    __slots__ = ()

    @property
    def last_event_id(self) -> str | None:
        """Where a client that comes back had got to."""
        return self.state.request.headers.get("last-event-id")
