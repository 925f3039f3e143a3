"""The row of the operation table: everything that routing, access, limits, validation, docs and tools need to know.

There are five kinds, by how the handler is run: `Read` and `Write` (in a unit of work), `DetachedRead` and
`DetachedWrite` (no connection is held while they wait or reach out), and `Stream`.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from adapters.wire.resource import Body
from domain.access.model import SCOPES
from domain.audit.model import Act
from domain.kernel import ids as kernel_ids
from entrypoints.http.reply import Reply
from entrypoints.http.request_context import DetachedContext, ReadContext, StreamContext, WriteContext
from ports.unit_of_work import Tx

Schema = Mapping[str, Any]
WHO: Final = ("any", "person", "member_session", "owner")
RATES: Final = ("read", "write", "expensive", "export", "stream")


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

    @property
    def area(self) -> str:
        """The slug that the id starts with."""
        return self.id.partition(".")[0]

    @property
    def path_parameters(self) -> tuple[str, ...]:
        """The names between braces in the path, in their order."""
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))

    @property
    def writes(self) -> bool:
        """Whether the operation changes anything (and so honours dry run and is audited)."""
        return self.method != "GET"

    @property
    def reversible(self) -> bool:
        """Whether what it does can be undone through the audit log."""
        return isinstance(self.undo, Undoing)

    @property
    def streams(self) -> bool:
        """Whether it answers server-sent events without an end."""
        return isinstance(self, Stream)

    @property
    def idempotent(self) -> bool:
        """Whether an Idempotency-Key is required."""
        return self.method == "POST" and not self.keyless

    def __post_init__(self) -> None:
        """Refuse a row that contradicts itself."""
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
