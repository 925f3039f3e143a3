"""Console pages of the organisation: audit log with undo, plan, exports and settings."""

import re
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
import pytest_asyncio

from domain.exports.ports import ExportStore
from domain.kernel.tenancy import Tenant
from domain.orgs.ports import OrgStore
from entrypoints.console.pages.audit import list_differences
from entrypoints.console.rendering import get_environment
from tests.http.application import OPERATOR, ApplicationHarness, run_application
from tests.support import builders

pytestmark = pytest.mark.asyncio
AUDIT = "/console/organisation/audit"


@pytest_asyncio.fixture
async def application() -> AsyncIterator[ApplicationHarness]:
    async with run_application() as application:
        yield application


async def test_the_audit_log_shows_actors_and_undoes_actions(application: ApplicationHarness) -> None:
    browser, client = await application.open_browser(person="Ada <b>Moreau"), await application.create_client()
    empty = await browser.get(AUDIT)
    assert empty.status == 200 and "No entries yet" in empty.text
    created = await client.post(
        "/v1/webhook-endpoints", {"url": "https://shop.example/hook", "event_types": ["*"], "description": "<hook>"}
    )
    assert created.status == 201, created.body
    page = await browser.get(AUDIT)
    assert "Create a webhook endpoint" in page.text and "API key" in page.text and "Can be undone</span>" in page.text
    assert "&lt;hook&gt;" in page.text and "<hook>" not in page.text and "whsec_" not in page.text
    entry = (await client.get("/v1/audit-events")).json()["data"][0]["id"]
    look = await browser.get(f"{AUDIT}/{entry}/undo")
    assert look.status == 200 and "Nothing has changed yet" in look.text and "Deleted" in look.text
    assert len((await client.get("/v1/webhook-endpoints")).json()["data"]) == 1
    done = await browser.follow(await browser.submit(look, f"{AUDIT}/{entry}/undo"))
    assert "Change undone" in done.text and "Undone" in done.text and "Ada &lt;b&gt;Moreau" in done.text
    assert (await client.get("/v1/webhook-endpoints")).json()["data"] == []
    again = await browser.get(f"{AUDIT}/{entry}/undo")
    assert "undone" in again.text.lower()
    none = await browser.get(f"{AUDIT}?object=export&since=2026-01-01&until=2026-12-31")
    assert "No matching entries" in none.text
    wrong = await browser.get(f"{AUDIT}?since=tomorrow")
    assert wrong.status == 400 and "tomorrow" in wrong.text
    assert (await browser.get(f"{AUDIT}/aud_unknown/undo")).status == 404


async def test_the_audit_log_requires_permission(application: ApplicationHarness) -> None:
    viewer, editor, other = (
        await application.open_browser(role="viewer"),
        await application.open_browser(role="editor"),
        await application.open_browser("Oak"),
    )
    client = await application.create_client()
    await client.post("/v1/webhook-endpoints", {"url": "https://shop.example/hook", "event_types": ["*"]})
    entry = (await client.get("/v1/audit-events")).json()["data"][0]["id"]
    assert (await viewer.get(AUDIT)).status == 403
    listed = await editor.get(AUDIT)
    assert listed.status == 200 and "/undo" not in listed.text
    assert (await editor.get(f"{AUDIT}/{entry}/undo")).status == 403
    assert (await other.get(f"{AUDIT}/{entry}/undo")).status == 404
    assert (
        "Organisation"
        not in (await (await application.open_browser(role="billing")).get("/console")).text.split("Audit log")[0][-20:]
    )


async def test_plan_and_usage(application: ApplicationHarness) -> None:
    page = await (await application.open_browser("Elm", "billing")).get("/console/organisation/usage")
    assert page.status == 200 and "High plan" in page.text and "Webhook deliveries" in page.text


async def test_an_export_is_started_and_watched(application: ApplicationHarness) -> None:
    elm, oak = await application.open_browser("Elm", "owner"), await application.open_browser("Oak", "viewer")
    place = "/console/organisation/exports"
    page = await elm.get(place)
    assert "No exports yet" in page.text
    bad = await elm.submit(page, place, kind="products", since="never")
    assert bad.status == 400 and "filters.updated_since" not in bad.text and "f-since-error" in bad.text
    started = await elm.follow(await elm.submit(page, place, kind="products", since="2026-11-01"))
    assert "changed since Nov 1, 2026" in started.text and 'hx-trigger="every 3s"' in started.text
    async with application.uow.begin(Tenant(application.orgs["Elm"].id, True), OPERATOR) as tx:
        await tx[ExportStore].add(builders.export())
    assert (await elm.get(place)).status == 200, "one of everything, which names no day and is not done"
    part = await elm.get(place, hx_request="true", hx_target="exports")
    assert part.text.lstrip().startswith('<div id="exports"') and "<html" not in part.text
    seen = await oak.get(place)
    assert seen.status == 200 and "Start export" not in seen.text
    assert (await oak.post(place, kind="products")).status == 403


async def test_settings_are_changed_by_managers_and_audited(application: ApplicationHarness) -> None:
    place = "/console/organisation/settings"
    admin, editor = await application.open_browser(role="admin"), await application.open_browser(role="editor")
    page = await admin.get(place)
    saved = await admin.follow(await admin.submit(page, place, name="  Fjord   & Søn ", api_version="2026-10-01"))
    assert "Settings saved" in saved.text and 'value="Fjord &amp; Søn"' in saved.text
    for name, version, field in (
        ("", "", "f-name-error"),
        ("x" * 101, "", "f-name-error"),
        ("F", "1999-01-01", "f-api_version"),
    ):
        refused = await admin.submit(page, place, name=name, api_version=version)
        assert refused.status == 400 and field in refused.text
    assert (await editor.get(place)).status == 200
    assert (await editor.submit(await editor.get("/console"), place, name="Mine", api_version="")).status == 403
    async with application.uow.begin_reading(Tenant(application.orgs["Fjord"].id, True)) as tx:
        own = await tx[OrgStore].get_organisation()
    assert own.name == "Fjord & Søn" and own.api_version == "2026-10-01"
    entry = (await (await application.create_client()).get("/v1/audit-events?action=orgs.change")).json()["data"][0]
    assert entry["before"] == {"name": "Fjord"} and entry["after"]["name"] == "Fjord & Søn"
    assert not entry["undo"]["available"] and entry["undo"]["reason"]


async def test_differences_are_listed_field_by_field() -> None:
    found = list_differences(
        {"a": {"b": {"c": 1}}, "s": "", "l": [1, 2]}, {"a": {"b": {"c": 2}}, "s": "x", "n": True, "l": [1, 2]}
    )
    assert [(one.path, one.old, one.new) for one in found] == [
        ("a.b.c", "1", "2"),
        ("s", "(empty)", "x"),
        ("n", None, "yes"),
    ]


async def test_bars_show_all_non_zero_values(application: ApplicationHarness) -> None:
    today = application.clock.now().date()
    days = [(today + timedelta(days=n), value) for n, value in enumerate((0, 1, 100_000))]
    drawn = get_environment().globals["day_bars"](days, "Use", str)
    assert re.findall(r'<rect[^>]* height="([^"]+)"', drawn) == ["1.5", "72.0"] and "Nov 21: 1<" in drawn
