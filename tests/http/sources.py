"""Running application with helpers for tests of sources, runs and uploads."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from adapters.files.workspaces import FileWorkspaces
from domain.audit.model import AuditEntry
from domain.kernel.resource import with_changes
from domain.kernel.tenancy import Tenant
from domain.sources.model import Source
from domain.sources.ports import SourceStore
from tests.http.application import OPERATOR, ApplicationHarness, list_audit_entries, run_application
from tests.http.client import Client, Response
from tests.support.readers import create_in_process_readers
from tests.support.services import ExternalFakes

URL_SOURCE = {"name": "Lindgren", "kind": "url", "config": {"url": "https://vendor.example/feed.csv"}}
PUSH_SOURCE = {"name": "Our system", "kind": "push", "config": {"currency": "usd"}}
FILE_SOURCE = {"name": "Price lists", "kind": "file"}


@dataclass
class SourceHarness:
    """Client of one organisation, with the application and its external services."""

    application: ApplicationHarness
    services: ExternalFakes
    client: Client

    @property
    def tenant(self) -> Tenant:
        """Tenant of the client: its organisation in live mode."""
        return Tenant(self.application.orgs["Fjord"].id, True)

    async def create_source(self, **fields: Any) -> Any:
        """Create a source, of kind `url` by default; return its JSON."""
        response = await self.client.post("/v1/sources", {**URL_SOURCE, **fields})
        assert response.status == 201, response.body
        return response.json()

    async def update_source(self, source: Any, **changes: Any) -> Response:
        """Update the source with the version that was read."""
        return await self.client.send_json(
            "PATCH", f"/v1/sources/{source['id']}", changes, if_match=self.build_etag(source)
        )

    @staticmethod
    def build_etag(source: Any) -> str:
        """Build an ETag with the source's version."""
        return f'"{source["version"]}-0"'

    async def load_source(self, id: str) -> Source:
        """Load the stored source."""
        async with self.application.uow.begin_reading(self.tenant) as tx:
            found: Source | None = await tx[SourceStore].get(id)
        assert found is not None
        return found

    async def change_source(self, id: str, **changes: Any) -> None:
        """Change the stored source without the API."""
        async with self.application.uow.begin(self.tenant, OPERATOR) as tx:
            found = await tx[SourceStore].get(id, lock=True)
            await tx[SourceStore].save(with_changes(found, tx.now, **changes))

    def list_jobs(self) -> list[Any]:
        """List the open jobs, oldest first."""
        return self.application.database.fetch_rows("SELECT * FROM jobs ORDER BY id")

    async def list_audit_entries(self, id: str) -> list[AuditEntry]:
        """List the audit entries of a resource, oldest first."""
        return await list_audit_entries(self.application, self.tenant, id)


@asynccontextmanager
async def open_source_harness(**changes: Any) -> AsyncIterator[SourceHarness]:
    """Run the application for tests of sources; `changes` are further dependencies."""
    outside = ExternalFakes()
    readers, workspaces = create_in_process_readers(outside.connectors), FileWorkspaces()
    given = {"connectors": outside.connectors, "objects": outside.objects}
    async with run_application(**given, feed_readers=readers, workspaces=workspaces, **changes) as application:
        yield SourceHarness(application, outside, await application.create_client())
