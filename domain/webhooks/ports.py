"""Webhook endpoints and deliveries in store."""

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
    """In a tenant's transaction. Lists are newest first. Workers are notified of what changes when it commits."""

    async def count(self) -> int:
        """Return how many endpoints there are; holds off others that are being added until the transaction ends."""
        ...

    async def get(self, id: str, *, lock: bool = False) -> Endpoint | None:
        """One endpoint; `lock` keeps others from changing it until the transaction ends."""
        ...

    async def add(self, endpoint: Endpoint, secrets: SealedSecrets, checkpoint: FeedPosition) -> None:
        """Keep a new endpoint, which gets events after the position `checkpoint`."""
        ...

    async def save(
        self, endpoint: Endpoint, *, expected_version: int | None = None, checkpoint: FeedPosition | None = None
    ) -> None:
        """Keep the new state, and where it goes on from, if given. Raises PreconditionFailed for another version."""
        ...

    async def remove(self, id: str) -> None:
        """Forget the endpoint and its secrets; its open deliveries fail."""
        ...

    async def page(self, page_request: PageRequest) -> Page[Endpoint]:
        """Return a page of the tenant's endpoints."""
        ...

    async def secrets(self, id: str) -> SealedSecrets | None:
        """Return the sealed secrets."""
        ...

    async def seal(self, id: str, secrets: SealedSecrets) -> None:
        """Replace the sealed secrets."""
        ...

    async def delivery(self, endpoint: str, id: str, *, lock: bool = False) -> Delivery | None:
        """One delivery of the endpoint."""
        ...

    async def deliveries(self, wanted: DeliveryFilter, page_request: PageRequest) -> Page[Delivery]:
        """Return a page of the deliveries that match the filter."""
        ...

    async def add_delivery(self, delivery: Delivery) -> None:
        """Have something sent that is no event of the log (a test)."""
        ...

    async def resend(self, delivery: Delivery, at: datetime) -> None:
        """Have a finished delivery sent again with a fresh schedule."""
        ...

    async def recover(self, endpoint: str, since: datetime, until: datetime, at: datetime, most: int) -> Recovery:
        """Have failed deliveries made in [since, until] sent again, the oldest first, each with a fresh schedule.

        As many as leave the endpoint with `most` open ones.
        """
        ...

    async def wake(self, id: str) -> None:
        """Have the endpoint's worker look at it anew once this is committed."""
        ...

    async def fail_open(self, endpoint: str, at: datetime) -> int:
        """Every open delivery fails (the endpoint was disabled); answers how many."""
        ...

    async def forecast(self, endpoint: Endpoint, since: datetime) -> Forecast:
        """Return what the endpoint would have got since then."""
        ...


@dataclass(frozen=True, slots=True)
class Subscriber:
    """An enabled endpoint with what delivering needs: secrets, the position up to which it has been served, plan."""

    tenant: Tenant
    endpoint: Endpoint
    secrets: SealedSecrets
    checkpoint: FeedPosition
    fat: bool
    """The plan includes fat payloads."""


@dataclass(slots=True)
class Progress:
    """What delivering came to since it was last recorded.

    `checkpoint`: (tenant, endpoint) to the position up to which every event has a delivery or needs none. `succeeded`: to
    the time of the last success. `failing`: to the first failure since, None once one succeeded.
    """

    deliveries: list[tuple[Tenant, Delivery]] = field(default_factory=list)
    checkpoint: dict[tuple[Tenant, str], FeedPosition] = field(default_factory=dict)
    succeeded: dict[tuple[Tenant, str], datetime] = field(default_factory=dict)
    failing: dict[tuple[Tenant, str], datetime | None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Return whether there is anything to record."""
        return bool(self.deliveries or self.checkpoint or self.succeeded or self.failing)


class DeliveryLog(Protocol):
    """Across tenants: what the worker that serves a shard of the endpoints needs."""

    async def subscribers(self, shards: Sequence[int]) -> Sequence[Subscriber]:
        """Return the enabled endpoints of these shards."""
        ...

    async def subscriber(self, tenant: Tenant, endpoint: str) -> Subscriber | None:
        """One endpoint; None when it is gone or disabled."""
        ...

    async def open(self, tenant: Tenant, endpoint: str) -> Sequence[Delivery]:
        """Its open deliveries without bodies and attempts (`made` says how many), by position."""
        ...

    async def known(self, tenant: Tenant, endpoint: str, after: FeedPosition) -> frozenset[tuple[bool, int]]:
        """Return the positions after `after` that already have a delivery; True with positions of the network log."""
        ...

    async def body(self, tenant: Tenant, delivery: str) -> bytes | None:
        """Return what was sent for the delivery."""
        ...

    async def trace(self, tenant: Tenant, run: str) -> str | None:
        """Return what the tenant's run was traced as; None when it was not, or is not known."""
        ...

    async def filed_under(self, tenant: Tenant, products: Sequence[str], categories: Sequence[str]) -> frozenset[str]:
        """Those of the products that are filed under or below one of the categories."""
        ...

    async def lapsed_rotations(self, now: datetime, limit: int) -> Sequence[tuple[Tenant, str]]:
        """Endpoints whose rotation is over and whose former secret is still kept, the longest over first."""
        ...

    async def record(self, progress: Progress) -> None:
        """Keep it all, in one transaction. Raises LeaseLost when the shards are no longer this worker's.

        A delivery's `attempts` are those since the last report, and are added once; a body is never taken away. What is
        finished in store stays so, unless this succeeded; of an endpoint that is not enabled nothing stays open, of one
        that is gone everything is dropped. What is given is read before the first wait.
        """
        ...


class Shards(Protocol):
    """Which parts of the endpoints this worker serves; never two workers the same part at a time."""

    async def rebalance(self) -> frozenset[int]:
        """Take part, and what is free up to a fair share; answers what is held. Raises LeaseLost when everything held was lost."""
        ...

    async def surplus(self) -> frozenset[int]:
        """Return what this worker holds beyond its fair share, and should `release` once nothing of it is in hand."""
        ...

    async def members(self) -> int:
        """Return how many workers take part; asking is not taking part."""
        ...

    async def release(self, shards: frozenset[int]) -> None:
        """Give these up."""
        ...

    async def close(self) -> None:
        """Give everything up."""
        ...


@dataclass(frozen=True, slots=True)
class DeliveryPlace:
    """Where endpoints lie: which of them this worker serves, and what became of their deliveries."""

    name: str
    shards: Shards
    log: DeliveryLog


class DeliveryPlaces(Protocol):
    """Every place is served by itself, so that one that is out of reach holds up no other."""

    async def current(self) -> Sequence[DeliveryPlace]:
        """Return the current places; a place is the same as long as its name is. Raises Unavailable."""
        ...

    async def members(self) -> int:
        """Return how many workers take part, where most do. Raises Unavailable."""
        ...


@dataclass(frozen=True, slots=True)
class Sent:
    """How one POST ended. `failure` is None when an answer came."""

    failure: AttemptFailure | None
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class Sender(Protocol):
    """POSTs to receivers, to vetted addresses only, over kept connections."""

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], *, livemode: bool, seconds: float) -> Sent:
        """Send, following no redirect; never raises for what a receiver does. Other ports than 80 and 443 in test mode."""
        ...


class PayloadRendering(Protocol):
    """What of the JSON that is POSTed is the wire's alone; what it says, domain/webhooks/payload.py does."""

    def whole(self, envelope: Mapping[str, Any]) -> bytes:
        """Encode a combined envelope, bounded like every event."""
        ...

    def fat(self, body: bytes, object: bytes | None) -> bytes:
        """Return the envelope with the resource's JSON as `data.object`; unchanged without one."""
        ...

    def shaped(self, body: bytes, version: str) -> bytes:
        """Return the body in the shape of the version (docs/conventions.md#versions)."""
        ...


class EndpointRendering(Protocol):
    """The resource that people read, and that events about an endpoint carry."""

    def __call__(self, endpoint: Endpoint, livemode: bool, now: datetime) -> Mapping[str, Any]:
        """Return the endpoint as a resource, without its secret."""
        ...
