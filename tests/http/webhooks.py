"""A running application with the area of webhooks, and short ways to what its tests need."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from domain.audit.model import AuditEntry
from domain.kernel.tenancy import Tenant
from domain.webhooks.model import Delivery, EncryptedSecrets, Endpoint
from domain.webhooks.ports import WebhookStore
from domain.webhooks.usecases.attempts import decrypt_signing_keys
from domain.webhooks.usecases.service import WebhookService
from tests.http.client import Answer, Client
from tests.http.fakes import OPERATOR, World, audited, running

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

    async def audited(self, id: str) -> list[AuditEntry]:
        """What the audit log says of a resource, oldest first."""
        return await audited(self.world, self.tenant(), id)

    def events(self) -> list[Any]:
        """The log's events, oldest first."""
        return self.world.database.fetch_rows("SELECT * FROM events ORDER BY position")

    async def kept(self, id: str) -> tuple[Endpoint, EncryptedSecrets]:
        """The endpoint and its secrets as they are stored."""
        async with self.world.uow.begin_reading(self.tenant()) as tx:
            endpoint, secrets = await tx[WebhookStore].get(id), await tx[WebhookStore].get_secrets(id)
        assert endpoint is not None and secrets is not None
        return endpoint, secrets

    def checkpoint(self, id: str) -> int:
        """The position of the log up to which the endpoint has been served."""
        [row] = self.world.database.fetch_rows("SELECT checkpoint FROM webhook_endpoints WHERE id = %s", id)
        return int(row.checkpoint)

    async def kept_deliveries(self) -> list[Delivery]:
        """The deliveries as they are stored."""
        rows = self.world.database.fetch_rows("SELECT org, livemode, endpoint, id FROM webhook_deliveries ORDER BY id")
        found: list[Delivery] = []
        for row in rows:
            async with self.world.uow.begin_reading(Tenant(row.org, row.livemode)) as tx:
                found.append(await tx[WebhookStore].get_delivery(row.endpoint, row.id))
        return found

    async def keys(self, id: str) -> tuple[bytes, ...]:
        """The keys that sign for the endpoint now."""
        return decrypt_signing_keys(self.service.vault, *await self.kept(id), self.world.clock.now())


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
