"""Mail harness: API client of an organisation, a worker that runs on demand, and a listener on a real socket."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adapters.mime.reader import MimeReader
from adapters.senders.checks import SenderVerifier
from entrypoints.mail.service import MailListener, create_state
from entrypoints.mail.settings import read_mail_settings
from tests.flows.in_process_service import InProcessService, open_service
from tests.mail.smtp import SENDER, send_message
from tests.support.memory.hosts import MemoryNameRecords


@dataclass
class MailHarness:
    """Mail listener with its service; `name_records` are the DNS records."""

    bench: InProcessService
    name_records: MemoryNameRecords
    listener: MailListener
    port: int
    sources: dict[str, str] = field(default_factory=dict)

    async def create_source(self, *senders: str, **fields: Any) -> tuple[str, str]:
        """Create a mail source; return its ID and inbound address."""
        config = {"currency": "usd", "inbound": {"senders": list(senders) or [SENDER]}}
        id = await self.bench.create_source(fields.pop("kind", "mail"), config=config, **fields)
        return id, (await self.bench.client.get(f"/v1/sources/{id}")).json()["inbound_address"]

    async def send(self, address: str, raw: Any, sender: str = SENDER, **options: Any) -> str:
        """Send a message; return the reply."""
        return await send_message(self.port, address, raw, sender, **options)

    async def list_messages(self, source: str) -> list[Any]:
        """List the inbound messages of the source, newest first."""
        response = await self.bench.client.get(f"/v1/sources/{source}/inbound-messages?limit=100")
        assert response.status == 200, response.body
        return list(response.json()["data"])

    async def list_runs(self, source: str) -> list[Any]:
        """List the runs of the source, newest first."""
        return list((await self.bench.client.get(f"/v1/sources/{source}/runs?limit=100")).json()["data"])


@asynccontextmanager
async def open_mail_harness(folder: Path, **env: str) -> AsyncIterator[MailHarness]:
    """Open a mail harness for a new organisation; `env` are settings of the listener."""
    names = MemoryNameRecords()
    reader, checks = MimeReader(), SenderVerifier(names)
    async with open_service(folder) as made:
        settings = read_mail_settings({"JOINERY_MAIL_CONNECTIONS_EACH": "64", "JOINERY_MAIL_EACH_MINUTE": "6000"} | env)
        listener = MailListener(create_state(made.world.dependencies, settings, reader, checks))
        port = await listener.start("127.0.0.1", 0)
        try:
            yield MailHarness(made, names, listener, port)
        finally:
            await listener.stop()
