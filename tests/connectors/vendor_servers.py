"""Local servers of vendors' APIs as documented, requested through the guarded client."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp import web

from adapters.http.client import GuardedClient
from adapters.pluggy.context import PluginHttpClient
from connectors.sdk import ConnectorSpec, Limits, Report, Validators
from connectors.sdk.credentials import iterate_secret_texts

Tables = list[tuple[Any, list[dict[str, Any]]]]


@dataclass(slots=True)
class VendorContext:
    """Context with the guarded client; wait times advance a clock instead of blocking."""

    config: dict[str, Any]
    credentials: dict[str, Any] | None
    http: Any
    stream: str = "catalogue"
    limits: Limits = field(default_factory=Limits)
    validators: Validators = field(default_factory=Validators)
    reports: list[Report] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)
    waited: Callable[[float], None] = lambda _: None

    def score_header(self, _: Any) -> int:
        """Know no header."""
        return 0

    def now(self) -> datetime:
        """Return the time including wait times."""
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        """Record the wait time."""
        self.slept.append(seconds)
        self.waited(seconds)

    def report(self, report: Report) -> None:
        """Record the report."""
        self.reports.append(report)


class VendorServer:
    """Server with one handler; `fetch` fetches from it and parses the snapshot."""

    def __init__(self, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> None:
        self._handler = handler
        self.address = ""

    def fetch(
        self, spec: ConnectorSpec, config: dict[str, Any], credentials: dict[str, Any] | None, **more: Any
    ) -> tuple[bytes, Tables, VendorContext]:
        """Return the snapshot, its tables with rows as dicts without blank cells, and the context with its records."""
        return asyncio.run(self._fetch(spec, config, credentials, more))

    async def _fetch(
        self, spec: ConnectorSpec, config: dict[str, Any], credentials: dict[str, Any] | None, more: dict[str, Any]
    ) -> tuple[bytes, Tables, VendorContext]:
        runner = web.AppRunner(self._app())
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        self.address = f"http://127.0.0.1:{port}"
        client = GuardedClient(allowed_hosts=frozenset({f"127.0.0.1:{port}"}), allows_any_port=True)
        try:
            http = PluginHttpClient(client, frozenset({"*"}), frozenset(iterate_secret_texts(credentials)))
            context = VendorContext({"url": self.address, **config}, credentials, http, **more)
            async with spec.open().fetch(context) as fetched:
                snapshot = b"".join([chunk async for chunk in fetched.chunks])
            return snapshot, read_tables(spec, context, snapshot), context
        finally:
            await client.close()
            await runner.cleanup()

    def _app(self) -> web.Application:
        app = web.Application(client_max_size=1 << 20)
        app.router.add_route("*", "/{tail:.*}", self._handler)
        return app


def read_tables(spec: ConnectorSpec, context: Any, snapshot: bytes) -> Tables:
    """Return the tables of a snapshot."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "snapshot")
        path.write_bytes(snapshot)
        found = []
        for table in spec.open().parse_tables(context, path):
            assert table.fields is None or len(table.fields) == len(table.headers)
            rows = [
                {header: cell for header, cell in zip(table.headers, cells, strict=True) if cell is not None}
                for _, cells in table.rows
            ]
            found.append((table, rows))
        return found
