"""What a handler is given, by kind: everything is parsed, permitted and decoded before."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from adapters.wire.resource import Resource, View
from domain.access.model import Principal
from domain.kernel.paging import Page, PageRequest
from entrypoints.http.reply import Reply
from ports.unit_of_work import Tx

S = TypeVar("S")
R = TypeVar("R")


@dataclass(slots=True, kw_only=True)
class RequestContext(Generic[S]):
    """What every kind is given; `service` is the use cases of the operation's area."""

    service: S
    principal: Principal
    view: View
    ids: Mapping[str, str]
    query: Mapping[str, Any]
    """The filters given: no paging parameters; `date-time` ones are aware datetimes in UTC."""
    page_request: PageRequest
    base_url: str
    cursor: Callable[[str | None], str | None]
    """Signs a page's next key into the opaque cursor of this list."""
    version: str = ""
    """The Service-Version that the answer will be shaped for."""

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


@dataclass(slots=True, kw_only=True)
class ReadContext(RequestContext[S]):
    """Reads: each statement by itself, on a connection that is held until the reply."""

    tx: Tx


@dataclass(slots=True, kw_only=True)
class WriteContext(ReadContext[S]):
    """Writes: in a transaction. `command` is the decoded body."""

    command: Any = None
    expected_version: int | None = None
    """The version that If-Match names; None when any will do. The use case compares and raises PreconditionFailed."""


@dataclass(slots=True, kw_only=True)
class DetachedContext(RequestContext[S]):
    """Reads that hold no connection, because they wait or find all they need elsewhere."""

    idle: Callable[[], AbstractContextManager[None]]
    """While in it, the request only waits, and does not count as pressing the process."""


@dataclass(slots=True, kw_only=True)
class StreamContext(RequestContext[S]):
    """Streams."""

    last_event_id: str | None = None
