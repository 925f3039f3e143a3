"""Server of the documentation site, and Chromium."""

import asyncio
import os
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from entrypoints.api.pages import PublicPages
from entrypoints.console.rendering import get_static_files
from tests.support.built_site import build_site
from tests.support.operation_table import load_operation_table
from tests.support.postgres import server as postgres_server

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


def find_chromium() -> str | None:
    """Find the program; CHROMIUM overrides it."""
    return os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="session", autouse=True)
def database_server() -> None:
    """Start PostgreSQL in a thread of the process's lifetime, because the server ends with its thread."""
    started = threading.Event()

    def run() -> None:
        asyncio.run(postgres_server())
        started.set()
        threading.Event().wait()

    threading.Thread(target=run, daemon=True).start()
    assert started.wait(60)


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """Serve the pages as the application does; return the address."""
    build_site()
    pages = PublicPages(load_operation_table(), "http://127.0.0.1:8080", "http://127.0.0.1:8080")

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            found = (
                get_static_files().find(path) or pages.find_response(path, "") or pages.build_not_found_response(path)
            )
            self.send_response(found.status)
            for name, value in found.headers:
                self.send_header(name.decode(), value.decode())
            self.end_headers()
            self.wfile.write(found.body)

        def log_message(self, format: str, *args: Any) -> None:
            """Write no log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Start Chromium; skip the tests if it is missing."""
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright: make test-browser installs it")
    pytest.importorskip("axe_playwright_python", reason="needs axe-playwright-python: make test-browser installs it")
    program = find_chromium()
    if program is None:
        pytest.skip("needs Chromium (apt-get install chromium), or CHROMIUM=/path/to/it")
    with api.sync_playwright() as started:
        made = started.chromium.launch(executable_path=program, args=list(FLAGS))
        yield made
        made.close()
