"""What handlers answer."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from entrypoints.http.event_stream import EventStream


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
    stream: "EventStream | None" = None
    later: Callable[[], Awaitable["Reply"]] | None = None
