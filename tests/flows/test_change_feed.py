"""The change feed of a running service with many readers, disconnects, and a stop of the server."""

import asyncio
import json
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import pytest
from httpx_sse import aconnect_sse

from domain.events.ports import EventLog
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.sources.ports import SourceStore
from entrypoints.container import open_dependencies
from entrypoints.dependencies import Dependencies
from entrypoints.settings import read_settings
from ports.unit_of_work import UnitOfWork
from tests.flows.service_processes import ServiceProcesses, Tenancy
from tests.http.streams import EventStreamParser
from tests.postgres.databases import create_database
from tests.postgres.test_positions import EventWriters
from tests.support import builders

SECONDS = 4.0
READERS = 4
CLIENT = Path(__file__).with_name("sse_client.mjs")


class DisconnectingProxy:
    """Proxy that forwards bytes and closes all connections on request."""

    def __init__(self, port: int) -> None:
        self._to, self._writers = port, set[asyncio.StreamWriter]()
        self.port = self.connections = 0

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        there, back = await asyncio.open_connection("127.0.0.1", self._to)
        self._writers |= {writer, back}
        await asyncio.gather(self._forward(reader, back), self._forward(there, writer))

    @staticmethod
    async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while piece := await reader.read(65536):
                writer.write(piece)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    def cut_connections(self) -> None:
        """Abort all connections without notice, like a network failure."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()


@asynccontextmanager
async def run_proxy(port: int) -> AsyncIterator[DisconnectingProxy]:
    """Run a proxy in front of the port."""
    proxy = DisconnectingProxy(port)
    server = await asyncio.start_server(proxy._serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        proxy.cut_connections()
        server.close()


async def append_events(container: Dependencies, tenant: Tenant, count: int) -> list[str]:
    """Append events of the tenant."""
    events = [builders.event(new_id("src")) for _ in range(count)]
    async with container[UnitOfWork].begin(tenant, builders.CALL) as tx:
        await tx[EventLog].append(events)
    return [event.id for event in events]


def run_with_dependencies(services: ServiceProcesses, work: Any) -> None:
    """Run `work` with dependencies of the processes' settings."""

    async def main() -> None:
        async with open_dependencies(read_settings(services.env)) as container, asyncio.timeout(120):
            await work(container)

    asyncio.run(main())


async def follow_by_polling(http: aiohttp.ClientSession, done: asyncio.Event, total: Any) -> list[tuple[str, int]]:
    """Return the events that a polling reader receives."""
    seen: list[tuple[str, int]] = []
    query: dict[str, str] = {"wait": "5", "limit": "200"}
    while not done.is_set() or len(seen) < total():
        async with http.get("/v1/changes", params=query) as answer:
            assert answer.status == 200, await answer.text()
            page = await answer.json()
        seen += [(event["subject"], event["version"]) for event in page["data"]]
        query["cursor"] = page["next_cursor"]
    return seen


async def follow_by_stream(http: aiohttp.ClientSession, done: asyncio.Event, total: Any) -> list[tuple[str, int]]:
    """Return the events that a streaming reader receives, which reconnects when the stream ends."""
    seen: list[tuple[str, int]] = []
    reader = EventStreamParser()
    async with http.get("/v1/changes", params={"limit": "1"}) as answer:
        first = await answer.json()
    seen += [(event["subject"], event["version"]) for event in first["data"]]
    reader.last_id = first["next_cursor"]
    while not done.is_set() or len(seen) < total():
        async with http.get("/v1/stream", headers={"Last-Event-ID": reader.last_id}) as answer:
            assert answer.status == 200, await answer.text()
            reader = EventStreamParser(last_id=reader.last_id, _id=reader.last_id)
            async for piece in answer.content.iter_any():
                events = [sent for sent in reader.feed(piece) if sent.type != "stream.end"]
                seen += [(event["subject"], event["version"]) for event in (sent.json() for sent in events)]
                if done.is_set() and len(seen) >= total():
                    break
    return seen


def test_every_reader_sees_every_event_once_and_in_order(services: ServiceProcesses, fjord: Tenancy) -> None:
    async def work(container: Dependencies) -> None:
        sources = [builders.source() for _ in range(5)]
        async with container[UnitOfWork].begin(fjord.tenant, builders.CALL) as tx:
            for source in sources:
                await tx[SourceStore].add(source)
        writers = EventWriters(container[UnitOfWork], fjord.tenant, [source.id for source in sources])
        done, until = asyncio.Event(), asyncio.get_running_loop().time() + SECONDS
        headers = {"Authorization": f"Bearer {fjord.api.secret}"}
        timeout = aiohttp.ClientTimeout(total=100)
        async with aiohttp.ClientSession(f"http://127.0.0.1:{services.port}", headers=headers, timeout=timeout) as http:

            def total() -> int:
                return writers.committed_count

            async def finish() -> None:
                await asyncio.gather(*(writers.write(seed, until) for seed in range(8)))
                done.set()
                await asyncio.sleep(0.1)
                await append_events(container, Tenant(fjord.tenant.org, False), 1)

            reading = [follow_by_polling(http, done, total) for _ in range(READERS)]
            reading += [follow_by_stream(http, done, total) for _ in range(READERS)]
            _, *found = await asyncio.gather(finish(), *reading)
        assert writers.committed_count > 100 and writers.rolled_back_count > 0
        stored = services.fetch_rows(
            "SELECT subject, version FROM events WHERE org = %(org)s AND livemode ORDER BY position",
            org=fjord.tenant.org,
        )
        assert len(stored) == writers.committed_count
        assert all(seen == stored for seen in found)

    run_with_dependencies(services, work)


def test_a_python_client_resumes_after_disconnects(services: ServiceProcesses, fjord: Tenancy) -> None:
    async def work(container: Dependencies) -> None:
        async with run_proxy(services.port) as between:
            seen: list[str] = []

            async def follow() -> None:
                last, headers = "", {"Authorization": f"Bearer {fjord.api.secret}"}
                async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{between.port}", timeout=30) as http:
                    while len(seen) < 60:
                        resume = {"Last-Event-ID": last} if last else {}
                        try:
                            async with aconnect_sse(http, "GET", "/v1/stream", headers=headers | resume) as source:
                                async for event in source.aiter_sse():
                                    seen.append(event.json()["id"])
                                    last = event.id
                        except httpx.TransportError:
                            await asyncio.sleep(0.05)

            following = asyncio.create_task(follow())
            while not between.connections:
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.5)
            written = await append_events(container, fjord.tenant, 10)
            for _ in range(5):
                while len(seen) < len(written):
                    await asyncio.sleep(0.01)
                between.cut_connections()
                written += await append_events(container, fjord.tenant, 10)
            following.cancel() if len(seen) >= 60 else None
            while len(seen) < 60:
                await asyncio.sleep(0.01)
            following.cancel()
            assert seen == written and between.connections >= 5

    run_with_dependencies(services, work)


@pytest.fixture(scope="module")
def node_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install EventSource from the registry with the script that uses it; skip without Node or registry."""
    folder = tmp_path_factory.mktemp("node")
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("there is no Node on this machine")
    command = [
        "npm",
        "install",
        "--no-save",
        "--silent",
        "--fetch-retries=0",
        "--prefix",
        str(folder),
        "eventsource@3.0.7",
    ]
    try:
        done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip("the registry does not answer")
    if done.returncode:
        pytest.skip("EventSource could not be installed")
    shutil.copy(CLIENT, folder / "client.mjs")
    return folder


def test_the_standard_eventsource_resumes_after_disconnects(
    services: ServiceProcesses, fjord: Tenancy, node_folder: Path
) -> None:
    async def work(container: Dependencies) -> None:
        async with run_proxy(services.port) as between:
            process = await asyncio.create_subprocess_exec(
                "node", str(node_folder / "client.mjs"), f"http://127.0.0.1:{between.port}/v1/stream",
                str(fjord.api.secret), "30", stdout=subprocess.PIPE,
            )  # fmt: skip
            assert process.stdout is not None

            async def line() -> str:
                while (text := (await process.stdout.readline()).decode().strip()) == "open":
                    pass
                return text

            assert (await process.stdout.readline()).strip() == b"open"
            written = await append_events(container, fjord.tenant, 10)
            seen = [await line() for _ in range(10)]
            for _ in range(2):
                between.cut_connections()
                written += await append_events(container, fjord.tenant, 10)
                seen += [await line() for _ in range(10)]
            assert seen == written and between.connections >= 3
            await process.wait()

    run_with_dependencies(services, work)


@pytest.fixture
def separate_services(tmp_path: Path) -> Iterator[ServiceProcesses]:
    """Run service processes that the test stops."""
    processes = ServiceProcesses(asyncio.run(create_database("stopping")), tmp_path)
    try:
        yield processes
    finally:
        processes.stop()


def test_a_stop_ends_polls_and_streams_promptly(separate_services: ServiceProcesses) -> None:
    process = separate_services.start_api()
    tenancy = separate_services.create_organisation()

    async def work(container: Dependencies) -> None:
        headers = {"Authorization": f"Bearer {tenancy.api.secret}"}
        async with aiohttp.ClientSession(f"http://127.0.0.1:{separate_services.port}", headers=headers) as http:

            async def poll() -> Any:
                async with http.get("/v1/changes", params={"cursor": "now", "wait": "30"}) as answer:
                    return answer.status, await answer.json()

            async def stream() -> tuple[float, list[Any]]:
                async with http.get("/v1/stream") as answer:
                    text = await answer.text()
                    return time.monotonic(), EventStreamParser().feed(text.encode())

            tasks = [asyncio.create_task(work()) for work in (poll, poll, stream, stream)]
            await asyncio.sleep(1)
            process.send_signal(signal.SIGTERM)
            one, _, (_, events), _ = await asyncio.gather(*tasks)
            assert one[0] == 200 and one[1]["data"] == [] and one[1]["caught_up"] is True
            assert [json.loads(event.data)["reason"] for event in events] == ["shutdown"]
            assert await asyncio.to_thread(process.wait, 9) == 0

    run_with_dependencies(separate_services, work)
    separate_services.processes.remove(process)


def test_a_cursor_outlives_the_process(separate_services: ServiceProcesses) -> None:
    process = separate_services.start_api()
    tenancy = separate_services.create_organisation()
    cursor = tenancy.api.get("/v1/changes", cursor="now")["next_cursor"]
    separate_services.stop(process, number=signal.SIGKILL)
    written: list[str] = []

    async def work(container: Dependencies) -> None:
        written.extend(await append_events(container, tenancy.tenant, 3))

    run_with_dependencies(separate_services, work)
    separate_services.start_api()
    page = tenancy.api.get("/v1/changes", cursor=cursor)
    assert [event["id"] for event in page["data"]] == written and page["caught_up"] is True
