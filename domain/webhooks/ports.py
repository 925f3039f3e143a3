"""Storage of endpoints and deliveries, assignment of shards, and sending."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from domain.changes.model import FeedPosition
from domain.kernel.paging import Page, PageRequest
from domain.kernel.tenancy import Tenant
from domain.webhooks.model import (
    AttemptFailure,
    Delivery,
    DeliveryFilter,
    Endpoint,
    Forecast,
    Recovery,
    SealedSecrets,
)


class WebhookStore(Protocol):
    """Endpoints and deliveries in a tenant's transaction.

    Lists are newest first. Workers are notified of changes at the commit.
    """

    async def count(self) -> int:
        """Return the number of endpoints, and lock additions until the transaction ends."""
        ...

    async def get(self, id: str, *, lock: bool = False) -> Endpoint | None:
        """Return an endpoint, or None; `lock` locks it until the transaction ends."""
        ...

    async def add(self, endpoint: Endpoint, secrets: SealedSecrets, checkpoint: FeedPosition) -> None:
        """Store a new endpoint, which receives events after the position `checkpoint`."""
        ...

    async def save(
        self, endpoint: Endpoint, *, expected_version: int | None = None, checkpoint: FeedPosition | None = None
    ) -> None:
        """Store the changed endpoint and its checkpoint, if given. Raises PreconditionFailed for another version."""
        ...

    async def remove(self, id: str) -> None:
        """Delete the endpoint and its secrets; its open deliveries fail."""
        ...

    async def page(self, page_request: PageRequest) -> Page[Endpoint]:
        """Return a page of the tenant's endpoints."""
        ...

    async def secrets(self, id: str) -> SealedSecrets | None:
        """Return the sealed secrets, or None."""
        ...

    async def seal(self, id: str, secrets: SealedSecrets) -> None:
        """Replace the sealed secrets."""
        ...

    async def delivery(self, endpoint: str, id: str, *, lock: bool = False) -> Delivery | None:
        """Return a delivery of the endpoint, or None."""
        ...

    async def deliveries(self, wanted: DeliveryFilter, page_request: PageRequest) -> Page[Delivery]:
        """Return a page of the matching deliveries."""
        ...

    async def add_delivery(self, delivery: Delivery) -> None:
        """Queue a delivery without an event in the log (a test)."""
        ...

    async def resend(self, delivery: Delivery, at: datetime) -> None:
        """Queue a finished delivery again with a new schedule."""
        ...

    async def recover(self, endpoint: str, since: datetime, until: datetime, at: datetime, most: int) -> Recovery:
        """Requeue failed deliveries created in [since, until], oldest first, each with a new schedule.

        The endpoint gets at most `most` open deliveries.
        """
        ...

    async def wake(self, id: str) -> None:
        """Notify the endpoint's worker at the commit."""
        ...

    async def fail_open(self, endpoint: str, at: datetime) -> int:
        """Fail all open deliveries of a disabled endpoint; return their number."""
        ...

    async def forecast(self, endpoint: Endpoint, since: datetime) -> Forecast:
        """Return what the endpoint would have received since then."""
        ...


@dataclass(frozen=True, slots=True)
class Subscriber:
    """An enabled endpoint with its secrets, checkpoint and plan."""

    tenant: Tenant
    endpoint: Endpoint
    secrets: SealedSecrets
    checkpoint: FeedPosition
    fat: bool
    """Whether the plan includes fat payloads."""


@dataclass(slots=True)
class Progress:
    """Results of delivering since the last record.

    `checkpoint` maps (tenant, endpoint) to the position up to which every event has a delivery or needs none,
    `succeeded` to the last success, and `failing` to the first failure since, None after a success.
    """

    deliveries: list[tuple[Tenant, Delivery]] = field(default_factory=list)
    checkpoint: dict[tuple[Tenant, str], FeedPosition] = field(default_factory=dict)
    succeeded: dict[tuple[Tenant, str], datetime] = field(default_factory=dict)
    failing: dict[tuple[Tenant, str], datetime | None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Return whether there is anything to record."""
        return bool(self.deliveries or self.checkpoint or self.succeeded or self.failing)


class DeliveryLog(Protocol):
    """Endpoints and deliveries across tenants, for the worker of a shard."""

    async def subscribers(self, shards: Sequence[int]) -> Sequence[Subscriber]:
        """Return the enabled endpoints of these shards."""
        ...

    async def subscriber(self, tenant: Tenant, endpoint: str) -> Subscriber | None:
        """Return an endpoint; None if it is deleted or disabled."""
        ...

    async def open(self, tenant: Tenant, endpoint: str) -> Sequence[Delivery]:
        """Return its open deliveries by position, without bodies and attempts (`made` is their number)."""
        ...

    async def known(self, tenant: Tenant, endpoint: str, after: FeedPosition) -> frozenset[tuple[bool, int]]:
        """Return the positions after `after` that have a delivery; True marks those of the network log."""
        ...

    async def body(self, tenant: Tenant, delivery: str) -> bytes | None:
        """Return the body that was sent for the delivery, or None."""
        ...

    async def trace(self, tenant: Tenant, run: str) -> str | None:
        """Return the trace context of the tenant's run, or None."""
        ...

    async def filed_under(self, tenant: Tenant, products: Sequence[str], categories: Sequence[str]) -> frozenset[str]:
        """Return the products that are in or below one of the categories."""
        ...

    async def lapsed_rotations(self, now: datetime, limit: int) -> Sequence[tuple[Tenant, str]]:
        """Return endpoints with ended rotations whose former secret is still stored, longest ended first."""
        ...

    async def record(self, progress: Progress) -> None:
        """Store the progress in one transaction.

        Raises LeaseLost if another worker holds the shards. `attempts` are those since the last record and are added
        once; bodies are never removed. A finished delivery remains so, unless this one succeeded. Deliveries of
        disabled endpoints do not remain open, and those of deleted ones are dropped. The argument is read before the
        first await.
        """
        ...


class Shards(Protocol):
    """Assignment of endpoints' shards to workers, each to at most one."""

    async def rebalance(self) -> frozenset[int]:
        """Join, and take free shards up to a fair share; return those held.

        Raises LeaseLost if all held ones were lost.
        """
        ...

    async def surplus(self) -> frozenset[int]:
        """Return the shards held beyond a fair share, to be released once their work has ended."""
        ...

    async def members(self) -> int:
        """Return the number of workers, without joining."""
        ...

    async def release(self, shards: frozenset[int]) -> None:
        """Release these shards."""
        ...

    async def close(self) -> None:
        """Release all shards and leave."""
        ...


@dataclass(frozen=True, slots=True)
class DeliveryPlace:
    """A database that holds endpoints, with the assignment of its shards and its deliveries."""

    name: str
    shards: Shards
    log: DeliveryLog


class DeliveryPlaces(Protocol):
    """The databases that hold endpoints, each served independently of the others."""

    async def current(self) -> Sequence[DeliveryPlace]:
        """Return the present databases; each remains the same while its name does. Raises Unavailable."""
        ...

    async def members(self) -> int:
        """Return the maximum number of workers of any database. Raises Unavailable."""
        ...


@dataclass(frozen=True, slots=True)
class Sent:
    """Outcome of one POST. `failure` is None if a response came."""

    failure: AttemptFailure | None
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class Sender(Protocol):
    """HTTP client for receivers that connects to permitted addresses only and reuses connections."""

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], *, livemode: bool, seconds: float) -> Sent:
        """Send without following redirects; never raises because of a receiver.

        Test mode permits ports other than 80 and 443.
        """
        ...


class PayloadRendering(Protocol):
    """Encoding of payloads, whose contents domain/webhooks/payload.py determines."""

    def whole(self, envelope: Mapping[str, Any]) -> bytes:
        """Return a combined envelope's bytes, limited in size as every event's."""
        ...

    def fat(self, body: bytes, object: bytes | None) -> bytes:
        """Return the envelope with the resource's JSON as `data.object`, or unchanged without one."""
        ...

    def shaped(self, body: bytes, version: str) -> bytes:
        """Return the body in the shape of that dated version (docs/conventions.md#versions)."""
        ...


class EndpointRendering(Protocol):
    """Rendering of an endpoint as a resource, for responses and events."""

    def __call__(self, endpoint: Endpoint, livemode: bool, now: datetime) -> Mapping[str, Any]:
        """Return the endpoint's resource without its secret."""
        ...
