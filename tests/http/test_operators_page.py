"""Operators' page: content, access and absence of scripts."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio

from domain.jobs.model import Backlog
from domain.jobs.ports import JobDispatcher
from domain.kernel.errors import Unavailable
from domain.outbox.usecases import OutgoingMail
from domain.platform.ports import Workload
from domain.platform.workload import MAX_EXAMINED_JOBS
from entrypoints.operators_page import OperatorsPage, serve_operators_page
from tests.http.application import ApplicationHarness, run_application

pytestmark = pytest.mark.asyncio
PORT = 8091


class StubDispatcher:
    """Job dispatcher with a fixed backlog."""

    async def count_backlog(self, max_jobs: int | None = None) -> Sequence[Backlog]:
        return [Backlog("source", 3, 1, None)]


@pytest_asyncio.fixture
async def application() -> AsyncIterator[ApplicationHarness]:
    async with run_application(
        dispatch=StubDispatcher(), readiness={"database": _succeed, "queue": _fail}
    ) as application:
        yield application


async def _succeed() -> bool:
    return True


async def _fail() -> bool:
    raise ConnectionError("gone")


async def request_page(
    application: ApplicationHarness,
    *,
    path: str = "/",
    method: str = "GET",
    peer: str = "127.0.0.1",
    by: Any = None,
    **headers: str,
) -> tuple[int, dict[str, str], str]:
    """Request the page; return status, headers and text."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request"}

    named = {"host": f"localhost:{PORT}"} | {name.replace("_", "-"): value for name, value in headers.items()}
    scope = {
        "type": "http", "method": method, "path": path, "client": (peer, 1),
        "headers": [(name.encode(), value.encode()) for name, value in named.items()],
    }  # fmt: skip
    await (by or OperatorsPage(application.dependencies, PORT))(scope, receive, send)
    start, body = sent
    return start["status"], {k.decode(): v.decode() for k, v in start["headers"]}, body["body"].decode()


async def test_the_page_shows_the_state_of_the_service(application: ApplicationHarness) -> None:
    box = application.dependencies[OutgoingMail]
    await box.add_message(
        "ada@fjord.example", "<b>Come in</b>", "Open https://api.joinery.test/console/link/x <script>", "sign_in"
    )
    status, headers, text = await request_page(application)
    assert (
        status == 200 and "unsafe" not in headers["content-security-policy"] and headers["cache-control"] == "no-store"
    )
    for text_shown in (
        "Not ready",
        "Source",
        "3",
        "Not sent",
        "&lt;b&gt;Come in",
        "No activity today",
    ):
        assert text_shown in text, text_shown
    assert 'href="https://api.joinery.test/console/link/x"' in text and "<script>" not in text.replace(
        "<script src", ""
    )
    assert " style=" not in text and "<form" not in text


async def test_an_unavailable_section_hides_no_other(application: ApplicationHarness) -> None:
    class Broken:
        async def list_tenants(self, now: Any) -> Any:
            raise Unavailable("The database is out of reach.")

        list_slowest_sources = list_failing_sources = lambda self: self.list_tenants(None)

    application.dependencies[Workload] = Broken()
    status, _, text = await request_page(application)
    assert status == 200 and text.count("The database is out of reach.") == 3 and "Outgoing email" in text


async def test_the_page_is_cached(application: ApplicationHarness) -> None:
    class Counting:
        reads, waiting = 0, 3

        async def count_backlog(self, max_jobs: int | None = None) -> Sequence[Backlog]:
            self.reads += 1
            await asyncio.sleep(0.01)
            return [Backlog("source", self.waiting, 0, None)]

    counting, page = Counting(), OperatorsPage(application.dependencies, PORT)
    application.dependencies[JobDispatcher] = counting
    await asyncio.gather(*(request_page(application, by=page) for _ in range(20)))
    assert counting.reads == 1
    application.clock.advance(timedelta(seconds=3))
    counting.waiting = MAX_EXAMINED_JOBS
    _, _, text = await request_page(application, by=page)
    assert counting.reads == 2 and "More jobs are waiting" in text


STRANGE: list[dict[str, str]] = [
    {"host": "evil.example"},
    {"host": f"evil.example:{PORT}"},
    {"host": "localhost"},
    {"host": "localhost:80"},
    {"x_forwarded_for": "203.0.113.9"},
    {"forwarded": "for=203.0.113.9"},
    {"forwarded": ""},
    {"via": "1.1 proxy.example"},
    {"via": ""},
    {"x_forwarded_host": "ops.example"},
    {"x_forwarded_proto": "https"},
    {"x_real_ip": "203.0.113.9"},
    {"x_client_ip": "203.0.113.9"},
    {"true_client_ip": "203.0.113.9"},
    {"cf_connecting_ip": "203.0.113.9"},
    {"client_ip": "203.0.113.9"},
    {"proxy_connection": "keep-alive"},
    {"sec_fetch_site": "cross-site"},
    {"sec_fetch_site": "same-site"},
    {"peer": "203.0.113.9"},
]


async def test_foreign_requests_are_refused(application: ApplicationHarness) -> None:
    for headers in STRANGE:
        for path in ("/", "/console/static/x/console.css"):
            status, _, text = await request_page(application, path=path, **headers)
            assert status == 421 and "email" not in text, headers


async def test_only_the_page_is_served(application: ApplicationHarness) -> None:
    assert (await request_page(application, path="/metrics"))[0] == 404
    assert (await request_page(application, method="POST"))[0] == 405
    status, headers, text = await request_page(application, method="HEAD")
    assert status == 200 and text == "" and int(headers["content-length"]) > 500
    assert (await request_page(application, path="/console/static/now/console.css"))[0] == 200


async def test_the_page_is_served_only_on_its_own_port(
    application: ApplicationHarness, caplog: pytest.LogCaptureFixture
) -> None:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.listen()
        async with serve_operators_page(application.dependencies, port):
            assert "operators' page not served" in caplog.text
    async with serve_operators_page(application.dependencies, port):
        await asyncio.sleep(0.2)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
        response = await reader.read()
        assert response.startswith(b"HTTP/1.1 200") and b"Operations" in response
        writer.close()
    async with serve_operators_page(application.dependencies, 0):
        pass
