"""Test harness with a running deliverer and a fake receiver with configurable responses."""

import asyncio
import base64
import contextlib
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from adapters.api_json.codec import JsonCodec
from adapters.api_json.events import JsonEventRendering
from adapters.api_json.webhooks import JsonPayloadRendering, render_endpoint
from domain.changes.model import FeedPosition, get_network_tenant
from domain.changes.usecases.log_tailer import LogTailer
from domain.events.model import Event, LogPosition, Provenance
from domain.events.ports import EventLog
from domain.kernel.ids import new_id
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from domain.webhooks.model import Delivery, DeliveryFilter, DisabledReason, EncryptedSecrets, Endpoint
from domain.webhooks.ports import DeliveryStore, PostResult, Shards, WebhookStore
from domain.webhooks.usecases.attempts import AttemptSender
from domain.webhooks.usecases.deliverer import Deliverer
from domain.webhooks.usecases.payloads import ObjectHistory, PayloadRenderer
from domain.webhooks.usecases.secrets import SIGNING_PREFIX
from domain.webhooks.usecases.service import WebhookService
from tests.support import builders
from tests.support.backend import Backend

CALL = builders.CALL
OK = PostResult(None, 200)
KEY = b"k" * 32
DELAYS = (timedelta(milliseconds=40), timedelta(milliseconds=80), timedelta(milliseconds=80))


@dataclass(frozen=True)
class ReceivedPost:
    """Received POST request."""

    url: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def id(self) -> str:
        """ID of the event."""
        return self.headers["webhook-id"]

    @property
    def event(self) -> dict[str, Any]:
        """Event envelope."""
        found: dict[str, Any] = json.loads(self.body)
        return found


class FakeReceivers:
    """Sender that returns the queued results of a URL in order, then its default result or 200."""

    def __init__(self) -> None:
        self.urls: set[str] = set()
        """URLs of the tenant's endpoints; the store may contain others."""
        self.posts: list[ReceivedPost] = []
        self.results: dict[str, list[PostResult]] = defaultdict(list)
        self.default_results: dict[str, PostResult] = {}
        self.gates: dict[str, asyncio.Event] = {}
        """Gate of a URL or a subject, for which the response waits."""

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str], *, livemode: bool, seconds: float
    ) -> PostResult:
        """Return the next result as soon as the URL's gate, if any, is open."""
        del livemode, seconds
        if url in self.urls:
            self.posts.append(ReceivedPost(url, headers, body))
        for gate in (url, json.loads(body).get("subject", "")):
            if gate in self.gates:
                await self.gates[gate].wait()
        return self.results[url].pop(0) if self.results[url] else self.default_results.get(url, OK)

    def list_posts(self, url: str) -> list[ReceivedPost]:
        """Return the requests to the URL."""
        return [post for post in self.posts if post.url == url]


class FixedSecretVault:
    """Vault that stores nothing and always returns the same secret."""

    def encrypt(self, credentials: Mapping[str, Any], context: str) -> bytes:
        return b"sealed"

    def decrypt(self, sealed: bytes, context: str) -> Mapping[str, Any]:
        return {"secret": SIGNING_PREFIX + base64.b64encode(KEY).decode()}


class ReadableCursorSigner:
    """Feed cursor signer with readable cursors."""

    def sign(self, tenant: Tenant, position: FeedPosition) -> str:
        """Return the organisation and the positions in its own log and in the network log."""
        return f"{tenant.org}:{position.own.position}:{position.network.position}"


def create_service(backend: Backend) -> WebhookService:
    return WebhookService(FixedSecretVault(), JsonEventRendering(), render_endpoint)


@dataclass
class DeliveryHarness:
    """Tenant that publishes events and inspects deliveries."""

    backend: Backend
    tenant: Tenant
    receivers: FakeReceivers = field(default_factory=FakeReceivers)
    deliverers: list[Deliverer] = field(default_factory=list)
    versions: dict[str, int] = field(default_factory=dict)

    async def create_endpoint(self, **changes: Any) -> Endpoint:
        """Create an endpoint that receives events published from now on."""
        endpoint = builders.endpoint(**{"url": f"https://{new_id('whe')}.example/", **changes})
        self.receivers.urls.add(endpoint.url)
        async with self.backend.uow.begin(self.tenant, CALL) as tx:
            await tx[WebhookStore].add(endpoint, EncryptedSecrets(b"sealed"), await self.find_feed_end())
        return endpoint

    async def find_feed_end(self) -> FeedPosition:
        """Return the end positions of the logs that the tenant can read."""
        network = get_network_tenant(self.tenant.livemode)
        bounds = await self.backend.events.query_bounds([self.tenant, network])
        return FeedPosition(LogPosition(position=bounds[self.tenant].last), bounds[network].end)

    def build_event(self, subject: str, **changes: Any) -> Event:
        """Return an event of the next version of an offer."""
        version = self.versions[subject] = self.versions.get(subject, 1) + 1
        fields = (("price", (version - 1) * 100, version * 100),)
        event: dict[str, Any] = {
            "type": "offer.changed",
            "subject": subject,
            "version": version,
            "data": {"id": subject, "product": "prod_1", "source": "src_1"},
            "fields": fields,
            "facets": ("price",),
            "provenance": Provenance("src_1", "mapped", 1.0, builders.MOMENT),
            "source": "src_1",
            "catalogue": "cat_1",
        }
        return Event(**event | changes)

    async def publish(self, *events: Event) -> list[str]:
        """Append the events in one transaction and return their IDs."""
        async with self.backend.uow.begin(self.tenant, CALL) as tx:
            await tx[EventLog].append(list(events))
        return [event.id for event in events]

    async def list_deliveries(self, endpoint: Endpoint) -> list[Delivery]:
        """Return the deliveries of the endpoint, oldest first."""
        async with self.backend.uow.begin_reading(self.tenant) as tx:
            page = await tx[WebhookStore].list_deliveries(DeliveryFilter(endpoint=endpoint.id), PageRequest(100))
        return list(reversed(page.items))

    async def load_endpoint(self, endpoint: Endpoint) -> Endpoint:
        async with self.backend.uow.begin_reading(self.tenant) as tx:
            found = await tx[WebhookStore].get(endpoint.id)
        assert found is not None
        return found

    async def disable(self, endpoint: str, reason: DisabledReason) -> None:
        """Disable the endpoint as a deliverer does."""
        async with self.backend.uow.begin(self.tenant, CALL) as tx:
            await create_service(self.backend).disable(tx, endpoint, reason)

    @contextlib.asynccontextmanager
    async def run_deliverer(
        self, *, log: DeliveryStore | None = None, shards: Shards | None = None
    ) -> AsyncIterator[Deliverer]:
        """Run a deliverer and kill it on exit, so that it records nothing more."""
        log, shards = log or self.backend.delivery_log, shards or self.backend.shards()
        backend, clock = self.backend, _BackendClock(self.backend.now)
        tailer = LogTailer(backend.events, JsonEventRendering(), backend.signals, idle_seconds=1.0)
        posting = AttemptSender(
            tailer.log_reader, log, self.receivers,
            PayloadRenderer(JsonCodec(), JsonPayloadRendering(), ObjectHistory(backend.uow, backend.events, JsonCodec())),
            FixedSecretVault(), ReadableCursorSigner(), clock, "Joinery/1", DELAYS,
        )  # fmt: skip
        deliverer = Deliverer(
            tailer, log, shards, posting, create_service(backend), backend.uow, backend.signals, clock, 0.05
        )
        tasks = [asyncio.create_task(tailer.run()), asyncio.create_task(deliverer.run(asyncio.Event()))]
        try:
            yield deliverer
        finally:
            await shards.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


class _BackendClock:
    def __init__(self, now: Callable[[], datetime]) -> None:
        self.now = now


async def wait_until(true: Callable[[], Any], seconds: float = 10.0) -> None:
    """Wait until the condition is true."""
    async with asyncio.timeout(seconds):
        while not true():
            await asyncio.sleep(0.01)


async def wait_for_deliveries(
    harness: DeliveryHarness, endpoint: Endpoint, count: int, status: str = "succeeded"
) -> list[Delivery]:
    """Wait until `count` deliveries have the status and return all of them."""
    async with asyncio.timeout(10):
        while True:
            found = await harness.list_deliveries(endpoint)
            if sum(one.status == status for one in found) >= count:
                return found
            await asyncio.sleep(0.02)
