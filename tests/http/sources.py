"""A running application with the areas of sources, runs and uploads, and short ways to what their tests need."""

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
    """One organisation's client, the world it is in and the services behind it."""

    application: ApplicationHarness
    services: ExternalFakes
    client: Client

    @property
    def tenant(self) -> Tenant:
        """The client's organisation, live."""
        return Tenant(self.application.orgs["Fjord"].id, True)

    async def create_source(self, **fields: Any) -> Any:
        """A new source's wire object; of kind url unless told otherwise."""
        response = await self.client.post("/v1/sources", {**URL_SOURCE, **fields})
        assert response.status == 201, response.body
        return response.json()

    async def update_source(self, source: Any, **changes: Any) -> Response:
        """PATCH the source as it was read."""
        return await self.client.send_json(
            "PATCH", f"/v1/sources/{source['id']}", changes, if_match=self.build_etag(source)
        )

    @staticmethod
    def build_etag(source: Any) -> str:
        """An ETag that names the source's version."""
        return f'"{source["version"]}-0"'

    async def load_source(self, id: str) -> Source:
        """The source as it is stored."""
        async with self.application.uow.begin_reading(self.tenant) as tx:
            found: Source | None = await tx[SourceStore].get(id)
        assert found is not None
        return found

    async def change_source(self, id: str, **changes: Any) -> None:
        """Change the stored source, as the service itself would."""
        async with self.application.uow.begin(self.tenant, OPERATOR) as tx:
            found = await tx[SourceStore].get(id, lock=True)
            await tx[SourceStore].save(with_changes(found, tx.now, **changes))

    def list_jobs(self) -> list[Any]:
        """The open jobs, oldest first."""
        return self.application.database.fetch_rows("SELECT * FROM jobs ORDER BY id")

    async def list_audit_entries(self, id: str) -> list[AuditEntry]:
        """What the audit log says of a resource, oldest first."""
        return await list_audit_entries(self.application, self.tenant, id)


@asynccontextmanager
async def open_source_harness(**changes: Any) -> AsyncIterator[SourceHarness]:
    """A shop whose application is serving; `changes` are further dependencies."""
    outside = ExternalFakes()
    readers, workspaces = create_in_process_readers(outside.connectors), FileWorkspaces()
    given = {"connectors": outside.connectors, "objects": outside.objects}
    async with run_application(**given, feed_readers=readers, workspaces=workspaces, **changes) as application:
        yield SourceHarness(application, outside, await application.create_client())
