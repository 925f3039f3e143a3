"""Neither client follows a redirect: the key goes to the host that it was given for, and to no other."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support.shipped_clients import imported
from tests.unit.clients.test_typescript_runtime import RunScript, run_script

pytestmark = pytest.mark.slow

__all__ = ["run_script"]


@contextmanager
def served(status: int, location: str = "") -> Iterator[tuple[str, list[str]]]:
    """A server that answers every request so; its address, and what came to it."""
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            seen.append(f"{self.command} {self.path}")
            self.send_response(status)
            if location:
                self.send_header("Location", location + self.path)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        do_GET = do_POST = do_PUT = answer

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", seen
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def other_server() -> Iterator[tuple[str, list[str]]]:
    with served(200) as found:
        yield found


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_python_follows_no_redirect(status: int, other_server: tuple[str, list[str]], tmp_path: Path) -> None:
    package, (elsewhere, seen) = imported(), other_server
    file = tmp_path / "feed.csv"
    file.write_bytes(b"a")
    with served(status, elsewhere) as (address, requests):
        with package.Joinery(address, "secret") as client:
            calls = [
                client.orgs.get,
                lambda: client.sources.create({"name": "a", "kind": "push"}),
                lambda: client._core.put(address + "/objects/1", {}, file, 1),
            ]
            for call in calls:
                with pytest.raises(package.JoineryError) as caught:
                    call()
                assert is_clear(str(caught.value), caught.value.status, status, elsewhere)

        async def awaited() -> None:
            async with package.AsyncJoinery(address, "secret") as client:
                await client.orgs.get()

        with pytest.raises(package.JoineryError) as caught:
            asyncio.run(awaited())
        assert is_clear(str(caught.value), caught.value.status, status, elsewhere)
        assert len(requests) == 4 and seen == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_typescript_follows_no_redirect(
    status: int, other_server: tuple[str, list[str]], run_script: RunScript
) -> None:
    elsewhere, seen = other_server
    with served(status, elsewhere) as (address, requests):
        for name, found, message in run_script("redirects", address):
            assert name == "JoineryError" and is_clear(message, found, status, elsewhere)
        assert len(requests) == 3 and seen == []


def test_typescript_reports_redirects_that_browsers_hide(run_script: RunScript) -> None:
    name, status, message = run_script("hiddenRedirect")
    assert (name, status) == ("JoineryError", None) and "redirects" in message and "base URL" in message


def is_clear(message: str, found: int | None, status: int, elsewhere: str) -> bool:
    return found == status and f"redirects to {elsewhere}/" in message and "base URL" in message
