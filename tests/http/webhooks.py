"""A running application with the area of webhooks, and short ways to what its tests need."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from adapters.memory.audit import AUDIT
from adapters.memory.events import EVENTS
from adapters.memory.idempotency import ANSWERS
from adapters.memory.webhooks import DELIVERIES, ENDPOINTS
from domain.kernel.tenancy import Tenant
from domain.webhooks.model import Delivery
from domain.webhooks.ports import WebhookStore
from domain.webhooks.usecases.posting import signing_keys
from domain.webhooks.usecases.service import WebhookService
from tests.http.client import Answer, Client
from tests.http.fakes import OPERATOR, World, running

ENDPOINT = {"url": "https://receiver.example/hooks", "event_types": ["offer.changed"]}
AREAS = ("webhooks",)
PLACE = "/v1/webhook-endpoints"


@dataclass
class Desk:
    """One organisation's clients in both modes, the world they are in and the service behind it."""

    world: World
    service: WebhookService
    client: Client
    sandbox: Client

    def tenant(self, *, livemode: bool = True) -> Tenant:
        """The clients' organisation."""
        return Tenant(self.world.orgs["Fjord"].id, livemode)

    async def create(self, **fields: Any) -> Any:
        """A new endpoint's wire object, with its secret."""
        answer = await self.client.post(PLACE, {**ENDPOINT, **fields})
        assert answer.status == 201, answer.body
        return answer.json()

    async def patch(self, endpoint: Any, **changes: Any) -> Answer:
        """PATCH the endpoint as it was read."""
        tag = f'"{endpoint["version"]}-0"'
        return await self.client.send_json("PATCH", f"{PLACE}/{endpoint['id']}", changes, if_match=tag)

    async def read(self, id: str) -> Any:
        """The endpoint as it is answered."""
        return (await self.client.get(f"{PLACE}/{id}")).json()

    async def disable(self, id: str, reason: str = "gone") -> None:
        """As the service does."""
        async with self.world.uow.begin(self.tenant(), OPERATOR) as tx:
            await self.service.disable(tx, id, reason)

    async def deliver(self, *deliveries: Delivery) -> None:
        """Keep deliveries."""
        async with self.world.uow.begin(self.tenant(), OPERATOR) as tx:
            for delivery in deliveries:
                await tx[WebhookStore].add_delivery(delivery)

    async def delivery(self, endpoint: str, id: str) -> Any:
        """The delivery as it is answered."""
        return (await self.client.get(f"{PLACE}/{endpoint}/deliveries/{id}")).json()

    def audited(self, id: str) -> list[Any]:
        """What the audit log says of a resource, oldest first."""
        return [entry for _, entry in self.world.store.everyone(AUDIT) if entry.change.id == id]

    def events(self) -> list[Any]:
        """The log's events, oldest first."""
        kept = sorted((row for _, row in self.world.store.everyone(EVENTS)), key=lambda row: row.position)
        return [row.event for row in kept]

    def kept(self, id: str) -> Any:
        """The endpoint as it lies in store."""
        return next(row for _, row in self.world.store.everyone(ENDPOINTS) if row.endpoint.id == id)

    def kept_deliveries(self) -> list[Delivery]:
        """The deliveries as they lie in store."""
        return [row for _, row in self.world.store.everyone(DELIVERIES)]

    def remembered(self) -> list[bytes]:
        """The bodies that are kept for repeated requests."""
        return [row.answer.body for _, row in self.world.store.everyone(ANSWERS)]

    def keys(self, id: str) -> tuple[bytes, ...]:
        """The keys that sign for the endpoint now."""
        kept = self.kept(id)
        return signing_keys(self.service.vault, kept.endpoint, kept.secrets, self.world.clock.now())


def key_in(secret: str) -> bytes:
    """The key in a secret, as any receiver decodes it."""
    assert secret.startswith("whsec_")
    return base64.b64decode(secret.removeprefix("whsec_"), validate=True)


@asynccontextmanager
async def desk() -> AsyncIterator[Desk]:
    """A desk whose application is serving; the plan does not include fat payloads."""
    async with running() as world:
        service = world.app.asgi_app._pipeline.services["webhooks"]
        yield Desk(world, service, await world.client(), await world.client(livemode=False))
