"""No client follows a redirect: an API key is sent only to the configured host."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support.shipped_clients import import_client
from tests.unit.clients.test_typescript_runtime import RunScript, run_script

pytestmark = pytest.mark.slow

__all__ = ["run_script"]


@contextmanager
def serve_status(status: int, location: str = "") -> Iterator[tuple[str, list[str]]]:
    """Run a server that responds with the status; yields its address and the received requests."""
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def respond(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            requests.append(f"{self.command} {self.path}")
            self.send_response(status)
            if location:
                self.send_header("Location", location + self.path)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        do_GET = do_POST = do_PUT = respond

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", requests
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def other_server() -> Iterator[tuple[str, list[str]]]:
    with serve_status(200) as server:
        yield server


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_python_follows_no_redirect(status: int, other_server: tuple[str, list[str]], tmp_path: Path) -> None:
    package, (elsewhere, seen) = import_client(), other_server
    file = tmp_path / "feed.csv"
    file.write_bytes(b"a")
    with serve_status(status, elsewhere) as (address, requests):
        with package.Joinery(address, "secret") as client:
            calls = [
                client.orgs.get,
                lambda: client.sources.create({"name": "a", "kind": "push"}),
                lambda: client._core.put(address + "/objects/1", {}, file, 1),
            ]
            for call in calls:
                with pytest.raises(package.JoineryError) as caught:
                    call()
                assert reports_redirect(str(caught.value), caught.value.status, status, elsewhere)

        async def run() -> None:
            async with package.AsyncJoinery(address, "secret") as client:
                await client.orgs.get()

        with pytest.raises(package.JoineryError) as caught:
            asyncio.run(run())
        assert reports_redirect(str(caught.value), caught.value.status, status, elsewhere)
        assert len(requests) == 4 and seen == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_typescript_follows_no_redirect(
    status: int, other_server: tuple[str, list[str]], run_script: RunScript
) -> None:
    elsewhere, seen = other_server
    with serve_status(status, elsewhere) as (address, requests):
        for name, found, message in run_script("redirects", address):
            assert name == "JoineryError" and reports_redirect(message, found, status, elsewhere)
        assert len(requests) == 3 and seen == []


def test_typescript_reports_redirects_that_browsers_hide(run_script: RunScript) -> None:
    name, status, message = run_script("hiddenRedirect")
    assert (name, status) == ("JoineryError", None) and "redirects" in message and "base URL" in message


def reports_redirect(message: str, found: int | None, status: int, target: str) -> bool:
    return found == status and f"redirects to {target}/" in message and "base URL" in message
