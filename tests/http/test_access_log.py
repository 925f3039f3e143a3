"""Access log: one line per request with its IDs and without its content."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from entrypoints.http import logs
from tests.http.application import ApplicationHarness, create_settings, run_application
from tests.http.client import Client

pytestmark = pytest.mark.asyncio


@pytest.fixture(autouse=True)
def log_at_info() -> Iterator[None]:
    before = logs.ACCESS_LOG.level
    logs.ACCESS_LOG.setLevel(logging.INFO)
    yield
    logs.ACCESS_LOG.setLevel(before)


async def test_a_line_for_each_request(capsys: pytest.CaptureFixture[str]) -> None:
    async with run_application() as application:
        client = Client(application.app, None)
        for path in ("/v1/sources/src_secret?q=what-i-look-for", "/healthz", "/docs", "/console/links/token-of-a-link"):
            await client.get(path)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines() if '"joinery.access"' in line]
    assert [line["status"] for line in lines][:1] == [401] and "/healthz" not in [line["route"] for line in lines]
    assert all(line["method"] == "GET" and line["ms"] >= 0 for line in lines) and len(lines) == 3
    assert lines[0]["request_id"].startswith("req_")
    whole = json.dumps(lines)
    assert not [word for word in ("src_secret", "what-i-look-for", "token-of-a-link") if word in whole]


class OutdatedSchema:
    """Schema that lacks a migration."""

    incompatibility = "The database lacks migrations."

    async def check(self) -> str | None:
        return self.incompatibility

    async def require_compatible(self) -> None:
        raise AssertionError("no credential is looked at")


async def test_refused_hosts_and_schemas_are_logged_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    async with run_application(schema=OutdatedSchema()) as application:
        client = Client(application.app, None, "127.0.0.1")
        refused = [await client.get("/v1/products", host="a b"), await client.get("/v1/products")]
        counted = (await client.get("/metrics")).body.decode()
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines() if '"joinery.access"' in line]
    assert [(line["status"], line["route"]) for line in lines] == [(400, "unknown"), (503, "unknown")]
    assert [line["request_id"] for line in lines] == [response.headers["request-id"] for response in refused]
    assert all(f'route="unknown",status="{status}"' in counted for status in (400, 503))


async def test_a_disabled_access_log_writes_no_lines(capsys: pytest.CaptureFixture[str]) -> None:
    async with run_application(settings=create_settings(access_log=False)) as application:
        await Client(application.app, None).get("/v1/sources")
    assert '"joinery.access"' not in capsys.readouterr().err


@pytest.mark.parametrize("target", ["", "?x", "http://[/", "http://a]/v1/status", "v1/status"])
async def test_targets_that_are_not_paths_are_refused(application: ApplicationHarness, target: str) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": target, "query_string": b"", "headers": []}
    await application.app.asgi_app(scope, None, send)
    assert (sent[0]["status"], json.loads(sent[1]["body"])["code"]) == (400, "invalid_request")
