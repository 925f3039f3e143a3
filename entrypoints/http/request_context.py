"""What a handler is given, by kind: everything is parsed, permitted and decoded before."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from adapters.wire.cursors import Cursors
from adapters.wire.resource import Resource
from domain.access.model import Principal
from domain.kernel.paging import Page, PageRequest
from domain.kernel.resource import View
from entrypoints.http.reply import Reply
from ports.unit_of_work import Tx

if TYPE_CHECKING:
    from entrypoints.http.request_state import RequestState

S = TypeVar("S")
R = TypeVar("R")


@dataclass(slots=True)
class RequestContext(Generic[S]):
    """What every kind is given; `service` is the use cases of the operation's area."""

    service: S
    state: "RequestState"
    cursors: Cursors
    base_url: str
    now: datetime

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
        return self.cursors.sign(self.state.cursor_context, key)

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

    @property
    def command(self) -> Any:
        """The decoded body."""
        return self.state.command


@dataclass(slots=True)
class DetachedContext(RequestContext[S]):
    """Reads that hold no connection, because they wait or find all they need elsewhere."""

    idle: Callable[[], AbstractContextManager[None]]
    """While in it, the request only waits, and does not count as pressing the process."""


@dataclass(slots=True)
class StreamContext(RequestContext[S]):
    """Streams."""

    @property
    def last_event_id(self) -> str | None:
        """Where a client that comes back had got to."""
        return self.state.request.headers.get("last-event-id")
