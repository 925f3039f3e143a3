"""Errors explain the remedy: cursors, addresses, connectors, kinds of source, mail (docs/conventions.md#errors)."""

import re
from pathlib import Path
from typing import Any

import pytest

from domain.kernel.ids import new_id
from tests.http.application import ApplicationHarness, create_settings, run_application
from tests.http.client import Client, Response
from tests.http.sources import FILE_SOURCE, PUSH_SOURCE, open_source_harness
from tests.http.webhooks import ENDPOINTS_PATH, open_webhook_harness
from tests.support.services import ExternalFakes

pytestmark = pytest.mark.asyncio
ROOT = Path(__file__).resolve().parents[2]
ALLOW = "JOINERY_ALLOW_PRIVATE_HOSTS"


def _read_fault_detail(response: Response, field: str, code: str) -> str:
    """Return the detail of the only field error, which must have this field and code."""
    (fault,) = response.json()["errors"]
    assert (fault["field"], fault["code"]) == (field, code)
    return str(fault["detail"])


@pytest.mark.parametrize("name", ["starting_after", "ending_before"])
async def test_an_id_is_not_a_cursor(client: Client, name: str) -> None:
    message = _read_fault_detail(
        await client.get(f"/v1/sources?{name}={new_id('prod')}"), f"query.{name}", "invalid_cursor"
    )
    assert message == "This is the ID of a product, not a cursor. Send the next_cursor of the previous page."


@pytest.mark.parametrize("cursor", ["x", "%FF", "a" * 2000, "not%20a%20cursor", ""])
async def test_garbled_cursors_explain_the_remedy(client: Client, cursor: str) -> None:
    message = _read_fault_detail(
        await client.get(f"/v1/sources?starting_after={cursor}"), "query.starting_after", "invalid_cursor"
    )
    assert message.startswith("This is not a cursor. Send the unchanged next_cursor of the previous page")


async def test_a_cursor_of_other_filters_is_reported_as_such() -> None:
    async with open_source_harness() as harness:
        for _ in range(3):
            await harness.create_source()
        cursor = (await harness.client.get("/v1/sources?limit=1")).json()["next_cursor"]
        assert (await harness.client.get(f"/v1/sources?limit=2&starting_after={cursor}")).status == 200
        other = await harness.client.get(f"/v1/products?starting_after={cursor}")
        assert "does not belong to this list" in _read_fault_detail(other, "query.starting_after", "invalid_cursor")


async def test_cursors_of_the_feed_explain_the_remedy(client: Client) -> None:
    garbled = _read_fault_detail(await client.get("/v1/changes?cursor=nonsense"), "query.cursor", "invalid_cursor")
    assert garbled.startswith(
        "This is not a cursor of your change feed in this mode. Send an unchanged next_cursor of GET /v1/changes"
    )
    event = _read_fault_detail(
        await client.get(f"/v1/changes?cursor={new_id('evt')}"), "query.cursor", "invalid_cursor"
    )
    assert event.startswith("This is the ID of an event, not a cursor. Send an unchanged next_cursor")


async def test_unknown_parameters_name_the_closest(client: Client) -> None:
    assert _read_fault_detail(await client.get("/v1/sources?limt=5"), "query.limt", "unknown_field") == (
        "This parameter does not exist. Did you mean limit?"
    )
    assert "Available: ending_before, limit, starting_after" in _read_fault_detail(
        await client.get("/v1/sources?zzz=5"), "query.zzz", "unknown_field"
    )


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://10.0.0.7:9000/hooks", "The address is not public."),
        ("http://localhost:9000/hooks", "The host is this machine. Only public addresses are allowed."),
        ("http://[::1]:9000/hooks", "The address is not public."),
    ],
)
async def test_local_webhook_addresses_name_the_operators_setting(url: str, message: str) -> None:
    async with open_webhook_harness() as harness:
        response = await harness.sandbox.post(ENDPOINTS_PATH, {"url": url, "event_types": ["*"]})
        assert response.status == 422
        detail = _read_fault_detail(response, "url", "invalid_value")
        host = "[::1]" if "::1" in url else "localhost" if "localhost" in url else "10.0.0.7"
        assert detail.startswith(message) and f"add {host}:9000 to {ALLOW}" in detail and "GET /v1/changes" in detail
        live = await harness.client.post(ENDPOINTS_PATH, {"url": "http://receiver.example/", "event_types": ["*"]})
        assert "must start with https://" in _read_fault_detail(live, "url", "invalid_value")
    assert ALLOW in (ROOT / "docs" / "configuration.md").read_text("utf-8")


@pytest.mark.parametrize("url", ["http://10.0.0.7/feed.csv", "http://vendor.example:8080/feed.csv"])
async def test_refused_addresses_of_sources_and_probes_name_it_too(url: str) -> None:
    async with open_source_harness() as harness:
        source = await harness.client.post("/v1/sources", {"name": "x", "kind": "url", "config": {"url": url}})
        probe = await harness.client.post("/v1/source-probes", {"url": url})
        assert (source.status, probe.status) == (422, 422)
        assert ALLOW in _read_fault_detail(source, "config.url", "invalid_value")
        assert ALLOW in _read_fault_detail(probe, "url", "invalid_value")


async def test_errors_list_the_connectors() -> None:
    async with open_source_harness() as harness:
        wrong: dict[str, Any] = {"name": "x", "kind": "url", "config": {"url": "https://vendor.example/"}}
        response = await harness.client.post("/v1/sources", wrong | {"connector": "nonsense"})
        assert "For kind url use: " in _read_fault_detail(response, "connector", "invalid_value")


@pytest.mark.parametrize(("given", "start"), [(FILE_SOURCE, "/uploads"), (PUSH_SOURCE, "/records")])
async def test_sources_that_are_not_pulled_explain_what_starts_their_runs(given: dict[str, Any], start: str) -> None:
    async with open_source_harness() as harness:
        source = (await harness.client.post("/v1/sources", given)).json()
        response = await harness.client.post(f"/v1/sources/{source['id']}/runs", {})
        assert response.status == 422
        assert start in response.json()["detail"] and "/replay" in response.json()["detail"]


async def test_mail_sources_require_a_mail_domain() -> None:
    outside = ExternalFakes()
    async with run_application(
        settings=create_settings(mail_domain=None), connectors=outside.connectors
    ) as application:
        client = await application.create_client()
        inbound = {"inbound": {"senders": ["orders@vendor.example"]}}
        response = await client.post("/v1/sources", {"name": "x", "kind": "mail", "config": inbound})
        assert response.status == 422
        assert "JOINERY_MAIL_DOMAIN" in _read_fault_detail(response, "config.inbound", "invalid_value")


async def test_a_key_of_the_other_mode_is_reported_with_its_mode(application: ApplicationHarness) -> None:
    response = await (await application.create_client(livemode=False)).get("/v1/sources", service_mode="live")
    message = _read_fault_detail(response, "header.Service-Mode", "invalid_value")
    assert message == "Your key is a test key, and its mode is fixed. Omit Service-Mode, or use a live key."


async def test_credential_errors_are_explained_without_repeating_the_credential() -> None:
    async with open_source_harness() as harness:
        source = await harness.create_source(kind="api", config={})
        path = f"/v1/sources/{source['id']}/credentials"
        response = await harness.client.send_json("PUT", path, {"credentials": {"tokn": "hunter2-secret"}})
        assert response.status == 400 and b"hunter2" not in response.body
        assert all(fault["detail"] for fault in response.json()["errors"])


MESSAGES = re.compile(r"(?:raise|return) [A-Z]\w+(?:\.of)?\((?:[^()]|\([^()]*\))*\)")
SHOWN = (
    "domain",
    "entrypoints/http",
    "entrypoints/areas",
    "adapters/http",
    "adapters/api_json",
    "adapters/pluggy/host.py",
)


async def test_no_message_shows_a_python_repr() -> None:
    """`!r` formats texts as Python does, which is acceptable only in commands and logs for operators."""
    shown = []
    for place in SHOWN:
        path = ROOT / place
        for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
            for found in MESSAGES.finditer(file.read_text("utf-8")):
                if "!r" in found[0] and "ValueError" not in found[0] and "TypeError" not in found[0]:
                    shown.append((str(file.relative_to(ROOT)), found[0][:120]))
    assert shown == []
