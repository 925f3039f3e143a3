"""Running application with helpers for tests of webhooks."""

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
from tests.http.application import OPERATOR, ApplicationHarness, list_audit_entries, run_application
from tests.http.client import Client, Response

ENDPOINT = {"url": "https://receiver.example/hooks", "event_types": ["offer.changed"]}
AREAS = ("webhooks",)
ENDPOINTS_PATH = "/v1/webhook-endpoints"


@dataclass
class WebhookHarness:
    """Clients of one organisation in both modes, with the application and the webhook service."""

    application: ApplicationHarness
    service: WebhookService
    client: Client
    sandbox: Client

    def tenant(self, *, livemode: bool = True) -> Tenant:
        """Return the tenant of the clients."""
        return Tenant(self.application.orgs["Fjord"].id, livemode)

    async def create_endpoint(self, **fields: Any) -> Any:
        """Create an endpoint; return its JSON with the secret."""
        response = await self.client.post(ENDPOINTS_PATH, {**ENDPOINT, **fields})
        assert response.status == 201, response.body
        return response.json()

    async def update_endpoint(self, endpoint: Any, **changes: Any) -> Response:
        """Update the endpoint with the version that was read."""
        tag = f'"{endpoint["version"]}-0"'
        return await self.client.send_json("PATCH", f"{ENDPOINTS_PATH}/{endpoint['id']}", changes, if_match=tag)

    async def read_endpoint(self, id: str) -> Any:
        """Read the endpoint by the API."""
        return (await self.client.get(f"{ENDPOINTS_PATH}/{id}")).json()

    async def disable_endpoint(self, id: str, reason: str = "gone") -> None:
        """Disable the endpoint as the service does."""
        async with self.application.uow.begin(self.tenant(), OPERATOR) as tx:
            await self.service.disable(tx, id, reason)

    async def store_deliveries(self, *deliveries: Delivery) -> None:
        """Store deliveries."""
        async with self.application.uow.begin(self.tenant(), OPERATOR) as tx:
            for delivery in deliveries:
                await tx[WebhookStore].add_delivery(delivery)

    async def read_delivery(self, endpoint: str, id: str) -> Any:
        """Read the delivery by the API."""
        return (await self.client.get(f"{ENDPOINTS_PATH}/{endpoint}/deliveries/{id}")).json()

    async def list_audit_entries(self, id: str) -> list[AuditEntry]:
        """List the audit entries of a resource, oldest first."""
        return await list_audit_entries(self.application, self.tenant(), id)

    def list_events(self) -> list[Any]:
        """List the events of the log, oldest first."""
        return self.application.database.fetch_rows("SELECT * FROM events ORDER BY position")

    async def load_endpoint(self, id: str) -> tuple[Endpoint, EncryptedSecrets]:
        """Load the stored endpoint and its secrets."""
        async with self.application.uow.begin_reading(self.tenant()) as tx:
            endpoint, secrets = await tx[WebhookStore].get(id), await tx[WebhookStore].get_secrets(id)
        assert endpoint is not None and secrets is not None
        return endpoint, secrets

    def read_checkpoint(self, id: str) -> int:
        """Read the log position up to which events were delivered to the endpoint."""
        [row] = self.application.database.fetch_rows("SELECT checkpoint FROM webhook_endpoints WHERE id = %s", id)
        return int(row.checkpoint)

    async def load_deliveries(self) -> list[Delivery]:
        """Load the stored deliveries."""
        rows = self.application.database.fetch_rows(
            "SELECT org, livemode, endpoint, id FROM webhook_deliveries ORDER BY id"
        )
        found: list[Delivery] = []
        for row in rows:
            async with self.application.uow.begin_reading(Tenant(row.org, row.livemode)) as tx:
                found.append(await tx[WebhookStore].get_delivery(row.endpoint, row.id))
        return found

    async def decrypt_keys(self, id: str) -> tuple[bytes, ...]:
        """Return the keys that currently sign for the endpoint."""
        return decrypt_signing_keys(self.service.vault, *await self.load_endpoint(id), self.application.clock.now())


def decode_secret(secret: str) -> bytes:
    """Decode the key of a secret as receivers do."""
    assert secret.startswith("whsec_")
    return base64.b64decode(secret.removeprefix("whsec_"), validate=True)


@asynccontextmanager
async def open_webhook_harness() -> AsyncIterator[WebhookHarness]:
    """Run the application for tests of webhooks; the plan does not include fat payloads."""
    async with run_application() as application:
        service = application.app.asgi_app._pipeline.services["webhooks"]
        yield WebhookHarness(
            application, service, await application.create_client(), await application.create_client(livemode=False)
        )
