"""Who reads the event log, and what of it (docs/conventions.md#licences)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from domain.events.model import OFF_THE_FEED, LoggedEvent
from domain.kernel.bounds import CHANGES_BYTES
from domain.kernel.tenancy import Tenant

GROUP_OF: Final = {
    "quantity": "stock",
    "incoming": "stock",
    "lead_time_days": "stock",
    "msrp": "retail",
    "map": "retail",
    "price": "retail",
    "compare_at": "retail",
    "cost": "trade",
}
"""An offer's fields by group; all others are `base`."""
NETWORK_GROUPS: Final = frozenset({"base", "retail"})
"""What a published catalogue grants to everybody."""


@dataclass(frozen=True, slots=True)
class Licence:
    """A tenant may read the network's share of another's catalogue, and of its offers these field groups."""

    owner: Tenant
    catalogue: str
    groups: frozenset[str]


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads its own events whole, and those of the catalogues that it holds licences for."""

    tenant: Tenant
    licences: tuple[Licence, ...] = ()


@dataclass(frozen=True, slots=True)
class EventFilter:
    """What a reader asks for; None means everything. `everything` adds the types that only webhooks carry."""

    types: frozenset[str] | None = None
    catalogues: frozenset[str] | None = None
    everything: bool = False

    @property
    def narrow(self) -> bool:
        """Whether it may leave out so much that finding anything takes a long look."""
        return self.types is not None or self.catalogues is not None

    def matches(self, event: LoggedEvent) -> bool:
        """Whether the event is asked for."""
        if not self.everything and event.type in OFF_THE_FEED:
            return False
        if self.types is not None and event.type not in self.types:
            return False
        return self.catalogues is None or event.catalogue in self.catalogues


ALL: Final = EventFilter(everything=True)


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Every event asked for up to `position`. `caught_up`: the log's high watermark is reached."""

    events: Sequence[LoggedEvent]
    position: int
    caught_up: bool


@dataclass(slots=True)
class ChangePage:
    """A page of the feed: the events' JSON, how many they are, and the position from which to go on.

    `caught_up`: at that position nothing more was to be had.
    """

    position: int
    count: int = 0
    bodies: list[bytes] = field(default_factory=list)
    caught_up: bool = False

    @property
    def full(self) -> bool:
        """Whether it has come to as many bytes as a page may have."""
        return sum([len(body) for body in self.bodies]) >= CHANGES_BYTES

    @property
    def body(self) -> bytes:
        """The events, separated by commas."""
        return b",".join(self.bodies)
