"""Console pages for developers: keys, webhooks, request logs, events and the API reference."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest
import pytest_asyncio

from domain.kernel.ids import new_id
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Actor, Tenant
from domain.webhooks.model import DeliveryFilter
from domain.webhooks.ports import WebhookStore
from entrypoints.areas.registry import AREAS
from entrypoints.console.pages import logs
from tests.http.application import OPERATOR, ApplicationHarness, run_application
from tests.http.browser import BrowserPage, ConsoleBrowser
from tests.http.client import Client
from tests.support import builders

pytestmark = pytest.mark.asyncio
HERE = "/console/developers"
SPITE = "<img src=x onerror=alert(1)>\"'{{123457*123457}}"
OPERATIONS = [row for area in AREAS for row in area.operations]


@pytest_asyncio.fixture
async def application() -> AsyncIterator[ApplicationHarness]:
    async with run_application() as application:
        yield application


async def _create_key(browser: ConsoleBrowser, **fields: str) -> tuple[BrowserPage, str]:
    """Create a key by the form; return the page and the secret."""
    form = await browser.get(f"{HERE}/keys/new")
    page = await browser.submit(
        form, f"{HERE}/keys/new", **{"name": "Sync", "scope_selection": "all", "mode": "live"} | fields
    )
    found = re.search(r"<code>(svc_[0-9A-Za-z_]+)</code>", page.text)
    return page, found[1] if found else ""


def _insert_key(application: ApplicationHarness, name: str, *, livemode: bool = True) -> str:
    statement = "SELECT id FROM api_keys WHERE org = %s AND livemode = %s AND name = %s"
    return str(application.database.fetch_rows(statement, application.orgs["Fjord"].id, livemode, name)[0].id)


async def test_keys_are_visible_only_to_roles_that_create_them(application: ApplicationHarness) -> None:
    for role, status in (("owner", 200), ("admin", 200), ("developer", 200), ("editor", 403), ("viewer", 403)):
        browser = await application.open_browser(role=role)
        assert (await browser.get(f"{HERE}/keys")).status == status, role
        assert (await browser.get(f"{HERE}/keys/new")).status == status, role
    billing = await application.open_browser(role="billing")
    for place in ("keys", "apps", "webhooks", "requests", "events"):
        assert (await billing.get(f"{HERE}/{place}")).status == 403, place


async def test_a_keys_secret_is_shown_once_and_works(application: ApplicationHarness) -> None:
    browser = await application.open_browser(role="developer")
    page, secret = await _create_key(browser, name=f"Sync {SPITE}", networks="203.0.113.0/24", expires="30")
    assert page.status == 201 and secret.startswith("svc_live_") and page.header("cache-control") == "no-store"
    assert "<img" not in page.text and str(123457**2) not in page.text
    listed = await browser.get(f"{HERE}/keys")
    assert secret not in listed.text and secret[-4:] in listed.text and "203.0.113.0/24" in listed.text
    assert "&lt;img src=x" in listed.text and "<img" not in listed.text and "never" in listed.text
    response = await Client(application.app, secret).get("/v1/org")
    assert response.status == 200 and (await Client(application.app, secret).get("/v1/no-such-path")).status == 404
    key = _insert_key(application, f"Sync {SPITE}")
    await application.sink.write(
        [builders.request_log(Tenant(application.orgs["Fjord"].id, True), actor=Actor("api_key", key))]
    )
    assert ">never</span>" not in (await browser.get(f"{HERE}/keys")).text


async def test_a_key_is_created_as_requested(application: ApplicationHarness) -> None:
    browser = await application.open_browser(role="developer")
    form = await browser.get(f"{HERE}/keys/new")
    assert 'value="read" checked' in form.text and '<option value="90" selected>' in form.text
    _, secret = await _create_key(
        browser, mode="test", restricted="true", scope_selection="selected", scopes="products:read"
    )
    assert secret.startswith("svc_rk_test_")
    restricted = Client(application.app, secret)
    assert (await restricted.get("/v1/products")).status == 200 and (await restricted.get("/v1/sources")).status == 403
    _, reads = await _create_key(browser, name="Reads", scope_selection="read")
    assert (await Client(application.app, reads).post("/v1/sources", {"name": "x", "kind": "push"})).status == 403
    page, none = await _create_key(browser, scope_selection="selected", scopes="billing:write")
    assert page.status == 400 and not none and "at least one" in page.text
    page, none = await _create_key(browser, name="Second", networks="everywhere <b>")
    assert page.status == 400 and not none and "everywhere &lt;b&gt;" in page.text and 'value="Second"' in page.text
    page, none = await _create_key(browser, name="Reads")
    assert page.status == 409 and "exists" in page.text and not none


async def test_a_key_is_revoked_after_confirmation(application: ApplicationHarness) -> None:
    browser = await application.open_browser()
    _, secret = await _create_key(browser)
    place = f"{HERE}/keys/{_insert_key(application, 'Sync')}/revoke"
    question = await browser.get(place)
    assert (
        "You can't undo this" in question.text and (await Client(application.app, secret).get("/v1/org")).status == 200
    )
    assert (await browser.post(place)).status == 403, "without the form's token"
    other = await application.open_browser("Oak")
    assert (await other.get(place)).status == 303, "another organisation's is none"
    assert (await other.submit(await other.get("/console"), place)).status == 404
    developer = await application.open_browser(role="developer")
    assert (await developer.submit(await developer.get(place), place)).status == 403
    shown = await browser.follow(await browser.submit(question, place))
    assert " revoked" in shown.text and secret[-4:] not in shown.text
    assert secret[-4:] in (await browser.get(f"{HERE}/keys?show=revoked")).text
    assert (await browser.submit(question, place)).status == 404


async def test_creating_a_key_requires_recent_authentication(application: ApplicationHarness) -> None:
    browser = await application.open_browser()
    form = await browser.get(f"{HERE}/keys/new")
    application.clock.advance(timedelta(minutes=16))
    for late in (await browser.get(f"{HERE}/keys/new"), await browser.submit(form, f"{HERE}/keys/new", name="x")):
        assert late.status == 303 and late.header("location") == f"/console/confirm?next={HERE}/keys/new"
    assert "No keys yet" in (await browser.get(f"{HERE}/keys")).text


async def test_lists_are_paged_by_cursor(application: ApplicationHarness) -> None:
    browser = await application.open_browser()
    for _n in range(23):
        await application.create_key(application.orgs["Fjord"])
    first = await browser.get(f"{HERE}/keys")
    [following] = re.findall(r'rel="next" href="([^"]+)"', first.text)
    second = await browser.get(following.replace("&amp;", "&"))
    assert first.text.count("/revoke") == 20 and second.text.count("/revoke") == 3
    assert "First page" in second.text and 'rel="next"' not in second.text


async def _create_endpoint(browser: ConsoleBrowser, **fields: str) -> tuple[BrowserPage, str]:
    form = await browser.get(f"{HERE}/webhooks/new")
    sent = {
        "url": "https://receiver.example/hooks",
        "event_selection": "selected",
        "event_types": "offer.changed",
        "payload": "thin",
    }
    page = await browser.submit(form, f"{HERE}/webhooks/new", **sent | fields)
    found = re.search(rf"{HERE}/webhooks/(whe_\w+)", page.text)
    return page, found[1] if found else ""


async def test_an_endpoint_is_created_changed_and_deleted(application: ApplicationHarness) -> None:
    browser = await application.open_browser(role="developer")
    assert "No endpoints yet" in (await browser.get(f"{HERE}/webhooks")).text
    page, _ = await _create_endpoint(browser, url="http://10.0.0.1/hooks")
    assert page.status >= 400 and 'value="http://10.0.0.1/hooks"' in page.text and "notice bad" in page.text
    page, id_ = await _create_endpoint(browser, description=SPITE, coalesce_seconds="30")
    [secret] = re.findall(r"whsec_[^<]+(?=</code>)", page.text)
    place = f"{HERE}/webhooks/{id_}"
    shown = await browser.get(place)
    assert page.status == 201 and secret not in shown.text and "<img" not in shown.text + page.text
    assert "<img" not in (await browser.get(f"{HERE}/webhooks")).text
    form = await browser.get(f"{place}/edit")
    sent = {
        "version": form.field("version"),
        "url": "https://receiver.example/other",
        "event_selection": "all",
        "payload": "thin",
    }
    saved = await browser.follow(await browser.submit(form, f"{place}/edit", **sent))
    assert "all types" in saved.text and "Disabled" in saved.text and "Endpoint saved" in saved.text
    stale = await browser.submit(
        form, f"{place}/edit", **sent | {"event_selection": "all", "url": "https://receiver.example/3"}
    )
    assert stale.status == 412
    rotated = await browser.submit(await browser.get(f"{place}/rotate"), f"{place}/rotate", overlap_hours="24")
    [other] = re.findall(r"whsec_[^<]+(?=</code>)", rotated.text)
    assert other != secret and secret[-4:] in rotated.text
    outsider = await application.open_browser("Oak")
    for below in ("", "/edit", "/rotate", "/recover", "/delete"):
        assert (await outsider.get(place + below)).status == 404, below
    viewer = await application.open_browser(role="viewer")
    assert (await viewer.get(place)).status == 200 and (await viewer.get(f"{place}/edit")).status == 403
    assert "/rotate" not in (await viewer.get(place)).text
    gone = await browser.follow(await browser.submit(await browser.get(f"{place}/delete"), f"{place}/delete"))
    assert "Endpoint deleted" in gone.text and id_ not in gone.text


async def test_deliveries_are_shown_filtered_and_sent_again(application: ApplicationHarness) -> None:
    browser = await application.open_browser(role="developer")
    _, id_ = await _create_endpoint(browser)
    place = f"{HERE}/webhooks/{id_}"
    tested = await browser.follow(await browser.submit(await browser.get(place), f"{place}/test"))
    assert "webhook.test" in tested.text and "Resend" not in tested.text
    assert 'hx-trigger="every 2s"' in tested.text, "the response appears without a reload"
    async with application.uow.begin_reading(Tenant(application.orgs["Fjord"].id, True)) as tx:
        [kept] = (await tx[WebhookStore].list_deliveries(DeliveryFilter(), PageRequest(2))).items
    attempt = builders.attempt(failure="http_status", response_status=503, response_body=SPITE)
    failed = replace(kept, status="failed", next_attempt_at=None, attempts=(attempt,), body=SPITE.encode())
    application.database.execute("DELETE FROM webhook_deliveries")
    async with application.uow.begin(Tenant(application.orgs["Fjord"].id, True), OPERATOR) as tx:
        await tx[WebhookStore].add_delivery(failed)
    shown = await browser.get(f"{place}/deliveries/{kept.id}")
    assert "503" in shown.text and "&lt;img src=x" in shown.text and "<img" not in shown.text
    assert "status was not 2xx" in shown.text
    part = await browser.get(f"{place}/deliveries/{kept.id}", hx_request="true", hx_target="delivery")
    assert part.text.startswith('<div id="delivery"') and "503" in part.text and "hx-trigger" not in part.text
    listed = await browser.get(f"{place}?status=failed&type=webhook.test")
    assert kept.id in listed.text and "Clear filters" in listed.text
    assert kept.id not in (await browser.get(f"{place}?status=succeeded")).text
    wrong = await browser.get(f"{place}?status=nonsense")
    assert wrong.status == 200 and "notice bad" in wrong.text
    again = await browser.submit(shown, f"{place}/deliveries/{kept.id}/resend")
    assert "Resending the delivery" in (await browser.follow(again)).text
    outsider = await application.open_browser("Oak")
    assert (await outsider.get(f"{place}/deliveries/{kept.id}")).status == 404
    form = await browser.get(f"{place}/recover")
    since = await browser.submit(form, f"{place}/recover", since="2026-11-01T10:00", until="")
    assert "Resending " in (await browser.follow(since)).text
    assert (await browser.submit(form, f"{place}/recover", since="yesterday")).status == 400


async def test_request_logs_are_filtered_and_shown_whole(application: ApplicationHarness) -> None:
    browser, tenant = await application.open_browser(role="developer"), Tenant(application.orgs["Fjord"].id, True)
    assert "No requests yet" in (await browser.get(f"{HERE}/requests")).text
    logs = [
        builders.request_log(tenant, path="/v1/products", query=SPITE, user_agent=SPITE),
        builders.request_log(tenant, path="/v1/sources/none", status=404, error_code="not_found"),
    ]
    await application.sink.write(logs)
    listed = await browser.get(f"{HERE}/requests")
    assert all(log.id in listed.text for log in logs) and "<img" not in listed.text
    found = await browser.get(f"{HERE}/requests?status=4xx&method=&error_code=not_found&since=2020-01-01T00:00")
    assert logs[1].id in found.text and logs[0].id not in found.text
    one = await browser.get(f"{HERE}/requests/{logs[0].id}")
    assert one.status == 200 and "&lt;img" in one.text and "<img" not in one.text
    assert (await browser.get(f"{HERE}/requests?since=yesterday")).status == 400
    assert (await browser.get(f"{HERE}/requests?cursor=nonsense")).status == 400
    assert (await (await application.open_browser("Oak")).get(f"{HERE}/requests/{logs[0].id}")).status == 404
    assert (await (await application.open_browser(role="viewer")).get(f"{HERE}/requests")).status == 403


async def _switch_to_test_mode(application: ApplicationHarness, role: str = "developer") -> ConsoleBrowser:
    browser = await application.open_browser(role=role)
    await browser.submit(await browser.get("/console"), "/console/switch", mode="test")
    return browser


async def test_events_are_listed_by_type(application: ApplicationHarness) -> None:
    browser = await _switch_to_test_mode(application)
    assert "No events yet" in (await browser.get(f"{HERE}/events")).text
    client = await application.create_client(livemode=False)
    for type_ in ("offer.changed", "product.updated"):
        assert (await client.post("/v1/test/events", {"type": type_})).status == 202
    listed = await browser.get(f"{HERE}/events")
    assert listed.text.count('class="feed-head"') == 2 and f'data-events="{HERE}/events/stream/all"' in listed.text
    narrowed = await browser.get(f"{HERE}/events?types=offer.changed")
    assert narrowed.text.count('class="feed-head"') == 1
    wrong = await browser.get(f"{HERE}/events?types=../../{SPITE}")
    assert "notice bad" in wrong.text and "data-events" not in wrong.text and "<img" not in wrong.text


async def test_events_are_shown_live_until_the_session_ends(
    application: ApplicationHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "HEARTBEAT_SECONDS", 0.5)
    browser = await _switch_to_test_mode(application)
    following = asyncio.create_task(browser.get(f"{HERE}/events/stream/all"))
    await asyncio.sleep(0.1)
    client = await application.create_client(livemode=False)
    await client.post("/v1/test/events", {"type": "offer.changed"})
    await asyncio.sleep(0.1)
    await application.sessions.revoke_all(browser.user.id)
    stream = await asyncio.wait_for(following, 10)
    assert stream.header("content-type") == "text/event-stream; charset=utf-8"
    assert "event: show\ndata: " in stream.text and "offer.changed" in stream.text
    assert stream.text.endswith("event: end\ndata: reload\n\n")


async def test_every_operation_has_a_page(application: ApplicationHarness) -> None:
    browser = await application.open_browser(role="viewer")
    listed = await browser.get(f"{HERE}/reference")
    for row in OPERATIONS:
        assert f'href="{HERE}/reference/{row.id}"' in listed.text
        page = await browser.get(f"{HERE}/reference/{row.id}")
        assert page.status == 200 and ("<form" in page.text.split("<main")[1]) is not row.is_stream, row.id
        assert not re.search(r"<[^>]*\s(style|on[a-z]+)\s*=", page.text), row.id
    assert "/v1/offers" in (await browser.get(f"{HERE}/reference?q=List+OFFERS")).text
    assert "No operations found" in (await browser.get(f"{HERE}/reference?q=zzz")).text
    assert (await browser.get(f"{HERE}/reference/nothing.at_all")).status == 404


async def test_an_operation_is_sent_in_test_mode_as_the_person(application: ApplicationHarness) -> None:
    browser = await application.open_browser(role="developer")
    place = f"{HERE}/reference/webhooks.create"
    form = await browser.get(place)
    fields = {"body.url": "https://receiver.example/it's", "body.event_types": '["offer.changed"]'}
    tried = await browser.submit(form, place, **fields, **{"body.coalesce_seconds": "30"})
    assert tried.status == 200 and ">201</span>" in tried.text and "&#34;livemode&#34;: false" in tried.text
    assert "Idempotency-Key" in tried.text and "receiver.example/it" in tried.text and ">RateLimit</th>" in tried.text
    assert "No endpoints yet" in (await browser.get(f"{HERE}/webhooks")).text, "live data is left alone"
    rehearsed = await browser.submit(form, place, dry_run="explain", **fields)
    assert "&#34;object&#34;: &#34;preview&#34;" in rehearsed.text
    wrong = await browser.submit(form, place, **fields | {"body.event_types": "[not json"})
    assert wrong.status == 400 and "This is not valid JSON" in wrong.text and "[not json" in wrong.text
    refused = await browser.submit(form, place, **fields | {"body.url": SPITE})
    assert refused.status == 200 and "invalid_request" in refused.text and "<img" not in refused.text
    missing = await browser.submit(form, f"{HERE}/reference/sources.read", **{"path.id": "../../../etc <b>"})
    assert ">404</span>" in missing.text and "<b>" not in missing.text
    assert (await browser.submit(form, f"{HERE}/reference/changes.stream")).status == 404
    assert (await browser.post(place, **fields)).status == 403


async def test_operations_are_refused_by_role(application: ApplicationHarness) -> None:
    viewer = await application.open_browser(role="viewer")
    place = f"{HERE}/reference/sources.create"
    form = await viewer.get(place)
    tried = await viewer.submit(form, place, **{"body.name": "x", "body.kind": "push"})
    assert "include the scope" in form.text and ">403</span>" in tried.text and "permission_denied" in tried.text


async def test_a_test_key_is_used_and_never_shown(application: ApplicationHarness) -> None:
    browser = await application.open_browser(role="developer")
    _, secret = await application.create_key(application.orgs["Oak"], livemode=False)
    _, live = await application.create_key(application.orgs["Oak"])
    place = f"{HERE}/reference/orgs.read"
    form = await browser.get(place)
    tried = await browser.submit(form, place, key=secret)
    assert application.orgs["Oak"].id in tried.text and secret not in tried.text
    for wrong in (live, "nonsense", new_id("key")):
        refused = await browser.submit(form, place, key=wrong)
        assert refused.status == 400 and wrong not in refused.text and "Enter a test key" in refused.text
