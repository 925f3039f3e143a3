"""Ports of webhooks: storage of endpoints and deliveries, assignment of shards to workers, and sending."""

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
    EncryptedSecrets,
    Endpoint,
    Forecast,
    Recovery,
)


class WebhookStore(Protocol):
    """Storage of endpoints and deliveries in a tenant's transaction. At the commit, workers are notified of changes."""

    async def count(self) -> int:
        """Return the tenant's number of endpoints; other transactions cannot add endpoints until this one ends."""
        ...

    async def get(self, id: str, *, lock: bool = False) -> Endpoint | None:
        """Return an endpoint, or None; `lock` locks it until the transaction ends."""
        ...

    async def add(self, endpoint: Endpoint, secrets: EncryptedSecrets, checkpoint: FeedPosition) -> None:
        """Store a new endpoint with its secrets; the endpoint receives events after the position `checkpoint`."""
        ...

    async def save(
        self, endpoint: Endpoint, *, expected_version: int | None = None, checkpoint: FeedPosition | None = None
    ) -> None:
        """Store a changed endpoint.

        Args:
            endpoint: The endpoint.
            expected_version: Version that must be stored; None for any.
            checkpoint: Position after which the endpoint receives events; None for no change.

        Raises:
            PreconditionFailed: The stored version is not `expected_version`.
        """
        ...

    async def remove(self, id: str) -> None:
        """Delete the endpoint and its secrets, and mark its open deliveries as failed."""
        ...

    async def page(self, page_request: PageRequest) -> Page[Endpoint]:
        """Return a page of the tenant's endpoints, newest first."""
        ...

    async def get_secrets(self, id: str) -> EncryptedSecrets | None:
        """Return the endpoint's encrypted secrets; None if the endpoint does not exist."""
        ...

    async def replace_secrets(self, id: str, secrets: EncryptedSecrets) -> None:
        """Replace the endpoint's encrypted secrets."""
        ...

    async def get_delivery(self, endpoint: str, id: str, *, lock: bool = False) -> Delivery | None:
        """Return a delivery of the endpoint, or None; `lock` locks it until the transaction ends."""
        ...

    async def list_deliveries(self, wanted: DeliveryFilter, page_request: PageRequest) -> Page[Delivery]:
        """Return a page of the matching deliveries, newest first."""
        ...

    async def add_delivery(self, delivery: Delivery) -> None:
        """Store a new delivery of a test event, which is not in the log."""
        ...

    async def requeue(self, delivery: Delivery, at: datetime) -> None:
        """Queue a finished delivery again, with a new retry schedule that starts at `at`."""
        ...

    async def recover(self, endpoint: str, since: datetime, until: datetime, at: datetime, max_open: int) -> Recovery:
        """Requeue failed deliveries of the endpoint, oldest first, with new retry schedules.

        Args:
            endpoint: ID of the endpoint.
            since: Start of the range of creation times.
            until: End of the range, included.
            at: When the retry schedules start.
            max_open: Maximum number of the endpoint's open deliveries, including deliveries that were open before.
        """
        ...

    async def notify_worker(self, id: str) -> None:
        """Notify, at the commit, the worker that serves the endpoint."""
        ...

    async def fail_open_deliveries(self, endpoint: str, at: datetime) -> int:
        """Mark all open deliveries of the endpoint as failed; return their number."""
        ...

    async def compute_forecast(self, endpoint: Endpoint, since: datetime) -> Forecast:
        """Return a forecast of the endpoint's deliveries, computed from the matching events since `since`."""
        ...


@dataclass(frozen=True, slots=True)
class Subscriber:
    """Enabled endpoint with the data that a worker needs to serve it.

    Attributes:
        checkpoint: Position in the organisation's log and the network log (events of published catalogues), up to which
            all necessary deliveries are recorded.
        includes_fat_payloads: Whether the organisation's plan includes fat payloads.
    """

    tenant: Tenant
    endpoint: Endpoint
    secrets: EncryptedSecrets
    checkpoint: FeedPosition
    includes_fat_payloads: bool


@dataclass(slots=True)
class DeliveryProgress:
    """Unrecorded results of deliveries. The keys of the mappings are tenants and IDs of endpoints.

    Attributes:
        deliveries: Changed deliveries.
        checkpoints: Position up to which all necessary deliveries are recorded (`Subscriber.checkpoint`).
        last_successes: Time of the endpoint's last success.
        failing_since: Time of the endpoint's first failure since the last success; None after a success.
    """

    deliveries: list[tuple[Tenant, Delivery]] = field(default_factory=list)
    checkpoints: dict[tuple[Tenant, str], FeedPosition] = field(default_factory=dict)
    last_successes: dict[tuple[Tenant, str], datetime] = field(default_factory=dict)
    failing_since: dict[tuple[Tenant, str], datetime | None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Return whether there are results to record."""
        return bool(self.deliveries or self.checkpoints or self.last_successes or self.failing_since)


class DeliveryStore(Protocol):
    """Storage of endpoints and deliveries of all tenants, for workers that serve shards of endpoints."""

    async def list_subscribers(self, shards: Sequence[int]) -> Sequence[Subscriber]:
        """Return the enabled endpoints of these shards."""
        ...

    async def get_subscriber(self, tenant: Tenant, endpoint: str) -> Subscriber | None:
        """Return an endpoint if it is enabled, or None."""
        ...

    async def list_open(self, tenant: Tenant, endpoint: str) -> Sequence[Delivery]:
        """Return the endpoint's open deliveries in order of their positions.

        Bodies and attempts are omitted; `attempts_made` has the number of attempts.
        """
        ...

    async def list_known_positions(
        self, tenant: Tenant, endpoint: str, after: FeedPosition
    ) -> frozenset[tuple[bool, int]]:
        """Return the positions after `after` whose events already have a delivery to the endpoint.

        Each is a pair: whether the position is in the network log (events of published catalogues), and the position.
        """
        ...

    async def get_body(self, tenant: Tenant, delivery: str) -> bytes | None:
        """Return the body that was sent in earlier attempts of the delivery, or None."""
        ...

    async def get_trace_context(self, tenant: Tenant, run: str) -> str | None:
        """Return the trace context of the tenant's run, as a traceparent header, or None."""
        ...

    async def filter_by_categories(
        self, tenant: Tenant, products: Sequence[str], categories: Sequence[str]
    ) -> frozenset[str]:
        """Return the products that are in one of the categories or below one."""
        ...

    async def list_ended_rotations(self, now: datetime, limit: int) -> Sequence[tuple[Tenant, str]]:
        """Return endpoints whose secret rotation has ended but is still stored, earliest end first."""
        ...

    async def record_progress(self, progress: DeliveryProgress) -> None:
        """Store the results in one transaction; the argument is read before the first await.

        The attempts of deliveries are added to the stored ones. A finished delivery remains finished unless the new
        result is a success. Deliveries of disabled endpoints do not remain open. Deliveries of deleted endpoints are
        ignored.

        Raises:
            LeaseLost: Another worker serves the shards.
        """
        ...


class Shards(Protocol):
    """Assignment of the shards of endpoints to workers; each shard belongs to at most one worker."""

    async def rebalance(self) -> frozenset[int]:
        """Register this worker, acquire free shards up to an equal share, and return all shards of the worker.

        Raises LeaseLost if the worker has lost its shards.
        """
        ...

    async def find_surplus(self) -> frozenset[int]:
        """Return the shards of this worker that exceed an equal share and should be released."""
        ...

    async def count_workers(self) -> int:
        """Return the number of registered workers."""
        ...

    async def release(self, shards: frozenset[int]) -> None:
        """Release these shards, so that other workers can acquire them."""
        ...

    async def close(self) -> None:
        """Release all shards and unregister this worker."""
        ...


@dataclass(frozen=True, slots=True)
class DeliveryDatabase:
    """Database that has endpoints, with the assignment of their shards and the storage of their deliveries."""

    name: str
    shards: Shards
    store: DeliveryStore


class DeliveryDatabases(Protocol):
    """Databases that have endpoints; workers serve them independently of each other."""

    async def list_current(self) -> Sequence[DeliveryDatabase]:
        """Return the current databases; repeated calls return the same objects.

        Raises Unavailable if they cannot be queried.
        """
        ...

    async def count_workers(self) -> int:
        """Return the number of registered workers in the database that has the most of them. Raises Unavailable."""
        ...


@dataclass(frozen=True, slots=True)
class PostResult:
    """Result of one POST request: a response, or a failure if no response was received."""

    failure: AttemptFailure | None
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class Sender(Protocol):
    """HTTP client for webhook receivers. It connects to permitted addresses only, and reuses connections."""

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str], *, livemode: bool, seconds: float
    ) -> PostResult:
        """Send a POST request, and return its result; failures of the receiver are not raised.

        Redirects are not followed. Test mode permits ports other than 80 and 443.

        Args:
            url: The receiver's URL.
            body: The body.
            headers: The headers.
            livemode: Whether the endpoint is in live mode.
            seconds: Time limit.
        """
        ...


class PayloadRendering(Protocol):
    """Encoding of payloads; domain/webhooks/payload.py determines their contents."""

    def encode_combined_envelope(self, envelope: Mapping[str, Any]) -> bytes:
        """Return an envelope that combines several events of one subject as JSON; changes beyond the size limit are omitted."""
        ...

    def add_object(self, body: bytes, object: bytes | None) -> bytes:
        """Return the envelope `body` with `object` (the JSON of a resource) as `data.object`; None adds nothing."""
        ...

    def convert_to_version(self, body: bytes, version: str) -> bytes:
        """Return the body converted to the shape of an API version (docs/conventions.md#versions)."""
        ...


class EndpointRendering(Protocol):
    """Rendering of an endpoint as a resource, for responses and events."""

    def __call__(self, endpoint: Endpoint, livemode: bool, now: datetime) -> Mapping[str, Any]:
        """Return the endpoint as a resource, without its secret."""
        ...
